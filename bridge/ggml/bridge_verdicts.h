/* SPDX-License-Identifier: MIT
 * What was measured of the host's kernels and ours, and the file that keeps it from process to
 * process. */
#ifndef TND_BRIDGE_VERDICTS_H
#define TND_BRIDGE_VERDICTS_H

#include <stdbool.h>
#include <stddef.h>

#include "tandem/tensor.h"

enum { TND_TOKEN_CLASSES = 3, TND_SIZE_CLASSES = 4, TND_PRODUCT_KINDS = 4 };
/** Of a product: 0 plain, 1 of experts, and 2 more where rows of weights are short: what a row
 *  costs besides its values weighs more there. */
int tnd_verdicts_kind(bool has_experts, int64_t k);

enum { TND_VERDICTS_MOST_BYTES = 16384 /* of a file */, TND_FINGERPRINT_MOST = 480 };

struct tnd_bridge_verdict {
    bool is_known;
    bool is_measured;                  /* else another size stands in for it */
    bool is_calm;                      /* nothing disturbed: worth keeping */
    bool is_placed;                    /* weights where we can use them cost the host nothing */
    bool is_faster[TND_TOKEN_CLASSES]; /* than the host with weights there */
};
struct tnd_bridge_verdicts {
    struct tnd_bridge_verdict of[TND_PRODUCT_KINDS][TANDEM_TYPE_NUMBERS][TND_SIZE_CLASSES];
};

/** Reads a file in memory: true when it is one, whole, with this fingerprint (one line of printable
 *  characters). Then all that it tells is in `out`; else `out` stays as it is. */
bool tnd_verdicts_parse(const char *bytes, size_t n, const char *fingerprint,
                        struct tnd_bridge_verdicts *out);
/** Those measured in calm as such a file, into `out`; returns its length, 0: too long. */
size_t tnd_verdicts_print(const struct tnd_bridge_verdicts *verdicts, const char *fingerprint,
                          char *out, size_t n);
/** The same from and to the user's cache folder. What cannot be read or written is left alone:
 *  there is nothing then, and measuring takes place. */
void tnd_verdicts_load(const char *fingerprint, struct tnd_bridge_verdicts *io);
void tnd_verdicts_save(const char *fingerprint, const struct tnd_bridge_verdicts *verdicts);

/** Least seconds of a product with a number of tokens. */
struct tnd_bridge_times {
    double ours;   /* and of starting the host's threads once more, as each one of ours makes it */
    double loaded; /* the host, with weights as its loaders would keep them */
    double plain;  /* the host, with weights where we can use them */
    bool is_calm;  /* the middle of each was near the least, and nobody took a CPU from us */
};
/** Sets `is_faster` and `is_placed` by the times of each class of tokens. */
void tnd_verdict_judge(struct tnd_bridge_verdict *out,
                       const struct tnd_bridge_times times[TND_TOKEN_CLASSES]);

#endif
