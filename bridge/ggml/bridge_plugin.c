/* SPDX-License-Identifier: MIT
 * The backend "Tandem" as ggml sees it: one device of type ACCEL, whose buffers are the host's own
 * CPU buffers. Everything that a host can do without is left out (NULL). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bridge/ggml/bridge_choice.h"
#include "bridge/ggml/bridge_compute.h"
#include "bridge/ggml/bridge_host.h"
#include "bridge/ggml/bridge_layout.h"
#include "bridge/ggml/bridge_product.h"
#include "bridge/ggml/bridge_selftest.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED struct ggml_backend_reg *ggml_backend_init(void);
EXPORTED int ggml_backend_score(void);

enum { NEWEST_TRIED = 26 /* ggml 0.26 */ };
enum { SCORE = 100 /* among backends of one name; any but 0 says that it runs here */ };

static struct tnd_host_layout layout;
static struct ggml_object device;
static struct ggml_object buffer_type;
static uint8_t guid[16] = {0x74, 0x61, 0x6e, 0x64, 0x65, 0x6d, 0x2d, 0x69,
                           0x6e, 0x66, 0x65, 0x72, 0x2d, 0x30, 0x30, 0x31};

#define WORD(function) ((union ggml_word){.fn = (ggml_any_fn)(function)})

/* ---- buffer type: the host's own, under a name that loaders try first ---- */

static const char *buft_get_name(struct ggml_object *buft)
{
    (void)buft;
    return "Tandem";
}

static struct ggml_backend_buffer *buft_alloc(struct ggml_object *buft, size_t size)
{
    (void)buft;
    return tnd_host.ggml_backend_buft_alloc_buffer(tnd_host.ggml_backend_cpu_buffer_type(), size);
}

static size_t buft_get_alignment(struct ggml_object *buft)
{
    (void)buft;
    return tnd_host.ggml_backend_buft_get_alignment(tnd_host.ggml_backend_cpu_buffer_type());
}

static bool buft_is_host(struct ggml_object *buft)
{
    (void)buft;
    return true;
}

/* ---- backend ---- */

static const char *backend_get_name(struct ggml_object *backend)
{
    (void)backend;
    return "Tandem";
}

static void backend_free(struct ggml_object *backend)
{
    free(backend);
}

static int backend_compute(struct ggml_object *backend, struct ggml_cgraph *graph)
{
    (void)backend;
    return tnd_bridge_compute(graph);
}

static struct ggml_object *device_init_backend(struct ggml_object *dev, const char *params)
{
    (void)params;
    struct ggml_object *backend = calloc(1, sizeof(*backend));
    if (backend != NULL) {
        backend->word[BACKEND_GUID].p = guid;
        backend->word[BACKEND_GET_NAME] = WORD(backend_get_name);
        backend->word[BACKEND_FREE] = WORD(backend_free);
        backend->word[layout.backend_compute] = WORD(backend_compute);
        backend->word[layout.backend_device].p = dev;
    }
    return backend;
}

/* ---- device ---- */

static const char *device_get_name(struct ggml_object *dev)
{
    (void)dev;
    return "Tandem";
}

static const char *device_get_description(struct ggml_object *dev)
{
    (void)dev;
    return "matrix products by this machine's table";
}

static struct ggml_object *host_cpu(void)
{
    return tnd_host.ggml_backend_dev_by_type(GGML_DEVICE_CPU);
}

static void device_get_memory(struct ggml_object *dev, size_t *out_free, size_t *out_total)
{
    (void)dev;
    struct ggml_object *cpu = host_cpu();
    *out_free = 0;
    *out_total = 0;
    if (cpu != NULL) {
        tnd_host.ggml_backend_dev_memory(cpu, out_free, out_total);
    }
}

static int device_get_type(struct ggml_object *dev)
{
    (void)dev;
    return GGML_DEVICE_ACCEL;
}

/* What the CPU can do in this host (mapped files, ...) holds for us, too. */
static void device_get_props(struct ggml_object *dev, union ggml_dev_props_room *out_props)
{
    struct ggml_object *cpu = host_cpu();
    if (cpu != NULL) {
        tnd_host.ggml_backend_dev_get_props(cpu, out_props);
    }
    out_props->props.name = device_get_name(dev);
    out_props->props.description = device_get_description(dev);
    out_props->props.type = GGML_DEVICE_ACCEL;
}

static struct ggml_object *device_get_buffer_type(struct ggml_object *dev)
{
    (void)dev;
    return &buffer_type;
}

static struct ggml_backend_buffer *device_buffer_from_host_ptr(struct ggml_object *dev, void *data,
                                                               size_t size, size_t max_tensor_size)
{
    (void)dev;
    (void)max_tensor_size;
    return tnd_host.ggml_backend_cpu_buffer_from_ptr(data, size);
}

static bool device_supports_op(struct ggml_object *dev, const struct ggml_tensor *op)
{
    static const char *const names[] = {"NONE", "RESHAPE", "VIEW", "PERMUTE", "TRANSPOSE"};
    struct tnd_product product;
    (void)dev;
    const char *name = tnd_host.ggml_op_name(op->op);
    for (size_t i = 0; name != NULL && i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(name, names[i]) == 0) {
            return true; /* computes nothing */
        }
    }
    return tnd_product_read(op, &product) && tnd_product_has_weights(op) &&
           tnd_choice_takes(&product);
}

static bool device_supports_buft(struct ggml_object *dev, struct ggml_object *buft)
{
    (void)dev;
    return tnd_host.ggml_backend_buft_is_host(buft);
}

/* ---- registration ---- */

static const char *reg_get_name(struct ggml_backend_reg *reg)
{
    (void)reg;
    return "Tandem";
}

static size_t reg_get_device_count(struct ggml_backend_reg *reg)
{
    (void)reg;
    return 1;
}

static struct ggml_object *reg_get_device(struct ggml_backend_reg *reg, size_t i)
{
    (void)reg;
    return i == 0 ? &device : NULL;
}

static void set_n_threads(struct ggml_object *backend, int n_threads)
{
    (void)backend;
    tnd_bridge_set_threads(n_threads);
}

static void *reg_get_proc_address(struct ggml_backend_reg *reg, const char *name)
{
    (void)reg;
    return name != NULL && strcmp(name, "ggml_backend_set_n_threads") == 0 ? WORD(set_n_threads).p
                                                                           : NULL;
}

static struct ggml_backend_reg registration = {
    0, reg_get_name, reg_get_device_count, reg_get_device, reg_get_proc_address, NULL};

static void fill_objects(void)
{
    device.word[DEVICE_GET_NAME] = WORD(device_get_name);
    device.word[DEVICE_GET_DESCRIPTION] = WORD(device_get_description);
    device.word[DEVICE_GET_MEMORY] = WORD(device_get_memory);
    device.word[DEVICE_GET_TYPE] = WORD(device_get_type);
    device.word[DEVICE_GET_PROPS] = WORD(device_get_props);
    device.word[DEVICE_INIT_BACKEND] = WORD(device_init_backend);
    device.word[DEVICE_GET_BUFFER_TYPE] = WORD(device_get_buffer_type);
    device.word[DEVICE_BUFFER_FROM_HOST_PTR] = WORD(device_buffer_from_host_ptr);
    device.word[DEVICE_SUPPORTS_OP] = WORD(device_supports_op);
    device.word[DEVICE_SUPPORTS_BUFT] = WORD(device_supports_buft);
    device.word[DEVICE_REG].p = &registration;
    buffer_type.word[BUFT_GET_NAME] = WORD(buft_get_name);
    buffer_type.word[BUFT_ALLOC_BUFFER] = WORD(buft_alloc);
    buffer_type.word[layout.buft_get_alignment] = WORD(buft_get_alignment);
    buffer_type.word[layout.buft_is_host] = WORD(buft_is_host);
    buffer_type.word[layout.buft_device].p = &device;
    registration.api_version = layout.api_version;
}

/* Finds the host once. Without its log there is one line for standard error to say why not. */
static bool find_host(void *return_address)
{
    static enum { UNKNOWN, USABLE, USELESS } state = UNKNOWN;
    char why[256];
    if (state != UNKNOWN) {
        return state == USABLE;
    }
    const char *wanted = secure_getenv("TANDEM_BRIDGE");
    state = USELESS;
    if (wanted != NULL && strcmp(wanted, "never") == 0) {
        return false;
    }
    if (!tnd_host_find(return_address, why, sizeof(why))) {
        (void)fprintf(stderr, "libggml-tandem: not used: %s\n", why);
        return false;
    }
    if (!tnd_host_layout_find(&layout, why, sizeof(why))) {
        tnd_host_log(GGML_LOG_WARN, "not used: %s", why);
        return false;
    }
    fill_objects();
    bool is_tried = tnd_host.major == 0 && tnd_host.minor <= NEWEST_TRIED;
    if (!is_tried && !tnd_bridge_selftest(&device, &buffer_type)) {
        tnd_host_log(GGML_LOG_WARN,
                     "not used: ggml %s is newer than it knows, and a product failed",
                     tnd_host.ggml_version());
        return false;
    }
    state = USABLE;
    return true;
}

int ggml_backend_score(void)
{
    return find_host(__builtin_return_address(0)) ? SCORE : 0;
}

struct ggml_backend_reg *ggml_backend_init(void)
{
    return find_host(__builtin_return_address(0)) ? &registration : NULL;
}
