/* SPDX-License-Identifier: MIT
 * Summaries of tables as text: their contents, and which layers are used on this machine. */
#ifndef MULMAT_TUNE_TABLE_SHOW_H
#define MULMAT_TUNE_TABLE_SHOW_H

#include "base/text.h"
#include "table/table_layers.h"
#include "table/invalidate.h"

/** Machine, profiles, and for each type, backend and task: shapes, M, threads, cells, age. */
void tnd_show_table(struct tnd_text *out, const struct tandem_table *table);

/** One line per layer. */
void tnd_show_layers(struct tnd_text *out, const struct tnd_layers *layers);

/** One line per field that differs. */
void tnd_show_invalid(struct tnd_text *out, const struct tnd_invalid_report *report);

#endif
