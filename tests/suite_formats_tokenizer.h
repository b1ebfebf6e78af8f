/* SPDX-License-Identifier: MIT
 * What the suites of tokenizer files ask of each format. */
#ifndef TND_TESTS_SUITE_FORMATS_TOKENIZER_H
#define TND_TESTS_SUITE_FORMATS_TOKENIZER_H

#include "tandem/tokenizer.h"

typedef enum tandem_status (*tnd_test_read_fn)(const void *bytes, size_t n, const char *name,
                                               tandem_tokenizer **out_tokenizer,
                                               struct tandem_error *error);

/** The ids of a text, written as "1 2 3". */
void tnd_test_check_ids(const tandem_tokenizer *tokenizer, const char *text, bool special,
                        const char *want);
/** Reads the file cut at each byte, and with each byte changed in some ways: an error with a
 *  message, or a tokenizer that can be used. */
void tnd_test_cut_everywhere(tnd_test_read_fn read, const void *bytes, size_t n);
void tnd_test_change_everywhere(tnd_test_read_fn read, const void *bytes, size_t n);
/** Reads and encodes while one allocation after the other fails. */
void tnd_test_fail_each_allocation(tnd_test_read_fn read, const void *bytes, size_t n);

#endif
