/* SPDX-License-Identifier: MIT
 * The weights of a model for `fit`: out of a model file, of which no weight is read, or out of the
 * sizes of a model that is known by name. */
#ifndef TANDEM_LLAMA_FIT_WEIGHTS_H
#define TANDEM_LLAMA_FIT_WEIGHTS_H

#include "tandem/formats.h"
#include "tune/fit_model.h"

struct tnd_fit_weights {
    int n;
    struct tnd_fit_weight *list;
    char (*names)[TANDEM_MAX_NAME]; /* of a known model; else NULL */
    int64_t n_used;                 /* experts that a token uses; 0: all */
    int64_t bytes;
    enum tandem_type type; /* of most bytes */
    tandem_source *source; /* of a file; else NULL */
};

/** `type`: of a model that is known by name. `out` is ended with tnd_fit_weights_fini. Errors:
 *  MEMORY, those of the readers. */
enum tandem_status tnd_fit_weights_open(const char *model, enum tandem_type type,
                                        struct tnd_fit_weights *out, struct tandem_error *error);
/** A zeroed one is allowed. */
void tnd_fit_weights_fini(struct tnd_fit_weights *weights);

#endif
