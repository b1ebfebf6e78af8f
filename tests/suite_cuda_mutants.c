/* SPDX-License-Identifier: MIT
 * Kernels with a fault planted in their text: the stand-in has to find it by its checks of
 * accesses, barriers and memory; results are not looked at. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "tandem/sample.h"
#include "tests/suite_cuda.h"

enum { LENGTH = 300, ROW = 200, ROWS = 3, GROUP = 128 };

/* Each runs a kernel of the module on memory of its own. */
static void run_matvec(void *module)
{
    struct tnd_cu_product p;
    tnd_cu_product_make(&p, TANDEM_TYPE_Q4_0);
    tnd_cu_product_run(&p, module, "matvec", (unsigned[]){(TND_CU_N + 1) / 2, (TND_CU_M + 3) / 4},
                       64);
    tnd_cu_product_free(&p);
}

static void run_tiles(void *module, enum tandem_type type)
{
    struct tnd_cu_product p;
    tnd_cu_product_make(&p, type);
    tnd_cu_product_run(&p, module, "tiled", (unsigned[]){(TND_CU_N + 31) / 32, 1}, 32);
    tnd_cu_product_free(&p);
}

static void run_tiled(void *module)
{
    run_tiles(module, TANDEM_TYPE_Q4_0);
}

static void run_tiled_q4_1(void *module)
{
    run_tiles(module, TANDEM_TYPE_Q4_1);
}

static void run_dequantize(void *module)
{
    struct tnd_cu_product p;
    tnd_cu_product_make(&p, TANDEM_TYPE_Q8_0);
    uint64_t to = tnd_test_cu_upload(NULL, sizeof(float) * TND_CU_K * TND_CU_N);
    tnd_cu_dequantize_run(&p, module, to);
    tnd_cu.MemFree(to);
    tnd_cu_product_free(&p);
}

static void run_smoke(void *module)
{
    static const float x[LENGTH];
    uint64_t zero = 0, staged = 0;
    float factor = 1.5f;
    int32_t offset = -2;
    uint32_t n = LENGTH;
    uint64_t at_x = tnd_test_cu_upload(x, sizeof(x));
    uint64_t at_y = tnd_test_cu_upload(NULL, sizeof(x));
    tnd_test_cu_run(module, "smoke", (unsigned[]){(LENGTH + 63) / 64, 1}, 64, 64 * sizeof(float),
                    TND_ARGUMENTS(&at_x, &zero, &at_y, &zero, &staged, &factor, &offset, &n));
    tnd_cu.MemFree(at_x);
    tnd_cu.MemFree(at_y);
}

static void run_rows(void *module, bool is_norm)
{
    static const float x[ROW * ROWS];
    uint64_t zero = 0, nb1 = ROW * sizeof(float), nb2 = nb1 * ROWS;
    uint32_t ne0 = ROW, ne1 = ROWS, ne2 = 1, none = 0, one = 1;
    float number = 0.5f;
    uint64_t at_x = tnd_test_cu_upload(x, sizeof(x));
    uint64_t at_y = tnd_test_cu_upload(NULL, sizeof(x));
    const unsigned grid[] = {ROWS, 1};
    if (is_norm) {
        tnd_test_cu_run(module, "norm_rows", grid, GROUP, 0,
                        TND_ARGUMENTS(&at_y, &zero, &at_x, &zero, &one, &number, &ne0, &ne1, &ne2,
                                      &nb1, &nb2, &nb2));
    } else {
        tnd_test_cu_run(module, "soft_max_rows", grid, GROUP, 0,
                        TND_ARGUMENTS(&at_y, &zero, &at_x, &zero, &at_x, &zero, &none, &number,
                                      &ne0, &ne1, &ne2, &nb1, &nb2, &nb2, &zero));
    }
    tnd_cu.MemFree(at_x);
    tnd_cu.MemFree(at_y);
}

static void run_norm(void *module)
{
    run_rows(module, true);
}

static void run_soft_max(void *module)
{
    run_rows(module, false);
}

/* A row in two slices, by all kernels of ops_sample.cl. */
static void run_sample(void *module)
{
    enum { INTEGERS = 32 + 6 * 2048 + 4 * GROUP };
    float x[LENGTH];
    struct tandem_sample_settings settings;
    struct tandem_sample_choice choice;
    uint64_t zero = 0, nb1 = sizeof(x);
    uint32_t n = LENGTH, slices = 2, slice = LENGTH / 2 + 1, none = 0, one = 1;
    const unsigned over_slices[] = {2, 1}, over_rows[] = {1, 1};
    tandem_sample_settings_fill(&settings, 1.0f, 40, 0.0f, 0.0f, 1);
    for (int i = 0; i < LENGTH; i++) {
        x[i] = (float)(i % 7);
    }
    uint64_t at_x = tnd_test_cu_upload(x, sizeof(x));
    uint64_t at_s = tnd_test_cu_upload(&settings, sizeof(settings));
    uint64_t at_y = tnd_test_cu_upload(NULL, sizeof(choice));
    uint64_t work = tnd_test_cu_upload(NULL, INTEGERS * sizeof(uint32_t));
    const struct {
        const char *kernel;
        const unsigned *grid;
        void **arguments;
    } launches[] = {
        {"sample_largest", over_slices,
         TND_ARGUMENTS(&work, &zero, &at_x, &zero, &at_s, &zero, &none, &n, &slice, &nb1)},
        {"sample_begin", over_rows,
         TND_ARGUMENTS(&work, &zero, &at_y, &zero, &at_s, &zero, &one, &slices)},
        {"sample_count", over_slices,
         TND_ARGUMENTS(&work, &zero, &at_x, &zero, &at_s, &zero, &at_s, &zero, &none, &n, &slice,
                       &nb1)},
        {"sample_find", over_rows, TND_ARGUMENTS(&work, &zero, &at_s, &zero, &none, &none)},
        {"sample_count", over_slices,
         TND_ARGUMENTS(&work, &zero, &at_x, &zero, &at_s, &zero, &at_s, &zero, &one, &n, &slice,
                       &nb1)},
        {"sample_find", over_rows, TND_ARGUMENTS(&work, &zero, &at_s, &zero, &none, &one)},
        {"sample_weigh", over_slices,
         TND_ARGUMENTS(&work, &zero, &at_x, &zero, &at_s, &zero, &at_s, &zero, &n, &slice, &nb1)},
        {"sample_draw", over_rows,
         TND_ARGUMENTS(&work, &zero, &at_y, &zero, &at_x, &zero, &at_s, &zero, &at_s, &zero, &n,
                       &slice, &slices, &nb1)},
    };
    int code = 0; /* after a fault the device takes no more launches */
    for (size_t i = 0; i < sizeof(launches) / sizeof(launches[0]) && code == 0; i++) {
        code = tnd_test_cu_run(module, launches[i].kernel, launches[i].grid, GROUP, 0,
                               launches[i].arguments);
    }
    tnd_cu.MemFree(at_x);
    tnd_cu.MemFree(at_s);
    tnd_cu.MemFree(at_y);
    tnd_cu.MemFree(work);
}

static const struct target {
    const char *source, *options;
    void (*run)(void *module);
} matvec = {"matvec.cl", "-DTYPE_q4_0=1 -DLANES=64 -DROWS=2 -DCOLUMNS=4", run_matvec},
  tiled = {"tiled.cl", "-DTYPE_q4_0=1 -DTILE_M=16 -DTILE_N=32 -DTILE_K=32 -DITEM_M=4 -DITEM_N=4",
           run_tiled},
  mma = {"tiled.cl",
         "-DTYPE_q4_1=1 -DTILE_M=16 -DTILE_N=32 -DTILE_K=32 -DITEM_M=4 -DITEM_N=4 -DUSE_MMA=1",
         run_tiled_q4_1},
  dequantize = {"dequantize.cl", "-DTYPE_q8_0=1 -DALIGNED=1", run_dequantize},
  smoke = {"smoke.cl", "", run_smoke}, norm = {"ops_rows.cl", "-DHAVE_FP64=1", run_norm},
  soft_max = {"ops_rows.cl", "-DHAVE_FP64=1", run_soft_max},
  sample = {"ops_sample.cl", "", run_sample};

#define BARRIER "barrier(CLK_LOCAL_MEM_FENCE);"
static const struct mutant {
    const struct target *target;
    const char *from, *to;
} mutants[] = {
    {&matvec, BARRIER "\n        if (lane < half_lanes)", "if (lane < half_lanes)"},
    {&matvec, BARRIER "\n#endif\n    return n_parts;", "\n#endif\n    return n_parts;"},
    {&matvec, "if (row + i / COLUMNS < row_end && column", "if (column"},
    {&matvec, "< row_end && column + i % COLUMNS < m)", "< row_end)"},
    {&matvec, "min(row + r, row_end - 1)", "row + r"},
    {&matvec, "min(column + c, m - 1)", "(column + c)"},
    {&matvec, "i < ROWS * COLUMNS; i += LANES) {\n        float sum",
     "i < ROWS * COLUMNS; i++) {\n"
     "        float sum"},
    {&tiled, BARRIER "\n        for (uint v = 0", "for (uint v = 0"},
    {&tiled, "            }\n        }\n        " BARRIER "\n    }\n}", "}}}}"},
    {&tiled, "min(row + r, row_end - 1)", "row + r"},
    {&tiled, "if (at_row < row_end) {", "{"},
    {&tiled, "if (at_column >= m) {", "if (at_column > m) {"},
    {&tiled, "i < n_columns * TILE_QUADS;", "i < n_columns * TILE_QUADS - 1;"},
    {&tiled, "i < TILE_N * TILE_QUADS;", "i < TILE_N * TILE_QUADS / 2;"},
    {&mma, BARRIER "\n        for (uint step", "for (uint step"},
    {&mma, "}\n        }\n        " BARRIER "\n    }\n}\n#endif", "}}}}\n#endif"},
    {&mma, "stage_weights(w, min(row + r, row_end - 1)", "stage_weights(w, row + r"},
    {&mma, "staged->mins[v / 16][r] = line.y;", ""},
    {&mma, "[r][word + part / 2 * 4]", "[r][word + part * 4]"},
    {&mma, "[column + lane_row][word + 4]", "[column + lane_row][word + 8]"},
    {&mma, "x_place(columns, c), first + v, k), X_TERMS",
     "x_place(columns, c) + 512, first + v, k), X_TERMS"},
    {&smoke, "i < n ? in[i] : 0.0f", "in[i]"},
    {&smoke, "if (i < n) {", "{"},
    {&smoke, BARRIER "\n    if (i < n) {\n        out[i] = staged[get_local_id(0)]",
     "if (i < n) {\n        out[i] = staged[get_local_id(0) ^ 1]"},
    {&norm, "        " BARRIER "\n    }\n    const float result", "    }\n    const float result"},
    {&norm, "= scratch[0];\n    " BARRIER, "= scratch[0];"},
    {&norm, "scratch[item] = value;\n    " BARRIER, "scratch[item] = value;"},
    {&norm, "(ulong)row * ne0;\n    float shift", "0;\n    float shift"},
    {&norm, "i < ne0; i += GROUP) {\n        const float value",
     "i <= ne0; i += GROUP) {\n"
     "        const float value"},
    {&soft_max, "to[i] = score;", ""},
    {&sample, "places[item] = place;\n    " BARRIER, "places[item] = place;"},
    {&sample, "min(begin + slice, n);\n    uint best", "begin + slice;\n    uint best"},
    {&sample, "sums_high[i] = 0;\n    }\n    " BARRIER, "sums_high[i] = 0;\n    }"},
    {&sample, "atomic_add((local volatile uint *)&counts[digit], 1u);", "counts[digit]++;"},
    {&sample, "sums[item] = sum;\n    " BARRIER, "sums[item] = sum;"},
    {&sample, "counts[item] = from[2];\n    }\n    " BARRIER, "counts[item] = from[2];\n    }"},
    {&sample, "i += GROUP) {\n        state[HISTOGRAM + i] = 0;",
     "i += 2 * GROUP) {\n        state[HISTOGRAM + i] = 0;"},
    {&dequantize, "if (part * 16 >= k || row >= row_end)", "if (row >= row_end)"},
    {&dequantize, "(block + 2 + (part << 4), 2)", "(block + 2 + (part << 4), 4)"},
};

static char *mutated(const struct mutant *mutant)
{
    char *text = tnd_test_cu_text(mutant->target->source);
    const char *at = strstr(text, mutant->from);
    if (at == NULL) {
        fprintf(stderr, "%s has no '%s'\n", mutant->target->source, mutant->from);
        tnd_free(text);
        return NULL;
    }
    struct tnd_text out = TND_TEXT_INIT;
    tnd_text_printf(&out, "%.*s%s%s", (int)(at - text), text, mutant->to,
                    at + strlen(mutant->from));
    tnd_free(text);
    return tnd_text_take(&out);
}

static void planted_faults_are_found(void)
{
    enum { N_MUTANTS = sizeof(mutants) / sizeof(mutants[0]) };
    int n_found = 0;
    if (!tnd_test_cu_is_there()) {
        return;
    }
    for (int i = 0; i < N_MUTANTS; i++) {
        const struct mutant *mutant = &mutants[i];
        struct tnd_fake_report report;
        char *text = mutated(mutant);
        CU_ASSERT_PTR_NOT_NULL(text);
        if (text == NULL) {
            continue;
        }
        void *module = tnd_test_cu_compile(text, mutant->target->options);
        tnd_cu.fake.begin(NULL);
        mutant->target->run(module);
        tnd_cu.fake.report(&report);
        tnd_cu.fake.begin(NULL);
        tnd_cu.ModuleUnload(module);
        tnd_free(text);
        n_found += report.n_wrong > 0;
        if (report.n_wrong == 0) {
            fprintf(stderr, "not found: %s without '%s'\n", mutant->target->source, mutant->from);
        }
    }
    printf("(%d of %d) ", n_found, (int)N_MUTANTS);
    CU_ASSERT(n_found * 10 >= N_MUTANTS * 9);
}

static void kernels_without_faults_pass(void)
{
    static const struct target *const all[] = {&matvec, &tiled, &mma,      &dequantize,
                                               &smoke,  &norm,  &soft_max, &sample};
    if (!tnd_test_cu_is_there()) {
        return;
    }
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        struct tnd_fake_report report;
        void *module = tnd_test_cu_compile(all[i]->source, all[i]->options);
        all[i]->run(module);
        tnd_cu.fake.report(&report);
        check_string(report.wrong, "");
        tnd_cu.ModuleUnload(module);
    }
}

CU_TestInfo tnd_tests_cuda_mutants[] = {
    {"planted faults are found", planted_faults_are_found},
    {"kernels without faults pass", kernels_without_faults_pass},
    CU_TEST_INFO_NULL,
};
