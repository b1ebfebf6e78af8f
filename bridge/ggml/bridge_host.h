/* SPDX-License-Identifier: MIT
 * The host, which is the program that has loaded the bridge: ggml's functions in it, found by name
 * without linking. */
#ifndef TND_BRIDGE_HOST_H
#define TND_BRIDGE_HOST_H

#include "bridge/ggml/ggml_abi.h"

/* X(result, name, parameters): functions that the bridge calls; all are required. */
#define TND_HOST_FUNCTIONS(X)                                                                      \
    X(const char *, ggml_version, (void))                                                          \
    X(const char *, ggml_op_name, (int op))                                                        \
    X(const char *, ggml_op_desc, (const struct ggml_tensor *tensor))                              \
    X(size_t, ggml_tensor_overhead, (void))                                                        \
    X(size_t, ggml_nbytes, (const struct ggml_tensor *tensor))                                     \
    X(void *, ggml_get_data, (const struct ggml_tensor *tensor))                                   \
    X(const char *, ggml_get_name, (const struct ggml_tensor *tensor))                             \
    X(struct ggml_context *, ggml_init, (struct ggml_init_params params))                          \
    X(void, ggml_free, (struct ggml_context * context))                                            \
    X(struct ggml_tensor *, ggml_new_tensor_2d,                                                    \
      (struct ggml_context * context, int type, int64_t ne0, int64_t ne1))                         \
    X(struct ggml_tensor *, ggml_mul_mat,                                                          \
      (struct ggml_context * context, struct ggml_tensor * a, struct ggml_tensor * b))             \
    X(struct ggml_tensor *, ggml_new_tensor_3d,                                                    \
      (struct ggml_context * context, int type, int64_t ne0, int64_t ne1, int64_t ne2))            \
    X(struct ggml_tensor *, ggml_mul_mat_id,                                                       \
      (struct ggml_context * context, struct ggml_tensor * a, struct ggml_tensor * b,              \
       struct ggml_tensor * ids))                                                                  \
    X(struct ggml_cgraph *, ggml_new_graph, (struct ggml_context * context))                       \
    X(void, ggml_build_forward_expand, (struct ggml_cgraph * graph, struct ggml_tensor * result))  \
    X(int, ggml_graph_n_nodes, (struct ggml_cgraph * graph))                                       \
    X(struct ggml_tensor *, ggml_graph_node, (struct ggml_cgraph * graph, int i))                  \
    X(struct ggml_object *, ggml_backend_cpu_buffer_type, (void))                                  \
    X(struct ggml_backend_buffer *, ggml_backend_cpu_buffer_from_ptr, (void *data, size_t size))   \
    X(struct ggml_backend_buffer *, ggml_backend_buft_alloc_buffer,                                \
      (struct ggml_object * buft, size_t size))                                                    \
    X(struct ggml_backend_buffer *, ggml_backend_alloc_ctx_tensors_from_buft,                      \
      (struct ggml_context * context, struct ggml_object * buft))                                  \
    X(size_t, ggml_backend_buft_get_alignment, (struct ggml_object * buft))                        \
    X(bool, ggml_backend_buft_is_host, (struct ggml_object * buft))                                \
    X(void *, ggml_backend_buft_get_device, (struct ggml_object * buft))                           \
    X(void *, ggml_backend_buffer_get_base, (struct ggml_backend_buffer * buffer))                 \
    X(size_t, ggml_backend_buffer_get_size, (struct ggml_backend_buffer * buffer))                 \
    X(int, ggml_backend_buffer_get_usage, (struct ggml_backend_buffer * buffer))                   \
    X(void, ggml_backend_buffer_set_usage, (struct ggml_backend_buffer * buffer, int usage))       \
    X(struct ggml_object *, ggml_backend_buffer_get_type, (struct ggml_backend_buffer * buffer))   \
    X(void, ggml_backend_buffer_free, (struct ggml_backend_buffer * buffer))                       \
    X(int, ggml_backend_buffer_init_tensor,                                                        \
      (struct ggml_backend_buffer * buffer, struct ggml_tensor * tensor))                          \
    X(void *, ggml_backend_get_device, (struct ggml_object * backend))                             \
    X(void, ggml_backend_free, (struct ggml_object * backend))                                     \
    X(int, ggml_backend_graph_compute, (struct ggml_object * backend, struct ggml_cgraph * graph)) \
    X(struct ggml_object *, ggml_backend_dev_by_type, (int type))                                  \
    X(struct ggml_object *, ggml_backend_dev_init,                                                 \
      (struct ggml_object * device, const char *text))                                             \
    X(bool, ggml_backend_dev_supports_op,                                                          \
      (struct ggml_object * device, const struct ggml_tensor *op))                                 \
    X(void *, ggml_backend_dev_backend_reg, (struct ggml_object * device))                         \
    X(void, ggml_backend_dev_memory,                                                               \
      (struct ggml_object * device, size_t * out_free, size_t * out_total))                        \
    X(void, ggml_backend_dev_get_props,                                                            \
      (struct ggml_object * device, union ggml_dev_props_room * out_props))                        \
    X(void *, ggml_backend_reg_get_proc_address, (void *reg, const char *name))                    \
    X(void, ggml_backend_tensor_set,                                                               \
      (struct ggml_tensor * tensor, const void *data, size_t offset, size_t size))                 \
    X(void, ggml_backend_tensor_get,                                                               \
      (const struct ggml_tensor *tensor, void *data, size_t offset, size_t size))

/** ggml's functions in the host; valid after tnd_host_find has returned true. */
struct tnd_host {
#define TND_HOST_MEMBER(result, name, parameters) result(*name) parameters;
    TND_HOST_FUNCTIONS(TND_HOST_MEMBER)
#undef TND_HOST_MEMBER
    void (*log)(int level, const char *format, ...); /* NULL: the host has no known log function */
    void *library;                                   /* for dlsym */
    int major, minor, patch;                         /* of ggml */
};
extern struct tnd_host tnd_host;

/** Finds the functions in the library or program that contains `return_address`. False: functions
 * are missing, or the version is unknown; `out_why` (of `why_bytes`) says which. */
bool tnd_host_find(void *return_address, char *out_why, size_t why_bytes);
/** Writes a line to the host's own log; does nothing if there is none. */
__attribute__((format(printf, 2, 3))) void tnd_host_log(int level, const char *format, ...);

#endif
