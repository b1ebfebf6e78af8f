/* SPDX-License-Identifier: MIT
 * The backend "Tandem" for ggml: one device of type ACCEL. Functions that hosts do not require are
 * left out (NULL). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bridge/ggml/bridge_buffer.h"
#include "bridge/ggml/bridge_choice.h"
#include "bridge/ggml/bridge_compute.h"
#include "bridge/ggml/bridge_host.h"
#include "bridge/ggml/bridge_layout.h"
#include "bridge/ggml/bridge_nodes.h"
#include "bridge/ggml/bridge_selftest.h"
#include "bridge/ggml/bridge_team.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED struct ggml_backend_reg *ggml_backend_init(void);
EXPORTED int ggml_backend_score(void);

enum { NEWEST_TRIED = 26 /* ggml 0.26 */ };
enum { MOST_TOKENS_BETWEEN = 8 /* for nodes between products */ };
enum { SCORE = 100 /* among backends of one name; any but 0 says that it runs here */ };

static struct tnd_host_layout layout;
static struct ggml_object device;
static struct ggml_object device_of_backends;
static uint8_t guid[16] = {0x74, 0x61, 0x6e, 0x64, 0x65, 0x6d, 0x2d, 0x69,
                           0x6e, 0x66, 0x65, 0x72, 0x2d, 0x30, 0x30, 0x31};

#define WORD(function) ((union ggml_word){.fn = (ggml_any_fn)(function)})

/* ---- backend ---- */

static const char *backend_get_name(struct ggml_object *backend)
{
    (void)backend;
    return "Tandem";
}

static void backend_free(struct ggml_object *backend)
{
    tnd_bridge_team_rest();
    free(backend);
}

static int backend_compute(struct ggml_object *backend, struct ggml_cgraph *graph)
{
    (void)backend;
    return tnd_bridge_compute(graph, false);
}

static struct ggml_object *device_init_backend(struct ggml_object *dev, const char *params)
{
    (void)dev;
    (void)params;
    struct ggml_object *backend = calloc(1, sizeof(*backend));
    if (backend != NULL) {
        backend->word[BACKEND_GUID].p = guid;
        backend->word[BACKEND_GET_NAME] = WORD(backend_get_name);
        backend->word[BACKEND_FREE] = WORD(backend_free);
        backend->word[layout.backend_compute] = WORD(backend_compute);
        backend->word[layout.backend_device].p = &device_of_backends;
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

/* Properties of the host's CPU (mapped files, ...) apply to this device, too. */
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
    return tnd_buffer_type();
}

/* Buffer type of results. ggml's scheduler moves nodes from the CPU to this device only if both use
 * the same type: llama.cpp places norms on the CPU first. */
static struct ggml_object *device_get_cpu_buffer_type(struct ggml_object *dev)
{
    (void)dev;
    return tnd_host.ggml_backend_cpu_buffer_type();
}

static bool takes_product(const struct ggml_tensor *op, int64_t most_tokens)
{
    struct tnd_product product;
    return tnd_product_read(op, &product) && product.m <= most_tokens &&
           tnd_product_has_weights(op) && tnd_choice_takes(&product);
}

/* Nodes between our products are ours, too: each switch between the host's nodes and ours costs a
 * parallel region of its threads. With many tokens that is little compared with the nodes
 * themselves. */
static bool device_supports_op(struct ggml_object *dev, const struct ggml_tensor *op)
{
    struct tnd_node node;
    (void)dev;
    if (tnd_node_is_view(op) || takes_product(op, INT64_MAX)) {
        return true;
    }
    if (!tnd_node_read(op, &node) || node.kind == TND_NODE_PRODUCT) {
        return false;
    }
    const struct ggml_tensor *product = tnd_node_find_product(op);
    return product != NULL && takes_product(product, MOST_TOKENS_BETWEEN);
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
    device.word[DEVICE_BUFFER_FROM_HOST_PTR] = WORD(tnd_buffer_from_host_ptr);
    device.word[DEVICE_SUPPORTS_OP] = WORD(device_supports_op);
    device.word[DEVICE_SUPPORTS_BUFT] = WORD(device_supports_buft);
    device.word[DEVICE_REG].p = &registration;
    device_of_backends = device;
    device_of_backends.word[DEVICE_GET_BUFFER_TYPE] = WORD(device_get_cpu_buffer_type);
    tnd_buffer_type_init(&layout, &device);
    registration.api_version = layout.api_version;
}

/* Finds the host, once. If its log is not available, one line on standard error says why. */
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
    if (!is_tried && !tnd_bridge_selftest(&device, tnd_buffer_type())) {
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
