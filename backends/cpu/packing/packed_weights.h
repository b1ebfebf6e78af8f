/* SPDX-License-Identifier: MIT
 * The packed weights of one CPU backend: which tensors have a second, packed copy. The copy is
 * made panel by panel by the worker that reads the panel first, so that all workers share the
 * work and pages lie near their reader. */
#ifndef TND_PACKED_WEIGHTS_H
#define TND_PACKED_WEIGHTS_H

#include <stdatomic.h>

#include "backends/cpu/packing/packed_files.h"
#include "backends/cpu/packing/packed_numa.h"
#include "backends/cpu/packing/packing.h"
#include "tandem/backend.h"

enum tnd_panel_state { TND_PANEL_EMPTY, TND_PANEL_BUSY, TND_PANEL_READY };

struct tnd_panel_states {
    atomic_int_least64_t left;      /* panels that are not ready */
    atomic_int_least64_t n_damaged; /* panels of a cache that were packed again */
    atomic_bool is_lost;            /* one of them could not be */
    atomic_uchar state[];           /* enum tnd_panel_state of each */
};

/* What becomes of rows that are packed. Those of mapped files that leave the memory are read from
 * the file again by whoever needs them. */
enum tnd_packed_rows {
    TND_ROWS_AUTO, /* rows of mapped files leave the process; the system may keep them at hand */
    TND_ROWS_KEEP,
    TND_ROWS_RELEASE /* all rows leave the memory, to their file or to swap */
};

struct tnd_packed_options {
    size_t limit_bytes; /* all copies together never take more */
    enum tnd_packed_rows rows;
    double (*available)(void); /* bytes that may be taken without swapping, 0: unknown; NULL: no
                                  other limit than limit_bytes */
    const char *cache;  /* folder of caches, read by tnd_packed_weights_new; NULL: there are none */
    bool writes_beside; /* tnd_packed_weights_keep writes MODEL.packed */
    const char *isa;    /* of the kernels that pack; lives as long as the weights */
};

struct tnd_packed_weight {
    const void *data;
    enum tandem_type type;
    int64_t n, k;
    int64_t matrices, matrix_rows; /* of the whole weight; n is matrix_rows unless it is a part */
    int64_t first;                 /* panel of the whole weight at which a part begins; else 0 */
    int panel_rows;                /* 16, or 32 of floats */
    size_t panel_bytes;
    uint8_t *panels; /* ceil(matrix_rows / panel_rows) panels a matrix, 64-byte aligned */
    struct tnd_panel_states *states;
    int release_advice; /* to madvise once the rows are packed; -1: none */
    const struct tnd_packed_files *files;
    struct tnd_packed_file *file;  /* that has the rows; NULL: there are no packed ones on disk */
    uint64_t offset;               /* of the rows in it */
    bool is_cached;                /* the panels are those of a mapped cache */
    struct tnd_packed_found found; /* then, of this one */
    char name[TANDEM_MAX_NAME];
    bool is_kept;                   /* a cache was written with them */
    size_t bytes;                   /* taken from the system, by all copies */
    int n_copies;                   /* one, or one a NUMA node, one behind the other */
    size_t copy_bytes;              /* from one to the next */
    size_t states_bytes;            /* likewise */
    struct tnd_packed_weight *next; /* in the list */
};

/** Panels of one matrix. */
static inline int64_t tnd_packed_matrix_panels(const struct tnd_packed_weight *packed)
{
    return (packed->matrix_rows + packed->panel_rows - 1) / packed->panel_rows;
}

struct tnd_packed_weights;

enum tandem_status tnd_packed_weights_new(const struct tnd_packed_options *options,
                                          struct tnd_packed_weights **out,
                                          struct tandem_error *error);
/** NULL is allowed. */
void tnd_packed_weights_free(struct tnd_packed_weights *weights);

/** Makes room for a copy of a constant, dense weight: one matrix, or several along ne[2]. A quarter
 *  of the memory that is available stays free; once a copy was refused for that, all are, until one
 *  is removed. Any thread. Errors: DEVICE_MEMORY (limit), MEMORY. */
enum tandem_status tnd_packed_weights_add(struct tnd_packed_weights *weights,
                                          const struct tandem_tensor *weight,
                                          struct tnd_packed_weight **out_packed,
                                          struct tandem_error *error);
/** Where copies that are made from now on lie. Any thread. */
void tnd_packed_weights_set_numa(struct tnd_packed_weights *weights,
                                 const struct tnd_packed_numa *numa);
/** errno of the last memory policy that the system refused since the last call; 0: none. Any
 *  thread. */
int tnd_packed_weights_refusal(struct tnd_packed_weights *weights);

/** The copy of a NUMA node, as a weight of its own. It borrows everything, and is freed by
 *  nobody. */
struct tnd_packed_weight tnd_packed_copy(const struct tnd_packed_weight *packed, int node);

/** Frees the copy; nobody may be computing with it. Any thread. */
void tnd_packed_weights_remove(struct tnd_packed_weights *weights,
                               struct tnd_packed_weight *packed);
/** Checks a copy that a cache has. Errors: FILE (a part of it was gone when it was read, or was
 *  damaged and could not be packed again). Costs a look at a flag. */
enum tandem_status tnd_packed_weight_check(const struct tnd_packed_weight *packed,
                                           struct tandem_error *error);
/** Makes the panels of rows row .. row + n_rows - 1 of all rows of all matrices ready: packed, or
 *  read from the cache. Any thread. */
void tnd_packed_weight_finish(const struct tnd_kernels_q *kernels,
                              const struct tnd_packed_weight *packed, int64_t row, int64_t n_rows);
/** Writes caches for what is packed completely and is in none. Any thread. Errors: FILE, MEMORY:
 *  the first one; others are written nevertheless. */
enum tandem_status tnd_packed_weights_keep(struct tnd_packed_weights *weights,
                                           struct tandem_error *error);
void tnd_packed_weights_set_note(struct tnd_packed_weights *weights, tnd_packed_note_fn *note,
                                 void *user);
/** Bytes of all copies, but for those of caches. */
size_t tnd_packed_weights_bytes(struct tnd_packed_weights *weights);

/** Rows row .. row + n_rows - 1 of one matrix, as a weight of its own; `row` is the first one of a
 *  panel. It borrows everything, and is freed by nobody. */
struct tnd_packed_weight tnd_packed_part(const struct tnd_packed_weight *packed, int64_t matrix,
                                         int64_t row, int64_t n_rows);

/** Makes panel `i` ready: packs it, or compares what a cache has with its digest, or waits for the
 *  worker that does. Floats need no kernels. */
const uint8_t *tnd_packed_panel(const struct tnd_kernels_q *kernels,
                                const struct tnd_packed_weight *packed, int64_t i);

#endif
