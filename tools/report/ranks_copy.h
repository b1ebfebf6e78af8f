/* SPDX-License-Identifier: MIT
 * The copy that a rank keeps of a file of rank 0's, in its cache: a file of the same layout with
 * holes where nothing was sent, and a record of what is there (formats/partial.h). */
#ifndef TND_RANKS_COPY_H
#define TND_RANKS_COPY_H

#include <limits.h>

#include "formats/partial.h"

enum { TND_RANKS_WHY = 200 };

/** What rank 0 has. */
struct tnd_ranks_offer {
    uint64_t bytes, digest;
    uint64_t head; /* bytes before the weights of a GGUF file; 0: others need all of the file */
};

/** A copy. All zero but for `file`: none. */
struct tnd_ranks_copy {
    struct tnd_ranks_offer offer;
    char whole[PATH_MAX]; /* its name once it is complete, if it must be */
    char path[PATH_MAX];  /* its name */
    int file;             /* -1: there is none yet */
    bool is_complete;     /* and named so */
    struct tnd_partial partial;
    struct tnd_spans came; /* that the record lacks yet */
};

/** Finds the copy of `name` in a folder (NULL: the user's own), and looks whether it holds what was
 *  written into it: what does not is forgotten, with a note that begins with `who`. False, and the
 *  reason: there can be none. */
bool tnd_ranks_copy_find(struct tnd_ranks_copy *copy, const char *folder, const char *name,
                         const char *who, char why[TND_RANKS_WHY]);
/** Reads the record once more: another rank may have added to it. */
void tnd_ranks_copy_look(struct tnd_ranks_copy *copy);
/** Before `missing` comes: makes the file, if there is room for it. False: see `why`. */
bool tnd_ranks_copy_begin(struct tnd_ranks_copy *copy, const struct tnd_spans *missing,
                          char why[TND_RANKS_WHY]);
/** Writes what came; the bytes may be changed. False: see `why`. */
bool tnd_ranks_copy_put(struct tnd_ranks_copy *copy, uint64_t at, char *bytes, size_t n,
                        char why[TND_RANKS_WHY]);
/** Adds what came to the record. False: see `why`. */
bool tnd_ranks_copy_keep(struct tnd_ranks_copy *copy, char why[TND_RANKS_WHY]);
/** Where a program finds the copy, which gets its name where it must be complete and is. */
const char *tnd_ranks_copy_path(struct tnd_ranks_copy *copy);
/** Bytes on the disk. */
uint64_t tnd_ranks_copy_disk(const struct tnd_ranks_copy *copy);
void tnd_ranks_copy_close(struct tnd_ranks_copy *copy);

#endif
