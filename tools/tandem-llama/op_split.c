/* SPDX-License-Identifier: MIT
 * Adding up stage times by operation. Preparing a matrix product counts as mul_mat too; fetching
 * results from devices, FINALIZE, has a row of its own. */
#include "tools/tandem-llama/op_split.h"

#include <stdio.h>
#include <stdlib.h>

void tnd_op_split_add(void *user, const tandem_tensor *node, enum tandem_stage stage, double us)
{
    struct tnd_op_split *split = user;
    bool fetches = stage == TANDEM_STAGE_FINALIZE;
    const char *name = fetches ? tandem_stage_name(stage) : tandem_tensor_op_name(node);
    int i = 0;
    while (i < split->n && split->rows[i].name != name) { /* names are static: one address each */
        i++;
    }
    if (i == (int)(sizeof(split->rows) / sizeof(split->rows[0]))) {
        return;
    }
    if (i == split->n) {
        split->rows[split->n++].name = name;
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
