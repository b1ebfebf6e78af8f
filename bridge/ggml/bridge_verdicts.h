/* SPDX-License-Identifier: MIT
 * What was measured of the host's kernels and ours, and the file that keeps it from process to
 * process. */
#ifndef TND_BRIDGE_VERDICTS_H
#define TND_BRIDGE_VERDICTS_H

#include <stdbool.h>
#include <stddef.h>

#include "tandem/tensor.h"

enum { TND_TOKEN_CLASSES = 3, TND_SIZE_CLASSES = 4, TND_PRODUCT_KINDS = 2 /* plain, experts */ };
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

#endif
