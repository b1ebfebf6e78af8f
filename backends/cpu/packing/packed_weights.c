/* SPDX-License-Identifier: MIT
 * Packed copies: made once for each weight; listed for the limit and for cleanup. Products get
 * their copy directly and never search the list. */
#include "backends/cpu/packing/packed_weights.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/digest.h"
#include "base/mapped_digest.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "ggml-like/tnd_tensor.h"

struct tnd_packed_weights {
    struct tnd_packed_options options;
    pthread_mutex_t lock; /* guards the members below */
    size_t bytes;
    bool is_full; /* a copy was refused because too little memory was available */
    struct tnd_packed_numa numa;
    int refusal; /* errno of a memory policy that failed */
    struct tnd_packed_files *files;
    struct tnd_packed_weight *first;
};

/* Copies on different nodes share no page, not even a huge one. */
enum { COPY_STEP = 2 << 20 };

/* Share of the available memory that is left for everything but packed weights. */
#define KEPT_FREE 0.25

enum tandem_status tnd_packed_weights_new(const struct tnd_packed_options *options,
                                          struct tnd_packed_weights **out,
                                          struct tandem_error *error)
{
    struct tnd_packed_weights *weights = tnd_calloc(1, sizeof(*weights));
    if (weights == NULL || pthread_mutex_init(&weights->lock, NULL) != 0) {
        tnd_free(weights);
        return tnd_error_set(error, TANDEM_E_MEMORY, "cpu", 0, 0, "cpu: no memory for weights");
    }
    weights->options = *options;
    enum tandem_status status = tnd_packed_files_new(options->cache, options->writes_beside,
                                                     options->isa, &weights->files, error);
    if (status != TANDEM_OK) {
        tnd_packed_weights_free(weights);
        return status;
    }
    *out = weights;
    return TANDEM_OK;
}

/* Untouched pages take no memory; pages are huge if the system allows. Small copies request that,
 * too: between large ones, they would break up huge pages. */
static void *take_pages(struct tnd_packed_weights *weights, size_t bytes)
{
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) {
        return NULL;
    }
    (void)madvise(pages, bytes, MADV_HUGEPAGE);
    if (weights->numa.policy == TND_NUMA_INTERLEAVE && weights->numa.n_nodes > 1) {
        int refusal =
            tnd_numa_interleave(pages, bytes, weights->numa.node_ids, weights->numa.n_nodes);
        weights->refusal = refusal != 0 ? refusal : weights->refusal;
    }
    return pages;
}

static void free_weight(struct tnd_packed_weights *weights, struct tnd_packed_weight *packed)
{
    if (packed != NULL) {
        if (packed->file != NULL) {
            tnd_packed_files_leave(weights->files, packed->file);
        }
        if (packed->panels != NULL && !packed->is_cached) {
            munmap(packed->panels, packed->bytes);
        }
        tnd_free(packed->states);
        tnd_free(packed);
    }
}

void tnd_packed_weights_free(struct tnd_packed_weights *weights)
{
    if (weights == NULL) {
        return;
    }
    while (weights->first != NULL) {
        tnd_packed_weights_remove(weights, weights->first);
    }
    tnd_packed_files_free(weights->files);
    pthread_mutex_destroy(&weights->lock);
    tnd_free(weights);
}

static enum tandem_status no_memory(const char *name, size_t bytes, struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_MEMORY, name, (int64_t)bytes, 0,
                         "cpu: no memory for %zu bytes of packed weights", bytes);
}

/* Bytes of copies that were not written yet, for which the system has not allocated pages. */
static double untouched_bytes(const struct tnd_packed_weights *weights)
{
    double bytes = 0;
    for (const struct tnd_packed_weight *at = weights->first; at != NULL; at = at->next) {
        for (int i = 0; i < at->n_copies && !at->is_cached; i++) {
            const struct tnd_panel_states *states = tnd_packed_copy(at, i).states;
            bytes += (double)atomic_load_explicit(&states->left, memory_order_relaxed) *
                     (double)at->panel_bytes;
        }
    }
    return bytes;
}

/* Whether too little memory would stay free. */
static bool is_scarce(const struct tnd_packed_weights *weights, size_t wanted)
{
    if (weights->options.available == NULL) {
        return false;
    }
    double available = weights->options.available();
    double needed = untouched_bytes(weights) + (double)wanted;
    return available > 0 && needed > (1 - KEPT_FREE) * available;
}

/* Bytes that may still be allocated. */
static size_t bytes_left(struct tnd_packed_weights *weights, size_t wanted)
{
    size_t left = weights->options.limit_bytes - weights->bytes;
    if (wanted > left) {
        return left;
    }
    weights->is_full = weights->is_full || is_scarce(weights, wanted);
    return weights->is_full ? 0 : left;
}

/* Number of copies: one per node if copies are mirrored and there is enough memory. */
static int copies_of(const struct tnd_packed_weights *weights, size_t bytes)
{
    int n = weights->numa.policy == TND_NUMA_MIRROR ? weights->numa.n_nodes : 1;
    size_t all = 0;
    bool fits = n > 1 && tnd_mul_size(bytes, (size_t)n, &all) &&
                all <= weights->options.limit_bytes - weights->bytes && !is_scarce(weights, all);
    return fits ? n : 1;
}

/* Describes a weight before memory is allocated for it. */
static void describe(const struct tnd_packed_weights *weights, const struct tandem_tensor *weight,
                     struct tnd_packed_weight *out)
{
    struct tnd_mapped_file mapped;
    bool quantized = tandem_type_is_quantized(weight->type);
    snprintf(out->name, sizeof(out->name), "%s", weight->name);
    out->data = weight->data;
    out->type = weight->type;
    out->n = weight->ne[1];
    out->k = weight->ne[0];
    out->matrices = weight->ne[2];
    out->matrix_rows = weight->ne[1];
    out->panel_rows = quantized ? TND_PANEL_ROWS : TND_PANEL_F_ROWS;
    out->panel_bytes = quantized
                           ? tnd_packed_panel_bytes(weight->type, weight->ne[0])
                           : tandem_type_row_bytes(weight->type, weight->ne[0]) * TND_PANEL_F_ROWS;
    out->n_copies = 1;
    out->release_advice = -1;
#ifdef MADV_PAGEOUT
    out->release_advice = weights->options.rows == TND_ROWS_RELEASE ? MADV_PAGEOUT : -1;
#endif
    if (weights->options.rows == TND_ROWS_AUTO &&
        tnd_mapped_find(weight->data, tandem_tensor_bytes(weight), &mapped)) {
        out->release_advice = MADV_DONTNEED;
    }
}

static struct tnd_pack_entry entry_of(const struct tnd_packed_weight *packed)
{
    return (struct tnd_pack_entry){.offset = packed->offset,
                                   .type = packed->type,
                                   .k = packed->k,
                                   .n = packed->n,
                                   .matrices = packed->matrices};
}

static size_t bytes_of_rows(const struct tnd_packed_weight *packed)
{
    return (size_t)(packed->matrices * packed->matrix_rows) *
           tandem_type_row_bytes(packed->type, packed->k);
}

/* Uses the panels in the model file's cache, if there are any. */
static void look_into_cache(struct tnd_packed_weights *weights, struct tnd_packed_weight *packed)
{
    const size_t bytes = bytes_of_rows(packed);
    if (bytes == 0) {
        return;
    }
    packed->file = tnd_packed_files_hold(weights->files, packed->data, bytes, &packed->offset);
    if (packed->file != NULL) {
        struct tnd_pack_entry wanted = entry_of(packed);
        packed->files = weights->files;
        packed->found =
            tnd_packed_file_find(weights->files, packed->file, &wanted, packed->data, bytes);
        packed->is_cached = packed->found.cache != NULL;
    }
    if (packed->is_cached) { /* written only if a panel is damaged, see repair() */
        packed->panels = (uint8_t *)(uintptr_t)(packed->found.cache + packed->found.entry.at);
    }
}

/* Allocates memory for the panels of a weight that is in no cache. */
static enum tandem_status take_memory(struct tnd_packed_weights *weights, const char *name,
                                      size_t panels, struct tnd_packed_weight *packed,
                                      struct tandem_error *error)
{
    size_t bytes = 0;
    bool is_size = tnd_mul_size(panels, packed->panel_bytes, &bytes);
    size_t left = bytes_left(weights, bytes);
    /* kernels prefetch past the end: harmless, prefetches never fault */
    if (!is_size || bytes > left) {
        return tnd_error_set(error, TANDEM_E_DEVICE_MEMORY, name, (int64_t)bytes, (int64_t)left,
                             "cpu: packed weights would take %zu bytes more, %zu are left of the "
                             "limit",
                             bytes, left);
    }
    packed->copy_bytes = (bytes / COPY_STEP + 1) * COPY_STEP;
    packed->n_copies = bytes > 0 ? copies_of(weights, packed->copy_bytes) : 1;
    packed->bytes = packed->n_copies > 1 ? packed->copy_bytes * (size_t)packed->n_copies : bytes;
    packed->panels = bytes > 0 ? take_pages(weights, packed->bytes) : NULL;
    return bytes == 0 || packed->panels != NULL ? TANDEM_OK : no_memory(name, packed->bytes, error);
}

/* Creates the states of all panels of all copies. */
static enum tandem_status make_states(struct tnd_packed_weight *packed, const char *name,
                                      size_t panels, struct tandem_error *error)
{
    packed->states_bytes = (sizeof(struct tnd_panel_states) + panels + 7) / 8 * 8;
    packed->states = tnd_calloc((size_t)packed->n_copies, packed->states_bytes);
    if (packed->states == NULL) {
        return no_memory(name, packed->states_bytes, error);
    }
    for (int i = 0; i < packed->n_copies; i++) {
        struct tnd_panel_states *states = tnd_packed_copy(packed, i).states;
        atomic_init(&states->left, (int_least64_t)panels); /* all are TND_PANEL_EMPTY, 0 */
    }
    return TANDEM_OK;
}

static enum tandem_status make_weight(struct tnd_packed_weights *weights,
                                      const struct tandem_tensor *weight,
                                      struct tnd_packed_weight **out, struct tandem_error *error)
{
    struct tnd_packed_weight *packed = tnd_calloc(1, sizeof(*packed));
    if (packed == NULL) {
        return no_memory(weight->name, sizeof(*packed), error);
    }
    describe(weights, weight, packed);
    size_t panels = (size_t)(tnd_packed_matrix_panels(packed) * packed->matrices);
    look_into_cache(weights, packed);
    enum tandem_status status =
        packed->is_cached ? TANDEM_OK : take_memory(weights, weight->name, panels, packed, error);
    if (status == TANDEM_OK) {
        status = make_states(packed, weight->name, panels, error);
    }
    if (status != TANDEM_OK) {
        free_weight(weights, packed);
        return status;
    }
    *out = packed;
    return TANDEM_OK;
}

enum tandem_status tnd_packed_weights_add(struct tnd_packed_weights *weights,
                                          const struct tandem_tensor *weight,
                                          struct tnd_packed_weight **out_packed,
                                          struct tandem_error *error)
{
    struct tnd_packed_weight *packed = NULL;
    pthread_mutex_lock(&weights->lock);
    enum tandem_status status = make_weight(weights, weight, &packed, error);
    if (status == TANDEM_OK) {
        packed->next = weights->first;
        weights->first = packed;
        weights->bytes += packed->bytes;
        *out_packed = packed;
    }
    pthread_mutex_unlock(&weights->lock);
    return status;
}

void tnd_packed_weights_remove(struct tnd_packed_weights *weights, struct tnd_packed_weight *packed)
{
    pthread_mutex_lock(&weights->lock);
    struct tnd_packed_weight **at = &weights->first;
    while (*at != packed) {
        TND_ASSERT(*at != NULL);
        at = &(*at)->next;
    }
    *at = packed->next;
    weights->bytes -= packed->bytes;
    weights->is_full = false;
    free_weight(weights, packed); /* under the lock: it may be the last user of a cache */
    pthread_mutex_unlock(&weights->lock);
}

size_t tnd_packed_weights_bytes(struct tnd_packed_weights *weights)
{
    pthread_mutex_lock(&weights->lock);
    size_t bytes = weights->bytes;
    pthread_mutex_unlock(&weights->lock);
    return bytes;
}

void tnd_packed_weights_set_numa(struct tnd_packed_weights *weights,
                                 const struct tnd_packed_numa *numa)
{
    pthread_mutex_lock(&weights->lock);
    weights->numa = *numa;
    pthread_mutex_unlock(&weights->lock);
}

int tnd_packed_weights_refusal(struct tnd_packed_weights *weights)
{
    pthread_mutex_lock(&weights->lock);
    int refusal = weights->refusal;
    weights->refusal = 0;
    pthread_mutex_unlock(&weights->lock);
    return refusal;
}

struct tnd_packed_weight tnd_packed_copy(const struct tnd_packed_weight *packed, int node)
{
    struct tnd_packed_weight copy = *packed;
    if (0 < node && node < packed->n_copies) {
        copy.panels += (size_t)node * packed->copy_bytes;
        copy.states = (struct tnd_panel_states *)(void *)((char *)packed->states +
                                                          (size_t)node * packed->states_bytes);
    }
    copy.n_copies = 1;
    return copy;
}

struct tnd_packed_weight tnd_packed_part(const struct tnd_packed_weight *packed, int64_t matrix,
                                         int64_t row, int64_t n_rows)
{
    struct tnd_packed_weight part = *packed;
    TND_ASSERT(0 <= matrix && matrix < packed->matrices && row % packed->panel_rows == 0);
    TND_ASSERT(0 <= row && 0 <= n_rows && row + n_rows <= packed->matrix_rows);
    part.n = n_rows;
    part.first += matrix * tnd_packed_matrix_panels(packed) + row / packed->panel_rows;
    return part;
}

static void pack(const struct tnd_kernels_q *kernels, const struct tnd_packed_weight *packed,
                 int64_t i, uint8_t *out)
{
    size_t row_bytes = tandem_type_row_bytes(packed->type, packed->k);
    int64_t panels = tnd_packed_matrix_panels(packed);
    int64_t row = i % panels * packed->panel_rows;
    int64_t left = packed->matrix_rows - row;
    int n_rows = (int)(left < packed->panel_rows ? left : packed->panel_rows);
    const uint8_t *rows = (const uint8_t *)packed->data +
                          (size_t)(i / panels * packed->matrix_rows + row) * row_bytes;
    if (tandem_type_is_quantized(packed->type)) {
        tnd_pack_panel(kernels, packed->type, rows, row_bytes, n_rows, packed->k, out);
    } else {
        tnd_pack_panel_f(packed->type, rows, row_bytes, n_rows, 0, packed->k, out);
    }
}

/* Packs a damaged panel again, in place: the mapping is private, so the file is unchanged until it
 * is written again. */
static void repair(const struct tnd_kernels_q *kernels, const struct tnd_packed_weight *packed,
                   int64_t i, uint8_t *panel)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t begin = (uintptr_t)panel / page * page;
    const uintptr_t end = (uintptr_t)panel + packed->panel_bytes;
    if (mprotect((void *)begin, end - begin, PROT_READ | PROT_WRITE) == 0) {
        pack(kernels, packed, i, panel);
    } else {
        atomic_store(&packed->states->is_lost, true);
    }
    if (atomic_fetch_add(&packed->states->n_damaged, 1) == 0) {
        tnd_packed_file_tell_damage(packed->files, packed->file, packed->name, i);
    }
}

static void make_ready(const struct tnd_kernels_q *kernels, const struct tnd_packed_weight *packed,
                       int64_t i, uint8_t *panel)
{
    if (!packed->is_cached) {
        pack(kernels, packed, i, panel);
    } else if (tnd_digest(panel, packed->panel_bytes) !=
               tnd_pack_cache_panel(packed->found.cache, &packed->found.entry, (size_t)i)) {
        repair(kernels, packed, i, panel);
    }
}

/* Lets the system reclaim the pages of the original rows. Later reads get them from the mapped file
 * (or from swap) again, so nothing is lost. Systems without MADV_PAGEOUT (Linux before 5.4) refuse,
 * and the rows stay in memory. */
static void release_rows(const struct tnd_packed_weight *packed)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = (uintptr_t)packed->data;
    uintptr_t end = begin + bytes_of_rows(packed);
    begin = (begin + page - 1) / page * page; /* pages at the edges hold other data, too */
    end = end / page * page;
    if (begin < end) {
        (void)madvise((void *)begin, end - begin, packed->release_advice);
    }
}

static void finish_panel(const struct tnd_packed_weight *packed, int64_t i)
{
    atomic_store_explicit(&packed->states->state[i], TND_PANEL_READY, memory_order_release);
    int_least64_t left =
        atomic_fetch_sub_explicit(&packed->states->left, 1, memory_order_acq_rel) - 1;
    if (left == 0 && packed->release_advice >= 0) {
        release_rows(packed);
    }
}

const uint8_t *tnd_packed_panel(const struct tnd_kernels_q *kernels,
                                const struct tnd_packed_weight *packed, int64_t i)
{
    TND_ASSERT(0 <= i && i * packed->panel_rows < packed->n);
    i += packed->first;
    uint8_t *panel = packed->panels + (size_t)i * packed->panel_bytes;
    atomic_uchar *state = &packed->states->state[i];
    unsigned char seen = atomic_load_explicit(state, memory_order_acquire);
    if (seen == TND_PANEL_READY) {
        return panel;
    }
    if (seen == TND_PANEL_EMPTY &&
        atomic_compare_exchange_strong_explicit(state, &seen, TND_PANEL_BUSY, memory_order_acquire,
                                                memory_order_acquire)) {
        make_ready(kernels, packed, i, panel);
        finish_panel(packed, i);
        return panel;
    }
    /* another graph is packing this panel: a matter of microseconds */
    while (atomic_load_explicit(state, memory_order_acquire) != TND_PANEL_READY) {
        sched_yield();
    }
    return panel;
}

/* ---- keeping copies for later processes ---- */

static bool is_complete(const struct tnd_packed_weight *packed)
{
    return packed->panels != NULL &&
           (!packed->is_cached || atomic_load(&packed->states->n_damaged) > 0) &&
           atomic_load_explicit(&packed->states->left, memory_order_acquire) == 0;
}

/* Writes the weights of one model file; `pieces` has room for all. */
static enum tandem_status keep_file(struct tnd_packed_weights *weights,
                                    struct tnd_packed_file *file, struct tnd_packed_piece *pieces,
                                    struct tandem_error *error)
{
    size_t n = 0;
    for (struct tnd_packed_weight *at = weights->first; at != NULL; at = at->next) {
        if (at->file == file && is_complete(at)) {
            pieces[n] = (struct tnd_packed_piece){.entry = entry_of(at), .panels = at->panels};
            pieces[n].entry.rows = tnd_mapped_digest(at->data, bytes_of_rows(at));
            (void)tnd_pack_weight_size(&pieces[n++].entry);
            at->is_kept = true; /* or it cannot be kept: not tried again */
        }
    }
    return tnd_packed_file_write(weights->files, file, pieces, n, error);
}

enum tandem_status tnd_packed_weights_keep(struct tnd_packed_weights *weights,
                                           struct tandem_error *error)
{
    enum tandem_status first = TANDEM_OK;
    size_t n = 0;
    pthread_mutex_lock(&weights->lock);
    for (struct tnd_packed_weight *at = weights->first; at != NULL; at = at->next) {
        n += at->file != NULL;
    }
    struct tnd_packed_piece *pieces = n > 0 ? tnd_calloc(n, sizeof(*pieces)) : NULL;
    for (struct tnd_packed_weight *at = weights->first; at != NULL && pieces != NULL;
         at = at->next) {
        if (at->file != NULL && !at->is_kept && is_complete(at)) {
            enum tandem_status status =
                keep_file(weights, at->file, pieces, first == TANDEM_OK ? error : NULL);
            first = first == TANDEM_OK ? status : first;
        }
        if (at->file != NULL) { /* once per file, with all of its weights */
            tnd_mapped_digests_keep(at->data);
        }
    }
    pthread_mutex_unlock(&weights->lock);
    if (n > 0 && pieces == NULL) {
        return no_memory("pack-cache", n * sizeof(*pieces), error);
    }
    tnd_free(pieces);
    return first;
}

void tnd_packed_weights_set_note(struct tnd_packed_weights *weights, tnd_packed_note_fn *note,
                                 void *user)
{
    tnd_packed_files_set_note(weights->files, note, user);
}
