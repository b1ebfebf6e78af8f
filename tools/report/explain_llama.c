/* SPDX-License-Identifier: MIT
 * What a user of llama.cpp would set by hand (-t, -tb, and the batch from which BLAS pays), told by
 * the table: there one thread count serves all products, so times are summed over the shapes. */
#include "tools/report/explain_llama.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/emit.h"
#include "tune/explain.h"

enum { PROMPT_M = 512 };

struct candidates {
    const struct tandem_table *table;
    enum tandem_type type;
    int n;
    struct tnd_candidate candidate[TND_TABLE_MAX_PROFILES];
    bool is_plain[TND_TABLE_MAX_PROFILES]; /* the CPU's own kernels alone */
    const struct tnd_shape *shapes;
    int n_shapes;
};

static bool is_plain_cpu(const struct tnd_table_profile *profile)
{
    for (int s = 0; s < TANDEM_STAGES; s++) {
        const char *backend = profile->stage[s].backend;
        if (backend[0] != '\0' && strcmp(backend, "cpu") != 0) {
            return false;
        }
    }
    return true;
}

enum which { PLAIN_CPU, OTHERS, ALL };

/* Time, cautiously, of all shapes once, each by its best candidate, on exactly `threads` threads;
 * infinite when a shape has none. `out_us`: as predicted. */
static double sum_at(const struct candidates *candidates, enum which which, int64_t m, int threads,
                     double *out_us)
{
    double sum = 0;
    double sum_us = 0;
    for (int i = 0; i < candidates->n_shapes; i++) {
        struct tnd_problem problem = {.type = candidates->type,
                                      .n = candidates->shapes[i].n,
                                      .k = candidates->shapes[i].k,
                                      .m = m};
        struct tnd_prediction best = {.cautious_us = INFINITY};
        for (int w = 0; w < candidates->n; w++) {
            struct tnd_prediction one;
            if ((which == ALL || candidates->is_plain[w] == (which == PLAIN_CPU)) &&
                tnd_predict(candidates->table, candidates->candidate, w, &problem, threads, NULL,
                            &one) &&
                one.cautious_us < best.cautious_us) {
                best = one;
            }
        }
        sum += best.cautious_us;
        sum_us += best.total.us;
    }
    *out_us = sum_us;
    return sum;
}

/* The thread count that is best at m; 0: nothing is known. */
static int best_threads(const struct candidates *candidates, enum which which, int64_t m,
                        int n_threads, double *out_us, double *out_cautious_us)
{
    int best = 0;
    double best_cautious = INFINITY;
    for (int threads = 1;; threads = tnd_next_thread_count(candidates->table, threads, n_threads)) {
        double us;
        double cautious = sum_at(candidates, which, m, threads, &us);
        if (cautious < best_cautious) {
            best_cautious = cautious;
            best = threads;
            *out_us = us;
        }
        if (threads >= n_threads) {
            *out_cautious_us = best_cautious;
            return best;
        }
    }
}

static void find_pays(const struct candidates *candidates, int n_threads,
                      struct tnd_llama_advice *advice)
{
    double us;
    double plain, other;
    for (int64_t m = 1; m <= advice->m_limit; m += m < 64 ? 1 : m / 32) {
        if (best_threads(candidates, OTHERS, m, n_threads, &us, &other) == 0) {
            return;
        }
        advice->has_other = true;
        best_threads(candidates, PLAIN_CPU, m, n_threads, &us, &plain);
        if (other < plain) {
            advice->pays = true;
            advice->pays_from = m;
            return;
        }
    }
}

void tnd_explain_llama(const struct tandem_table *table, const struct tnd_registry *registry,
                       enum tandem_type type, const struct tnd_shape *shapes, int n_shapes,
                       int n_threads, struct tnd_llama_advice *out)
{
    struct tnd_llama_advice advice;
    struct candidates candidates = {
        .table = table, .type = type, .shapes = shapes, .n_shapes = n_shapes};
    memset(&advice, 0, sizeof(advice));
    int64_t largest = tnd_table_largest_m(table, type);
    if (table == NULL || largest < 1 || n_shapes < 1) {
        *out = advice;
        return;
    }
    candidates.n = registry != NULL
                       ? tnd_candidates_here(registry, table, NULL, type, 0, candidates.candidate)
                       : tnd_candidates_of_table(table, type, 0, candidates.candidate);
    for (int w = 0; w < candidates.n; w++) {
        candidates.is_plain[w] = is_plain_cpu(&candidates.candidate[w].profile);
    }
    double cautious;
    advice.prompt_m = largest < PROMPT_M ? largest : PROMPT_M;
    advice.m_limit = 4 * largest;
    advice.prompt_threads =
        best_threads(&candidates, ALL, advice.prompt_m, n_threads, &advice.prompt_us, &cautious);
    advice.generation_threads =
        best_threads(&candidates, ALL, 1, n_threads, &advice.generation_us, &cautious);
    advice.found = advice.prompt_threads > 0 && advice.generation_threads > 0;
    if (advice.found) {
        find_pays(&candidates, n_threads, &advice);
    }
    *out = advice;
}

void tnd_explain_llama_text(const struct tnd_llama_advice *advice, struct tnd_text *out)
{
    tnd_text_add(out, "What a user of llama.cpp would set, by this table:\n");
    if (!advice->found) {
        tnd_text_add(out, "  nothing is known of these shapes\n");
        return;
    }
    tnd_text_printf(out, "  generation (M = 1):  -t %d, ", advice->generation_threads);
    tnd_emit_number(out, 0, 1, advice->generation_us);
    tnd_text_printf(out, " us for all shapes once\n  prompt (M = %" PRId64 "):%s -tb %d, ",
                    advice->prompt_m, advice->prompt_m < 100 ? "    " : "   ",
                    advice->prompt_threads);
    tnd_emit_number(out, 0, 1, advice->prompt_us);
    tnd_text_add(out, " us\n");
    if (!advice->has_other) {
        tnd_text_add(out, "  BLAS and devices: none was measured\n");
    } else if (!advice->pays) {
        tnd_text_printf(out, "  BLAS and devices: do not pay up to M = %" PRId64 "\n",
                        advice->m_limit);
    } else {
        tnd_text_printf(out,
                        "  BLAS and devices: pay from M = %" PRId64 " on (llama.cpp's own "
                        "rule: 32)\n",
                        advice->pays_from);
    }
}

void tnd_explain_llama_json(const struct tnd_llama_advice *advice, struct tnd_text *out)
{
    if (!advice->found) {
        tnd_text_add(out, "null");
        return;
    }
    tnd_text_printf(out,
                    "{\"generation_threads\": %d, \"generation_us\": ", advice->generation_threads);
    tnd_text_add_double(out, advice->generation_us);
    tnd_text_printf(out, ", \"prompt_m\": %" PRId64 ", \"prompt_threads\": %d, \"prompt_us\": ",
                    advice->prompt_m, advice->prompt_threads);
    tnd_text_add_double(out, advice->prompt_us);
    tnd_text_add(out, ", \"offload_from_m\": ");
    if (advice->pays) {
        tnd_text_printf(out, "%" PRId64 "}", advice->pays_from);
    } else {
        tnd_text_add(out, "null}");
    }
}
