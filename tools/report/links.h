/* SPDX-License-Identifier: MIT
 * What the links between ranks bring and cost. */
#ifndef TND_REPORT_LINKS_H
#define TND_REPORT_LINKS_H

#include "base/text.h"
#include "table/tnd_table.h"

/** Microseconds of a sum of `bytes` on so many ranks by the slowest message of the transport; 0:
 *  none was measured. Whole: every rank gets the vectors of all; in segments: one of each, and then
 *  the sums of the others. */
double tnd_links_sum_us(const struct tandem_table *table, const char *transport, int ranks,
                        double bytes, bool in_segments);
/** Latency and bandwidth of each pair, sums measured and predicted. Nothing without links. */
void tnd_links_print(struct tnd_text *out, const struct tandem_table *table);

#endif
