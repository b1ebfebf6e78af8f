/* SPDX-License-Identifier: MIT
 * Packed weights of one CPU backend: second copies of tensors in a layout for kernels. The worker
 * that first reads a panel packs it, so that all workers share the work and pages are near their
 * reader. */
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
    atomic_int_least64_t n_damaged; /* panels of a cache that were damaged and packed again */
    atomic_bool is_lost;            /* a damaged panel could not be packed again */
    atomic_uchar state[];           /* enum tnd_panel_state of each panel */
};

/* What happens to the original rows after packing. Released rows of mapped files are read from the
 * file again when they are needed. */
enum tnd_packed_rows {
    TND_ROWS_AUTO, /* rows of mapped files are released; the system may keep them cached */
    TND_ROWS_KEEP,
    TND_ROWS_RELEASE /* all rows are released, to their file or to swap */
};

struct tnd_packed_options {
    size_t limit_bytes; /* limit for all copies together */
    enum tnd_packed_rows rows;
    double (*available)(void); /* returns the bytes that can be allocated without swapping, 0:
                                * unknown; NULL: limit_bytes is the only limit */
    const char *cache;         /* folder of caches, copied by tnd_packed_weights_new; NULL: none */
    bool writes_beside;        /* tnd_packed_weights_keep writes MODEL.packed */
    const char *isa;           /* of the kernels that pack; must outlive the weights */
};

struct tnd_packed_weight {
    const void *data;
    enum tandem_type type;
    int64_t n, k;
    int64_t matrices, matrix_rows; /* of the whole weight; n is matrix_rows unless it is a part */
    int64_t first;                 /* panel of the whole weight at which a part begins; else 0 */
    int panel_rows;                /* 16, or 32 for floats */
    size_t panel_bytes;
    uint8_t *panels; /* ceil(matrix_rows / panel_rows) panels per matrix, 64-byte aligned */
    struct tnd_panel_states *states;
    int release_advice; /* for madvise after packing; -1: none */
    const struct tnd_packed_files *files;
    struct tnd_packed_file *file;  /* of the model that contains the rows; NULL: no packed file */
    uint64_t offset;               /* of the rows in the model file */
    bool is_cached;                /* panels are in a mapped cache */
    struct tnd_packed_found found; /* if so: of this weight */
    char name[TANDEM_MAX_NAME];
    bool is_kept;                   /* written to a cache */
    size_t bytes;                   /* allocated, by all copies */
    int n_copies;                   /* one, or one per NUMA node, in sequence */
    size_t copy_bytes;              /* stride between copies */
    size_t states_bytes;            /* likewise, for states */
    struct tnd_packed_weight *next; /* in the list */
};

/** Number of panels per matrix. */
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

/** Allocates a copy of a constant, dense weight: one matrix, or several along ne[2]. A quarter of
 * the available memory stays free; once a copy was refused for that reason, all are, until one is
 * removed. Any thread. Errors: DEVICE_MEMORY (limit), MEMORY. */
enum tandem_status tnd_packed_weights_add(struct tnd_packed_weights *weights,
                                          const struct tandem_tensor *weight,
                                          struct tnd_packed_weight **out_packed,
                                          struct tandem_error *error);
/** Sets the placement of copies made from now on. Any thread. */
void tnd_packed_weights_set_numa(struct tnd_packed_weights *weights,
                                 const struct tnd_packed_numa *numa);
/** errno of the last memory policy that the system has refused since the last call; 0: none. Any
 * thread. */
int tnd_packed_weights_refusal(struct tnd_packed_weights *weights);

/** The copy of a NUMA node, as a weight of its own, which borrows everything and must not be
 * freed. */
struct tnd_packed_weight tnd_packed_copy(const struct tnd_packed_weight *packed, int node);

/** Frees the copy, which must not be in use. Any thread. */
void tnd_packed_weights_remove(struct tnd_packed_weights *weights,
                               struct tnd_packed_weight *packed);
/** Checks a copy in a cache: cheap, only reads a flag. Errors: FILE (part of it was missing when
 * read, or was damaged and could not be packed again). */
enum tandem_status tnd_packed_weight_check(const struct tnd_packed_weight *packed,
                                           struct tandem_error *error);
/** Prepares the panels of rows row .. row + n_rows - 1, counted through all matrices: packs them,
 * or reads them from the cache. Any thread. */
void tnd_packed_weight_finish(const struct tnd_kernels_q *kernels,
                              const struct tnd_packed_weight *packed, int64_t row, int64_t n_rows);
/** Writes caches for weights that are completely packed and in no cache. Any thread. Errors: FILE,
 * MEMORY: the first one; other files are still written. */
enum tandem_status tnd_packed_weights_keep(struct tnd_packed_weights *weights,
                                           struct tandem_error *error);
void tnd_packed_weights_set_note(struct tnd_packed_weights *weights, tnd_packed_note_fn *note,
                                 void *user);
/** Bytes of all copies, except those in caches. */
size_t tnd_packed_weights_bytes(struct tnd_packed_weights *weights);

/** Rows row .. row + n_rows - 1 of one matrix, as a weight of its own, which borrows everything
 * and must not be freed; `row` is the first one of a panel. */
struct tnd_packed_weight tnd_packed_part(const struct tnd_packed_weight *packed, int64_t matrix,
                                         int64_t row, int64_t n_rows);

/** Prepares panel `i`: packs it, or compares a cached one with its digest, or waits for the worker
 * that does. Floats need no kernels. */
const uint8_t *tnd_packed_panel(const struct tnd_kernels_q *kernels,
                                const struct tnd_packed_weight *packed, int64_t i);

#endif
