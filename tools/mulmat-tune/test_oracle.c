/* SPDX-License-Identifier: MIT
 * mulmat-tune test --oracle: draws problems at random, over shapes that the table has and others,
 * and measures how much the plan's choices cost over the best candidates. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "tools/mulmat-tune/cmd_output.h"
#include "tools/mulmat-tune/oracle_report.h"
#include "tools/mulmat-tune/test_parts.h"
#include "measure/bench.h"
#include "tools/report/oracle.h"
#include "tools/say.h"

enum {
    MOST_TYPES = 16,
    KNOWN_SHAPES = 4,
    MOST_GROUPS = TND_MAX_SHAPES * MOST_TYPES,
    MOST_QUESTIONS = 64, /* for one type and shape */
    DEFAULT_PROBLEMS = 300,
    LARGEST_M = 2048
};

#define DEFAULT_CELL_S 1.0
#define GROUP_S        0.6 /* seconds for making operands and packing */

/* Shapes that bench measures for no model. */
static const char *const unknown_shapes = "3072x2560,1536x6144,8192x3072,640x2048";

/* One type and shape with its questions. */
struct group {
    enum tandem_type type;
    struct tnd_shape shape;
};

struct exam {
    const struct test_request *request;
    struct tnd_runtime_parts parts;
    tandem_table *table; /* a copy of the one in use; NULL: none */
    int n_threads;
    struct tnd_rng rng;
    int n_types;
    enum tandem_type types[MOST_TYPES];
    int n_groups;
    struct group groups[MOST_GROUPS];
    double end_s; /* 0: no limit */
    double cell_s;
    int n_shown;
    int n_cells, capacity;
    struct tnd_oracle_cell *cells;
};

/* ---- questions ---- */

static bool knows_type(const struct tandem_table *table, enum tandem_type type)
{
    for (int c = 0; table != NULL && c < table->n_curves; c++) {
        const struct tnd_curve_key *key = &table->curves[c].key;
        if (key->type == type && strcmp(key->op, "mul_mat") == 0) {
            return true;
        }
    }
    return false;
}

static enum tandem_status choose_types(struct exam *exam, struct tandem_error *error)
{
    if (exam->request->types != NULL) {
        return tnd_cmd_parse_types(exam->request->types, exam->types, MOST_TYPES, &exam->n_types,
                                   error);
    }
    for (int type = 0; type < TANDEM_TYPE_NUMBERS && exam->n_types < MOST_TYPES; type++) {
        if (knows_type(exam->table, (enum tandem_type)type)) {
            exam->types[exam->n_types++] = (enum tandem_type)type;
        }
    }
    if (exam->n_types == 0) {
        exam->types[exam->n_types++] = TANDEM_TYPE_Q4_0;
    }
    return TANDEM_OK;
}

static void add_group(struct exam *exam, enum tandem_type type, const struct tnd_shape *shape)
{
    if (tandem_type_row_bytes(type, shape->k) != 0 && exam->n_groups < MOST_GROUPS) {
        exam->groups[exam->n_groups++] = (struct group){type, *shape};
    }
}

/* Adds shapes of the type that the table has, drawn at random: at most KNOWN_SHAPES. */
static void add_known(struct exam *exam, enum tandem_type type)
{
    const struct tandem_table *table = exam->table;
    struct tnd_shape known[TND_MAX_SHAPES];
    int n = 0;
    for (int c = 0; table != NULL && c < table->n_curves && n < TND_MAX_SHAPES; c++) {
        const struct tnd_curve_key *key = &table->curves[c].key;
        bool is_listed = n > 0 && known[n - 1].n == key->n && known[n - 1].k == key->k;
        if (key->type == type && !is_listed && strcmp(key->op, "mul_mat") == 0) {
            known[n++] = (struct tnd_shape){key->n, key->k};
        }
    }
    for (int i = 0; i < KNOWN_SHAPES && n > 0; i++) {
        int drawn = (int)tnd_rng_below(&exam->rng, (uint64_t)n);
        add_group(exam, type, &known[drawn]);
        known[drawn] = known[--n];
    }
}

static enum tandem_status choose_groups(struct exam *exam, struct tandem_error *error)
{
    struct tnd_shapes shapes;
    const char *asked = exam->request->shapes;
    enum tandem_status status =
        tnd_shapes_parse(asked != NULL ? asked : unknown_shapes, &shapes, error);
    if (status == TANDEM_OK) {
        status = choose_types(exam, error);
    }
    for (int y = 0; y < exam->n_types && status == TANDEM_OK; y++) {
        if (asked == NULL) {
            add_known(exam, exam->types[y]);
        }
        for (int s = 0; s < shapes.count; s++) {
            add_group(exam, exam->types[y], &shapes.shape[s]);
        }
    }
    for (int i = exam->n_groups - 1; i > 0; i--) { /* a short budget covers all kinds */
        int other = (int)tnd_rng_below(&exam->rng, (uint64_t)i + 1);
        struct group swapped = exam->groups[i];
        exam->groups[i] = exam->groups[other];
        exam->groups[other] = swapped;
    }
    return status;
}

static int random_threads(struct exam *exam)
{
    int counts[TND_MAX_BENCH_THREADS];
    int n_fast = tnd_topology_fast_cores(exam->parts.topology);
    int n = tnd_bench_thread_counts(exam->n_threads, n_fast, counts);
    return counts[tnd_rng_below(&exam->rng, (uint64_t)n)];
}

/* Draws questions: for each M of -m on all threads, or else spread over orders of magnitude and
 * thread counts. */
static int draw_questions(struct exam *exam, int wanted, struct tnd_oracle_question *out)
{
    const struct args_ints *m = &exam->request->m;
    int n = m->n > 0 ? m->n : wanted;
    n = n < MOST_QUESTIONS ? n : MOST_QUESTIONS;
    for (int i = 0; i < n; i++) {
        double part = ((double)i + (double)tnd_rng_float(&exam->rng)) / n;
        int64_t drawn = (int64_t)(pow(LARGEST_M, part) + 0.5);
        out[i].m = m->n > 0 ? m->values[i] : drawn;
        out[i].threads = m->n > 0 ? exam->n_threads : random_threads(exam);
    }
    return n;
}

/* ---- asking ---- */

static double now_s(const struct exam *exam)
{
    return (double)exam->parts.clock->now_ns(exam->parts.clock) / 1e9;
}

static bool show_cell(void *user, const struct tnd_oracle_cell *cell)
{
    struct exam *exam = user;
    char problem[TND_PROBLEM_MAX];
    tnd_problem_print(&cell->problem, problem, sizeof(problem));
    tnd_say("[%4d, %4.0f s] %s of %d threads: regret %.1f %%\n", ++exam->n_shown,
            now_s(exam) - (double)exam->request->begin_ns / 1e9, problem, cell->limit_threads,
            100 * cell->regret);
    return false;
}

/* The share of the remaining time for one group, and how many questions fit into it. */
static int share(const struct exam *exam, int groups_left, double *out_end_s)
{
    *out_end_s = 0;
    if (exam->end_s <= 0) {
        int left = DEFAULT_PROBLEMS - exam->n_cells;
        int even = (left + groups_left - 1) / groups_left;
        return even < 1 ? 1 : even;
    }
    double left_s = exam->end_s - now_s(exam);
    double share_s = left_s / groups_left;
    if (share_s < GROUP_S + exam->cell_s) { /* the time is not enough for all groups */
        share_s = GROUP_S + exam->cell_s;
    }
    *out_end_s = now_s(exam) + (share_s < left_s ? share_s : left_s);
    int n = (int)((share_s - GROUP_S) / exam->cell_s);
    return n < 1 ? 1 : n > MOST_QUESTIONS ? MOST_QUESTIONS : n;
}

/* Makes room for n more cells. */
static bool reserve(struct exam *exam, int n)
{
    if (exam->n_cells + n <= exam->capacity) {
        return true;
    }
    int capacity = 2 * (exam->n_cells + n);
    struct tnd_oracle_cell *grown = tnd_calloc((size_t)capacity, sizeof(grown[0]));
    if (grown == NULL) {
        return false;
    }
    if (exam->n_cells > 0) {
        memcpy(grown, exam->cells, (size_t)exam->n_cells * sizeof(grown[0]));
    }
    tnd_free(exam->cells);
    exam->cells = grown;
    exam->capacity = capacity;
    return true;
}

static enum tandem_status run_group(struct exam *exam, int index, struct tandem_error *error)
{
    struct tnd_oracle_options options;
    struct tnd_oracle_question questions[MOST_QUESTIONS];
    memset(&options, 0, sizeof(options));
    options.measure = tnd_cmd_measure_options(&exam->parts);
    options.planner = exam->parts.planner;
    options.table = exam->table;
    options.rounds = (int)exam->request->rounds;
    options.cell_s = exam->cell_s;
    options.progress = show_cell;
    options.user = exam;
    int wanted = share(exam, exam->n_groups - index, &options.end_s);
    int n = draw_questions(exam, wanted, questions);
    int answered = 0;
    if (!reserve(exam, n)) {
        return TANDEM_E_MEMORY;
    }
    enum tandem_status status =
        tnd_oracle_run(&options, exam->groups[index].type, &exam->groups[index].shape, questions, n,
                       &exam->cells[exam->n_cells], &answered, error);
    exam->n_cells += status == TANDEM_OK ? answered : 0;
    return status;
}

/* ---- the verdict ---- */

static bool is_above(double found, double bound_percent)
{
    return bound_percent > 0 && 100 * found > bound_percent;
}

int test_judge_regret(const struct test_request *request, const struct tnd_regret *regret)
{
    bool too_much = is_above(regret->median, request->max_median) ||
                    is_above(regret->p95, request->max_p95) ||
                    is_above(regret->worst, request->max_worst);
    if (too_much) {
        fprintf(stderr,
                "mulmat-tune test: regret is above the bounds: median %.1f %%, 95th percentile "
                "%.1f %%, worst %.1f %%; allowed are %.1f, %.1f and %.1f %% (0: no bound)\n",
                100 * regret->median, 100 * regret->p95, 100 * regret->worst, request->max_median,
                request->max_p95, request->max_worst);
    }
    return too_much ? 1 : 0;
}

static int report(const struct exam *exam)
{
    struct tandem_error error = {0};
    struct tnd_regret regret;
    if (exam->n_cells == 0) {
        fprintf(stderr, "mulmat-tune test: no problem could be measured: no shape fits the blocks "
                        "of the types, or the budget is too small\n");
        return 1;
    }
    if (tnd_oracle_regret(exam->cells, exam->n_cells, &regret) != TANDEM_OK ||
        oracle_report(exam->cells, exam->n_cells, &regret, exam->request->json, &error) !=
            TANDEM_OK) {
        return tnd_cmd_failed(&error);
    }
    return test_judge_regret(exam->request, &regret);
}

int test_oracle(const struct test_request *request, tandem_runtime *runtime)
{
    struct tandem_error error = {0};
    struct exam *exam = tnd_calloc(1, sizeof(*exam));
    int result = 1;
    if (exam == NULL) {
        fprintf(stderr, "mulmat-tune test: out of memory\n");
        return 1;
    }
    exam->request = request;
    exam->n_threads = tandem_runtime_threads(runtime);
    exam->cell_s = request->cell_s > 0 ? request->cell_s : DEFAULT_CELL_S;
    tnd_runtime_parts(runtime, &exam->parts);
    tnd_rng_init(&exam->rng, (uint64_t)request->seed);
    if (request->budget_s > 0) {
        exam->end_s = (double)request->begin_ns / 1e9 + request->budget_s;
        double fair_s = request->budget_s / DEFAULT_PROBLEMS / 1.5; /* assuming short cells */
        if (request->cell_s <= 0 && fair_s < exam->cell_s) {
            exam->cell_s = fair_s > 0.2 ? fair_s : 0.2;
        }
    }
    if (tandem_runtime_table_status(runtime, &error) != TANDEM_OK) {
        fprintf(stderr, "mulmat-tune test: the rule is judged, not a table: %s\n", error.text);
    }
    enum tandem_status status = tnd_runtime_copy_table(runtime, &exam->table, &error);
    if (status == TANDEM_OK) {
        status = choose_groups(exam, &error);
    }
    for (int i = 0; i < exam->n_groups && status == TANDEM_OK; i++) {
        if (exam->end_s <= 0 || now_s(exam) + exam->cell_s < exam->end_s) {
            status = run_group(exam, i, &error);
        }
    }
    result = status == TANDEM_OK ? report(exam) : tnd_cmd_failed(&error);
    tandem_table_free(exam->table);
    tnd_free(exam->cells);
    tnd_free(exam);
    return result;
}
