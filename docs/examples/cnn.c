/* SPDX-License-Identifier: MIT
 * A convolutional network for pictures of 28 x 28 values, built by hand, with made-up weights. */
#include <stdio.h>

#include "tandem/tandem.h"

static int weights(tandem_net *net, int n_dims, const int64_t *dims, size_t n)
{
    static float values[10 * 784];
    for (size_t i = 0; i < n; i++) {
        values[i] = (float)(i * 7919 % 101) / 500.0f - 0.1f;
    }
    return tandem_net_constant(net, TANDEM_DTYPE_F32, n_dims, dims, values);
}

/* max(0, convolution by 3 x 3), then the largest of each 2 x 2. */
static int block(tandem_net *net, int x, int64_t from, int64_t to)
{
    struct tandem_window conv = TANDEM_WINDOW_INIT, pool = TANDEM_WINDOW_INIT;
    for (int i = 0; i < 2; i++) {
        conv.before[i] = conv.after[i] = 1;
        pool.extent[i] = pool.stride[i] = 2;
    }
    const int w = weights(net, 4, (int64_t[]){to, from, 3, 3}, (size_t)(to * from * 9));
    x = tandem_net_conv(net, x, w, &conv);
    x = tandem_net_binary(net, TANDEM_BINARY_MAX, x, tandem_net_scalar(net, TANDEM_DTYPE_F32, 0));
    return tandem_net_pool(net, TANDEM_POOL_MAX, x, &pool);
}

int main(void)
{
    struct tandem_error error = {TANDEM_OK, 0, 0, "", ""};
    tandem_net *net = NULL;
    tandem_lowered *cnn = NULL;
    tandem_runtime *runtime = NULL;
    struct tandem_net_array picture, digits;
    if (tandem_net_new(&net, &error) == TANDEM_OK) {
        int x = tandem_net_input(net, TANDEM_DTYPE_F32, 4, (int64_t[]){1, 1, 28, 28}, "picture");
        x = block(net, block(net, x, 1, 8), 8, 16); /* {1, 16, 7, 7} */
        x = tandem_net_reshape(net, x, 2, (int64_t[]){1, 784});
        x = tandem_net_matmul(net, x, weights(net, 2, (int64_t[]){784, 10}, 7840));
        tandem_net_output(net, tandem_net_softmax(net, x, 1), "digits");
    }
    if (tandem_net_lower(net, NULL, &cnn, &error) == TANDEM_OK && /* covers every builder */
        tandem_runtime_open(NULL, &runtime, &error) == TANDEM_OK) {
        tandem_lowered_input(cnn, 0, &picture); /* filled in place: a bright diagonal */
        for (int i = 0; i < 28; i++) {
            ((float *)picture.data)[i * 29] = 1.0f;
        }
        tandem_runtime_compute(runtime, tandem_lowered_graph(cnn), NULL, NULL, &error);
        for (int i = 0; tandem_lowered_output(cnn, 0, &digits) && i < 10; i++) {
            printf("%d: %.3f\n", i, (double)((float *)digits.data)[i]);
        }
    }
    fputs(error.text, stderr);
    tandem_runtime_close(runtime);
    tandem_lowered_free(cnn);
    tandem_net_free(net);
    return error.status == TANDEM_OK ? 0 : 1;
}
