/* SPDX-License-Identifier: MIT
 * What the table suites share beyond support_tune.h. */
#ifndef TND_TESTS_SUITE_TABLE_H
#define TND_TESTS_SUITE_TABLE_H

#include "table/tnd_table.h"

/** Key of a product of n x 32 weights on a backend. */
struct tnd_curve_key table_key_of(const char *backend, int64_t n, int threads);
/** A profile whose COMPUTE is one task of the backend. */
void table_add_profile(tandem_table *table, const char *name, const char *backend, int kind);
/** Some value in every field. */
void table_fill_fingerprint(struct tnd_fingerprint *fingerprint);

/** A table with something of every kind. */
tandem_table *table_full(void);

#endif
