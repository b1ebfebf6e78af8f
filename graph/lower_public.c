/* SPDX-License-Identifier: MIT
 * The public interface of lowered nets: the net, its graph, and the memory of inputs and outputs.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "ggml-like/tnd_tensor.h"
#include "graph/lower.h"
#include "graph/net_public.h"
#include "graph/pass.h"

struct tandem_lowered {
    tandem_net *net; /* owns names, and the net that was lowered */
    struct tnd_lowered *lowered;
};

static void set_fixed_inputs(const struct tandem_lowered *lowered)
{
    const struct tnd_net *net = lowered->net->net;
    for (int i = 0; i < net->n_inputs; i++) {
        const struct tnd_net_value *v = tnd_net_value(net, net->inputs[i]);
        if (v->is_fixed && v->known != NULL && v->known->n > 0) {
            memcpy(tnd_lowered_input(lowered->lowered, i), v->known->data,
                   (size_t)v->known->n * tandem_dtype_bytes(v->type));
        }
    }
}

static enum tandem_status lower(const tandem_net *net, const struct tandem_lower_options *wanted,
                                struct tandem_lowered *out, struct tandem_error *error)
{
    const char *passes = wanted->passes;
    unsigned set;
    TND_TRY(tandem_net_status(net, error));
    if (!tnd_passes_read(passes, &set)) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "passes", 0, 0,
                             "net_lower: passes are '%.100s', expected names between commas",
                             passes);
    }
    if (net->net->n_outputs == 0) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "net", 0, 1,
                             "net_lower: the net has no output, expected one at least");
    }
    TND_TRY(tnd_net_check(net->net, error));
    TND_TRY(tnd_net_optimize(net->net, set, NULL, error));
    const struct tnd_lower_options options = {.chooser = wanted->chooser,
                                              .for_device = wanted->for_device,
                                              .gives_up = net->is_kept ? NULL : net->net};
    return tnd_net_lower_with(net->net, &options, &out->lowered, error);
}

enum tandem_status tandem_net_lower(tandem_net *net, const struct tandem_lower_options *options,
                                    tandem_lowered **out_lowered, struct tandem_error *error)
{
    struct tandem_lower_options merged = TANDEM_LOWER_OPTIONS_INIT;
    struct tandem_error local;
    struct tandem_error *told = error != NULL ? error : &local; /* (passes always tell) */
    TND_REQUIRE(net, "net_lower", error);
    TND_REQUIRE(out_lowered, "net_lower", error);
    TND_TRY(tnd_options_read(options, "tandem_lower_options", &merged, sizeof(merged), told));
    tandem_lowered *lowered = tnd_calloc(1, sizeof(*lowered));
    tandem_net *inner = tnd_calloc(1, sizeof(*inner));
    enum tandem_status status = TANDEM_E_MEMORY;
    if (lowered == NULL || inner == NULL) {
        status = tnd_error_set(told, TANDEM_E_MEMORY, NULL, 0, 0, "no memory to lower a net");
    } else {
        status = lower(net, &merged, lowered, told);
    }
    if (status != TANDEM_OK) {
        tnd_free(lowered);
        tnd_free(inner);
        return status;
    }
    *inner = *net;
    *net = (struct tandem_net){.net = NULL};
    lowered->net = inner;
    set_fixed_inputs(lowered);
    *out_lowered = lowered;
    return TANDEM_OK;
}

void tandem_lowered_free(tandem_lowered *lowered)
{
    if (lowered != NULL) {
        tnd_lowered_free(lowered->lowered);
        tandem_net_free(lowered->net);
        tnd_free(lowered);
    }
}

struct tnd_lowered *tnd_lowered_of(const tandem_lowered *lowered)
{
    return lowered->lowered;
}

const struct tnd_net *tnd_lowered_net(const tandem_lowered *lowered)
{
    return lowered->net->net;
}

uint64_t tandem_lowered_serial(const tandem_lowered *lowered)
{
    return lowered != NULL ? tnd_lowered_graph(lowered->lowered)->serial : 0;
}

tandem_graph *tandem_lowered_graph(const tandem_lowered *lowered)
{
    return lowered != NULL ? tnd_lowered_graph(lowered->lowered) : NULL;
}

/* ---- inputs and outputs ---- */

int tandem_lowered_input_count(const tandem_lowered *lowered)
{
    return lowered != NULL ? lowered->net->net->n_inputs : 0;
}

int tandem_lowered_output_count(const tandem_lowered *lowered)
{
    return lowered != NULL ? lowered->net->net->n_outputs : 0;
}

bool tandem_lowered_input(const tandem_lowered *lowered, int i, struct tandem_net_array *out)
{
    if (i < 0 || i >= tandem_lowered_input_count(lowered) || out == NULL) {
        return false;
    }
    const struct tnd_net *net = lowered->net->net;
    *out = tnd_net_array_of(net, net->inputs[i]);
    out->name = tnd_net_value(net, net->inputs[i])->name;
    out->data = tnd_lowered_input(lowered->lowered, i);
    return true;
}

bool tandem_lowered_output(const tandem_lowered *lowered, int i, struct tandem_net_array *out)
{
    if (i < 0 || i >= tandem_lowered_output_count(lowered) || out == NULL) {
        return false;
    }
    *out = tnd_net_array_of(lowered->net->net, lowered->net->net->outputs[i]);
    out->name = lowered->net->outputs[i];
    out->data = (void *)(uintptr_t)tnd_lowered_output(lowered->lowered, i);
    return true;
}

static int find(const tandem_lowered *lowered, const char *name, int n,
                bool (*at)(const tandem_lowered *, int, struct tandem_net_array *))
{
    struct tandem_net_array array;
    for (int i = 0; name != NULL && i < n; i++) {
        if (at(lowered, i, &array) && strcmp(array.name, name) == 0) {
            return i;
        }
    }
    return -1;
}

int tandem_lowered_find_input(const tandem_lowered *lowered, const char *name)
{
    return find(lowered, name, tandem_lowered_input_count(lowered), tandem_lowered_input);
}

int tandem_lowered_find_output(const tandem_lowered *lowered, const char *name)
{
    return find(lowered, name, tandem_lowered_output_count(lowered), tandem_lowered_output);
}

enum tandem_status tandem_lowered_set_input(tandem_lowered *lowered, int i, const void *data,
                                            size_t bytes, struct tandem_error *error)
{
    struct tandem_net_array input;
    TND_REQUIRE(lowered, "lowered_set_input", error);
    TND_REQUIRE(data, "lowered_set_input", error);
    if (!tandem_lowered_input(lowered, i, &input)) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "i", i, tandem_lowered_input_count(lowered),
                             "lowered_set_input: input %d, expected one of %d", i,
                             tandem_lowered_input_count(lowered));
    }
    if (bytes != input.bytes) {
        return tnd_error_set(error, TANDEM_E_SHAPE, input.name, (int64_t)bytes,
                             (int64_t)input.bytes, "input %.80s: %zu bytes, expected %zu",
                             input.name, bytes, input.bytes);
    }
    const struct tnd_net_value *v = tnd_net_value(lowered->net->net, lowered->net->net->inputs[i]);
    struct tnd_array array = {.type = v->type,
                              .shape = v->shape,
                              .n = tnd_dims_values(&v->shape),
                              .data = (void *)(uintptr_t)data};
    return tnd_lowered_set_input(lowered->lowered, i, &array, error);
}
