/* SPDX-License-Identifier: MIT
 * Tables for the suites of table/ and the rooms above. */
#include "tests/support_tune.h"

#include <string.h>

/* The published example, with its misprint. */
const char tune_example[] = "1 7B Q4_0 3 ACCELERATE 4 8 3 2\n"
                            "1 0 0 1 1 0 0 0 0\n"
                            "1 1 0 3 0 1 0 0 0\n"
                            "4096 4096\n"
                            "  8        8     7477 0    12438     6448 0\n"
                            " 16       22    14387 0    12468     7173 0\n"
                            " 24       31    18584 0    10948     6641 0\n"
                            "4094 11008\n"
                            "  8       24    16279 0    29243     8578 0\n"
                            " 16       48    32857 0    29370     9313 0\n"
                            " 24       73    51046 0    29593     9684 0\n"
                            "11008 4096\n"
                            "  8        9    16783 0    28571    20398 0\n"
                            " 16       17    32989 0    28463    21112 0\n"
                            " 24       25    48836 0    28881    21928 0\n"
                            "32000 4096\n"
                            "  8        8    49100 0    83752    63537 0\n"
                            " 16       18    97093 0    83577    66874 0\n"
                            " 24       24   141918 0    83565    71988 0\n";

static int collect(void *user, const char *bytes, unsigned long n)
{
    tnd_text_add_bytes(user, bytes, n);
    return 0;
}

tandem_table *tune_parse(const char *text)
{
    tandem_table *table = NULL;
    struct tandem_error error = {0};
    check_status(tandem_table_parse(text, strlen(text), "test", &table, &error), TANDEM_OK, NULL,
                 &error);
    CU_ASSERT_PTR_NOT_NULL_FATAL(table);
    return table;
}

struct tnd_text tune_print(const tandem_table *table, enum tandem_table_format format)
{
    struct tnd_text text = TND_TEXT_INIT;
    struct tandem_error error = {0};
    check_status(tandem_table_print(table, format, collect, &text, &error), TANDEM_OK, NULL,
                 &error);
    return text;
}

struct tnd_curve_key tune_key(int64_t n, int64_t k, enum tandem_task task, bool parallel,
                              int threads)
{
    struct tnd_curve_key key = {0};
    strcpy(key.op, "mul_mat");
    strcpy(key.backend, "cpu");
    key.type = TANDEM_TYPE_Q4_0;
    key.n = n;
    key.k = k;
    key.stage =
        task == TANDEM_TASK_MUL_MAT_Q || task == TANDEM_TASK_MUL_MAT_F32 || task == TANDEM_TASK_NODE
            ? TANDEM_STAGE_COMPUTE
            : TANDEM_STAGE_INIT;
    key.task = (uint8_t)task;
    key.parallel = parallel;
    key.threads = threads;
    return key;
}

void tune_add(tandem_table *table, const struct tnd_curve_key *key, int64_t m, double us)
{
    struct tnd_sample sample = {m, us, 0.0, 5, 100, 0, 0, 0, 0};
    check_ok(tnd_table_add(table, key, &sample));
}

tandem_table *tune_new(void)
{
    tandem_table *table = NULL;
    check_ok(tandem_table_new(&table, NULL));
    return table;
}

void tune_add_handoff(tandem_table *table, int threads, double spin_us, double wake_us)
{
    struct tnd_handoff handoff = {threads, spin_us, wake_us, 5, 7};
    check_ok(tnd_table_add_handoff(table, &handoff));
}

/* latency + bytes / rate, both ways, and no noise. */
void tune_add_link(tandem_table *table, const char *backend, double latency_us, double bytes_per_us)
{
    for (int64_t bytes = 4096; bytes <= (int64_t)64 << 20; bytes *= 4) {
        struct tnd_sample sample = {
            bytes, latency_us + (double)bytes / bytes_per_us, 0, 9, 7, 0, 0, 0, 0};
        check_ok(tnd_table_add_transfer(table, backend, TND_UPLOAD, &sample));
        check_ok(tnd_table_add_transfer(table, backend, TND_DOWNLOAD, &sample));
    }
}

int64_t tune_count_stale(const struct tandem_table *table)
{
    int64_t n = 0;
    for (int i = 0; i < table->n_curves; i++) {
        for (int s = 0; s < table->curves[i].n_samples; s++) {
            n += tnd_sample_is_stale(&table->curves[i].samples[s]);
        }
    }
    return n;
}

tandem_graph *tune_product(tandem_context *context, enum tandem_type type, int64_t n, int64_t k,
                           int64_t m)
{
    tandem_tensor *w = tandem_tensor_new(context, type, 2, (const int64_t[]){k, n});
    tandem_tensor *x = tandem_tensor_new(context, TANDEM_TYPE_F32, 2, (const int64_t[]){k, m});
    tandem_graph *graph = tandem_graph_new(context);
    tandem_tensor_set_role(w, TANDEM_ROLE_CONSTANT);
    tandem_graph_add(graph, tandem_mul_mat(context, w, x));
    check_ok(tandem_graph_finish(graph, NULL));
    return graph;
}
