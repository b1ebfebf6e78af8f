/* SPDX-License-Identifier: MIT
 * The transfers of a product: weights between its stages, X in, Y out. */
#include "table/product_moves.h"

#include <string.h>

#include "backends/task.h"

/* Whether the stage's device has memory of its own and the table lacks its transfers; text tables
 * include them in the stages' times. */
static bool lacks_transfers(const struct tandem_table *table, const struct tnd_table_stage *stage)
{
    bool moves = stage->kind == TANDEM_KIND_OPENCL || stage->kind == TANDEM_KIND_CLBLAST ||
                 stage->kind == TANDEM_KIND_CUDA;
    return moves && table->version != 1 &&
           (tnd_table_transfer(table, stage->backend, TND_UPLOAD) == NULL ||
            tnd_table_transfer(table, stage->backend, TND_DOWNLOAD) == NULL);
}

bool tnd_product_moves(const struct tandem_table *table, const struct tnd_table_profile *profile,
                       int64_t n, int64_t k, int64_t m, struct tnd_product_moves *out)
{
    struct tnd_product_moves moves;
    const char *weights = NULL; /* where INIT leaves the weights in F32; NULL: it does not */
    memset(&moves, 0, sizeof(moves));
    for (int s = 0; s < TANDEM_STAGES; s++) {
        const struct tnd_table_stage *stage = &profile->stage[s];
        if (stage->backend[0] == '\0') {
            continue;
        }
        if (lacks_transfers(table, stage)) {
            return false;
        }
        if (tnd_task_is(stage->task, TND_TASK_LEAVES_W)) {
            weights = stage->backend;
            continue;
        }
        if (tnd_task_is(stage->task, TND_TASK_USES_LEFT_W) && weights != NULL &&
            strcmp(weights, stage->backend) != 0) {
            moves.inside[0] = (struct tnd_product_move){weights, TND_DOWNLOAD, 4 * n * k};
            moves.inside[1] = (struct tnd_product_move){stage->backend, TND_UPLOAD, 4 * n * k};
        }
        if (tnd_table_transfer(table, stage->backend, TND_UPLOAD) != NULL) {
            moves.device = stage->backend;
        }
    }
    if (moves.device != NULL) {
        moves.x = (struct tnd_product_move){moves.device, TND_UPLOAD, 4 * k * m};
        moves.y = (struct tnd_product_move){moves.device, TND_DOWNLOAD, 4 * n * m};
    }
    *out = moves;
    return true;
}
