/* SPDX-License-Identifier: MIT
 * A small ggml to load the bridge into: its structures, written a second time from
 * ggml-backend-impl.h of 0.9 (HOST_VERSION 9: API version 2 without tensor_2d), 0.21 (21: API
 * version 2) and 0.26 (26: API version 3). It computes nothing itself. */
#ifndef TND_SMALL_HOST_H
#define TND_SMALL_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef HOST_VERSION
#define HOST_VERSION 26
#endif
#define HOST_API (HOST_VERSION < 26 ? 2 : 3)

/* Numbers of this host alone. */
enum {
    OP_NONE,
    OP_ADD,
    OP_VIEW,
    OP_MUL_MAT,
    OP_MUL_MAT_ID,
    OP_ROPE,
    OP_MUL,
    OP_SCALE,
    OP_RMS_NORM,
    OP_UNARY,
    OP_GLU,
    OP_ARGSORT,
    OPS
};
enum { UNARY_EXP, UNARY_GELU, UNARY_SILU, UNARIES }; /* op_params[0] */
enum { GLU_REGLU, GLU_SWIGLU, GLU_GEGLU, GLUS };
enum { USAGE_ANY, USAGE_WEIGHTS, USAGE_COMPUTE };

struct buft;
struct buffer;
struct device;
struct backend;
struct reg;
struct tensor;
struct ggml_cgraph {
    int n_nodes;
    struct tensor *nodes[32];
};

struct tensor {
    int32_t type;
    struct buffer *buffer;
    int64_t ne[4];
    size_t nb[4];
    int32_t op;
    int32_t op_params[16];
    int32_t flags;
    struct tensor *src[10];
    struct tensor *view_src;
    size_t view_offs;
    void *data;
    char name[64];
    void *extra;
    char padding[8];
};

struct buft {
    const char *(*get_name)(struct buft *);
    struct buffer *(*alloc_buffer)(struct buft *, size_t);
#if HOST_VERSION >= 26
    struct buffer *(*alloc_buffer_n)(struct buft *, struct tensor **, int);
#endif
    size_t (*get_alignment)(struct buft *);
    size_t (*get_max_size)(struct buft *);
    size_t (*get_alloc_size)(struct buft *, const struct tensor *);
#if HOST_VERSION >= 26
    size_t (*get_alloc_size_n)(struct buft *, struct tensor **, int);
#endif
    bool (*is_host)(struct buft *);
    struct device *device;
    void *context;
};

struct buffer {
    void (*free_buffer)(struct buffer *);
    void *(*get_base)(struct buffer *);
    int (*init_tensor)(struct buffer *, struct tensor *);
    void (*memset_tensor)(struct buffer *, struct tensor *, uint8_t, size_t, size_t);
    void (*set_tensor)(struct buffer *, struct tensor *, const void *, size_t, size_t);
    void (*get_tensor)(struct buffer *, const struct tensor *, void *, size_t, size_t);
    void *others[HOST_VERSION >= 21 ? 5 : 3];
    struct buft *buft;
    void *context;
    size_t size;
    int usage;
};

struct backend {
    void *guid;
    const char *(*get_name)(struct backend *);
    void (*free)(struct backend *);
    void *async[HOST_VERSION >= 21 ? 5 : 3];
    void (*synchronize)(struct backend *);
    void *plans[4];
    int (*graph_compute)(struct backend *, struct ggml_cgraph *);
    void *event_record;
    void *event_wait;
    void *graph_optimize;
    struct device *device;
    void *context;
};

struct props {
    const char *name;
    const char *description;
    size_t memory_free;
    size_t memory_total;
    int32_t type;
    const char *device_id;
    bool caps[5];
};

struct device {
    const char *(*get_name)(struct device *);
    const char *(*get_description)(struct device *);
    void (*get_memory)(struct device *, size_t *, size_t *);
    int (*get_type)(struct device *);
    void (*get_props)(struct device *, struct props *);
    struct backend *(*init_backend)(struct device *, const char *);
    struct buft *(*get_buffer_type)(struct device *);
    struct buft *(*get_host_buffer_type)(struct device *);
    struct buffer *(*buffer_from_host_ptr)(struct device *, void *, size_t, size_t);
    bool (*supports_op)(struct device *, const struct tensor *);
    bool (*supports_buft)(struct device *, struct buft *);
    bool (*offload_op)(struct device *, const struct tensor *);
    void *events[3];
    struct reg *reg;
    void *context;
};

struct reg {
    int api_version;
    const char *(*get_name)(struct reg *);
    size_t (*get_device_count)(struct reg *);
    struct device *(*get_device)(struct reg *, size_t);
    void *(*get_proc_address)(struct reg *, const char *);
    void *context;
};

/** Where results of the host's own nodes lie. */
struct buft *ggml_backend_cpu_buffer_type(void);
/** Loads a backend as ggml does: its score, its registration, its API version; NULL: refused. */
struct reg *small_host_load(const char *path);
/** The newest line of the host's log. */
const char *small_host_last_line(void);
/** What the host was told so far, and how often as an error. */
const char *small_host_all_lines(void);
int small_host_errors(void);
/** A tensor of the host's over memory of a buffer, from `offset` on. */
struct tensor small_host_tensor(int type, const int64_t *ne, struct buffer *buffer, size_t offset);
/** As ggml_backend_tensor_alloc: a tensor is placed at `data`, which is in `buffer`. */
void small_host_place(struct tensor *tensor, struct buffer *buffer, void *data);
void ggml_backend_tensor_set(struct tensor *tensor, const void *data, size_t offset, size_t size);
void ggml_backend_tensor_get(const struct tensor *tensor, void *data, size_t offset, size_t size);
/** A buffer of a type, as ggml_backend_buft_alloc_buffer; and its end. */
struct buffer *small_host_buffer(struct buft *buft, size_t size, int usage);
void small_host_free(struct buffer *buffer);

#endif
