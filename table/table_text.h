/* SPDX-License-Identifier: MIT
 * What reader and writer of the text table share: its backend numbers, the names that its nameless
 * profiles get. */
#ifndef TND_TABLE_TEXT_H
#define TND_TABLE_TEXT_H

#include "base/text.h"
#include "table/tnd_table.h"

#define TND_TEXT_KINDS 6 /* backend numbers 0 to 5 exist in version 1 */

/** "cpu", "cuda", ... for 1 to 5; "" for 0. */
const char *tnd_table_text_kind(int kind);
/** Fills in tasks and name of a profile of which the file gives only backends and flags. */
void tnd_table_text_name(enum tandem_type type, struct tnd_table_profile *profile);
/** Adds "cpu, cpu-packed and cpu-amx": profiles that share a row of the text table, since it cannot
 *  tell them apart; the times of the one that is fastest in all are written. False when no row is
 *  shared. */
bool tnd_table_text_shares(const struct tandem_table *table, struct tnd_text *out_names);

#endif
