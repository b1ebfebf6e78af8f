/* SPDX-License-Identifier: MIT
 * Any bytes as a small net, and a set of passes: the optimised net is valid, and where all passes
 * of the set promise it, gives the same bits (NaN for NaN). It is lowered and computed, too. */
#include <stdlib.h>

#include "graph/lower.h"
#include "graph/pass.h"
#include "tests/fuzz/random_net.h"
#include "tests/fuzz/small_runtime.h"

#define MAX_PORTS 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool good)
{
    if (!good) {
        abort();
    }
}

static void compare(const struct tnd_array *a, const struct tnd_array *b)
{
    const size_t bytes = tandem_dtype_bytes(a->type);
    must(a->type == b->type && tnd_dims_is_equal(&a->shape, &b->shape));
    for (int64_t i = 0; i < a->n; i++) {
        must((isnan(tnd_array_number(a, i)) && isnan(tnd_array_number(b, i))) ||
             memcmp((char *)a->data + (size_t)i * bytes, (char *)b->data + (size_t)i * bytes,
                    bytes) == 0);
    }
}

static void run_lowered(const struct tnd_net *net, struct tnd_array *const *in)
{
    struct tandem_error error = {.text = ""};
    struct tnd_lowered *lowered = NULL;
    must(tnd_net_lower(net, &lowered, &error) == TANDEM_OK);
    for (int i = 0; i < net->n_inputs; i++) {
        must(tnd_lowered_set_input(lowered, i, in[i], &error) == TANDEM_OK);
    }
    must(tandem_runtime_compute(small_runtime(), tnd_lowered_graph(lowered), NULL, NULL, &error) ==
         TANDEM_OK);
    tnd_lowered_free(lowered);
}

/* Builds the net of the bytes, optimises it and runs it on inputs that the bytes describe. */
static int run(const uint8_t *data, size_t size, unsigned passes, struct tnd_array **out)
{
    struct tandem_error error = {.text = ""};
    struct tnd_array *in[MAX_PORTS] = {NULL};
    struct random_net from = {.bytes = data, .n = size};
    struct tnd_net *net = random_net_build(data, size, false, false);
    must(net != NULL && net->status == TANDEM_OK);
    must(tnd_net_optimize(net, passes, NULL, &error) == TANDEM_OK);
    must(tnd_net_check(net, &error) == TANDEM_OK);
    for (int i = 0; i < net->n_inputs; i++) {
        const struct tnd_net_value *value = tnd_net_value(net, net->inputs[i]);
        in[i] = tnd_array_new(value->type, &value->shape);
        must(in[i] != NULL);
        random_net_fill(&from, in[i]);
    }
    must(tnd_net_run(net, in, out, &error) == TANDEM_OK);
    run_lowered(net, in);
    const int n = net->n_outputs;
    for (int i = 0; i < net->n_inputs; i++) {
        tnd_array_free(in[i]);
    }
    tnd_net_free(net);
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tnd_array *want[MAX_PORTS] = {NULL};
    struct tnd_array *got[MAX_PORTS] = {NULL};
    if (size == 0) {
        return 0;
    }
    const unsigned passes = data[0] == 0 ? TND_PASSES_EXACT : TND_PASSES_ALL & data[0];
    const int n = run(data + 1, size - 1, 0, want);
    must(run(data + 1, size - 1, passes, got) == n);
    for (int i = 0; i < n; i++) {
        if ((passes & ~TND_PASSES_EXACT) == 0) {
            compare(want[i], got[i]);
        }
        tnd_array_free(want[i]);
        tnd_array_free(got[i]);
    }
    return 0;
}
