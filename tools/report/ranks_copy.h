/* SPDX-License-Identifier: MIT
 * A rank's copy of a file of rank 0, in the rank's cache: a sparse file of the same layout, and a
 * record of the bytes present (formats/partial.h). */
#ifndef TND_RANKS_COPY_H
#define TND_RANKS_COPY_H

#include <limits.h>

#include "formats/partial.h"

enum { TND_RANKS_WHY = 200 };

/** Rank 0's file. */
struct tnd_ranks_offer {
    uint64_t bytes, digest;
    uint64_t head; /* bytes before the weights of a GGUF file; 0: other ranks need the whole file */
};

/** A copy. No copy: all zero except `file`. */
struct tnd_ranks_copy {
    struct tnd_ranks_offer offer;
    char whole[PATH_MAX]; /* path once complete, for files that must be */
    char path[PATH_MAX];  /* current path */
    int file;             /* -1: not created */
    bool is_complete;     /* renamed to `whole` */
    struct tnd_partial partial;
    struct tnd_spans came; /* received, not in the record yet */
};

/** Finds the copy of `name` in a folder (NULL: the user's cache) and checks it against its record.
 * Bytes that differ are dropped, with a note that starts with `who`. False: no copy is possible;
 * `why` has the reason. */
bool tnd_ranks_copy_find(struct tnd_ranks_copy *copy, const char *folder, const char *name,
                         const char *who, char why[TND_RANKS_WHY]);
/** Rereads the record: another rank may have added to it. */
void tnd_ranks_copy_look(struct tnd_ranks_copy *copy);
/** Prepares for receiving `missing`: creates the file if there is enough space. False: see `why`.
 */
bool tnd_ranks_copy_begin(struct tnd_ranks_copy *copy, const struct tnd_spans *missing,
                          char why[TND_RANKS_WHY]);
/** Writes received bytes; may change `bytes`. False: see `why`. */
bool tnd_ranks_copy_put(struct tnd_ranks_copy *copy, uint64_t at, char *bytes, size_t n,
                        char why[TND_RANKS_WHY]);
/** Adds the ranges received to the record. False: see `why`. */
bool tnd_ranks_copy_keep(struct tnd_ranks_copy *copy, char why[TND_RANKS_WHY]);
/** Path of the copy; renames a copy that must be complete once it is. */
const char *tnd_ranks_copy_path(struct tnd_ranks_copy *copy);
/** Space on disk, in bytes. */
uint64_t tnd_ranks_copy_disk(const struct tnd_ranks_copy *copy);
void tnd_ranks_copy_close(struct tnd_ranks_copy *copy);

#endif
