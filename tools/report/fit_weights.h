/* SPDX-License-Identifier: MIT
 * The weights of a model as tune/fit_model.h wants them: of a model file, of which no weight is
 * read, or of a model that is known by name. */
#ifndef TND_FIT_WEIGHTS_H
#define TND_FIT_WEIGHTS_H

#include "tandem/formats.h"
#include "tune/fit_model.h"
#include "tune/placement.h"

struct tnd_fit_weights {
    int n;
    struct tnd_fit_weight *list; /* in the order of the source; names are the source's */
    int64_t n_used;              /* experts that a token uses; 0: all */
    int64_t n_experts;           /* of a layer at most */
    int64_t n_layers;            /* the highest number and one; 0: none has a number */
    int64_t bytes;
    enum tandem_type type; /* of most bytes */
};

/** Lists the tensors of a source, which must outlive `out`. `out` is ended with
 *  tnd_fit_weights_fini. Errors: MEMORY. */
enum tandem_status tnd_fit_weights_list(const tandem_source *source, struct tnd_fit_weights *out,
                                        struct tandem_error *error);
/** "8,24": GiB of each device, at [side]; false for anything else. */
bool tnd_fit_read_memory(const char *text, int n_devices, int64_t out_bytes[TND_FIT_SIDES]);

/** Use of experts after Zipf: of each layer's experts the r-th is used in proportion to r^-skew, by
 *  all tokens at most, `n_used` by a token on the average. The caller frees it (tnd_free). Returns
 *  NULL without memory, and for numbers that cannot be. */
double *tnd_fit_skewed_use(double skew, int64_t n_used, int64_t experts, int64_t layers);

/** How tnd_fit_place treats experts. */
struct tnd_fit_skew {
    double skew; /* of tnd_fit_skewed_use; below 0: experts of a layer stay together */
    /* Asked for a weight that stands for the `n` most used experts of the one with this data;
     * returns its data. NULL: no memory. */
    const void *(*add_hot)(void *user, const void *data, int64_t n);
    void *user;
};

/** Decides where the weights of a source live, for a prompt and an answer (TND_FIT_ANSWER_TOKENS).
 *  `slots`: of side 1, 2, ... The caller owns the placement. Errors: those of tnd_fit_model_new. */
enum tandem_status tnd_fit_place(const tandem_source *source, struct tnd_fit_options *options,
                                 const uint8_t *slots, const struct tnd_fit_skew *skew,
                                 struct tnd_placement **out_placement, struct tandem_error *error);
/** A zeroed one is allowed. */
void tnd_fit_weights_fini(struct tnd_fit_weights *weights);

#endif
