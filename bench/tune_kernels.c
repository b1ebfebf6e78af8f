/* SPDX-License-Identifier: MIT
 * tune-kernels: sweeps the numbers of backends/cpu/kernels/tuning.h on this machine, one after the
 * other, and prints a row for tuning.c. A value is taken when products are faster by more than the
 * noise in two sweeps, and none is slower. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/cpu/matmul/matmul_parts.h"
#include "base/cpu.h"
#include "bench/arguments.h"
#include "bench/kernel_cell.h"

/* A change is taken when it is faster by more than noise, and nothing slower by more. */
#define LEAD 0.97
#define HARM 1.05

enum { VALUES_MAX = TND_VARIANTS_MAX - 1, TYPES_MAX = 8, M_MAX = 6 };

/* What is tried of a number, and on which products. */
struct sweep {
    const char *name;
    size_t member;
    int values[VALUES_MAX], n_values;
    enum tandem_type types[TYPES_MAX];
    int n_types;
    int m[M_MAX], n_m;
};

#define COUNT(...) ((int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)))
#define LIST(...)  {__VA_ARGS__}, COUNT(__VA_ARGS__)
#define QUANTIZED                                                                                  \
    LIST(TANDEM_TYPE_Q4_0, TANDEM_TYPE_Q8_0, TANDEM_TYPE_Q4_K, TANDEM_TYPE_Q6_K, TANDEM_TYPE_Q2_K)
#define FLOATS LIST(TANDEM_TYPE_F32, TANDEM_TYPE_F16, TANDEM_TYPE_BF16)
/* clang-format off */
#define SWEEP(name, values, types, m) {#name, offsetof(struct tnd_tuning, name), values, types, m}
/* clang-format on */

static const struct sweep sweeps[] = {
    SWEEP(packed_ahead_1, LIST(0, 1024, 2048, 4096, 6144, 8192, 16384), QUANTIZED, LIST(1)),
    SWEEP(packed_ahead, LIST(0, 4096, 6144, 8192, 12288, 16384), QUANTIZED, LIST(2, 4, 16, 48)),
    SWEEP(packed_skinny, LIST(12, 16, 24, 48, 96, 128, 192), QUANTIZED,
          LIST(16, 24, 32, 48, 96, 128)),
    SWEEP(unpack_part, LIST(256, 512, 768, 1024), QUANTIZED, LIST(256, 512)),
    SWEEP(float_ahead, LIST(0, 1024, 2048, 3072, 4096, 6144, 8192), FLOATS, LIST(1, 2, 4, 12)),
};
enum { N_SWEEPS = sizeof(sweeps) / sizeof(sweeps[0]) };

struct options {
    int threads;
    int64_t n, k;
    double budget_s; /* of one product */
    int only;        /* this sweep; 0: all */
};

static int *member(struct tnd_cpu_kernels *kernels, const struct sweep *sweep)
{
    return (int *)(void *)((char *)&kernels->tuning + sweep->member);
}

/* Of each variant over all products of a sweep. */
struct score {
    double mean[TND_VARIANTS_MAX];  /* time over that of the present value; geometric */
    double worst[TND_VARIANTS_MAX]; /* of one product */
};

static void print_line(const char *type, int m, const double *ratios, int n)
{
    printf("| %s | %d |", type, m);
    for (int i = 1; i < n; i++) {
        printf(" %.3f |", ratios[i]);
    }
    printf("\n");
    fflush(stdout);
}

static bool run_sweep(tnd_team *team, const struct options *o, const struct sweep *sweep,
                      const struct tnd_cpu_kernels *variants, int n, struct score *out)
{
    double logs[TND_VARIANTS_MAX] = {0};
    *out = (struct score){.worst = {0}};
    for (int t = 0; t < sweep->n_types; t++) {
        for (int j = 0; j < sweep->n_m; j++) {
            double ratios[TND_VARIANTS_MAX];
            struct tnd_kernel_cell cell = {
                .type = sweep->types[t], .n = o->n, .k = o->k, .m = sweep->m[j]};
            if (!tnd_kernel_cell_compare(team, variants, n, o->budget_s, &cell, ratios)) {
                return false;
            }
            print_line(tandem_type_name(cell.type), sweep->m[j], ratios, n);
            for (int i = 0; i < n; i++) {
                logs[i] += log(ratios[i]) / (sweep->n_types * sweep->n_m);
                out->mean[i] = exp(logs[i]);
                out->worst[i] = fmax(out->worst[i], ratios[i]);
            }
        }
    }
    print_line("mean", 0, out->mean, n);
    return true;
}

static void print_head(const struct sweep *sweep, struct tnd_cpu_kernels *variants, int n)
{
    printf("\n%s: time over that of %d\n\n| type | M |", sweep->name, *member(&variants[0], sweep));
    for (int i = 1; i < n; i++) {
        printf(" %d |", *member(&variants[i], sweep));
    }
    printf("\n|---|---|");
    for (int i = 1; i < n; i++) {
        printf("---|");
    }
    printf("\n");
}

/* All values beside the present one, then the best of them alone. */
static bool tune(tnd_team *team, const struct options *o, const struct sweep *sweep,
                 struct tnd_cpu_kernels *present)
{
    static struct tnd_cpu_kernels variants[TND_VARIANTS_MAX];
    struct score all;
    struct score again;
    int best = 0;
    for (int i = 0; i <= sweep->n_values; i++) {
        variants[i] = *present;
        *member(&variants[i], sweep) = i == 0 ? *member(present, sweep) : sweep->values[i - 1];
    }
    print_head(sweep, variants, sweep->n_values + 1);
    if (!run_sweep(team, o, sweep, variants, sweep->n_values + 1, &all)) {
        return false;
    }
    for (int i = 1; i <= sweep->n_values; i++) {
        best = all.mean[i] < all.mean[best] ? i : best;
    }
    if (all.mean[best] > LEAD) {
        printf("\n%s stays\n", sweep->name);
        return true;
    }
    variants[1] = variants[best];
    print_head(sweep, variants, 2);
    if (!run_sweep(team, o, sweep, variants, 2, &again)) {
        return false;
    }
    const bool is_taken = again.mean[1] <= LEAD && again.worst[1] <= HARM;
    printf("\n%s %s: %.3f, then %.3f of the time, at worst %.3f\n", sweep->name,
           is_taken ? "changes" : "stays", all.mean[best], again.mean[1], again.worst[1]);
    if (is_taken) {
        *present = variants[1];
    }
    return true;
}

static void print_row(const struct tnd_tuning *tuning)
{
    printf("\n    {\"%s\", {", tnd_cpu_id());
#define PRINT(name, value) printf("." #name " = %d, ", tuning->name);
    TND_TUNING_LIST(PRINT)
#undef PRINT
    printf("}},\n");
}

static const char usage[] =
    "Sweeps the numbers of backends/cpu/kernels/tuning.h on this machine and prints its row for\n"
    "tuning.c. Wants a machine that does nothing else.\n"
    "tune-kernels [--threads N] [--n N] [--k K] [--milliseconds N (of a product)]\n"
    "             [--only N (one of them, counted from 1)]\n";

int main(int argc, char **argv)
{
    struct tnd_bench_number numbers[] = {
        {"--threads", 1, 32, (double)sysconf(_SC_NPROCESSORS_ONLN)},
        {"--n", 64, 65536, 4096},
        {"--k", 1024, 65536, 4096},
        {"--milliseconds", 1, 60000, 1000},
        {"--only", 0, N_SWEEPS, 0}};
    tnd_bench_arguments(argc, argv, usage, numbers, 5);
    const struct options o = {(int)numbers[0].value, (int64_t)numbers[1].value,
                              (int64_t)numbers[2].value, numbers[3].value / 1e3,
                              (int)numbers[4].value};
    const size_t quantized = tnd_matmul_packed_scratch();
    const size_t rows = tnd_matmul_q_scratch();
    size_t scratch = tnd_matmul_packed_f_scratch(16, o.k);
    scratch = scratch > quantized ? scratch : quantized;
    scratch = scratch > rows ? scratch : rows;
    scratch = scratch > tnd_matmul_f_scratch(16, o.k) ? scratch : tnd_matmul_f_scratch(16, o.k);
    tnd_team *team = tnd_team_new(o.threads, scratch);
    static struct tnd_cpu_kernels present;
    tnd_cpu_kernels_for(tnd_cpu_features(), &present);
    bool good = team != NULL;
    for (int s = 0; s < N_SWEEPS && good; s++) {
        good = (o.only != 0 && o.only != s + 1) || tune(team, &o, &sweeps[s], &present);
    }
    if (good) {
        print_row(&present.tuning);
    } else {
        fprintf(stderr, "tune-kernels: no memory, or no packed kernels for this CPU\n");
    }
    if (team != NULL) {
        tnd_team_free(team);
    }
    return good ? 0 : 1;
}
