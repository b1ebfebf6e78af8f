/* SPDX-License-Identifier: MIT
 * What parser and writer of the text table share: backend numbers, and the names of profiles, which
 * the format lacks. */
#ifndef TND_TABLE_TEXT_H
#define TND_TABLE_TEXT_H

#include "base/text.h"
#include "table/tnd_table.h"

#define TND_TEXT_KINDS 6 /* version 1 has backend numbers 0 to 5 */

/** Name of a backend number: "cpu", "cuda", ... for 1 to 5; "" for 0. */
const char *tnd_table_text_kind(int kind);
/** Sets tasks and name of a profile of which the file has only backends and flags. */
void tnd_table_text_name(enum tandem_type type, struct tnd_table_profile *profile);
/** Appends "cpu, cpu-packed and cpu-amx": profiles that share a row of the text table, since it
 * cannot tell them apart; it gets the times of the one that is fastest in total. False when no row
 * is shared. */
bool tnd_table_text_shares(const struct tandem_table *table, struct tnd_text *out_names);

#endif
