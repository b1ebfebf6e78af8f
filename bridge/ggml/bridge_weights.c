/* SPDX-License-Identifier: MIT
 * A hash table of weights by address, and a list of watched buffers: a buffer's first member is the
 * function that frees it, which we replace by one that calls the original. */
#include "bridge/ggml/bridge_weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bridge/ggml/bridge_host.h"

enum { BUCKETS = 1024 };

struct weight {
    struct weight *next;
    struct tnd_product product; /* only W is valid */
    struct ggml_backend_buffer *buffer;
    tandem_context *context;
    tandem_tensor *tensor;
    bool is_let_go;
};
struct watched {
    struct watched *next;
    struct ggml_backend_buffer *buffer;
    void (*free_buffer)(struct ggml_backend_buffer *buffer); /* the host's function; may be NULL */
};
static struct weight *weights[BUCKETS];
static struct watched *all_watched;
static bool is_refused[TANDEM_TYPE_NUMBERS]; /* not enough memory to pack, or never packed: loading
                                              * continues without packing, until a buffer is
                                              * freed */

static struct weight **bucket_of(const void *w)
{
    return &weights[((uintptr_t)w >> 5) * UINT64_C(0x9E3779B97F4A7C15) >> 54];
}

static bool watch(struct ggml_backend_buffer *buffer,
                  void (*on_free)(struct ggml_backend_buffer *buffer))
{
    if (buffer->free_buffer == on_free) {
        return true;
    }
    struct watched *one = malloc(sizeof(*one));
    if (one == NULL) {
        return false;
    }
    *one = (struct watched){all_watched, buffer, buffer->free_buffer};
    all_watched = one;
    buffer->free_buffer = on_free;
    return true;
}

static void free_weight(struct weight *weight)
{
    tandem_context_free(weight->context);
    free(weight);
}

static struct weight *new_weight(const struct tnd_product *product,
                                 struct ggml_backend_buffer *buffer)
{
    struct tandem_context_options options = TANDEM_CONTEXT_OPTIONS_INIT;
    struct weight *weight = calloc(1, sizeof(*weight));
    if (weight == NULL) {
        return NULL;
    }
    options.chunk_bytes = 1024;
    weight->product = *product;
    weight->buffer = buffer;
    if (tandem_context_new(&options, &weight->context, NULL) == TANDEM_OK) {
        weight->tensor = tandem_tensor_borrow_const(
            weight->context, (enum tandem_type)product->type, product->n_experts > 0 ? 3 : 2,
            (const int64_t[]){product->k, product->n, product->n_experts}, product->w,
            tnd_product_w_bytes(product));
    }
    if (weight->tensor == NULL) {
        free_weight(weight);
        return NULL;
    }
    return weight;
}

static struct weight *find(const struct tnd_product *product, struct ggml_backend_buffer *buffer)
{
    for (struct weight *one = *bucket_of(product->w); one != NULL; one = one->next) {
        const struct tnd_product *known = &one->product;
        if (known->w == product->w && known->type == product->type && known->n == product->n &&
            known->k == product->k && known->n_experts == product->n_experts &&
            one->buffer == buffer) {
            return one;
        }
    }
    return NULL;
}

tandem_tensor *tnd_weights_get(const struct tnd_product *product,
                               struct ggml_backend_buffer *buffer,
                               void (*on_free)(struct ggml_backend_buffer *buffer))
{
    struct weight *weight = find(product, buffer);
    if (weight != NULL) {
        return weight->tensor;
    }
    weight = watch(buffer, on_free) ? new_weight(product, buffer) : NULL;
    if (weight == NULL) {
        return NULL;
    }
    struct weight **bucket = bucket_of(product->w);
    weight->next = *bucket;
    *bucket = weight;
    return weight->tensor;
}

/* Whether all of it is in one read-only, shared mapping of a file, so that dropped pages can be
 * read again. */
static bool is_mapped(uintptr_t begin, uintptr_t end)
{
    char line[256];
    bool is_found = false;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps != NULL && !is_found && fgets(line, sizeof(line), maps) != NULL) {
        unsigned long from;
        unsigned long to;
        unsigned long inode;
        is_found = sscanf(line, "%lx-%lx r--s %*x %*x:%*x %lu", &from, &to, &inode) == 3 &&
                   inode != 0 && begin >= from && end <= to;
    }
    if (maps != NULL) {
        (void)fclose(maps);
    }
    return is_found;
}

bool tnd_weights_is_mapped(const struct tnd_product *product)
{
    uintptr_t begin = (uintptr_t)product->w;
    return is_mapped(begin, begin + tnd_product_w_bytes(product));
}

void tnd_weights_let_go(const struct tnd_product *product, struct ggml_backend_buffer *buffer)
{
    struct weight *weight = find(product, buffer);
    if (weight == NULL || weight->is_let_go) {
        return;
    }
    weight->is_let_go = true;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = ((uintptr_t)product->w + page - 1) / page * page;
    uintptr_t end = ((uintptr_t)product->w + tnd_product_w_bytes(product)) / page * page;
    if (end > begin && is_mapped(begin, end)) {
        union {
            uintptr_t number;
            void *p;
        } at = {begin};
        (void)madvise(at.p, end - begin, MADV_DONTNEED);
    }
}

static size_t prepared_bytes(const tandem_runtime *runtime)
{
    struct tandem_runtime_info info = TANDEM_RUNTIME_INFO_INIT;
    return tandem_runtime_describe(runtime, &info) == TANDEM_OK ? info.prepared_bytes : 0;
}

/* Returns whether it was computed. */
static bool compute_zeros(tandem_runtime *runtime, tandem_tensor *w, int64_t k, int64_t m)
{
    struct tandem_context_options options = TANDEM_CONTEXT_OPTIONS_INIT;
    tandem_context *context = NULL;
    tandem_plan *plan = NULL;
    bool is_done = false;
    float *zeros = calloc((size_t)(k * m), sizeof(zeros[0]));
    options.chunk_bytes = 4096;
    if (zeros != NULL && tandem_context_new(&options, &context, NULL) == TANDEM_OK) {
        tandem_tensor *x =
            tandem_tensor_borrow(context, TANDEM_TYPE_F32, 2, (const int64_t[]){k, m}, zeros,
                                 sizeof(zeros[0]) * (size_t)(k * m));
        tandem_graph *graph = tandem_graph_new(context);
        tandem_graph_add(graph, tandem_mul_mat(context, w, x));
        is_done = tandem_graph_finish(graph, NULL) == TANDEM_OK &&
                  tandem_runtime_plan(runtime, graph, &plan, NULL) == TANDEM_OK &&
                  tandem_runtime_compute(runtime, graph, plan, NULL, NULL) == TANDEM_OK;
    }
    tandem_plan_free(plan);
    tandem_context_free(context);
    free(zeros);
    return is_done;
}

void tnd_weights_pack(tandem_runtime *runtime, const struct tnd_product *product,
                      struct ggml_backend_buffer *buffer,
                      void (*on_free)(struct ggml_backend_buffer *buffer))
{
    enum { PROMPT = 16 }; /* tokens, if one token needs no packing */
    tandem_tensor *w = is_refused[product->type] ? NULL : tnd_weights_get(product, buffer, on_free);
    size_t before = prepared_bytes(runtime);
    bool is_done = w != NULL && compute_zeros(runtime, w, product->k, 1);
    if (is_done && prepared_bytes(runtime) == before) {
        is_done = compute_zeros(runtime, w, product->k, PROMPT);
    }
    if (prepared_bytes(runtime) > before) {
        tnd_weights_let_go(product, buffer);
    } else {
        is_refused[product->type] = true;
    }
}

bool tnd_weights_forget_bytes(tandem_runtime *runtime, struct ggml_backend_buffer *buffer,
                              const void *data, size_t n)
{
    bool is_found = false;
    for (int i = 0; i < BUCKETS; i++) {
        struct weight **link = &weights[i];
        while (*link != NULL) {
            struct weight *one = *link;
            uintptr_t begin = (uintptr_t)one->product.w;
            if (one->buffer == buffer &&
                (uintptr_t)data < begin + tnd_product_w_bytes(&one->product) &&
                begin < (uintptr_t)data + n) {
                is_found = true;
                *link = one->next;
                tandem_runtime_forget(runtime, one->tensor);
                free_weight(one);
            } else {
                link = &one->next;
            }
        }
    }
    return is_found;
}

void (*tnd_weights_forget(tandem_runtime *runtime,
                          struct ggml_backend_buffer *buffer))(struct ggml_backend_buffer *buffer)
{
    void (*free_buffer)(struct ggml_backend_buffer *) = NULL;
    memset(is_refused, 0, sizeof(is_refused));
    (void)tnd_weights_forget_bytes(runtime, buffer, NULL, UINTPTR_MAX);
    for (struct watched **link = &all_watched; *link != NULL; link = &(*link)->next) {
        struct watched *one = *link;
        if (one->buffer == buffer) {
            free_buffer = one->free_buffer;
            *link = one->next;
            free(one);
            break;
        }
    }
    return free_buffer;
}
