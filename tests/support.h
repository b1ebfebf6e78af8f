/* SPDX-License-Identifier: MIT
 * What every test suite needs on top of CUnit: a main, checks that say more than "failed", buffers
 * with guards, seeded random numbers, skips, and the place of the test data.
 *
 * The checks call CUnit, which is not thread-safe: call them on the main thread only. */
#ifndef TND_TESTS_SUPPORT_H
#define TND_TESTS_SUPPORT_H

#include <CUnit/CUnit.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tandem/status.h"

/* ---- running ---- */

/** Runs the suites of all given CU_SuiteInfo arrays; the list ends with NULL:
 *  `int main(int argc, char **argv) { return tnd_suites_run(argc, argv, arena_suites, NULL); }`
 *  Options: -s SUITE and -t TEST select (exact names), -l lists. Returns the exit code. */
int tnd_suites_run(int argc, char **argv, CU_SuiteInfo *suites, ...);

/** Says that the running test cannot do (a part of) its work here, and counts it; the test goes on,
 *  so `return` after it. tests/expected-skips lists the reasons that `make check` accepts. */
void tnd_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** How much work a test may do: 1 is `make check-fast`, 2 is `make check`, 3 is `make soak`
 *  (from TANDEM_TEST_EFFORT; 2 when unset). */
int tnd_effort(void);

/* ---- checks ----
 * Each is one CUnit assertion and returns whether it held. */

/** `check_status(call(..., &error), TANDEM_E_SHAPE, "mul_mat", &error)`: the call returns this
 *  status and, when `part` is not NULL, the message in `error` contains it. */
#define check_status(expression, wanted, part, error)                                              \
    tnd_check_status((expression), (wanted), (part), (error), #expression, __FILE__, __LINE__)
/** The expression returns TANDEM_OK. */
#define check_ok(expression) check_status(expression, TANDEM_OK, NULL, NULL)

/** Normalised mean squared error sum((got-want)^2)/sum(want^2) of `n` floats is at most `limit`.
 *  `what` is printed when it is not (seed, problem string). Not-a-number on either side fails. */
#define check_nmse(got, want, n, limit, what)                                                      \
    tnd_check_nmse((got), (want), (n), (limit), (what), __FILE__, __LINE__)
/** The same against a double-precision reference. */
#define check_nmse_double(got, want, n, limit, what)                                               \
    tnd_check_nmse_double((got), (want), (n), (limit), (what), __FILE__, __LINE__)

/** `bytes` bytes are equal; the first difference is printed. */
#define check_bits(got, want, bytes, what)                                                         \
    tnd_check_bits((got), (want), (bytes), (what), __FILE__, __LINE__)

/** Two integers are equal; prints both. */
#define check_int(got, want)                                                                       \
    tnd_check_int((int64_t)(got), (int64_t)(want), #got, __FILE__, __LINE__)

/** Two strings are equal; prints both. NULL equals nothing. */
#define check_string(got, want) tnd_check_string((got), (want), #got, __FILE__, __LINE__)

/** `text` contains `part`. */
#define check_contains(text, part) tnd_check_contains((text), (part), #text, __FILE__, __LINE__)

bool tnd_check_status(enum tandem_status got, enum tandem_status want, const char *part,
                      const struct tandem_error *error, const char *what, const char *file,
                      int line);
bool tnd_check_nmse(const float *got, const float *want, int64_t n, double limit, const char *what,
                    const char *file, int line);
bool tnd_check_nmse_double(const float *got, const double *want, int64_t n, double limit,
                           const char *what, const char *file, int line);
bool tnd_check_bits(const void *got, const void *want, size_t bytes, const char *what,
                    const char *file, int line);
bool tnd_check_int(int64_t got, int64_t want, const char *what, const char *file, int line);
bool tnd_check_string(const char *got, const char *want, const char *what, const char *file,
                      int line);
bool tnd_check_contains(const char *text, const char *part, const char *what, const char *file,
                        int line);

/* ---- buffers with guards ---- */

/** A buffer that ends exactly at an unreadable page (reading or writing behind it traps) and has 64
 *  guard bytes in front. `alignment` is a power of two up to 64; the end stands at the page only as
 *  near as the alignment allows, the gap holds guard bytes too. Filled with 0xA5. Never NULL. */
void *tnd_guarded_alloc(size_t bytes, size_t alignment);
/** Whether the guard bytes are as they were; prints what is not. */
bool tnd_guarded_intact(const void *buffer);
/** Checks the guard bytes (one assertion) and frees. NULL is allowed. */
void tnd_guarded_free(void *buffer);

/* ---- random numbers: the same for one seed on every machine ---- */

struct tnd_test_rng {
    uint64_t state;
};
/** The seed of this run: TANDEM_TEST_SEED, else 1. It is printed when a run fails. */
uint64_t tnd_test_seed(void);
struct tnd_test_rng tnd_test_rng_new(uint64_t seed);
uint64_t tnd_test_rng_next(struct tnd_test_rng *rng);
/** Uniform in [low, high], both included. */
int64_t tnd_test_rng_int(struct tnd_test_rng *rng, int64_t low, int64_t high);
/** Uniform in [-1, 1). */
float tnd_test_rng_float(struct tnd_test_rng *rng);
void tnd_test_fill(struct tnd_test_rng *rng, float *values, int64_t n);

/* ---- files ---- */

/** Path of a file of the test data, for example tnd_test_data("quants/Q4_0.rand.f32.bin"): in
 *  TANDEM_TEST_DATA, else ../shared/data, where that has such a folder ("quants"); else the
 *  stand-in of that name, made by the build. NULL after a tnd_skip when there is neither. Valid
 *  until the fourth call from now. */
const char *tnd_test_data(const char *name);
/** Whether tnd_test_data gives a stand-in for this name: a test that knows values of the real file
 *  then asks for those of the stand-in. */
bool tnd_test_stands_in(const char *name);
/** Path of a file that this test may write; the folder is fresh for each process and is removed at
 *  the end of the run. Valid until the fourth call from now. */
const char *tnd_test_temp(const char *name);
/** Path of a file in the folder of the running suite; valid until the next call. */
const char *tnd_test_beside(const char *name);
/** Reads a whole file into malloc'ed memory with a terminating zero; NULL when that fails. */
void *tnd_test_read_file(const char *path, size_t *out_bytes);
/** Writes a whole file; false when that fails. */
bool tnd_test_write_file(const char *path, const void *data, size_t bytes);

#endif
