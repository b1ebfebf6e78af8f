/* SPDX-License-Identifier: MIT
 * What the llama suites share: the trained model, opened once, and texts generated with it. */
#ifndef TND_TESTS_SUITE_LLAMA_H
#define TND_TESTS_SUITE_LLAMA_H

#include "tandem/llama.h"
#include "tests/support.h"

#define TND_TEXT_BYTES 4096

/** The trained model of the test data with its tokenizer. */
struct tnd_trained {
    tandem_source *source;
    tandem_model *model;
    tandem_tokenizer *tokenizer;
};

/** False after a skip when there is no test data. `version`: 0 or 1. */
bool tnd_trained_open(struct tnd_trained *trained, int version);
void tnd_trained_close(struct tnd_trained *trained);

/** A runtime without a table; `profile` may be NULL. Fails the test when it cannot be opened. */
tandem_runtime *tnd_test_runtime(int n_threads, const char *profile);

/** Greedy text as tandem-llama run prints it, with its newline, into `out` (TND_TEXT_BYTES). */
enum tandem_status tnd_greedy_text(const struct tnd_trained *trained, tandem_runtime *runtime,
                                   const char *prompt, int64_t steps, int64_t batch, char *out,
                                   struct tandem_error *error);

/** The same with a session of other options; `options->context` is set to the steps. */
enum tandem_status tnd_greedy_text_with(const struct tnd_trained *trained, tandem_runtime *runtime,
                                        const struct tandem_session_options *options,
                                        const char *prompt, int64_t steps, int64_t batch, char *out,
                                        struct tandem_error *error);

/** Fails the test when one cannot be opened. `context` as in tandem_session_options. */
tandem_session *tnd_test_session(const tandem_model *model, tandem_runtime *runtime,
                                 int64_t context);
/** Greedy for temperature 0; fails the test when it cannot be opened. */
tandem_sampler *tnd_test_sampler(int64_t vocabulary, float temperature, float top_p, uint64_t seed);

/** A small synthetic llama of the shape that has everything: grouped heads, several layers. */
tandem_source *tnd_small_llama(enum tandem_type type, int64_t context);

#endif
