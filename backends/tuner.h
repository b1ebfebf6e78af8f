/* SPDX-License-Identifier: MIT
 * Kernel numbers: parameters of a backend's kernels that depend on the machine (tiles of a device,
 * prefetch distance of a CPU), for kinds of backends that have such parameters. As text they are
 * "name=value,..", for one family of kernels at a time. Tuners only measure candidates; the times
 * become records of the table, from which tune/kernel_numbers.h chooses. */
#ifndef TND_TUNER_H
#define TND_TUNER_H

#include "tandem/backend.h"

enum { TND_NUMBERS_MAX = 96 /* bytes of "name=value,..", terminated */ };

/** Time of a candidate for one product, repeated. */
struct tnd_tuner_time {
    const char *family;    /* of kernels: "matvec" */
    const char *numbers;   /* the candidate */
    enum tandem_type type; /* of the weights, n x k; m tokens */
    int64_t n, k, m;
    int threads; /* 1 on devices */
    const float *us;
    int n_us;         /* 0: the device refused the candidate, or it was wrong */
    double error;     /* relative squared error against the results of another candidate that must
                   * agree; negative: not checked */
    int index, count; /* of all measurements */
};

struct tnd_tuner_options {
    enum tandem_type type; /* of the weights to measure with; F32 (0): Q4_0 */
    int most_candidates;   /* limit for each family; 0: all */
    /** Called after each measurement; false stops the tuner. */
    bool (*timed)(void *user, const struct tnd_tuner_time *time);
    /** Called when a family's candidates were measured; writes the numbers that the backend uses
     * from then on: `prior` or one of the candidates. */
    void (*choose)(void *user, const char *family, const char *prior, char out[TND_NUMBERS_MAX]);
    void *user;
};

/** A number that is measured by ordinary products with one profile, value by value; it is a family
 * of its own. Lists end: values with a negative one, types with F32 after the first, others with
 * 0. */
struct tnd_number_sweep {
    const char *name;
    const char *profile;
    int values[9];
    enum tandem_type types[6];
    int n_types;
    int m[7];
};

struct tnd_tuner {
    const struct tandem_backend_api *api; /* the kind */
    /** The current values of the numbers in `names` ("name,.." or "name=value,.."), in its order;
     * false: one of them does not exist. */
    bool (*present)(tandem_backend *backend, const char *names, char out[TND_NUMBERS_MAX]);
    /** Makes the open backend use these numbers; numbers that are not named keep their values.
     * Nothing changes on errors. No computation may be in progress. Errors: ARGUMENT (no such
     * number, or the device cannot run such kernels). */
    enum tandem_status (*use)(tandem_backend *backend, const char *numbers,
                              struct tandem_error *error);
    /** Measures candidates on a device that is otherwise idle; NULL: `sweeps` are measured
     * (measure/measure_numbers.h). Errors: CANCELLED (by `timed`; the numbers are unchanged), those
     * of the device, MEMORY. */
    enum tandem_status (*tune)(tandem_backend *backend, const struct tnd_tuner_options *options,
                               struct tandem_error *error);
    /** The part of `tune` for the family "launches": time per kernel launch among many, separately
     * ("graphs=0") and, if the device supports them, in a graph of launches ("graphs=1"). The
     * product {16, 1}, m = 1 in its records is a placeholder. NULL: the kind launches nothing.
     * Takes less than a second. */
    enum tandem_status (*launches)(tandem_backend *backend, const struct tnd_tuner_options *options,
                                   struct tandem_error *error);
    const struct tnd_number_sweep *sweeps;
    int n_sweeps;
};

/** The i-th tuner of this build; NULL beyond the last. Devices come first. */
const struct tnd_tuner *tnd_tuner_at(int i);
/** The tuner of an open backend; NULL: it has no kernel numbers. */
const struct tnd_tuner *tnd_tuner_of(const tandem_backend *backend);

/** A number in a struct of int32_t, for implementations of the functions above. */
struct tnd_number {
    const char *name;
    int32_t least, most;
    size_t offset; /* in bytes, within the struct */
};

/** Implements `present` for a list of numbers and the struct that holds their values. */
bool tnd_numbers_print(const struct tnd_number *list, int n, const void *values, const char *names,
                       char out[TND_NUMBERS_MAX]);
/** Parses untrusted "name=value,.." into a struct. `io_values` is undefined on errors. Errors:
 * ARGUMENT (empty text, an unknown or repeated name, a value out of range). */
enum tandem_status tnd_numbers_read(const struct tnd_number *list, int n, const char *numbers,
                                    const char *backend, void *io_values,
                                    struct tandem_error *error);

#endif
