/* SPDX-License-Identifier: MIT
 * What the files of this room share beyond tnd_table.h: limits, bulk building, and the two formats
 * behind table_file.c. */
#ifndef TND_TABLE_CELLS_H
#define TND_TABLE_CELLS_H

#include "table/tnd_table.h"

/* Bounds on the contents of a file: far above real tables, low enough to keep a hostile file
 * cheap. */
#define TND_TABLE_MAX_SAMPLES    4096       /* of one curve */
#define TND_TABLE_MAX_EXTENT     1073741824 /* M, N and K */
#define TND_TABLE_MAX_US         1e12       /* eleven days */
#define TND_TABLE_MAX_GENERATION 1000000000u
#define TND_TABLE_MAX_BYTES      (32u << 20) /* of a file */

/** Order of keys by only type, N, K, op. */
int tnd_curve_key_compare_shape(const struct tnd_curve_key *a, const struct tnd_curve_key *b);
/** Index of the first curve that is not before `key`. */
int tnd_table_lower_bound(const struct tandem_table *table, const struct tnd_curve_key *key);
/** Index of the first curve after `at` with another type, N, K or op. */
int tnd_table_next_shape(const struct tandem_table *table, int at);
/** Like tnd_cell_add, but appends; call tnd_record_sort before searching. */
enum tandem_status tnd_cell_append(struct tandem_table *table, enum tnd_record kind,
                                   const void *record, const struct tnd_sample *sample);
/** Total order of profiles by name, then stages. */
int tnd_table_profile_compare(const struct tnd_table_profile *a, const struct tnd_table_profile *b);

/** Copies fields of `other`'s machine that `table` does not know. TABLE_FOREIGN when the two
 * machines differ. */
enum tandem_status tnd_fingerprint_merge(struct tandem_table *table,
                                         const struct tandem_table *other,
                                         struct tandem_error *error);

/** Parsers fill an empty table; on failure it may be partly filled, tandem_table_free frees it.
 * Expects `n` bytes, followed by a zero byte. `name` is used in messages. */
enum tandem_status tnd_table_read_text(const char *bytes, size_t n, const char *name,
                                       struct tandem_table *out, struct tandem_error *error);
enum tandem_status tnd_table_read_json(const char *bytes, size_t n, const char *name,
                                       struct tandem_table *out, struct tandem_error *error);
enum tandem_status tnd_table_write_json(const struct tandem_table *table, tandem_write_fn write,
                                        void *user, struct tandem_error *error);

/** Hash of the contents of a JSON file, without the kinds of records from TND_RECORD_LATER on;
 * stored as "checksum". docs/table-format.md. */
uint64_t tnd_table_checksum(const struct tandem_table *table);
/** Hash of those later kinds and of cpu_id, stored as "checksum_later"; 0 without any. */
uint64_t tnd_table_checksum_later(const struct tandem_table *table);

/** Line and column (from 1) of the byte at index `at`. */
void tnd_table_place(const char *bytes, size_t at, int *out_line, int *out_column);

#endif
