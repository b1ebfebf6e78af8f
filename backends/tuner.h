/* SPDX-License-Identifier: MIT
 * Numbers of a backend's kernels that depend on the machine (tiles of a device, how far ahead a CPU
 * fetches), for kinds of backends that have such numbers. They stand as text, "name=value,..", of
 * one family of kernels at a time. Which serve is not decided here: candidates are measured, their
 * times become records of the table, and tune/kernel_numbers.h chooses by these. */
#ifndef TND_TUNER_H
#define TND_TUNER_H

#include "tandem/backend.h"

enum { TND_NUMBERS_MAX = 96 /* bytes of "name=value,..", its end included */ };

/** What a candidate took for one product, run after run. */
struct tnd_tuner_time {
    const char *family;    /* of kernels: "matvec" */
    const char *numbers;   /* the candidate */
    enum tandem_type type; /* of the weights, n x k; m tokens */
    int64_t n, k, m;
    int threads; /* 1 on devices */
    const float *us;
    int n_us;     /* 0: the device refused the candidate, or it was wrong */
    double error; /* of results against those of another candidate that must be the same: squares
                         of differences over squares; negative: they were not looked at */
    int index, count; /* of all measurements */
};

struct tnd_tuner_options {
    enum tandem_type type; /* of the weights to measure with; F32 (0): Q4_0 */
    int most_candidates;   /* at most this many of each family; 0: all */
    /** Called after each measurement; false stops the tuner. */
    bool (*timed)(void *user, const struct tnd_tuner_time *time);
    /** Called once a family's candidates are measured: the numbers that serve, `prior` or one of
     *  them, which the backend uses from then on. */
    void (*choose)(void *user, const char *family, const char *prior, char out[TND_NUMBERS_MAX]);
    void *user;
};

/** A number that is measured by ordinary products of one profile, one value after the other; it is
 *  its own family. Lists end with a value below 0, with F32 behind the first, and with 0. */
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
    /** The values in use of the numbers that `names` names ("name,.." or "name=value,.."), in its
     *  order; false: one of them does not exist. */
    bool (*present)(tandem_backend *backend, const char *names, char out[TND_NUMBERS_MAX]);
    /** Makes the open backend use numbers, of which the others stay; nothing changes on errors. No
     *  computation may be in progress. Errors: ARGUMENT (no such number, or the device cannot run
     *  such kernels). */
    enum tandem_status (*use)(tandem_backend *backend, const char *numbers,
                              struct tandem_error *error);
    /** Measures candidates on a device that nobody uses meanwhile; NULL: `sweeps` are measured
     *  (measure/measure_numbers.h). Errors: CANCELLED (by `timed`; the numbers are those of
     *  before), those of the device, MEMORY. */
    enum tandem_status (*tune)(tandem_backend *backend, const struct tnd_tuner_options *options,
                               struct tandem_error *error);
    /** The part of `tune` for the family "launches": what a launch of a kernel takes among many, by
     *  itself ("graphs=0") and, where the device has them, in a graph of launches ("graphs=1"). Its
     *  product {16, 1}, m = 1 is none. NULL: nothing is launched. Takes less than a second. */
    enum tandem_status (*launches)(tandem_backend *backend, const struct tnd_tuner_options *options,
                                   struct tandem_error *error);
    const struct tnd_number_sweep *sweeps;
    int n_sweeps;
};

/** The i-th tuner of this build; NULL beyond the last. Devices come first. */
const struct tnd_tuner *tnd_tuner_at(int i);
/** The tuner of an open backend; NULL: it has no such numbers. */
const struct tnd_tuner *tnd_tuner_of(const tandem_backend *backend);

/** A number of a struct of int32_t, for those that implement the functions above. */
struct tnd_number {
    const char *name;
    int32_t least, most;
    size_t offset; /* in the struct */
};

/** `present` for a list of numbers and the struct that holds their values. */
bool tnd_numbers_print(const struct tnd_number *list, int n, const void *values, const char *names,
                       char out[TND_NUMBERS_MAX]);
/** Reads "name=value,.." into a struct; it is not trusted. `io_values` is undefined on errors.
 *  Errors: ARGUMENT (nothing, an unknown or repeated name, a value that is out of its range). */
enum tandem_status tnd_numbers_read(const struct tnd_number *list, int n, const char *numbers,
                                    const char *backend, void *io_values,
                                    struct tandem_error *error);

#endif
