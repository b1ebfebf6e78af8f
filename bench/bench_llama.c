/* SPDX-License-Identifier: MIT
 * bench-llama: prompts and generation of a synthetic 1.1B llama as shares of this machine's limits:
 * the peak of int8 dot products, and the read bandwidth over as many bytes as the weights have.
 * Peaks and model take turns each round, so that a share does not depend on the load of other
 * programs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/cpu.h"
#include "bench/team.h"
#include "backends/cpu/kernels/peak.h"
#include "tandem/formats.h"
#include "tandem/llama.h"

enum { LIST_MAX = 16, ROUNDS_MAX = 200, PEAK_PASSES = 9, HUGE_PAGE = 2 << 20 };

static const struct tandem_llama_shape shape = {.size = sizeof(struct tandem_llama_shape),
                                                .dim = 2048,
                                                .hidden = 5632,
                                                .layers = 22,
                                                .heads = 32,
                                                .kv_heads = 4,
                                                .vocabulary = 32000,
                                                .context = 2048};

struct options {
    enum tandem_type type;
    const char *profile;
    int prompts[LIST_MAX];
    int n_prompts;
    int generated; /* tokens of one sample */
    int threads;
    int rounds;
};

/* One of the things measured in turns, with a sample of each round. */
struct series {
    double rate[ROUNDS_MAX];  /* tokens a second */
    double share[ROUNDS_MAX]; /* of the peak of the same round */
};

struct bench {
    struct options options;
    tandem_source *source;
    tandem_model *model;
    tandem_runtime *runtime;
    tandem_session *session;
    struct tnd_peaks peaks;
    char *memory; /* as many bytes as the weights that a token reads */
    size_t bytes;
    bool reads;
    int n_streams;            /* of each thread that reads */
    int won[TND_READ_TRIALS]; /* rounds in which this many streams read fastest */
    double done[LIST_MAX];
    int64_t sink[LIST_MAX]; /* keeps the compiler from dropping the reads */
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Multiply-adds of a token: in the layers, and (below) for its logits. */
static double layer_products(void)
{
    const double kv_dim = (double)(shape.dim / shape.heads * shape.kv_heads);
    const double dim = (double)shape.dim;
    return (double)shape.layers * dim * (2 * dim + 2 * kv_dim + 3 * (double)shape.hidden);
}

static double output_products(void)
{
    return (double)shape.dim * (double)shape.vocabulary;
}

/* ---- peaks ---- */

static void peak_main(void *user, struct tandem_worker *worker)
{
    struct bench *bench = user;
    const int i = worker->index;
    if (!bench->reads) {
        bench->done[i] = bench->peaks.int8(1000000);
        return;
    }
    const size_t part = bench->bytes / (size_t)worker->count / 64 * 64;
    bench->sink[i] = tnd_read_streams(bench->peaks.read, bench->memory + (size_t)i * part, part,
                                      bench->n_streams);
    bench->done[i] = (double)part;
}

/* Operations or bytes a second: the best of a few passes, the first of which wakes the threads. */
static enum tandem_status measure_peak(struct bench *bench, bool reads, double *out_rate)
{
    double best = 0;
    int fastest = 0;
    tandem_runtime_pause(bench->runtime); /* the runtime's workers leave the CPUs to the team */
    tnd_team *team = tnd_team_new(bench->options.threads, 64);
    if (team == NULL) {
        return TANDEM_E_MEMORY;
    }
    bench->reads = reads;
    for (int pass = 0; pass < PEAK_PASSES; pass++) {
        double done = 0;
        bench->n_streams = TND_READ_STREAMS[pass % TND_READ_TRIALS];
        const double begin = now();
        tnd_team_run(team, peak_main, bench);
        const double seconds = now() - begin;
        for (int i = 0; i < bench->options.threads; i++) {
            done += bench->done[i];
        }
        if (done / seconds > best) {
            best = done / seconds;
            fastest = pass % TND_READ_TRIALS;
        }
    }
    bench->won[fastest] += reads;
    tandem_runtime_resume(bench->runtime);
    tnd_team_free(team);
    *out_rate = best;
    return TANDEM_OK;
}

/* ---- the model ---- */

static enum tandem_status feed(struct bench *bench, int n, int batch, double *out_seconds,
                               struct tandem_error *error)
{
    int32_t tokens[4096];
    for (int i = 0; i < n; i++) {
        tokens[i] = (int32_t)((i * 7919 + 1) % shape.vocabulary);
    }
    tandem_session_rollback(bench->session, 0, 0);
    const double begin = now();
    const enum tandem_status status =
        tandem_session_decode(bench->session, tokens, n, batch, error);
    *out_seconds = now() - begin;
    return status;
}

/* Row 0 .. n_prompts - 1: prompts, beside the int8 peak; the last one: generation, beside reading.
 * out_int8, out_read: as measured last. */
static enum tandem_status run_round(struct bench *bench, int round, struct series *rows,
                                    double *out_int8, double *out_read, struct tandem_error *error)
{
    const struct options *o = &bench->options;
    for (int r = 0; r <= o->n_prompts; r++) {
        const bool is_prompt = r < o->n_prompts;
        const int n = is_prompt ? o->prompts[r] : o->generated;
        double seconds;
        double *peak = is_prompt ? out_int8 : out_read;
        enum tandem_status status = measure_peak(bench, !is_prompt, peak);
        if (status == TANDEM_OK) { /* wakes the workers */
            status = feed(bench, is_prompt ? 8 : 2, is_prompt ? 0 : 1, &seconds, error);
        }
        if (status == TANDEM_OK) {
            status = feed(bench, n, is_prompt ? 0 : 1, &seconds, error);
        }
        if (status != TANDEM_OK) {
            return status;
        }
        const double operations = 2 * (n * layer_products() + output_products());
        rows[r].rate[round] = n / seconds;
        rows[r].share[round] =
            (is_prompt ? operations : n * (double)bench->bytes) / seconds / *peak;
    }
    return TANDEM_OK;
}

static enum tandem_status open_model(struct bench *bench, struct tandem_error *error)
{
    const struct options *o = &bench->options;
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    const struct tandem_session_options session = {.size = sizeof(session),
                                                   .context = shape.context};
    options.n_threads = o->threads;
    options.profile = o->profile;
    options.table_path = "";
    enum tandem_status status = tandem_source_synthesize(&shape, o->type, 1, &bench->source, error);
    if (status == TANDEM_OK) {
        status = tandem_model_new(bench->source, &bench->model, error);
    }
    if (status == TANDEM_OK) {
        status = tandem_runtime_open(&options, &bench->runtime, error);
    }
    if (status == TANDEM_OK) {
        status = tandem_session_new(bench->model, bench->runtime, &session, &bench->session, error);
    }
    return status;
}

static bool take_memory(struct bench *bench)
{
    const double values = layer_products() + output_products();
    bench->bytes = (size_t)(values / 256) * tandem_type_row_bytes(bench->options.type, 256);
    bench->memory = aligned_alloc(HUGE_PAGE, (bench->bytes / HUGE_PAGE + 1) * HUGE_PAGE);
    if (bench->memory == NULL) {
        return false;
    }
    (void)madvise(bench->memory, bench->bytes, MADV_HUGEPAGE);
    memset(bench->memory, 1, bench->bytes);
    return true;
}

static void close_model(struct bench *bench)
{
    tandem_session_free(bench->session);
    tandem_runtime_close(bench->runtime);
    tandem_model_free(bench->model);
    tandem_source_close(bench->source);
    free(bench->memory);
}

/* ---- output ---- */

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_row(const struct bench *bench, int r, struct series *row)
{
    const struct options *o = &bench->options;
    const bool is_prompt = r < o->n_prompts;
    const int n = o->rounds;
    qsort(row->rate, (size_t)n, sizeof(row->rate[0]), compare_doubles);
    qsort(row->share, (size_t)n, sizeof(row->share[0]), compare_doubles);
    printf("| %s %d | %.1f | %.1f | %.1f %% | %.1f .. %.1f %% | %s |\n",
           is_prompt ? "prompt" : "generation", is_prompt ? o->prompts[r] : o->generated,
           row->rate[n / 2], row->rate[n - 1], 100 * row->share[n / 2], 100 * row->share[n / 4],
           100 * row->share[3 * n / 4], is_prompt ? bench->peaks.int8_unit : "read bandwidth");
}

static int most_won(const struct bench *bench)
{
    int most = 0;
    for (int i = 1; i < TND_READ_TRIALS; i++) {
        most = bench->won[i] > bench->won[most] ? i : most;
    }
    return most;
}

static void print(const struct bench *bench, struct series *rows, double *int8, double *read)
{
    const struct options *o = &bench->options;
    qsort(int8, (size_t)o->rounds, sizeof(int8[0]), compare_doubles);
    qsort(read, (size_t)o->rounds, sizeof(read[0]), compare_doubles);
    printf("%s, %d threads, %s; 1.1B llama in %s (%.0f MB read for a token), %s, %d rounds\n\n"
           "peaks, median of the rounds: %s %.0f GOP/s, read %.1f GB/s (mostly fastest in %d "
           "streams a thread)\n\n"
           "| test | tokens/s, median | best | share, median | quartiles | of |\n"
           "|---|---|---|---|---|---|\n",
           tnd_cpu_model(), o->threads, tnd_cpu_isa_name(tnd_cpu_features()),
           tandem_type_name(o->type), 1e-6 * (double)bench->bytes, o->profile, o->rounds,
           bench->peaks.int8_unit, 1e-9 * int8[o->rounds / 2], 1e-9 * read[o->rounds / 2],
           TND_READ_STREAMS[most_won(bench)]);
    for (int r = 0; r <= o->n_prompts; r++) {
        print_row(bench, r, &rows[r]);
    }
}

/* ---- arguments ---- */

static const char usage[] =
    "A synthetic 1.1B llama as shares of this machine's own peaks, measured in turns.\n"
    "bench-llama [--type T] [--prompt M,..] [--gen N] [--threads N] [--rounds N]\n"
    "            [--profile NAME]\n"
    "Defaults: q4_0, prompts of 32,128,512 tokens, 16 generated tokens, one thread a CPU,\n"
    "15 rounds, cpu-packed. Shares: of the int8 dot product's peak (prompts), and of the\n"
    "bandwidth at which as many bytes as the weights are read (generation).\n";

static bool parse_prompts(const char *text, struct options *o)
{
    char copy[256];
    bool good = true;
    snprintf(copy, sizeof(copy), "%s", text);
    o->n_prompts = 0;
    for (char *w = strtok(copy, ","); w != NULL && good; w = strtok(NULL, ",")) {
        const int m = atoi(w);
        good = o->n_prompts < LIST_MAX - 1 && m >= 1 && m <= shape.context;
        o->prompts[o->n_prompts++] = m;
    }
    return good;
}

static bool parse_arguments(int argc, char **argv, struct options *o)
{
    for (int i = 1; i < argc; i += 2) {
        bool good = i + 1 < argc;
        const char *value = good ? argv[i + 1] : "";
        if (strcmp(argv[i], "--type") == 0) {
            good = good && tandem_type_from_name(value, &o->type);
        } else if (strcmp(argv[i], "--prompt") == 0) {
            good = good && parse_prompts(value, o);
        } else if (strcmp(argv[i], "--gen") == 0) {
            o->generated = atoi(value);
            good = o->generated >= 1 && o->generated <= shape.context;
        } else if (strcmp(argv[i], "--threads") == 0) {
            o->threads = atoi(value);
            good = o->threads >= 1 && o->threads <= LIST_MAX;
        } else if (strcmp(argv[i], "--rounds") == 0) {
            o->rounds = atoi(value);
            good = o->rounds >= 1 && o->rounds <= ROUNDS_MAX;
        } else if (strcmp(argv[i], "--profile") == 0) {
            o->profile = value;
        } else {
            good = false;
        }
        if (!good) {
            fprintf(stderr, "bench-llama: wrong argument '%s %s'\n%s", argv[i], value, usage);
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    static struct series rows[LIST_MAX];
    static double int8[ROUNDS_MAX];
    static double read[ROUNDS_MAX];
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        fputs(usage, stdout);
        return 0;
    }
    const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    struct bench bench = {.options = {.type = TANDEM_TYPE_Q4_0,
                                      .profile = "cpu-packed",
                                      .prompts = {32, 128, 512},
                                      .n_prompts = 3,
                                      .generated = 16,
                                      .threads = cpus < 1          ? 1
                                                 : cpus > LIST_MAX ? LIST_MAX
                                                                   : (int)cpus,
                                      .rounds = 15},
                          .peaks = tnd_peaks_find()};
    struct tandem_error error = {0};
    if (!parse_arguments(argc, argv, &bench.options)) {
        return 2;
    }
    enum tandem_status status = open_model(&bench, &error);
    if (status == TANDEM_OK && !take_memory(&bench)) {
        status = TANDEM_E_MEMORY;
    }
    for (int round = -1; round < bench.options.rounds && status == TANDEM_OK; round++) {
        const int at = round < 0 ? 0 : round; /* the first one packs the weights */
        status = run_round(&bench, at, rows, &int8[at], &read[at], &error);
    }
    if (status == TANDEM_OK) {
        print(&bench, rows, int8, read);
    } else {
        fprintf(stderr, "bench-llama: %s\n",
                error.text[0] != '\0' ? error.text : tandem_status_text(status));
    }
    close_model(&bench);
    return status == TANDEM_OK ? 0 : 1;
}
