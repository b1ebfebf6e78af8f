/* SPDX-License-Identifier: MIT
 * What the links between ranks bring and cost. */
#ifndef TND_REPORT_LINKS_H
#define TND_REPORT_LINKS_H

#include "base/text.h"
#include "table/tnd_table.h"

/** Latency and bandwidth of each pair, sums measured and predicted. Nothing without links. */
void tnd_links_print(struct tnd_text *out, const struct tandem_table *table);

#endif
