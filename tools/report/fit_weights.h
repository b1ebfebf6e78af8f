/* SPDX-License-Identifier: MIT
 * The weights of a model for tune/fit_model.h: of a model file, whose weights are not read, or of a
 * named model size. */
#ifndef TND_FIT_WEIGHTS_H
#define TND_FIT_WEIGHTS_H

#include "tandem/formats.h"
#include "tune/fit_model.h"
#include "tune/placement.h"

struct tnd_fit_weights {
    int n;
    struct tnd_fit_weight *list; /* in the source's order; the source owns the names */
    int64_t n_used;              /* experts that a token uses; 0: all */
    int64_t n_experts;           /* largest number of experts in a layer */
    int64_t n_layers;            /* the highest layer number plus one; 0: no layer is numbered */
    int64_t bytes;
    enum tandem_type type; /* the one with the most bytes */
};

/** Lists the tensors of a source, which must outlive `out`. End with tnd_fit_weights_fini. Errors:
 * MEMORY. */
enum tandem_status tnd_fit_weights_list(const tandem_source *source, struct tnd_fit_weights *out,
                                        struct tandem_error *error);
/** Parses "8,24": GiB of each device, stored at [side]; false for anything else. */
bool tnd_fit_read_memory(const char *text, int n_devices, int64_t out_bytes[TND_FIT_SIDES]);

/** Use of experts by Zipf's law: the r-th expert of each layer is used in proportion to r^-skew, at
 * most by all tokens, `n_used` by a token on average. The caller frees it (tnd_free). NULL when out
 * of memory or for impossible numbers. */
double *tnd_fit_skewed_use(double skew, int64_t n_used, int64_t experts, int64_t layers);

/** How tnd_fit_place treats experts. */
struct tnd_fit_skew {
    double skew; /* for tnd_fit_skewed_use; below 0: experts of a layer stay together */
    /* Creates a weight that represents the `n` most used experts of the weight with this data;
     * returns its data. NULL: out of memory. */
    const void *(*add_hot)(void *user, const void *data, int64_t n);
    void *user;
};

/** Places the weights of a source for a prompt and an answer (TND_FIT_ANSWER_TOKENS). `slots`:
 * those of sides 1, 2, ... The caller owns the placement. Errors: those of tnd_fit_model_new. */
enum tandem_status tnd_fit_place(const tandem_source *source, struct tnd_fit_options *options,
                                 const uint8_t *slots, const struct tnd_fit_skew *skew,
                                 struct tnd_placement **out_placement, struct tandem_error *error);
/** A zeroed one is allowed. */
void tnd_fit_weights_fini(struct tnd_fit_weights *weights);

#endif
