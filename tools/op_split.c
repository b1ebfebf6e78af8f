/* SPDX-License-Identifier: MIT
 * Adding up stage times by operation. Preparing a matrix product counts as mul_mat too; FINALIZE,
 * which fetches results from devices, has a row of its own. */
#include "tools/op_split.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggml-like/tnd_tensor.h"
#include "ggml-like/work.h"

/* The row of a node: nodes of nets by their own operation. */
static void name_of(const tandem_tensor *node, enum tandem_stage stage, char *out, size_t n)
{
    const struct tnd_work *work = tnd_work_of(node);
    const bool is_of_net = work != NULL && node->name[0] != '\0';
    const bool is_slow = work != NULL && work->reference_values > 0;
    (void)snprintf(out, n, "%.40s%s",
                   stage == TANDEM_STAGE_FINALIZE ? tandem_stage_name(stage)
                   : is_of_net                    ? node->name
                                                  : tandem_tensor_op_name(node),
                   is_slow ? " by reference" : "");
}

void tnd_op_split_add(void *user, const tandem_tensor *node, enum tandem_stage stage, double us)
{
    struct tnd_op_split *split = user;
    char name[sizeof(split->rows[0].name)];
    int i = 0;
    name_of(node, stage, name, sizeof(name));
    while (i < split->n && strcmp(split->rows[i].name, name) != 0) {
        i++;
    }
    if (i == (int)(sizeof(split->rows) / sizeof(split->rows[0]))) {
        return;
    }
    if (i == split->n) {
        memcpy(split->rows[split->n++].name, name, sizeof(name));
    }
    split->rows[i].us += us;
    split->total_us += us;
}

static int by_time(const void *a, const void *b)
{
    const double x = ((const struct tnd_op_time *)a)->us;
    const double y = ((const struct tnd_op_time *)b)->us;
    return (x < y) - (x > y);
}

void tnd_op_split_print(const struct tnd_op_split *split)
{
    struct tnd_op_split sorted = *split;
    qsort(sorted.rows, (size_t)sorted.n, sizeof(sorted.rows[0]), by_time);
    for (int i = 0; i < sorted.n; i++) {
        printf("%s%s %.1f %%", i > 0 ? ", " : "", sorted.rows[i].name,
               100.0 * sorted.rows[i].us / sorted.total_us);
    }
    printf("\n");
}

void tnd_op_split_print_slow(const tandem_graph *graph, FILE *out)
{
    const struct tnd_reference_work work = tnd_graph_reference_work(graph);
    if (work.n == 0) {
        return;
    }
    fprintf(out,
            "%d of %d nodes by reference kernels, which are slow; %d of them with %.0f values "
            "or more\n",
            work.n, graph->n_nodes, work.n_hot, TND_REFERENCE_HOT);
    for (int i = 0; i < graph->n_nodes; i++) {
        const tandem_tensor *node = graph->nodes[i];
        const struct tnd_work *of_net = tnd_work_of(node);
        char what[256];
        if (of_net != NULL && of_net->reference_values >= TND_REFERENCE_HOT) {
            (void)tandem_text_visible(of_net->what, strlen(of_net->what), what, sizeof(what));
            fprintf(out, "  %12.0f values  %s\n", of_net->reference_values, what);
        }
    }
}
