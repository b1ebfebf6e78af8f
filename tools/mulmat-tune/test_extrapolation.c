/* SPDX-License-Identifier: MIT
 * mulmat-tune test --extrapolation: leaves out the outermost cells of tables, predicts them, and
 * checks whether errors and error bars are what the model of times promises. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/emit.h"
#include "tools/mulmat-tune/cmd_output.h"
#include "tools/mulmat-tune/test_parts.h"
#include "tools/report/left_out.h"

#define SIDE(side)  (1u << (side))
#define M_SIDES     (SIDE(TND_LEFT_OUT_ABOVE) | SIDE(TND_LEFT_OUT_BELOW))
#define DISTANCE(d) (1u << ((d)-1))

static const struct {
    const char *name;
    const char *side;
    uint32_t sides, distances;
    int times;
} rows[] = {
    {"twice the largest M", "above", SIDE(TND_LEFT_OUT_ABOVE), DISTANCE(1), 2},
    {"4 times", "above", SIDE(TND_LEFT_OUT_ABOVE), DISTANCE(2), 4},
    {"8 times and more", "above", SIDE(TND_LEFT_OUT_ABOVE), DISTANCE(3), 8},
    {"a half of the smallest M", "below", SIDE(TND_LEFT_OUT_BELOW), DISTANCE(1), 2},
    {"a quarter", "below", SIDE(TND_LEFT_OUT_BELOW), DISTANCE(2), 4},
    {"an eighth and less", "below", SIDE(TND_LEFT_OUT_BELOW), DISTANCE(3), 8},
    {"twice the threads", "threads", SIDE(TND_LEFT_OUT_THREADS), DISTANCE(1), 2},
    {"4 times the threads", "threads", SIDE(TND_LEFT_OUT_THREADS), DISTANCE(2), 4},
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

/* The numbers to check, over both sides of M. */
struct verdict {
    struct tnd_calibration twice, four, both;
};

static void add_problem(struct tnd_text *text, const struct tnd_left_out_cell *cell)
{
    char problem[TND_PROBLEM_MAX];
    tnd_problem_print(&cell->problem, problem, sizeof(problem));
    tnd_text_printf(text, "%s%s", problem, cell->warm ? " (warm)" : "");
}

static void add_number(struct tnd_text *text, const char *name, double value)
{
    tnd_text_printf(text, ", \"%s\": ", name);
    tnd_text_add_double(text, value);
}

/* ---- text ---- */

static void add_row(struct tnd_text *text, const char *name, const struct tnd_calibration *c)
{
    if (c->n > 0) {
        tnd_text_printf(text, "%-26s %6d %11.1f %% %10.1f %% %8.1f %% %10.0f %%\n", name, c->n,
                        100 * c->median, 100 * c->p95, 100 * c->worst, 100 * c->within);
    }
}

static enum tandem_status add_text(struct tnd_text *text, const struct tnd_left_out *list,
                                   const struct verdict *verdict)
{
    tnd_text_printf(text, "%-26s %6s %13s %12s %10s %12s\n", "left out and predicted", "cells",
                    "median error", "95th perc.", "worst", "within bars");
    for (int i = 0; i < ROWS; i++) {
        struct tnd_calibration c;
        TND_TRY(tnd_left_out_calibration(list, rows[i].sides, rows[i].distances, &c));
        add_row(text, rows[i].name, &c);
    }
    add_row(text, "M at twice, both sides", &verdict->twice);
    add_row(text, "M at 4 times, both sides", &verdict->four);
    add_row(text, "M at twice and 4 times", &verdict->both);
    for (int i = 0; i < ROWS; i++) {
        struct tnd_calibration c;
        TND_TRY(tnd_left_out_calibration(list, rows[i].sides, rows[i].distances, &c));
        if (c.n > 0) {
            const struct tnd_left_out_cell *cell = &list->cells[c.worst_at];
            tnd_text_printf(text, "worst of %s: ", rows[i].name);
            add_problem(text, cell);
            tnd_text_printf(text, " predicted %.0f +- %.0f us, measured %.0f\n", cell->predicted_us,
                            cell->error_us, cell->measured_us);
        }
    }
    return TANDEM_OK;
}

/* ---- JSON ---- */

static void add_calibration(struct tnd_text *text, const struct tnd_calibration *c)
{
    tnd_text_printf(text, "\"count\": %d", c->n);
    add_number(text, "median_error", c->median);
    add_number(text, "p95_error", c->p95);
    add_number(text, "worst_error", c->worst);
    add_number(text, "within", c->within);
}

static enum tandem_status add_json(struct tnd_text *text, const struct tnd_left_out *list,
                                   const struct verdict *verdict)
{
    static const char *const sides[] = {"above", "below", "threads"};
    const char *before = "";
    tnd_text_add(text, "{\n  \"twice\": {");
    add_calibration(text, &verdict->twice);
    tnd_text_add(text, "},\n  \"four_times\": {");
    add_calibration(text, &verdict->four);
    tnd_text_add(text, "},\n  \"both\": {");
    add_calibration(text, &verdict->both);
    tnd_text_add(text, "},\n  \"distances\": [");
    for (int i = 0; i < ROWS; i++) {
        struct tnd_calibration c;
        TND_TRY(tnd_left_out_calibration(list, rows[i].sides, rows[i].distances, &c));
        if (c.n > 0) {
            tnd_text_printf(text, "%s\n    {\"side\": \"%s\", \"times\": %d, ", before,
                            rows[i].side, rows[i].times);
            add_calibration(text, &c);
            tnd_text_add(text, "}");
            before = ",";
        }
    }
    tnd_text_add(text, "],\n  \"cells\": [");
    for (int i = 0; i < list->n_cells; i++) {
        const struct tnd_left_out_cell *cell = &list->cells[i];
        tnd_text_printf(text, "%s\n    {\"problem\": \"", i > 0 ? "," : "");
        add_problem(text, cell);
        tnd_text_printf(text, "\", \"side\": \"%s\", \"times\": %d", sides[cell->side],
                        1 << cell->distance);
        add_number(text, "measured_us", cell->measured_us);
        add_number(text, "predicted_us", cell->predicted_us);
        add_number(text, "error_us", cell->error_us);
        tnd_text_add(text, "}");
    }
    tnd_text_add(text, "]\n}\n");
    return TANDEM_OK;
}

/* ---- the verdict ---- */

static int complain(const char *what, double found, const char *limit, double bound)
{
    fprintf(stderr, "mulmat-tune test: %s is %.1f %%, allowed %s %.1f %%\n", what, 100 * found,
            limit, bound);
    return 1;
}

static int judge(const struct test_request *request, const struct verdict *verdict)
{
    int result = 0;
    if (request->max_median > 0 && 100 * verdict->twice.median > request->max_median) {
        result = complain("the median error at twice the range", verdict->twice.median, "at most",
                          request->max_median);
    }
    if (request->max_far > 0 && 100 * verdict->four.median > request->max_far) {
        result = complain("the median error at four times the range", verdict->four.median,
                          "at most", request->max_far);
    }
    if (100 * verdict->both.within < request->min_within) {
        result = complain("the share of cells within their error bars", verdict->both.within,
                          "at least", request->min_within);
    }
    if (request->max_within > 0 && 100 * verdict->both.within > request->max_within) {
        result = complain("the share of cells within their error bars", verdict->both.within,
                          "at most", request->max_within);
    }
    return result;
}

static enum tandem_status work_out(const struct tnd_left_out *list, struct verdict *out)
{
    TND_TRY(tnd_left_out_calibration(list, M_SIDES, DISTANCE(1), &out->twice));
    TND_TRY(tnd_left_out_calibration(list, M_SIDES, DISTANCE(2), &out->four));
    return tnd_left_out_calibration(list, M_SIDES, DISTANCE(1) | DISTANCE(2), &out->both);
}

static int report(const struct test_request *request, const struct tnd_left_out *list)
{
    struct tandem_error error = {0};
    struct verdict verdict;
    struct tnd_text text = TND_TEXT_INIT;
    enum tandem_status status = work_out(list, &verdict);
    if (status == TANDEM_OK && verdict.both.n == 0) {
        fprintf(stderr,
                "mulmat-tune test: nothing can be left out: no product was measured at an M "
                "and at a half or a quarter of it, and at two more\n");
        return 1;
    }
    if (status == TANDEM_OK) {
        status = request->json ? add_json(&text, list, &verdict) : add_text(&text, list, &verdict);
    }
    if (status != TANDEM_OK) {
        tnd_text_fini(&text);
        fprintf(stderr, "mulmat-tune test: out of memory\n");
        return 1;
    }
    return tnd_emit_end(&text, tnd_cmd_write, stdout, "extrapolation", &error) == TANDEM_OK
               ? judge(request, &verdict)
               : tnd_cmd_failed(&error);
}

/* ---- the tables ---- */

static enum tandem_status add_file(const char *path, struct tnd_left_out *list,
                                   struct tandem_error *error)
{
    tandem_table *table = NULL;
    enum tandem_status status = tandem_table_load(path, &table, error);
    if (status == TANDEM_OK) {
        status = tnd_left_out_add(table, list);
    }
    tandem_table_free(table);
    return status;
}

static enum tandem_status add_own(const struct test_request *request, struct tnd_left_out *list,
                                  struct tandem_error *error)
{
    tandem_runtime *runtime = NULL;
    tandem_table *table = NULL;
    enum tandem_status status =
        tnd_cmd_open_runtime(request->table, 0, NULL, request->device, &runtime, error);
    if (status == TANDEM_OK) {
        status = tandem_runtime_table_status(runtime, error);
    }
    if (status == TANDEM_OK) {
        status = tnd_runtime_copy_table(runtime, &table, error);
    }
    if (status == TANDEM_OK) {
        status = tnd_left_out_add(table, list);
    }
    tandem_table_free(table);
    tandem_runtime_close(runtime);
    return status;
}

int test_extrapolation(const struct test_request *request, const char *const *paths, int n_paths)
{
    struct tandem_error error = {0};
    struct tnd_left_out list = {0};
    const bool is_named = request->table != NULL && strcmp(request->table, "none") != 0;
    enum tandem_status status = TANDEM_OK;
    if (is_named) { /* only that table, without the layers of this machine */
        status = add_file(request->table, &list, &error);
    } else if (n_paths == 0) {
        status = add_own(request, &list, &error);
    }
    for (int i = 0; i < n_paths && status == TANDEM_OK; i++) {
        status = add_file(paths[i], &list, &error);
    }
    error.status = error.text[0] == '\0' ? status : error.status;
    int result = status == TANDEM_OK ? report(request, &list) : tnd_cmd_failed(&error);
    tnd_left_out_fini(&list);
    return result;
}
