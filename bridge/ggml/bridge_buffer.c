/* SPDX-License-Identifier: MIT
 * Buffers are created by the host; the bridge replaces two of their members: init_tensor, which
 * loaders call for a tensor in a mapped file, and set_tensor, which copies the values of other
 * tensors. Loaders that read a file directly into a buffer call neither; then weights are packed at
 * first use. */
#include "bridge/ggml/bridge_buffer.h"

#include <pthread.h>

#include "bridge/ggml/bridge_compute.h"
#include "bridge/ggml/bridge_host.h"

typedef int (*init_fn)(struct ggml_backend_buffer *buffer, struct ggml_tensor *tensor);
typedef void (*set_fn)(struct ggml_backend_buffer *buffer, struct ggml_tensor *tensor,
                       const void *data, size_t offset, size_t size);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ggml_object buffer_type;
static bool has_members;
static set_fn host_set_tensor; /* of all its CPU buffers; NULL before the first one */

#define WORD(function) ((union ggml_word){.fn = (ggml_any_fn)(function)})

static bool holds_weights(struct ggml_backend_buffer *buffer)
{
    return tnd_host.ggml_backend_buffer_get_usage(buffer) == GGML_USAGE_WEIGHTS;
}

static int on_init_tensor(struct ggml_backend_buffer *buffer, struct ggml_tensor *tensor)
{
    if (holds_weights(buffer)) {
        tnd_bridge_weights_mapped(buffer, tensor);
    }
    return GGML_STATUS_SUCCESS;
}

static void on_set_tensor(struct ggml_backend_buffer *buffer, struct ggml_tensor *tensor,
                          const void *data, size_t offset, size_t size)
{
    host_set_tensor(buffer, tensor, data, offset, size);
    if (holds_weights(buffer)) {
        tnd_bridge_weights_set(buffer, tensor, offset, size);
    }
}

/* Replaces the members, unless the buffer has its own init_tensor or an unknown set_tensor. */
static struct ggml_backend_buffer *watch(struct ggml_backend_buffer *buffer)
{
    if (buffer == NULL || !has_members || buffer->init_tensor != NULL ||
        buffer->set_tensor == NULL) {
        return buffer;
    }
    pthread_mutex_lock(&lock);
    host_set_tensor = host_set_tensor == NULL ? buffer->set_tensor : host_set_tensor;
    bool is_known = buffer->set_tensor == host_set_tensor;
    pthread_mutex_unlock(&lock);
    if (is_known) {
        buffer->init_tensor = on_init_tensor;
        buffer->set_tensor = on_set_tensor;
    }
    return buffer;
}

static const char *get_name(struct ggml_object *buft)
{
    (void)buft;
    return "Tandem";
}

static struct ggml_backend_buffer *alloc_buffer(struct ggml_object *buft, size_t size)
{
    (void)buft;
    return watch(
        tnd_host.ggml_backend_buft_alloc_buffer(tnd_host.ggml_backend_cpu_buffer_type(), size));
}

static size_t get_alignment(struct ggml_object *buft)
{
    (void)buft;
    return tnd_host.ggml_backend_buft_get_alignment(tnd_host.ggml_backend_cpu_buffer_type());
}

static bool is_host(struct ggml_object *buft)
{
    (void)buft;
    return true;
}

struct ggml_backend_buffer *tnd_buffer_from_host_ptr(struct ggml_object *device, void *data,
                                                     size_t size, size_t max_tensor_size)
{
    (void)device;
    (void)max_tensor_size;
    return watch(tnd_host.ggml_backend_cpu_buffer_from_ptr(data, size));
}

struct ggml_object *tnd_buffer_type(void)
{
    return &buffer_type;
}

void tnd_buffer_type_init(const struct tnd_host_layout *layout, struct ggml_object *device)
{
    buffer_type.word[BUFT_GET_NAME] = WORD(get_name);
    buffer_type.word[BUFT_ALLOC_BUFFER] = WORD(alloc_buffer);
    buffer_type.word[layout->buft_get_alignment] = WORD(get_alignment);
    buffer_type.word[layout->buft_is_host] = WORD(is_host);
    buffer_type.word[layout->buft_device].p = device;
    has_members = layout->has_buffer_members;
}
