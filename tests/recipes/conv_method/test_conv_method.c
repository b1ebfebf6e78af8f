/* SPDX-License-Identifier: MIT
 * The method that conv_method.patch adds: a chooser takes it, and the result is that of plain
 * sums. */
#include <stdio.h>

#include "ggml-like/conv_method.h"
#include "tandem/nets.h"
#include "tandem/tandem.h"

enum { CHANNELS = 3, FILTERS = 4, TAPS = 3, STEP = 2, IN = 10, OUT = IN - (TAPS - 1) * STEP };

static bool nothing_to_measure(void *user, const struct tnd_conv_shape *shapes, int n)
{
    (void)user;
    (void)shapes;
    (void)n;
    return false;
}

static void take_taps(void *user, const struct tnd_conv_question *question,
                      struct tnd_conv_choice *out)
{
    tnd_conv_choose_by_rule(question, out);
    if (question->may[TND_CONV_TAPS]) {
        out->method = TND_CONV_TAPS;
        *(int *)user += 1;
    }
}

static bool is_right(const float *y, const float *x, const float *w)
{
    bool right = true;
    for (int i = 0; i < FILTERS * OUT; i++) {
        float sum = 0;
        for (int k = 0; k < CHANNELS * TAPS; k++) {
            sum += x[k / TAPS * IN + i % OUT + k % TAPS * STEP] * w[i / OUT * CHANNELS * TAPS + k];
        }
        right = right && y[i] == sum; /* (small whole numbers: exact in any order) */
    }
    return right;
}

int main(void)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    struct tandem_lower_options how = TANDEM_LOWER_OPTIONS_INIT;
    struct tandem_window window = TANDEM_WINDOW_INIT;
    struct tandem_error error = {0};
    struct tandem_net_array y = {0};
    tandem_runtime *runtime = NULL;
    tandem_net *net = NULL;
    tandem_lowered *lowered = NULL;
    int n_taken = 0;
    const struct tandem_chooser chooser = {nothing_to_measure, take_taps, &n_taken};
    static float x[CHANNELS * IN];
    static float w[FILTERS * CHANNELS * TAPS];
    for (int i = 0; i < CHANNELS * IN; i++) {
        x[i] = (float)(i * 5 % 7 - 3);
    }
    for (int i = 0; i < FILTERS * CHANNELS * TAPS; i++) {
        w[i] = (float)(i * 3 % 5 - 2);
    }
    options.table_path = "";
    how.chooser = &chooser;
    window.dilation[0] = STEP;
    if (tandem_runtime_open(&options, &runtime, &error) != TANDEM_OK ||
        tandem_net_new(&net, &error) != TANDEM_OK) {
        return 1;
    }
    const int in = tandem_net_input(net, TANDEM_DTYPE_F32, 3, (int64_t[]){1, CHANNELS, IN}, "x");
    const int weights =
        tandem_net_constant(net, TANDEM_DTYPE_F32, 3, (int64_t[]){FILTERS, CHANNELS, TAPS}, w);
    tandem_net_output(net, tandem_net_conv(net, in, weights, &window), "y");
    if (tandem_net_lower(net, &how, &lowered, &error) != TANDEM_OK ||
        tandem_lowered_set_input(lowered, 0, x, sizeof(x), &error) != TANDEM_OK ||
        tandem_runtime_compute(runtime, tandem_lowered_graph(lowered), NULL, NULL, &error) !=
            TANDEM_OK ||
        !tandem_lowered_output(lowered, 0, &y)) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    const bool right = n_taken == 1 && is_right(y.data, x, w);
    tandem_lowered_free(lowered);
    tandem_net_free(net);
    tandem_runtime_close(runtime);
    return !right;
}
