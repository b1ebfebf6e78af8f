/* SPDX-License-Identifier: MIT
 * Hosts reuse memory within a graph: an operand is identified by the node that wrote it last, and
 * results that a later node of the run overwrites are not written to the host's memory. */
#include "bridge/ggml/bridge_run.h"

#include <stdlib.h>
#include <string.h>

#include "bridge/ggml/bridge_weights.h"

enum { WRITER_NONE = -1, WRITER_PART = -2 };
enum { MOST_OPERANDS = TND_RUN_NODES * TND_NODE_OPERANDS, FEW_TOKENS = 8 };

/* Our tensor for an operand. Operands with the same values share one, and with it what is prepared
 * from it. */
struct operand {
    struct tnd_node_values values;
    int writer; /* index in the run; WRITER_NONE: written before the run */
    tandem_tensor *tensor;
};
struct builder {
    struct tnd_bridge_run *run;
    tandem_tensor *results[TND_RUN_NODES];
    tandem_tensor *ids[TND_RUN_NODES];
    struct operand operands[MOST_OPERANDS];
    int n_operands;
};

/* ---- memory ---- */

static bool overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    return (uintptr_t)a < (uintptr_t)b + b_bytes && (uintptr_t)b < (uintptr_t)a + a_bytes;
}

/* The last one of `n` nodes that wrote to the bytes. */
static int find_writer(const struct tnd_node *nodes, int n, const void *data, size_t bytes)
{
    for (int i = n - 1; i >= 0; i--) {
        const struct tnd_node_values *y = &nodes[i].y;
        size_t y_bytes = tnd_node_values_bytes(y);
        if (bytes > 0 && overlap(data, bytes, y->data, y_bytes)) {
            return data == y->data && bytes == y_bytes ? i : WRITER_PART;
        }
    }
    return WRITER_NONE;
}

/* Whether a later node of the run overwrites the whole result. */
static bool is_overwritten(const struct tnd_bridge_run *run, int i)
{
    const struct tnd_node_values *y = &run->nodes[i].y;
    uintptr_t end = (uintptr_t)y->data + tnd_node_values_bytes(y);
    for (int j = i + 1; j < run->n; j++) {
        const struct tnd_node_values *other = &run->nodes[j].y;
        if ((uintptr_t)other->data <= (uintptr_t)y->data &&
            (uintptr_t)other->data + tnd_node_values_bytes(other) >= end) {
            return true;
        }
    }
    return false;
}

bool tnd_bridge_batch_takes(const struct tnd_bridge_batch *batch, const struct tnd_node *node)
{
    const struct tnd_product *product = &node->product;
    if (batch->n == TND_RUN_NODES || find_writer(batch->nodes, batch->n, product->ids,
                                                 tnd_product_ids_bytes(product)) != WRITER_NONE) {
        return false; /* ids are copied before the run */
    }
    for (int i = 0; i < TND_NODE_OPERANDS; i++) {
        const struct tnd_node_values *operand = &node->operands[i];
        int writer =
            find_writer(batch->nodes, batch->n, operand->data, tnd_node_values_bytes(operand));
        bool are_positions = node->kind == TND_NODE_ROPE && i == 1;
        if (writer == WRITER_PART || (writer >= 0 && are_positions)) {
            return false;
        }
    }
    return true;
}

/* ---- operands ---- */

static bool has_extents(const tandem_tensor *tensor, const int64_t *ne)
{
    bool is_same = true;
    for (int i = 0; i < GGML_MAX_DIMS; i++) {
        is_same = is_same && tandem_tensor_ne(tensor)[i] == ne[i];
    }
    return is_same;
}

static tandem_tensor *borrow(const struct builder *builder, enum tandem_type type,
                             const struct tnd_node_values *values)
{
    union {
        const void *from;
        void *to;
    } data = {values->data}; /* operands are not written to; results are the host's to write */
    return tandem_tensor_borrow(builder->run->context, type, GGML_MAX_DIMS, values->ne, data.to,
                                tnd_node_values_bytes(values));
}

/* An operand of node i, reshaped if the node that wrote it had other extents. */
static tandem_tensor *operand_of(struct builder *builder, int i, enum tandem_type type,
                                 const struct tnd_node_values *values)
{
    int writer = find_writer(builder->run->nodes, i, values->data, tnd_node_values_bytes(values));
    for (int j = 0; j < builder->n_operands; j++) {
        const struct operand *known = &builder->operands[j];
        if (known->writer == writer && memcmp(&known->values, values, sizeof(*values)) == 0) {
            return known->tensor;
        }
    }
    tandem_tensor *tensor = writer >= 0 ? builder->results[writer] : borrow(builder, type, values);
    if (tensor != NULL && !has_extents(tensor, values->ne)) {
        tensor = tandem_reshape(builder->run->context, tensor, GGML_MAX_DIMS, values->ne);
    }
    builder->operands[builder->n_operands++] = (struct operand){*values, writer, tensor};
    return tensor;
}

/* ---- products ---- */

static bool has_same_ids(const struct tnd_product *a, const struct tnd_product *b)
{
    return a->ids == b->ids && a->ids_stride == b->ids_stride && a->n_used == b->n_used &&
           a->m == b->m;
}

/* NULL: no memory. */
static tandem_tensor *tensor_of_ids(struct builder *builder, int i)
{
    struct tnd_bridge_run *run = builder->run;
    const struct tnd_product *product = &run->nodes[i].product;
    for (int j = 0; j < i; j++) {
        if (builder->ids[j] != NULL && has_same_ids(&run->nodes[j].product, product)) {
            return builder->ids[j];
        }
    }
    size_t bytes = sizeof(int32_t) * (size_t)(product->n_used * product->m);
    run->ids[i] = malloc(bytes);
    return run->ids[i] == NULL
               ? NULL
               : tandem_tensor_borrow(run->context, TANDEM_TYPE_I32, 2,
                                      (const int64_t[]){product->n_used, product->m}, run->ids[i],
                                      bytes);
}

void tnd_bridge_run_copy_ids(struct tnd_bridge_run *run)
{
    for (int i = 0; i < run->n; i++) {
        const struct tnd_product *product = &run->nodes[i].product;
        const char *from = product->ids;
        for (int64_t m = 0; run->ids[i] != NULL && m < product->m; m++) {
            memcpy(run->ids[i] + m * product->n_used, from + m * product->ids_stride,
                   sizeof(int32_t) * (size_t)product->n_used);
        }
    }
}

static tandem_tensor *build_product(struct builder *builder, int i, tandem_tensor *w)
{
    struct tnd_bridge_run *run = builder->run;
    const struct tnd_product *product = &run->nodes[i].product;
    bool is_plain = product->n_experts == 0;
    struct tnd_node_values x = {.data = product->x};
    const int64_t ne[GGML_MAX_DIMS] = {product->k, is_plain ? product->m : product->n_used_x,
                                       is_plain ? 1 : product->m, 1};
    memcpy(x.ne, ne, sizeof(ne));
    tandem_tensor *tensor = operand_of(builder, i, TANDEM_TYPE_F32, &x);
    if (is_plain) {
        return tandem_mul_mat(run->context, w, tensor);
    }
    builder->ids[i] = tensor_of_ids(builder, i);
    return tandem_mul_mat_id(run->context, w, tensor, builder->ids[i]);
}

/* ---- nodes between products ---- */

static tandem_tensor *build_rope(struct builder *builder, int i, tandem_tensor *a)
{
    const struct tnd_node *node = &builder->run->nodes[i];
    struct tandem_rope_options options = TANDEM_ROPE_OPTIONS_INIT;
    struct tnd_node_values positions = node->operands[1];
    tandem_tensor *p = operand_of(builder, i, TANDEM_TYPE_I32, &positions);
    options.pairs = node->is_halves != 0 ? TANDEM_ROPE_HALVES : TANDEM_ROPE_ADJACENT;
    options.n_rot = node->n_rot;
    options.freq_base = node->freq_base;
    options.freq_scale = node->freq_scale;
    return node->operands[2].data == NULL
               ? tandem_rope(builder->run->context, a, p, &options)
               : tandem_rope_factors(builder->run->context, a, p,
                                     operand_of(builder, i, TANDEM_TYPE_F32, &node->operands[2]),
                                     &options);
}

static tandem_tensor *build_operation(struct builder *builder, int i)
{
    tandem_context *context = builder->run->context;
    const struct tnd_node *node = &builder->run->nodes[i];
    tandem_tensor *a = operand_of(builder, i, TANDEM_TYPE_F32, &node->operands[0]);
    tandem_tensor *b = NULL;
    if (node->kind == TND_NODE_ROPE) {
        return build_rope(builder, i, a);
    }
    if (node->operands[1].data != NULL) {
        b = operand_of(builder, i, TANDEM_TYPE_F32, &node->operands[1]);
    }
    switch (node->kind) {
    case TND_NODE_ADD:
        return tandem_add(context, a, b);
    case TND_NODE_MUL:
        return tandem_mul(context, a, b);
    case TND_NODE_SCALE:
        return tandem_scale(context, a, node->number);
    case TND_NODE_RMS_NORM:
        return tandem_rms_norm(context, a, node->number);
    case TND_NODE_SILU:
        return tandem_silu(context, a);
    case TND_NODE_GELU:
        return tandem_gelu(context, a);
    case TND_NODE_SWIGLU:
        return tandem_mul(context, tandem_silu(context, a), b);
    case TND_NODE_GEGLU:
        return tandem_mul(context, tandem_gelu(context, a), b);
    default:
        return NULL;
    }
}

/* ---- runs ---- */

static bool build_node(struct builder *builder, int i, const struct tnd_bridge_batch *batch,
                       void (*on_free)(struct ggml_backend_buffer *buffer))
{
    const struct tnd_node *node = &builder->run->nodes[i];
    if (node->kind != TND_NODE_PRODUCT) {
        builder->results[i] = build_operation(builder, i);
    } else {
        tandem_tensor *w = tnd_weights_get(&node->product, batch->buffers[i], on_free);
        builder->results[i] = w != NULL ? build_product(builder, i, w) : NULL;
    }
    return builder->results[i] != NULL;
}

/* Depth of each node: length of the longest chain of nodes in the run that it depends on. */
static void find_depths(const struct tnd_bridge_run *run, int depths[TND_RUN_NODES])
{
    for (int i = 0; i < run->n; i++) {
        depths[i] = 0;
        for (int j = 0; j < TND_NODE_OPERANDS; j++) {
            const struct tnd_node_values *operand = &run->nodes[i].operands[j];
            int writer = find_writer(run->nodes, i, operand->data, tnd_node_values_bytes(operand));
            if (writer >= 0 && depths[writer] >= depths[i]) {
                depths[i] = depths[writer] + 1;
            }
        }
    }
}

/* Builds independent nodes in sequence, because our scheduler runs such neighbours concurrently.
 * The host's memory is written at the end, in the host's order. */
static bool build_nodes(struct builder *builder, const struct tnd_bridge_batch *batch,
                        void (*on_free)(struct ggml_backend_buffer *buffer))
{
    struct tnd_bridge_run *run = builder->run;
    int depths[TND_RUN_NODES];
    find_depths(run, depths);
    for (int depth = 0; depth < run->n; depth++) {
        for (int i = 0; i < run->n; i++) {
            if (depths[i] == depth && !build_node(builder, i, batch, on_free)) {
                return false;
            }
        }
    }
    for (int i = 0; i < run->n; i++) {
        if (!is_overwritten(run, i)) {
            tandem_graph_add(run->graph,
                             tandem_cpy(run->context, builder->results[i],
                                        borrow(builder, TANDEM_TYPE_F32, &run->nodes[i].y)));
        }
    }
    return true;
}

static enum tandem_status build(struct builder *builder, tandem_runtime *runtime,
                                const struct tnd_bridge_batch *batch,
                                void (*on_free)(struct ggml_backend_buffer *buffer),
                                struct tandem_error *error)
{
    struct tandem_context_options options = TANDEM_CONTEXT_OPTIONS_INIT;
    struct tnd_bridge_run *run = builder->run;
    options.chunk_bytes = 8192;
    enum tandem_status status = tandem_context_new(&options, &run->context, error);
    if (status != TANDEM_OK) {
        return status;
    }
    run->graph = tandem_graph_new(run->context);
    if (!build_nodes(builder, batch, on_free)) {
        status = tandem_context_status(run->context, error);
        return status == TANDEM_OK ? TANDEM_E_MEMORY : status;
    }
    status = tandem_graph_finish(run->graph, error);
    return status == TANDEM_OK ? tandem_runtime_plan(runtime, run->graph, &run->plan, error)
                               : status;
}

static void add_work(struct tnd_bridge_run *run)
{
    run->m = 1;
    for (int i = 0; i < run->n; i++) {
        run->m = run->nodes[i].product.m > run->m ? run->nodes[i].product.m : run->m;
    }
    for (int i = 0; i < run->n; i++) {
        const struct tnd_product *product = &run->nodes[i].product;
        run->work += (double)product->n * (double)product->k * (double)product->n_used *
                     (run->m < FEW_TOKENS ? 1 : (double)product->m);
    }
}

struct tnd_bridge_run *tnd_bridge_run_new(tandem_runtime *runtime,
                                          const struct tnd_bridge_batch *batch,
                                          void (*on_free)(struct ggml_backend_buffer *buffer),
                                          struct tandem_error *error)
{
    size_t n = (size_t)batch->n;
    struct tnd_bridge_run *run = calloc(1, sizeof(*run));
    struct builder *builder = calloc(1, sizeof(*builder));
    bool is_built = false;
    if (run != NULL && builder != NULL) {
        run->nodes = malloc(n * sizeof(run->nodes[0]));
        run->ids = calloc(n, sizeof(run->ids[0]));
        run->n = run->nodes != NULL && run->ids != NULL ? batch->n : 0;
        builder->run = run;
    }
    if (run != NULL && run->n > 0) {
        run->hash = tnd_bridge_batch_hash(batch);
        memcpy(run->nodes, batch->nodes, n * sizeof(run->nodes[0]));
        add_work(run);
        is_built = build(builder, runtime, batch, on_free, error) == TANDEM_OK;
    }
    free(builder);
    if (!is_built && run != NULL) {
        tnd_bridge_run_free(run);
    }
    return is_built ? run : NULL;
}

void tnd_bridge_run_free(struct tnd_bridge_run *run)
{
    tandem_plan_free(run->plan);
    tandem_context_free(run->context);
    for (int i = 0; i < run->n; i++) {
        free(run->ids[i]);
    }
    free(run->ids);
    free(run->nodes);
    free(run);
}

uint64_t tnd_bridge_batch_hash(const struct tnd_bridge_batch *batch)
{
    uint64_t hash = (uint64_t)batch->n;
    for (int i = 0; i < batch->n; i++) {
        const struct tnd_node *node = &batch->nodes[i];
        const uint64_t parts[] = {(uintptr_t)node->product.w,
                                  (uintptr_t)node->operands[0].data,
                                  (uintptr_t)node->operands[1].data,
                                  (uintptr_t)node->y.data,
                                  (uintptr_t)node->product.ids,
                                  (uint64_t)node->y.ne[1],
                                  (uint64_t)node->y.ne[2]};
        for (size_t j = 0; j < sizeof(parts) / sizeof(parts[0]); j++) {
            hash = (hash ^ parts[j]) * UINT64_C(0x9E3779B97F4A7C15);
            hash ^= hash >> 32;
        }
    }
    return hash;
}

bool tnd_bridge_run_is_of(const struct tnd_bridge_run *run, const struct tnd_bridge_batch *batch,
                          uint64_t hash)
{
    return run->hash == hash && run->n == batch->n &&
           memcmp(run->nodes, batch->nodes, (size_t)batch->n * sizeof(batch->nodes[0])) == 0;
}
