/* SPDX-License-Identifier: MIT
 * The parts of ggml's structures that the bridge uses, written from ggml.h, ggml-backend.h and
 * ggml-backend-impl.h as published with ggml 0.21 (API version 2) and 0.26 (API version 3). Tables
 * of functions are arrays of words here, because their length differs between releases:
 * bridge_layout.c determines the host's. */
#ifndef TND_GGML_ABI_H
#define TND_GGML_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    GGML_MAX_DIMS = 4,
    GGML_MAX_SRC = 10,
    GGML_OP_PARAM_WORDS = 16,
    GGML_MAX_NAME = 64,
    GGML_OBJECT_BYTES = 32 /* before each tensor in a context; part of ggml_tensor_overhead() */
};
enum { GGML_STATUS_ALLOC_FAILED = -2, GGML_STATUS_FAILED = -1, GGML_STATUS_SUCCESS = 0 };
enum { GGML_LOG_DEBUG = 1, GGML_LOG_INFO = 2, GGML_LOG_WARN = 3, GGML_LOG_ERROR = 4 };
/* Since 0.9.0; before, ACCEL was 2. */
enum { GGML_DEVICE_CPU = 0, GGML_DEVICE_GPU = 1, GGML_DEVICE_IGPU = 2, GGML_DEVICE_ACCEL = 3 };
enum { GGML_USAGE_WEIGHTS = 1 };

struct ggml_context;
struct ggml_cgraph;
struct ggml_backend_buffer;

/* ggml.h, unchanged from 0.9.0 to 0.26.0; ggml_tensor_overhead() confirms its size. */
struct ggml_tensor {
    int32_t type;
    struct ggml_backend_buffer *buffer;
    int64_t ne[GGML_MAX_DIMS];
    size_t nb[GGML_MAX_DIMS];
    int32_t op;
    int32_t op_params[GGML_OP_PARAM_WORDS];
    int32_t flags;
    struct ggml_tensor *src[GGML_MAX_SRC];
    struct ggml_tensor *view_src;
    size_t view_offs;
    void *data;
    char name[GGML_MAX_NAME];
    void *extra;
    char padding[8];
};

struct ggml_init_params {
    size_t mem_size;
    void *mem_buffer;
    bool no_alloc;
};

typedef void (*ggml_any_fn)(void);
/* A word of a structure: a function or an address. */
union ggml_word {
    ggml_any_fn fn;
    void *p;
};
enum { GGML_WORDS = 40 /* larger than any of the structures */ };
/* ggml_backend, _device, _buffer_type: a table of functions, then a few addresses. */
struct ggml_object {
    union ggml_word word[GGML_WORDS];
};

/* ggml_backend_reg: API version 2 and 3. */
struct ggml_backend_reg {
    int32_t api_version;
    const char *(*get_name)(struct ggml_backend_reg *reg);
    size_t (*get_device_count)(struct ggml_backend_reg *reg);
    struct ggml_object *(*get_device)(struct ggml_backend_reg *reg, size_t i);
    void *(*get_proc_address)(struct ggml_backend_reg *reg, const char *name);
    void *context;
};

/* The first members of ggml_backend_dev_props; the host's CPU fills in the rest. */
struct ggml_dev_props {
    const char *name;
    const char *description;
    size_t memory_free;
    size_t memory_total;
    int32_t type;
};
/* Enough memory for the whole structure in any release. */
union ggml_dev_props_room {
    struct ggml_dev_props props;
    char bytes[512];
};

/* ggml_backend_device_i, API version 2 and 3; `reg` and `context` follow. */
enum {
    DEVICE_GET_NAME = 0,
    DEVICE_GET_DESCRIPTION = 1,
    DEVICE_GET_MEMORY = 2,
    DEVICE_GET_TYPE = 3,
    DEVICE_GET_PROPS = 4,
    DEVICE_INIT_BACKEND = 5,
    DEVICE_GET_BUFFER_TYPE = 6,
    DEVICE_BUFFER_FROM_HOST_PTR = 8,
    DEVICE_SUPPORTS_OP = 9,
    DEVICE_SUPPORTS_BUFT = 10,
    DEVICE_REG = 15
};
/* ggml_backend: `guid` is word 0. graph_compute moved by two words when set_tensor_2d_async and
 * get_tensor_2d_async were inserted (0.10); `device` follows the table. */
enum { BACKEND_GUID = 0, BACKEND_GET_NAME = 1, BACKEND_FREE = 2 };
enum { BACKEND_COMPUTE_OLD = 11, BACKEND_DEVICE_OLD = 15 };
enum { BACKEND_COMPUTE = 13, BACKEND_DEVICE = 17 };
/* ggml_backend_buffer_type: version 3 has alloc_buffer_n after alloc_buffer, and get_alloc_size_n
 * after get_alloc_size. */
enum { BUFT_GET_NAME = 0, BUFT_ALLOC_BUFFER = 1 };
enum { BUFT_GET_ALIGNMENT_2 = 2, BUFT_IS_HOST_2 = 5, BUFT_DEVICE_2 = 6 };
enum { BUFT_GET_ALIGNMENT_3 = 3, BUFT_IS_HOST_3 = 7, BUFT_DEVICE_3 = 8 };

/* ggml_backend_buffer: its first members in all releases; bridge_layout.c checks two of them. */
struct ggml_backend_buffer {
    void (*free_buffer)(struct ggml_backend_buffer *buffer);
    void *(*get_base)(struct ggml_backend_buffer *buffer);
    int (*init_tensor)(struct ggml_backend_buffer *buffer, struct ggml_tensor *tensor);
    ggml_any_fn memset_tensor;
    void (*set_tensor)(struct ggml_backend_buffer *buffer, struct ggml_tensor *tensor,
                       const void *data, size_t offset, size_t size);
};

#endif
