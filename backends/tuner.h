/* SPDX-License-Identifier: MIT
 * Finding the numbers of a device's kernels by measuring, for kinds of backends that have such
 * numbers. Knows no particular device. */
#ifndef TND_TUNER_H
#define TND_TUNER_H

#include "tandem/backend.h"

/** One candidate, measured. */
struct tnd_tuner_step {
    const char *family; /* of kernels: "matvec" */
    const char *text;   /* the candidate's numbers */
    double us;          /* of one product; negative: the device refused the candidate */
    double gflops;
    bool is_best;     /* so far, in its family */
    int index, count; /* of all steps */
};

struct tnd_tuner_options {
    enum tandem_type type; /* of the weights to measure with */
    int most_candidates;   /* at most so many of each family; 0: all */
    bool without_saving;   /* the numbers serve the open device alone */
    /* Called after each candidate; false stops the tuner. */
    bool (*progress)(void *user, const struct tnd_tuner_step *step);
    /* Called once for each number that was found. */
    void (*found)(void *user, const char *name, int value);
    void *user;
};

struct tnd_tuner {
    const struct tandem_backend_api *api; /* the kind */
    /** Measures, makes the open device use the best numbers and keeps them for later opens. Errors:
     *  CANCELLED (by progress), those of the device, FILE (not kept, but in use), MEMORY. */
    enum tandem_status (*tune)(tandem_backend *backend, const struct tnd_tuner_options *options,
                               struct tandem_error *error);
    /** Microseconds of the launch of a kernel among many, by itself and in a graph of launches (0:
     *  the device has none), and how many were timed. Takes less than a second; nothing else should
     *  run on the device. Errors: those of the device. */
    enum tandem_status (*launches)(tandem_backend *backend, double *out_us, double *out_graph_us,
                                   uint32_t *out_count, struct tandem_error *error);
};

/** The i-th tuner of this build; NULL beyond the last. */
const struct tnd_tuner *tnd_tuner_at(int i);

#endif
