/* SPDX-License-Identifier: MIT
 * The bridge in the small host, tensors for it, and what its products must be. */
#ifndef TND_BRIDGE_CHECK_H
#define TND_BRIDGE_CHECK_H

#include "tests/bridge/small_host.h"

enum { N = 96, K = 512, MOST_M = 70, TYPES = 13 };
enum { X_BYTES = 4 * K * MOST_M, Y_AT = X_BYTES, Z_AT = 4 * (K + N) * MOST_M };

extern int n_passed;
extern int n_failed;
extern struct device *device; /* the bridge's, and its backend */
extern struct backend *backend;
extern struct buffer *activations;    /* X, then Y, then Z */
extern const int bridge_types[TYPES]; /* of weights: enum tandem_type */

#define CHECK(condition, ...) check((condition), __LINE__, #condition, __VA_ARGS__)
__attribute__((format(printf, 4, 5))) bool check(bool is_good, int line, const char *text,
                                                 const char *format, ...);
/** Random values; of weights in their type. */
void fill(void *out, int64_t n);
void fill_weights(const struct tensor *w);
struct tensor matrix(int type, int64_t ne0, int64_t ne1, struct buffer *buffer, size_t at);
/** A node of a product at a place in `buffer`. */
struct tensor product(struct tensor *w, struct tensor *x, struct buffer *buffer, size_t at);
/** The sum of squared errors over the sum of squares. */
double error_of(const struct tensor *y);
int compute(struct tensor **nodes, int n);

/** All tests of tests/bridge/bridge_loading.c. */
void weights_are_packed_while_they_are_loaded(void);

#endif
