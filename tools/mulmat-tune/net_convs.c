/* SPDX-License-Identifier: MIT
 * Lists the convolutions of a model: lowers it, and asks the lowered net. */
#include "tools/mulmat-tune/net_convs.h"

#include "base/alloc.h"
#include "base/tnd_status.h"
#include "graph/net_public.h"
#include "runtime/tune_convs.h"
#include "tools/dim_option.h"

static enum tandem_status lower(const struct net_option *option, tandem_lowered **out,
                                struct tandem_error *error)
{
    static struct tandem_onnx_dim dims[ARGS_LIST_MAX];
    struct tandem_onnx_options options = TANDEM_ONNX_OPTIONS_INIT;
    tandem_onnx *model = NULL;
    tandem_net *net = NULL;
    enum tandem_status status = tnd_dim_option_read(&option->dims, dims, error);
    options.dims = dims;
    options.n_dims = option->dims.n;
    if (status == TANDEM_OK) {
        status = tandem_onnx_open(option->path, &model, error);
    }
    if (status == TANDEM_OK) {
        status = tandem_onnx_net(model, &options, &net, error);
    }
    if (status == TANDEM_OK) {
        status = tandem_net_lower(net, NULL, out, error);
    }
    tandem_net_free(net);
    tandem_onnx_close(model);
    tnd_dim_option_free(&option->dims, dims);
    return status;
}

/* The first question of each shape. */
static enum tandem_status list(struct net_convs *convs, struct tandem_error *error)
{
    const struct tnd_lowered *lowered = tnd_lowered_of(convs->lowered);
    int all = 0;
    while (tnd_lowered_conv(lowered, all) != NULL) {
        all++;
    }
    convs->questions = tnd_calloc((size_t)all + 1, sizeof(convs->questions[0]));
    struct tnd_conv_shape *shapes = tnd_calloc((size_t)all + 1, sizeof(shapes[0]));
    if (convs->questions == NULL || shapes == NULL) {
        tnd_free(shapes);
        return tnd_error_set(error, TANDEM_E_MEMORY, NULL, all, 0, "no memory for %d convolutions",
                             all);
    }
    for (int i = 0; i < all; i++) {
        const struct tnd_conv_question *question = &tnd_lowered_conv(lowered, i)->question;
        shapes[convs->n] = question->shape;
        if (tnd_conv_distinct(shapes, convs->n + 1) > convs->n) {
            convs->questions[convs->n++] = *question;
        }
    }
    tnd_free(shapes);
    return TANDEM_OK;
}

enum tandem_status net_convs_read(const struct net_option *option, struct net_convs *out,
                                  struct tandem_error *error)
{
    *out = (struct net_convs){.lowered = NULL};
    TND_TRY(lower(option, &out->lowered, error));
    return list(out, error);
}

void net_convs_fini(struct net_convs *convs)
{
    tandem_lowered_free(convs->lowered);
    tnd_free(convs->questions);
    *convs = (struct net_convs){.lowered = NULL};
}
