/* SPDX-License-Identifier: MIT
 * room: table
 *
 * Timing tables: what each stage of each way of computing a matrix product costs on one machine,
 * over the number of tokens M. Written by mulmat-tune, read by the runtime. A table never decides
 * correctness: a wrong, old or missing one makes Tandem slower, never wrong. Formats:
 * docs/table-format.md. */
#ifndef TANDEM_TABLE_H
#define TANDEM_TABLE_H

#include "tandem/log.h"
#include "tandem/profile.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tandem_table tandem_table;

enum tandem_table_format {
    TANDEM_TABLE_TEXT = 1, /**< text, version 1: one weight type, one thread count, fixed M steps */
    TANDEM_TABLE_JSON = 2  /**< JSON, version 2 */
};

/** An empty table for this machine. The caller owns it. */
TANDEM_API enum tandem_status tandem_table_new(tandem_table **out_table,
                                               struct tandem_error *error);
/** Reads a file of either format, told apart by its first character that is not blank. Whatever is
 *  in the  file gives a table or a clear error: FILE, FORMAT, TRUNCATED, TABLE_VERSION, MEMORY,
 *  LIMIT,  UNSUPPORTED_BUILD (JSON in a build without cJSON). */
TANDEM_API enum tandem_status tandem_table_load(const char *path, tandem_table **out_table,
                                                struct tandem_error *error);
/** As tandem_table_load, from memory; `name` stands in messages. */
TANDEM_API enum tandem_status tandem_table_parse(const char *bytes, size_t n, const char *name,
                                                 tandem_table **out_table,
                                                 struct tandem_error *error);
/** Writes to a temporary file, syncs, renames: a reader sees the old file or the new one. */
TANDEM_API enum tandem_status tandem_table_save(const tandem_table *table, const char *path,
                                                enum tandem_table_format format,
                                                struct tandem_error *error);
/** Prints the table in a file format. */
TANDEM_API enum tandem_status tandem_table_print(const tandem_table *table,
                                                 enum tandem_table_format format,
                                                 tandem_write_fn write, void *user,
                                                 struct tandem_error *error);
/** Adds the cells of `other`: of two samples for one cell the one with the larger count, then the
 *  newer,  wins. Associative, commutative, idempotent. */
TANDEM_API enum tandem_status tandem_table_merge(tandem_table *table, const tandem_table *other,
                                                 struct tandem_error *error);
/** A table of the same contents, which the caller owns. Errors: MEMORY. */
TANDEM_API enum tandem_status tandem_table_copy(const tandem_table *table, tandem_table **out_table,
                                                struct tandem_error *error);
/** NULL is allowed. */
TANDEM_API void tandem_table_free(tandem_table *table);

/** OK when the table was measured on a machine like this one; else TABLE_FOREIGN, and the error
 *  names the  field that differs. A text table carries no fingerprint and is always accepted. */
TANDEM_API enum tandem_status tandem_table_check(const tandem_table *table,
                                                 struct tandem_error *error);

/** Path of this machine's own table, $XDG_CACHE_HOME/tandem/<fingerprint>.json or
 *  $HOME/.cache/tandem/..., or $TANDEM_TABLE where it is set. Fills `out` (always terminated).
 *  Errors:  NOT_FOUND without a home directory, LIMIT when `n` is too small. */
TANDEM_API enum tandem_status tandem_table_default_path(char *out, size_t n,
                                                        struct tandem_error *error);

#ifdef __cplusplus
}
#endif
#endif
