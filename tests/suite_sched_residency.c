/* SPDX-License-Identifier: MIT
 * What must be moved before host and device write parts of one memory in turns. */
#include "sched/residency.h"
#include "tests/suite_sched.h"
#include "tests/support.h"

enum { K = 8, ROWS = 4, DEVICE = 2, N_WRITES = 6 };

/* Two rows of the memory, from `row` on, are written by `slot`. */
struct row_write {
    int row, slot, n_moves;
    bool is_download;
};

static void only_what_is_not_overwritten_is_moved_before_a_write(void)
{
    static const struct row_write writes[N_WRITES] = {
        {0, DEVICE, 2, false}, /* the operand, and the rows that it does not write */
        {0, 0, 0, false},      /* all that is stale here is written */
        {0, DEVICE, 0, false},
        {1, 0, 1, true}, /* row 0 is newest at the device, and is not written */
        {1, DEVICE, 0, false},
        {0, 0, 1, true}, /* likewise row 2, behind what is written */
    };
    tandem_context *context = NULL;
    CU_ASSERT_EQUAL_FATAL(tandem_context_new(NULL, &context, NULL), TANDEM_OK);
    const int64_t ne[] = {K, ROWS}, two[] = {K, 2};
    tandem_tensor *memory = tandem_tensor_new(context, TANDEM_TYPE_F32, 2, ne);
    tandem_tensor *x = tandem_tensor_new(context, TANDEM_TYPE_F32, 2, two);
    tandem_graph *graph = tandem_graph_new(context);
    tandem_tensor *nodes[N_WRITES];
    for (int i = 0; i < N_WRITES; i++) {
        tandem_tensor *rows = tandem_view(context, memory, 2, two, &memory->nb[1],
                                          (size_t)writes[i].row * memory->nb[1]);
        nodes[i] = tandem_cpy(context, x, rows);
        tandem_graph_add(graph, nodes[i]);
    }
    check_ok(tandem_graph_finish(graph, NULL));
    struct tnd_residency *residency = NULL;
    CU_ASSERT_EQUAL_FATAL(tnd_residency_renew(graph, NULL, 1u << DEVICE, NULL, &residency, NULL),
                          TANDEM_OK);
    for (int i = 0; i < N_WRITES; i++) {
        struct tnd_move moves[TND_MAX_MOVES];
        tnd_residency_begin_node(residency);
        const int n =
            tnd_residency_work(residency, nodes[i], TANDEM_TASK_NODE, writes[i].slot, 0, 0, moves);
        check_int(n, writes[i].n_moves);
        if (n > 0) {
            check_int(moves[n - 1].is_download, writes[i].is_download);
        }
    }
    tnd_residency_free(residency);
    tandem_context_free(context);
}

static CU_TestInfo tests_residency[] = {{"only_what_is_not_overwritten_is_moved_before_a_write",
                                         only_what_is_not_overwritten_is_moved_before_a_write},
                                        CU_TEST_INFO_NULL};

CU_SuiteInfo suites_sched_residency[] = {{"residency", NULL, NULL, NULL, NULL, tests_residency},
                                         CU_SUITE_INFO_NULL};
