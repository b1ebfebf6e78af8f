/* SPDX-License-Identifier: MIT
 * bench-kernels: the matrix kernels of the CPU backend beside the peaks of this machine, measured
 * in the same run. The layouts of a cell are measured in turn. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/cpu/matmul/matmul_parts.h"
#include "base/cpu.h"
#include "bench/team.h"
#include "bench/kernel_cell.h"
#include "backends/cpu/kernels/peak.h"
#include "measure/measure_peaks.h"

enum { LIST_MAX = 32 };

struct options {
    enum tandem_type types[LIST_MAX];
    int64_t shapes[LIST_MAX][2]; /* N, K */
    int64_t m[LIST_MAX];
    int n_types, n_shapes, n_m;
    int threads;
    const char *isa;
    const char *output; /* md, json, csv */
    double budget_s;    /* of one cell */
};

struct peaks {
    double fma_gflops, int8_gops, bf16_gflops, read_gbps, cache_gbps; /* of all threads */
    double read_1_gbps;                                               /* of one */
    const char *int8_unit;
};

/* ---- peaks ---- */

/* Measures peaks for about a second, by workers that have ended when it returns. */
static bool measure_peaks(int threads, struct peaks *out)
{
    const int counts[] = {1, threads};
    const struct tnd_pool_options options = {.n_threads = threads, .spin_limit = -1};
    struct tnd_pool *pool = NULL;
    tandem_table *table = NULL;
    bool good = tnd_pool_new(&options, &pool, NULL) == TANDEM_OK &&
                tandem_table_new(&table, NULL) == TANDEM_OK &&
                tnd_measure_peaks(pool, tnd_clock_real(), counts, threads > 1 ? 2 : 1, 1.0, 0,
                                  table, NULL) == TANDEM_OK;
    if (good) {
        *out = (struct peaks){.fma_gflops = tnd_table_peak(table, "fma", threads),
                              .int8_gops = tnd_table_peak(table, "int8", threads),
                              .bf16_gflops = tnd_table_peak(table, "bf16", threads),
                              .read_gbps = tnd_table_peak(table, "read", threads),
                              .cache_gbps = tnd_table_peak(table, "cache", threads),
                              .read_1_gbps = tnd_table_peak(table, "read", 1),
                              .int8_unit = tnd_peaks_find().int8_unit};
    }
    tandem_table_free(table);
    tnd_pool_free(pool);
    return good;
}

/* ---- output ---- */

static void print_head(const struct options *o, const struct peaks *p, const char *isa)
{
    if (strcmp(o->output, "json") == 0) {
        printf("{\"cpu\":\"%s\",\"threads\":%d,\"peaks\":{\"fma_gflops\":%.1f,\"int8_gops\":%.1f,"
               "\"bf16_gflops\":%.1f,\"read_gbps\":%.2f,\"read_1_gbps\":%.2f,\"cache_gbps\":%.1f},"
               "\"kernels\":[",
               tnd_cpu_model(), o->threads, p->fma_gflops, p->int8_gops, p->bf16_gflops,
               p->read_gbps, p->read_1_gbps, p->cache_gbps);
    } else if (strcmp(o->output, "csv") == 0) {
        printf("type,n,k,m,threads,isa,layout,median_us,spread,gflops,gbps,peak,peak_share,"
               "tail\n");
    } else {
        printf("%s, %d threads, %s\n\npeaks: fp32 FMA %.0f GFLOP/s, %s %.0f GOP/s, "
               "bf16 dot %.0f GFLOP/s, read %.1f GB/s (memory; one thread %.1f) %.0f GB/s (256 "
               "KiB)\n\n",
               tnd_cpu_model(), o->threads, isa, p->fma_gflops, p->int8_unit, p->int8_gops,
               p->bf16_gflops, p->read_gbps, p->read_1_gbps, p->cache_gbps);
        printf("| type | layout | N x K | M | median us | best us | spread | GFLOP/s | GB/s | "
               "share of | tail |\n"
               "|---|---|---|---|---|---|---|---|---|---|---|\n");
    }
}

/* Prints a line for one layout of a cell. The bound is the peak or the reading of the same turns,
 * whichever is nearer. */
static void print_cell(const struct options *o, const struct peaks *p,
                       const struct tnd_kernel_cell *c, int layout, const char *isa, bool first)
{
    static const char *const names[TND_LAYOUTS] = {"rows", "packed", "bf16", "tiles"};
    const struct tnd_cell_time *t = &c->layout[layout];
    const char *type = tandem_type_name(c->type);
    bool quantized = tandem_type_is_quantized(c->type);
    double gflops = 2e-3 * (double)c->n * (double)c->k * (double)c->m / t->median_us;
    double gbps = 1e-3 * (double)c->bytes[TND_LAYOUT_ROWS] / t->median_us;
    const bool is_read = t->read_share > t->compute_share;
    char peak[32];
    snprintf(peak, sizeof(peak), "%s",
             quantized                   ? p->int8_unit
             : layout == TND_LAYOUT_BF16 ? "bf16"
                                         : "fma");
    if (is_read) {
        snprintf(peak, sizeof(peak), "read (%d streams)", c->read_streams);
    }
    double share = is_read ? t->read_share : t->compute_share;
    long long n = c->n;
    long long k = c->k;
    long long m = c->m;
    if (strcmp(o->output, "json") == 0) {
        printf("%s{\"type\":\"%s\",\"n\":%lld,\"k\":%lld,\"m\":%lld,\"threads\":%d,\"isa\":\"%s\","
               "\"layout\":\"%s\",\"median_us\":%.2f,\"spread\":%.3f,\"gflops\":%.1f,"
               "\"gbps\":%.2f,\"peak\":\"%s\",\"peak_share\":%.3f,\"compute_share\":%.3f,"
               "\"peak_gops\":%.1f,\"read_gbps\":%.2f,\"weight_bytes\":%zu,\"tail\":%.4f}",
               first ? "" : ",", type, n, k, m, o->threads, isa, names[layout], t->median_us,
               t->spread, gflops, gbps, peak, share, t->compute_share, c->peak_gops, c->read_gbps,
               c->bytes[layout], t->tail);
    } else if (strcmp(o->output, "csv") == 0) {
        printf("%s,%lld,%lld,%lld,%d,%s,%s,%.2f,%.3f,%.1f,%.2f,%s,%.3f,%.4f\n", type, n, k, m,
               o->threads, isa, names[layout], t->median_us, t->spread, gflops, gbps, peak, share,
               t->tail);
    } else {
        printf("| %s | %s | %lldx%lld | %lld | %.1f | %.1f | %.0f %% | %.1f | %.2f | %.0f %% %s | "
               "%.1f %% |\n",
               type, names[layout], n, k, m, t->median_us, t->best_us, 100 * t->spread, gflops,
               gbps, 100 * share, peak, 100 * t->tail);
    }
    fflush(stdout);
}

/* ---- arguments ---- */

static bool parse_types(const char *text, struct options *o)
{
    char copy[512];
    snprintf(copy, sizeof(copy), "%s", text);
    o->n_types = 0;
    for (char *word = strtok(copy, ","); word != NULL; word = strtok(NULL, ",")) {
        if (o->n_types == LIST_MAX || !tandem_type_from_name(word, &o->types[o->n_types++])) {
            return false;
        }
    }
    return o->n_types > 0;
}

static bool parse_shapes(const char *text, struct options *o)
{
    for (o->n_shapes = 0; o->n_shapes < LIST_MAX; text++) {
        long long n;
        long long k;
        int used = 0;
        if (sscanf(text, "%lldx%lld%n", &n, &k, &used) != 2 || n < 1 || k < 1) {
            return false;
        }
        o->shapes[o->n_shapes][0] = n;
        o->shapes[o->n_shapes++][1] = k;
        text += used;
        if (*text != ',') {
            return *text == '\0';
        }
    }
    return false;
}

static bool parse_m(const char *text, struct options *o)
{
    for (o->n_m = 0; o->n_m < LIST_MAX; text++) {
        char *end;
        o->m[o->n_m++] = strtoll(text, &end, 10);
        if (end == text || o->m[o->n_m - 1] < 1 || *end != ',') {
            return end != text && *end == '\0' && o->m[o->n_m - 1] >= 1;
        }
        text = end;
    }
    return false;
}

static const char usage[] =
    "Matrix kernels of the CPU backend as shares of this machine's own peaks, in one run.\n"
    "bench-kernels [--type T,..] [--shape NxK,..] [--m M,..] [--threads N] [--isa scalar|avx2|..]\n"
    "              [--seconds S (of a cell)] [--output md|json|csv]\n"
    "Defaults: all types, 4096x4096, M 1,2,4,8,32,128,512, one thread a CPU, 0.3 s a cell, md.\n"
    "rows: weights as in the file; packed: Tandem's own copy; bf16: that copy times activations\n"
    "rounded to BF16; tiles: that copy by AMX, emulated with TANDEM_CPU=amx-emulated. Times count "
    "the quantising of the\n"
    "activations. GB/s are of the type's bytes. Shares are of the arithmetic's peak or (up to 16\n"
    "tokens) of reading the same weights, both measured in turn with the kernel; medians.\n";

static bool parse_arguments(int argc, char **argv, struct options *o)
{
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        bool good = true;
        if (strcmp(argv[i], "--type") == 0) {
            good = parse_types(value, o);
        } else if (strcmp(argv[i], "--shape") == 0) {
            good = parse_shapes(value, o);
        } else if (strcmp(argv[i], "--m") == 0) {
            good = parse_m(value, o);
        } else if (strcmp(argv[i], "--threads") == 0) {
            o->threads = atoi(value);
            good = o->threads >= 1 && o->threads <= LIST_MAX;
        } else if (strcmp(argv[i], "--isa") == 0) {
            o->isa = value;
        } else if (strcmp(argv[i], "--seconds") == 0) {
            o->budget_s = atof(value);
        } else if (strcmp(argv[i], "--output") == 0) {
            o->output = value;
            good =
                strcmp(value, "md") == 0 || strcmp(value, "json") == 0 || strcmp(value, "csv") == 0;
        } else {
            good = false;
        }
        if (!good) {
            fprintf(stderr, "bench-kernels: wrong argument '%s %s'\n%s", argv[i], value, usage);
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        fputs(usage, stdout);
        return 0;
    }
    struct options o = {.output = "md", .budget_s = 0.3};
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    o.threads = cpus < 1 ? 1 : cpus > LIST_MAX ? LIST_MAX : (int)cpus;
    parse_types("f32,f16,bf16,q4_0,q4_1,q5_0,q5_1,q8_0,q2_k,q3_k,q4_k,q5_k,q6_k", &o);
    parse_shapes("4096x4096", &o);
    parse_m("1,2,4,8,32,128,512", &o);
    if (!parse_arguments(argc, argv, &o)) {
        return 2;
    }
    struct tnd_cpu_kernels kernels;
    tnd_cpu_kernels_for(tnd_cpu_mask(tnd_cpu_features(), o.isa), &kernels);
    if (tnd_cpu_emulates_tiles()) {
        tnd_fill_tiles_emulated(&kernels);
    }
    size_t scratch = tnd_max(tnd_matmul_q_scratch(), tnd_matmul_packed_scratch());
    scratch = tnd_max(scratch, tnd_matmul_amx_scratch());
    for (int i = 0; i < o.n_shapes * o.n_m; i++) {
        int64_t m = o.m[i % o.n_m];
        int64_t k = o.shapes[i / o.n_m][1];
        size_t needs = tnd_matmul_f_scratch(m, k);
        scratch = needs > scratch ? needs : scratch;
        needs = tnd_matmul_packed_f_scratch(m, k);
        scratch = needs > scratch ? needs : scratch;
    }
    struct peaks peaks;
    tnd_team *team = measure_peaks(o.threads, &peaks) ? tnd_team_new(o.threads, scratch) : NULL;
    if (team == NULL) {
        return 1;
    }
    print_head(&o, &peaks, kernels.isa_q);
    bool first = true;
    for (int s = 0; s < o.n_shapes; s++) {
        for (int t = 0; t < o.n_types; t++) {
            for (int i = 0; i < o.n_m; i++) {
                struct tnd_kernel_cell cell = {
                    .type = o.types[t], .n = o.shapes[s][0], .k = o.shapes[s][1], .m = o.m[i]};
                if (!tnd_kernel_cell_measure(team, o.threads, &kernels, o.budget_s, &cell)) {
                    fprintf(stderr, "bench-kernels: %s %lldx%lld: no memory, or no such product\n",
                            tandem_type_name(cell.type), (long long)cell.n, (long long)cell.k);
                    continue;
                }
                bool quantized = tandem_type_is_quantized(cell.type);
                for (int layout = 0; layout < TND_LAYOUTS; layout++) {
                    if (cell.layout[layout].samples > 0) {
                        print_cell(&o, &peaks, &cell, layout,
                                   quantized ? kernels.isa_q : kernels.isa_f, first);
                        first = false;
                    }
                }
            }
        }
    }
    printf(strcmp(o.output, "json") == 0 ? "]}\n" : "");
    tnd_team_free(team);
    return 0;
}
