/* SPDX-License-Identifier: MIT
 * Report on the links between ranks. */
#ifndef TND_REPORT_LINKS_H
#define TND_REPORT_LINKS_H

#include "base/text.h"
#include "table/tnd_table.h"

/** Prints latency and bandwidth of each pair, and all-reduces, measured and predicted. Nothing
 * without links. */
void tnd_links_print(struct tnd_text *out, const struct tandem_table *table);

#endif
