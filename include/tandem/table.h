/* SPDX-License-Identifier: MIT
 * room: table
 *
 * Timing tables: the time of each stage of each profile of a matrix product on one machine, over
 * the number of tokens M. Written by mulmat-tune, read by the runtime. A table never decides
 * correctness: a wrong, old or missing one makes Tandem slower, never wrong. Formats:
 * docs/table-format.md.
 *
 * A table is a set of records. The fingerprint says on which machine they were measured; records of
 * a backend whose identity has changed since are not used. */
#ifndef TANDEM_TABLE_H
#define TANDEM_TABLE_H

#include "tandem/log.h"
#include "tandem/profile.h"

TANDEM_BEGIN_C

/** Owned by its creator. Any number of threads may read a table while none changes it. */
typedef struct tandem_table tandem_table;

/** Formats of files; numbers are pinned. */
enum tandem_table_format {
    TANDEM_TABLE_TEXT = 1, /**< text, version 1: one weight type, one thread count, fixed M steps */
    TANDEM_TABLE_JSON = 2  /**< JSON, version 2 */
};

/** What plans minimise. Energy is that of the whole machine, if a table has joules. */
enum tandem_objective {
    TANDEM_OBJECTIVE_TIME = 0,   /**< time */
    TANDEM_OBJECTIVE_ENERGY = 1, /**< energy */
    TANDEM_OBJECTIVE_EDP = 2     /**< the product of energy and time */
};

/** An empty table with the fingerprint of this machine. The caller owns it. Any thread. Errors:
 *  ARGUMENT, MEMORY. */
TANDEM_API enum tandem_status tandem_table_new(tandem_table **out_table,
                                               struct tandem_error *error);
/** Reads a file of either format, detected by its first character that is not blank. Any file
 * results in a table or a clear error. Errors: FILE, FORMAT, TRUNCATED, TABLE_VERSION, MEMORY,
 * LIMIT, UNSUPPORTED_BUILD (JSON in a build without cJSON). The caller owns the table. Any
 * thread. */
TANDEM_API enum tandem_status tandem_table_load(const char *path, tandem_table **out_table,
                                                struct tandem_error *error);
/** As tandem_table_load, from `n` bytes in memory, which are read during the call; `name` is used
 * in messages. Any thread. Errors: as tandem_table_load without FILE. */
TANDEM_API enum tandem_status tandem_table_parse(const char *bytes, size_t n, const char *name,
                                                 tandem_table **out_table,
                                                 struct tandem_error *error);
/** Writes the table to a file atomically: a reader sees the old file or the new one. Any thread
 * while nobody changes the table. Errors: FILE, MEMORY, ARGUMENT, UNSUPPORTED_BUILD (JSON without
 * cJSON), TABLE (contents that the text format cannot hold). */
TANDEM_API enum tandem_status tandem_table_save(const tandem_table *table, const char *path,
                                                enum tandem_table_format format,
                                                struct tandem_error *error);
/** Prints the table in a file format, in pieces. Any thread while nobody changes the table. Errors:
 *  as tandem_table_save; FILE when `write` stopped. */
TANDEM_API enum tandem_status tandem_table_print(const tandem_table *table,
                                                 enum tandem_table_format format,
                                                 tandem_write_fn write, void *user,
                                                 struct tandem_error *error);
/** Adds the cells of `other`: of two samples for one cell the one with the larger count, then the
 *  newer, wins. Associative, commutative, idempotent. `other` stays as it is. One thread at a time
 *  per `table`. Errors: MEMORY, ARGUMENT (NULL); then `table` stays as it is. */
TANDEM_API enum tandem_status tandem_table_merge(tandem_table *table, const tandem_table *other,
                                                 struct tandem_error *error);
/** A copy of a table, which the caller owns. Any thread while nobody changes `table`. Errors:
 * ARGUMENT (NULL), MEMORY. */
TANDEM_API enum tandem_status tandem_table_copy(const tandem_table *table, tandem_table **out_table,
                                                struct tandem_error *error);
/** Frees a table; a runtime keeps its own copy. NULL is allowed. Never fails. One thread at a
 * time. */
TANDEM_API void tandem_table_free(tandem_table *table);

/** OK when the table was measured on a machine like this one; else TABLE_FOREIGN, and the error
 *  names the field that differs. A text table carries no fingerprint and is always accepted. Any
 *  thread. Errors: TABLE_FOREIGN, ARGUMENT (NULL). */
TANDEM_API enum tandem_status tandem_table_check(const tandem_table *table,
                                                 struct tandem_error *error);

/** Path of this machine's own table, $XDG_CACHE_HOME/tandem/<fingerprint>.json or
 *  $HOME/.cache/tandem/..., or $TANDEM_TABLE where it is set. Fills `out` (always terminated).
 *  Any thread.
 *  Errors: NOT_FOUND (no home directory), LIMIT (`n` is too small). */
TANDEM_API enum tandem_status tandem_table_default_path(char *out, size_t n,
                                                        struct tandem_error *error);

/** The median of successive measurements (of an even number the lower one of the middle two), and
 * in `out_error_us` (NULL: not wanted) its standard error, by their spread and number; above 0 even
 * for a single time. Only the first 64 of `us` {n} count; without any: 0. Any thread. Never
 * fails. */
TANDEM_API double tandem_judge_times(const float *us, int n, double *out_error_us);

TANDEM_END_C
#endif
