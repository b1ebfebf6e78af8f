/* SPDX-License-Identifier: MIT
 * The functions of ggml that the bridge looks up, for tests: exported when linked with
 * -rdynamic. */
#include "tests/bridge/small_host.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tandem/tensor.h"

struct init_params {
    size_t mem_size;
    void *mem_buffer;
    bool no_alloc;
};
struct context {
    struct tensor tensors[8];
    struct ggml_cgraph graph;
    int n;
};

static char last_line[512];
static char all_lines[1 << 16];
static size_t n_all;
static int n_errors;

/* ---- what the bridge calls ---- */

const char *ggml_version(void);
const char *ggml_op_name(int op);
const char *ggml_op_desc(const struct tensor *tensor);
size_t ggml_tensor_overhead(void);
size_t ggml_nbytes(const struct tensor *tensor);
void *ggml_get_data(const struct tensor *tensor);
const char *ggml_get_name(const struct tensor *tensor);
struct context *ggml_init(struct init_params params);
void ggml_free(struct context *context);
struct tensor *ggml_new_tensor_2d(struct context *context, int type, int64_t ne0, int64_t ne1);
struct tensor *ggml_mul_mat(struct context *context, struct tensor *a, struct tensor *b);
struct tensor *ggml_new_tensor_3d(struct context *context, int type, int64_t ne0, int64_t ne1,
                                  int64_t ne2);
struct tensor *ggml_mul_mat_id(struct context *context, struct tensor *a, struct tensor *b,
                               struct tensor *ids);
struct ggml_cgraph *ggml_new_graph(struct context *context);
void ggml_build_forward_expand(struct ggml_cgraph *graph, struct tensor *result);
int ggml_graph_n_nodes(struct ggml_cgraph *graph);
struct tensor *ggml_graph_node(struct ggml_cgraph *graph, int i);
struct buffer *ggml_backend_cpu_buffer_from_ptr(void *data, size_t size);
struct buffer *ggml_backend_buft_alloc_buffer(struct buft *buft, size_t size);
struct buffer *ggml_backend_alloc_ctx_tensors_from_buft(struct context *context, struct buft *buft);
size_t ggml_backend_buft_get_alignment(struct buft *buft);
bool ggml_backend_buft_is_host(struct buft *buft);
void *ggml_backend_buft_get_device(struct buft *buft);
void *ggml_backend_buffer_get_base(struct buffer *buffer);
size_t ggml_backend_buffer_get_size(struct buffer *buffer);
int ggml_backend_buffer_get_usage(struct buffer *buffer);
void ggml_backend_buffer_set_usage(struct buffer *buffer, int usage);
struct buft *ggml_backend_buffer_get_type(struct buffer *buffer);
void ggml_backend_buffer_free(struct buffer *buffer);
void *ggml_backend_get_device(struct backend *backend);
void ggml_backend_free(struct backend *backend);
int ggml_backend_graph_compute(struct backend *backend, struct ggml_cgraph *graph);
struct device *ggml_backend_dev_by_type(int type);
struct backend *ggml_backend_dev_init(struct device *device, const char *text);
bool ggml_backend_dev_supports_op(struct device *device, const struct tensor *op);
void *ggml_backend_dev_backend_reg(struct device *device);
void ggml_backend_dev_memory(struct device *device, size_t *out_free, size_t *out_total);
void ggml_backend_dev_get_props(struct device *device, struct props *out_props);
void *ggml_backend_reg_get_proc_address(struct reg *reg, const char *name);
int ggml_backend_buffer_init_tensor(struct buffer *buffer, struct tensor *tensor);
void ggml_log_internal(int level, const char *format, ...);

const char *ggml_version(void)
{
    const char *version = getenv("SMALL_HOST_VERSION");
    static char text[32];
    (void)snprintf(text, sizeof(text), "0.%d.0", HOST_VERSION);
    return version != NULL ? version : text;
}

const char *ggml_op_name(int op)
{
    static const char *const names[OPS] = {"NONE",       "ADD",   "VIEW", "MUL_MAT",
                                           "MUL_MAT_ID", "ROPE",  "MUL",  "SCALE",
                                           "RMS_NORM",   "UNARY", "GLU",  "ARGSORT"};
    return op >= 0 && op < OPS ? names[op] : NULL;
}

const char *ggml_op_desc(const struct tensor *tensor)
{
    static const char *const unaries[UNARIES] = {"EXP", "GELU", "SILU"};
    static const char *const glus[GLUS] = {"REGLU", "SWIGLU", "GEGLU"};
    int which = tensor->op_params[0];
    if (tensor->op == OP_UNARY) {
        return which >= 0 && which < UNARIES ? unaries[which] : NULL;
    }
    if (tensor->op == OP_GLU) {
        return which >= 0 && which < GLUS ? glus[which] : NULL;
    }
    return ggml_op_name(tensor->op);
}

size_t ggml_tensor_overhead(void)
{
    return 32 + sizeof(struct tensor);
}

size_t ggml_nbytes(const struct tensor *tensor)
{
    return tensor->nb[3] * (size_t)tensor->ne[3];
}

void *ggml_get_data(const struct tensor *tensor)
{
    return tensor->data;
}

const char *ggml_get_name(const struct tensor *tensor)
{
    return tensor->name;
}

struct context *ggml_init(struct init_params params)
{
    (void)params;
    return calloc(1, sizeof(struct context));
}

void ggml_free(struct context *context)
{
    for (int i = 0; i < context->n; i++) {
        if (context->tensors[i].buffer == NULL) {
            free(context->tensors[i].data);
        }
    }
    free(context);
}

struct tensor *ggml_new_tensor_3d(struct context *context, int type, int64_t ne0, int64_t ne1,
                                  int64_t ne2)
{
    struct tensor *tensor = &context->tensors[context->n++];
    *tensor = small_host_tensor(type, (const int64_t[]){ne0, ne1, ne2, 1}, NULL, 0);
    tensor->data = calloc(1, ggml_nbytes(tensor));
    return tensor;
}

struct tensor *ggml_new_tensor_2d(struct context *context, int type, int64_t ne0, int64_t ne1)
{
    return ggml_new_tensor_3d(context, type, ne0, ne1, 1);
}

struct tensor *ggml_mul_mat(struct context *context, struct tensor *a, struct tensor *b)
{
    struct tensor *tensor = ggml_new_tensor_2d(context, 0, a->ne[1], b->ne[1]);
    tensor->op = OP_MUL_MAT;
    tensor->src[0] = a;
    tensor->src[1] = b;
    return tensor;
}

struct tensor *ggml_mul_mat_id(struct context *context, struct tensor *a, struct tensor *b,
                               struct tensor *ids)
{
    struct tensor *tensor = ggml_new_tensor_3d(context, 0, a->ne[1], ids->ne[0], ids->ne[1]);
    tensor->op = OP_MUL_MAT_ID;
    tensor->src[0] = a;
    tensor->src[1] = b;
    tensor->src[2] = ids;
    return tensor;
}

struct ggml_cgraph *ggml_new_graph(struct context *context)
{
    return &context->graph;
}

void ggml_build_forward_expand(struct ggml_cgraph *graph, struct tensor *result)
{
    graph->nodes[graph->n_nodes++] = result;
}

int ggml_graph_n_nodes(struct ggml_cgraph *graph)
{
    return graph->n_nodes;
}

struct tensor *ggml_graph_node(struct ggml_cgraph *graph, int i)
{
    return graph->nodes[i];
}

/* ---- buffers ---- */

static bool yes(struct buft *buft)
{
    (void)buft;
    return true;
}

static const char *cpu_name(struct buft *buft)
{
    (void)buft;
    return "CPU";
}

static size_t cpu_alignment(struct buft *buft)
{
    (void)buft;
    return 64;
}

static void *cpu_base(struct buffer *buffer)
{
    return buffer->context;
}

static void cpu_set(struct buffer *buffer, struct tensor *tensor, const void *data, size_t offset,
                    size_t size)
{
    (void)buffer;
    memcpy((char *)tensor->data + offset, data, size);
}

static void cpu_get(struct buffer *buffer, const struct tensor *tensor, void *data, size_t offset,
                    size_t size)
{
    (void)buffer;
    memcpy(data, (const char *)tensor->data + offset, size);
}

static void cpu_free(struct buffer *buffer)
{
    free(buffer->context);
}

static struct buffer *new_buffer(struct buft *buft, void *data, size_t size, bool is_ours)
{
    struct buffer *buffer = calloc(1, sizeof(*buffer));
    if (buffer == NULL) {
        abort();
    }
    buffer->free_buffer = is_ours ? cpu_free : NULL;
    buffer->get_base = cpu_base;
    buffer->set_tensor = cpu_set;
    buffer->get_tensor = cpu_get;
    buffer->buft = buft;
    buffer->context = data;
    buffer->size = size;
    return buffer;
}

static struct buffer *cpu_alloc(struct buft *buft, size_t size)
{
    void *data = aligned_alloc(64, (size + 63) / 64 * 64);
    return data != NULL ? new_buffer(buft, data, size, true) : NULL;
}

struct buft *ggml_backend_cpu_buffer_type(void)
{
    static struct buft cpu;
    cpu.get_name = cpu_name;
    cpu.alloc_buffer = cpu_alloc;
    cpu.get_alignment = cpu_alignment;
    cpu.is_host = yes;
    return &cpu;
}

struct buffer *ggml_backend_cpu_buffer_from_ptr(void *data, size_t size)
{
    return new_buffer(ggml_backend_cpu_buffer_type(), data, size, false);
}

struct buffer *ggml_backend_buft_alloc_buffer(struct buft *buft, size_t size)
{
    return size == 0 ? new_buffer(buft, NULL, 0, false) : buft->alloc_buffer(buft, size);
}

/* Moves what the tensors of a context have into one buffer. */
struct buffer *ggml_backend_alloc_ctx_tensors_from_buft(struct context *context, struct buft *buft)
{
    size_t size = 0;
    for (int i = 0; i < context->n; i++) {
        size += ggml_nbytes(&context->tensors[i]);
    }
    struct buffer *buffer = ggml_backend_buft_alloc_buffer(buft, size);
    char *base = buffer != NULL ? ggml_backend_buffer_get_base(buffer) : NULL;
    for (int i = 0; i < context->n && base != NULL; i++) {
        struct tensor *tensor = &context->tensors[i];
        free(tensor->data);
        tensor->buffer = buffer;
        tensor->data = base;
        base += ggml_nbytes(tensor);
    }
    return buffer;
}

size_t ggml_backend_buft_get_alignment(struct buft *buft)
{
    return buft->get_alignment(buft);
}

bool ggml_backend_buft_is_host(struct buft *buft)
{
    return buft->is_host != NULL && buft->is_host(buft);
}

void *ggml_backend_buft_get_device(struct buft *buft)
{
    return buft->device;
}

void *ggml_backend_buffer_get_base(struct buffer *buffer)
{
    return buffer->size > 0 ? buffer->get_base(buffer) : NULL;
}

size_t ggml_backend_buffer_get_size(struct buffer *buffer)
{
    return buffer->size;
}

int ggml_backend_buffer_get_usage(struct buffer *buffer)
{
    return buffer->usage;
}

void ggml_backend_buffer_set_usage(struct buffer *buffer, int usage)
{
    buffer->usage = usage;
}

struct buft *ggml_backend_buffer_get_type(struct buffer *buffer)
{
    return buffer->buft;
}

void ggml_backend_buffer_free(struct buffer *buffer)
{
    if (buffer->free_buffer != NULL) {
        buffer->free_buffer(buffer);
    }
    free(buffer);
}

/* ---- backends and devices ---- */

void *ggml_backend_get_device(struct backend *backend)
{
    return backend->device;
}

void ggml_backend_free(struct backend *backend)
{
    backend->free(backend);
}

int ggml_backend_graph_compute(struct backend *backend, struct ggml_cgraph *graph)
{
    int status = backend->graph_compute(backend, graph);
    if (getenv("SMALL_HOST_BREAKS") != NULL) {
        memset(graph->nodes[graph->n_nodes - 1]->data, 0, 4);
    }
    return status;
}

struct device *ggml_backend_dev_by_type(int type)
{
    static struct device gpu;
    enum { GPU = 1 };
    /* a host whose CPU backend comes later */
    return type == GPU && getenv("SMALL_HOST_GPU") != NULL ? &gpu : NULL;
}

struct backend *ggml_backend_dev_init(struct device *device, const char *text)
{
    return device->init_backend(device, text);
}

bool ggml_backend_dev_supports_op(struct device *device, const struct tensor *op)
{
    return device->supports_op(device, op);
}

void *ggml_backend_dev_backend_reg(struct device *device)
{
    return device->reg;
}

void ggml_backend_dev_memory(struct device *device, size_t *out_free, size_t *out_total)
{
    device->get_memory(device, out_free, out_total);
}

void ggml_backend_dev_get_props(struct device *device, struct props *out_props)
{
    memset(out_props, 0, sizeof(*out_props));
    device->get_props(device, out_props);
}

void *ggml_backend_reg_get_proc_address(struct reg *reg, const char *name)
{
    return reg->get_proc_address(reg, name);
}

void ggml_backend_tensor_set(struct tensor *tensor, const void *data, size_t offset, size_t size)
{
    tensor->buffer->set_tensor(tensor->buffer, tensor, data, offset, size);
}

void ggml_backend_tensor_get(const struct tensor *tensor, void *data, size_t offset, size_t size)
{
    tensor->buffer->get_tensor(tensor->buffer, tensor, data, offset, size);
}

int ggml_backend_buffer_init_tensor(struct buffer *buffer, struct tensor *tensor)
{
    return buffer->init_tensor != NULL ? buffer->init_tensor(buffer, tensor) : 0;
}

void ggml_log_internal(int level, const char *format, ...)
{
    enum { LOG_ERROR = 4 };
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(last_line, sizeof(last_line), format, arguments);
    va_end(arguments);
    const size_t room = sizeof(all_lines) - 1 - n_all;
    const size_t n = strlen(last_line) < room ? strlen(last_line) : room;
    memcpy(all_lines + n_all, last_line, n);
    n_all += n;
    n_errors += level == LOG_ERROR;
}

/* ---- for the tests ---- */

const char *small_host_last_line(void)
{
    return last_line;
}

const char *small_host_all_lines(void)
{
    return all_lines;
}

int small_host_errors(void)
{
    return n_errors;
}

struct tensor small_host_tensor(int type, const int64_t *ne, struct buffer *buffer, size_t offset)
{
    struct tensor tensor;
    memset(&tensor, 0, sizeof(tensor));
    tensor.type = type;
    tensor.buffer = buffer;
    memcpy(tensor.ne, ne, sizeof(tensor.ne));
    tensor.nb[0] = tandem_type_block_bytes((enum tandem_type)type);
    tensor.nb[1] = tandem_type_row_bytes((enum tandem_type)type, ne[0]);
    tensor.nb[2] = tensor.nb[1] * (size_t)ne[1];
    tensor.nb[3] = tensor.nb[2] * (size_t)ne[2];
    if (buffer != NULL && buffer->size > 0) {
        tensor.data = (char *)ggml_backend_buffer_get_base(buffer) + offset;
    }
    return tensor;
}

void small_host_place(struct tensor *tensor, struct buffer *buffer, void *data)
{
    tensor->buffer = buffer;
    tensor->data = data;
    (void)ggml_backend_buffer_init_tensor(buffer, tensor);
}

struct buffer *small_host_buffer(struct buft *buft, size_t size, int usage)
{
    struct buffer *buffer = ggml_backend_buft_alloc_buffer(buft, size);
    if (buffer == NULL) {
        abort();
    }
    buffer->usage = usage;
    return buffer;
}

void small_host_free(struct buffer *buffer)
{
    ggml_backend_buffer_free(buffer);
}

struct reg *small_host_load(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        (void)fprintf(stderr, "%s\n", dlerror());
        return NULL;
    }
    union {
        void *p;
        int (*score)(void);
        struct reg *(*init)(void);
    } found = {.p = dlsym(library, "ggml_backend_score")};
    if (found.p == NULL || found.score() == 0) {
        return NULL;
    }
    found.p = dlsym(library, "ggml_backend_init");
    struct reg *reg = found.p != NULL ? found.init() : NULL;
    return reg != NULL && reg->api_version == HOST_API ? reg : NULL;
}
