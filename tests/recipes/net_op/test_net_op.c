/* SPDX-License-Identifier: MIT
 * The function that net_op.patch adds, computed by the CPU backend. */
#include <math.h>
#include <stdio.h>

#include "tandem/nets.h"
#include "tandem/tandem.h"

enum { N = 100 };

static bool is_right(const float *x, const float *y)
{
    bool right = true;
    for (int i = 0; i < N; i++) {
        right = right && fabsf(y[i] - x[i] / (1.0f + fabsf(x[i]))) < 1e-6f;
    }
    return right;
}

int main(void)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    struct tandem_error error = {0};
    tandem_runtime *runtime = NULL;
    tandem_lowered *lowered = NULL;
    tandem_net *net = NULL;
    float x[N];
    options.table_path = "";
    for (int i = 0; i < N; i++) {
        x[i] = (float)(i - 50) / 7.0f;
    }
    if (tandem_runtime_open(&options, &runtime, &error) != TANDEM_OK ||
        tandem_net_new(&net, &error) != TANDEM_OK) {
        return 1;
    }
    const int in = tandem_net_input(net, TANDEM_DTYPE_F32, 1, (int64_t[]){N}, "x");
    tandem_net_output(net, tandem_net_unary(net, TANDEM_UNARY_SOFTSIGN, in), "y");
    struct tandem_net_array y = {0};
    if (tandem_net_lower(net, NULL, &lowered, &error) != TANDEM_OK ||
        tandem_lowered_set_input(lowered, 0, x, sizeof(x), &error) != TANDEM_OK ||
        tandem_runtime_compute(runtime, tandem_lowered_graph(lowered), NULL, NULL, &error) !=
            TANDEM_OK ||
        !tandem_lowered_output(lowered, 0, &y)) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    const bool right = is_right(x, y.data);
    tandem_lowered_free(lowered);
    tandem_net_free(net);
    tandem_runtime_close(runtime);
    return !right;
}
