/* SPDX-License-Identifier: MIT
 * Measures products against the host's kernels, and keeps the times as records of the runtime's
 * table. A verdict is final for the process, so that results have the same bits throughout. The
 * host's product uses the buffer type that its loaders would choose. Ours runs within a computation
 * in which the host has just used its threads: switching between the two thread pools is part of
 * our time. */
#include "bridge/ggml/bridge_choice.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include "bridge/ggml/bridge_budget.h"
#include "bridge/ggml/bridge_compute.h"
#include "bridge/ggml/bridge_host.h"
#include "bridge/ggml/bridge_verdicts.h"
#include "tandem/runtime.h"
#include "tandem/version.h"

enum {
    TOKEN_CLASSES = TND_TOKEN_CLASSES,
    SIZE_CLASSES = TND_SIZE_CLASSES,
    ROUNDS = 6, /* at least, if there is time; more while the verdict is open */
    MOST_ROUNDS = 18,
    WAYS = 3,
    THREAD_NUMBERS = 4,
    ENOUGH = 64 /* number of times from which on more change nothing (tandem_runtime_add_hosted) */
};
static const char *const WAY_NAMES[WAYS] = {"ours", "loaded", "plain"};
static const int64_t TOKENS[TOKEN_CLASSES] = {1, 8, 64};      /* measured for each class */
static const int64_t FROM_TOKENS[TOKEN_CLASSES] = {1, 2, 16}; /* least tokens of each class */
static const int64_t FROM_VALUES[SIZE_CLASSES] = {0, INT64_C(1) << 19, INT64_C(1) << 21,
                                                  INT64_C(1) << 23};
static const int64_t MOST_VALUES_MEASURED = INT64_C(12) << 20; /* time; most caches hold less */
static const double CALM_SWITCHES = 2; /* preemptions of a calm trial, and more per second */
static const double CALM_SWITCHES_PER_S = 20;
#define MOST_S 1.0                     /* limit for measuring per process */
static const double AGAIN_S = 0.3;     /* part of it for products that were measured before */
static const double OLD_S = 24 * 3600; /* updates, other load */

/* Records for one number of threads; hosts often use different ones for prompts and generation. */
struct measured {
    int n_threads; /* 0: unused */
    char program[80];
    struct tnd_bridge_verdict of[TND_PRODUCT_KINDS][TANDEM_TYPE_NUMBERS][SIZE_CLASSES];
};
/* Microseconds per product, round by round. */
struct rounds {
    int n;
    bool is_disturbed;
    float us[WAYS][MOST_ROUNDS];
};
/* A product in the host's graph: its weights, the other operands, and a tiny product. */
struct trial {
    struct ggml_context *weights;
    struct ggml_context *others;
    struct ggml_backend_buffer *weight_buffer;
    struct ggml_backend_buffer *other_buffer;
    struct ggml_cgraph *product;
    struct ggml_cgraph *tiny;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct measured measured[THREAD_NUMBERS];
static struct tnd_bridge_budget budget = {.left_s = MOST_S};
static struct ggml_object *host_backend;

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- the host's side ---- */

static ggml_any_fn procedure(struct ggml_object *cpu, const char *name)
{
    void *reg = tnd_host.ggml_backend_dev_backend_reg(cpu);
    union ggml_word word = {.p = reg != NULL ? tnd_host.ggml_backend_reg_get_proc_address(reg, name)
                                             : NULL};
    return word.fn;
}

static bool open_host_backend(struct ggml_object *cpu, int n_threads)
{
    static int n_threads_now;
    if (host_backend == NULL) {
        host_backend = tnd_host.ggml_backend_dev_init(cpu, NULL);
    }
    if (n_threads != n_threads_now) {
        n_threads_now = n_threads;
        void (*set_n_threads)(struct ggml_object *, int) =
            (void (*)(struct ggml_object *, int))procedure(cpu, "ggml_backend_set_n_threads");
        if (host_backend != NULL && set_n_threads != NULL) {
            set_n_threads(host_backend, n_threads);
        }
    }
    return host_backend != NULL;
}

/* The buffer type that loaders would choose: the first of the CPU's extra buffer types that
 * supports the product, else its default. */
static struct ggml_object *best_buffer_type(struct ggml_object *cpu, struct ggml_tensor *w,
                                            const struct ggml_tensor *y)
{
    typedef struct ggml_object **(*list_fn)(struct ggml_object *);
    list_fn list = (list_fn)procedure(cpu, "ggml_backend_dev_get_extra_bufts");
    struct ggml_object **bufts = list != NULL ? list(cpu) : NULL;
    for (; bufts != NULL && *bufts != NULL; bufts++) {
        w->buffer = tnd_host.ggml_backend_buft_alloc_buffer(*bufts, 0);
        bool serves = w->buffer != NULL && tnd_host.ggml_backend_dev_supports_op(cpu, y);
        if (w->buffer != NULL) {
            tnd_host.ggml_backend_buffer_free(w->buffer);
            w->buffer = NULL;
        }
        if (serves) {
            return *bufts;
        }
    }
    return tnd_host.ggml_backend_cpu_buffer_type();
}

/* Fills weights; all rows are equal. */
static bool fill_weights(const struct tnd_product *product, struct ggml_tensor *w)
{
    enum tandem_type type = (enum tandem_type)product->type;
    size_t row_bytes = tandem_type_row_bytes(type, product->k);
    size_t bytes = tnd_product_w_bytes(product);
    float *values = malloc((size_t)product->k * sizeof(values[0]));
    char *all = malloc(bytes);
    bool is_made = values != NULL && all != NULL;
    for (int64_t i = 0; is_made && i < product->k; i++) {
        values[i] = (float)((i * 7919) % 1009) / 1009.0f - 0.5f;
    }
    is_made = is_made && tandem_quantize(type, values, all, product->k) == TANDEM_OK;
    for (size_t at = row_bytes; is_made && at < bytes; at += row_bytes) {
        memcpy(all + at, all, row_bytes);
    }
    if (is_made) {
        tnd_host.ggml_backend_tensor_set(w, all, 0, bytes);
    }
    free(values);
    free(all);
    return is_made;
}

/* Fills expert ids so that all experts are used equally often. */
static bool fill_ids(const struct tnd_product *product, struct ggml_tensor *ids)
{
    int64_t n = product->n_used * product->m;
    int32_t *values = malloc((size_t)n * sizeof(values[0]));
    for (int64_t i = 0; values != NULL && i < n; i++) {
        values[i] = (int32_t)(i % product->n_experts);
    }
    if (values != NULL) {
        tnd_host.ggml_backend_tensor_set(ids, values, 0, (size_t)n * sizeof(values[0]));
    }
    free(values);
    return values != NULL;
}

static void end_trial(struct trial *trial)
{
    if (trial->weight_buffer != NULL) {
        tnd_host.ggml_backend_buffer_free(trial->weight_buffer);
    }
    if (trial->other_buffer != NULL) {
        tnd_host.ggml_backend_buffer_free(trial->other_buffer);
    }
    if (trial->weights != NULL) {
        tnd_host.ggml_free(trial->weights);
    }
    if (trial->others != NULL) {
        tnd_host.ggml_free(trial->others);
    }
}

static struct ggml_cgraph *graph_of(struct ggml_context *context, struct ggml_tensor *result)
{
    struct ggml_cgraph *graph = tnd_host.ggml_new_graph(context);
    if (graph != NULL) {
        tnd_host.ggml_build_forward_expand(graph, result);
    }
    return graph;
}

/* Builds a node of the product, over tensors without memory. */
static struct ggml_tensor *new_product(const struct trial *trial, const struct tnd_product *product,
                                       struct ggml_tensor **out_w, struct ggml_tensor **out_ids)
{
    int type = (int)product->type;
    *out_ids = NULL;
    if (product->n_experts == 0) {
        *out_w = tnd_host.ggml_new_tensor_2d(trial->weights, type, product->k, product->n);
        return tnd_host.ggml_mul_mat(
            trial->others, *out_w,
            tnd_host.ggml_new_tensor_2d(trial->others, 0, product->k, product->m));
    }
    *out_w = tnd_host.ggml_new_tensor_3d(trial->weights, type, product->k, product->n,
                                         product->n_experts);
    *out_ids =
        tnd_host.ggml_new_tensor_2d(trial->others, TANDEM_TYPE_I32, product->n_used, product->m);
    return tnd_host.ggml_mul_mat_id(
        trial->others, *out_w,
        tnd_host.ggml_new_tensor_3d(trial->others, 0, product->k, product->n_used_x, product->m),
        *out_ids);
}

/* `buft` NULL: the buffer type that the host would choose. */
static bool begin_trial(struct trial *out, struct ggml_object *cpu,
                        const struct tnd_product *product, struct ggml_object *buft)
{
    static const struct ggml_init_params small = {1 << 20, NULL, true};
    struct ggml_tensor *w;
    struct ggml_tensor *ids;
    memset(out, 0, sizeof(*out));
    out->weights = tnd_host.ggml_init(small);
    out->others = tnd_host.ggml_init(small);
    if (out->weights == NULL || out->others == NULL) {
        return false;
    }
    struct ggml_tensor *y = new_product(out, product, &w, &ids);
    struct ggml_tensor *a = tnd_host.ggml_new_tensor_2d(out->others, 0, 32, 1);
    struct ggml_tensor *b = tnd_host.ggml_mul_mat(out->others, a, a);
    out->product = graph_of(out->others, y);
    out->tiny = graph_of(out->others, b);
    buft = buft != NULL ? buft : best_buffer_type(cpu, w, y);
    out->weight_buffer = tnd_host.ggml_backend_alloc_ctx_tensors_from_buft(out->weights, buft);
    out->other_buffer = tnd_host.ggml_backend_alloc_ctx_tensors_from_buft(
        out->others, tnd_host.ggml_backend_cpu_buffer_type());
    if (out->product == NULL || out->tiny == NULL || out->weight_buffer == NULL ||
        out->other_buffer == NULL) {
        return false;
    }
    tnd_host.ggml_backend_buffer_set_usage(out->weight_buffer, GGML_USAGE_WEIGHTS);
    memset(tnd_host.ggml_backend_buffer_get_base(out->other_buffer), 0,
           tnd_host.ggml_backend_buffer_get_size(out->other_buffer));
    return fill_weights(product, w) && (ids == NULL || fill_ids(product, ids));
}

/* ---- measuring ---- */

static int compute(const struct trial *trial, bool is_ours)
{
    return is_ours ? tnd_bridge_compute(trial->product, true)
                   : tnd_host.ggml_backend_graph_compute(host_backend, trial->product);
}

/* Times a product between two tiny ones of the host; *out_s includes the second tiny one,
 * *out_tiny_s is a tiny one alone. */
static bool time_once(const struct trial *trial, bool is_ours, double *out_s, double *out_tiny_s)
{
    (void)tnd_host.ggml_backend_graph_compute(host_backend, trial->tiny);
    double begin = now_s();
    int status = compute(trial, is_ours);
    double middle = now_s();
    (void)tnd_host.ggml_backend_graph_compute(host_backend, trial->tiny);
    double end = now_s();
    *out_s = end - begin;
    *out_tiny_s = end - middle;
    return status == GGML_STATUS_SUCCESS;
}

/* Number of involuntary context switches of this process. */
static double count_switches(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (double)usage.ru_nivcsw : 0;
}

static void judge_rounds(const struct rounds *rounds, struct tnd_bridge_times *out)
{
    struct tnd_bridge_time *of[WAYS] = {&out->ours, &out->loaded, &out->plain};
    for (int i = 0; i < WAYS; i++) {
        of[i]->us = tandem_judge_times(rounds->us[i], rounds->n, &of[i]->error_us);
    }
}

/* Times both alternately, so that disturbances affect both. At least one round, more while time is
 * left: threads that wait for each other beside busy programs can take 100 times as long, which
 * only a clock limits. */
static bool race(const struct trial *loaded, const struct trial *ours, struct rounds *out)
{
    bool is_good = compute(ours, true) == GGML_STATUS_SUCCESS; /* packs and plans */
    const double switches = count_switches();
    const double begin = now_s();
    bool is_open = true;
    out->n = 0;
    for (double now = begin;
         out->n < MOST_ROUNDS && is_good && is_open &&
         (out->n == 0 || tnd_budget_allows(&budget, now, (now - begin) / out->n));
         now = now_s()) {
        double s[WAYS];
        double tiny_s = 0;
        double other_tiny_s;
        struct tnd_bridge_times times;
        is_good = time_once(loaded, false, &s[1], &other_tiny_s) &&
                  time_once(ours, false, &s[2], &other_tiny_s) &&
                  time_once(ours, true, &s[0], &tiny_s);
        if (!is_good) {
            break;
        }
        s[0] += tiny_s;
        for (int i = 0; i < WAYS; i++) {
            out->us[i][out->n] = (float)(s[i] * 1e6);
        }
        out->n++;
        judge_rounds(out, &times);
        is_open = out->n < ROUNDS || !tnd_times_are_settled(&times);
    }
    out->is_disturbed =
        count_switches() - switches > CALM_SWITCHES + CALM_SWITCHES_PER_S * (now_s() - begin);
    return is_good;
}

static bool measure_one(struct ggml_object *cpu, const struct tnd_product *product,
                        struct rounds *out)
{
    struct trial loaded;
    struct trial ours;
    struct ggml_object *plain = tnd_host.ggml_backend_cpu_buffer_type();
    bool is_begun = begin_trial(&loaded, cpu, product, NULL);
    is_begun = begin_trial(&ours, cpu, product, plain) && is_begun;
    bool is_good = is_begun && race(&loaded, &ours, out);
    end_trial(&loaded);
    end_trial(&ours);
    return is_good;
}

static void tell(const struct tnd_product *product, const struct rounds *rounds)
{
    struct tnd_bridge_times times;
    judge_rounds(rounds, &times);
    tnd_host_log(GGML_LOG_INFO,
                 "%s, %lld x %lld%s, %lld tokens: %.0f +- %.0f us, the program's own %.0f +- %.0f, "
                 "or %.0f +- %.0f with these weights%s",
                 tandem_type_name((enum tandem_type)product->type), (long long)product->n,
                 (long long)product->k, product->n_experts > 0 ? " of experts" : "",
                 (long long)product->m, times.ours.us, times.ours.error_us, times.loaded.us,
                 times.loaded.error_us, times.plain.us, times.plain.error_us,
                 rounds->is_disturbed ? "; disturbed" : "");
}

/* A product like this one for measuring: at most as large as exceeds caches; with experts, only as
 * many as needed for that, but at least those that a token uses. */
static struct tnd_product product_like(const struct tnd_product *product)
{
    struct tnd_product like = *product;
    int64_t most_n = MOST_VALUES_MEASURED / product->k;
    int64_t n_least = product->n_experts > 0 ? product->n_used : 1;
    most_n = most_n / n_least < 1 ? 1 : most_n / n_least;
    like.n = product->n <= most_n ? product->n : most_n;
    if (product->n_experts > 0) {
        int64_t most = MOST_VALUES_MEASURED / (like.n * like.k);
        most = most < product->n_used ? product->n_used : most;
        like.n_experts = product->n_experts <= most ? product->n_experts : most;
    }
    return like;
}

/* ---- records ---- */

static struct tandem_hosted_time record_of(const struct measured *of_threads,
                                           const struct tnd_product *like, int64_t m, int way)
{
    struct tandem_hosted_time one = TANDEM_HOSTED_TIME_INIT;
    one.program = of_threads->program;
    one.kernels = WAY_NAMES[way];
    one.type = (enum tandem_type)like->type;
    one.n = like->n;
    one.k = like->k;
    one.m = m;
    one.experts = like->n_experts;
    one.used = like->n_used;
    one.threads = of_threads->n_threads;
    return one;
}

/* Looks up times in the table. Returns whether they should be measured (again): missing (then also
 * `out_is_new`), too few to decide, disturbed, or old. */
static bool find_times(const struct measured *of_threads, const struct tnd_product *like,
                       struct tnd_bridge_verdict *out, bool *out_is_new)
{
    struct tnd_bridge_times times[TOKEN_CLASSES];
    memset(times, 0, sizeof(times));
    int least = ENOUGH;
    bool is_stale = false;
    *out_is_new = false;
    for (int i = 0; i < TOKEN_CLASSES; i++) {
        struct tnd_bridge_time *of[WAYS] = {&times[i].ours, &times[i].loaded, &times[i].plain};
        for (int way = 0; way < WAYS; way++) {
            struct tandem_hosted_time one = record_of(of_threads, like, TOKENS[i], way);
            if (tandem_runtime_find_hosted(tnd_bridge_runtime(), &one, NULL) != TANDEM_OK) {
                *out_is_new = true;
                continue;
            }
            *of[way] = (struct tnd_bridge_time){one.time_us, one.error_us};
            least = one.count < least ? one.count : least;
            is_stale = is_stale || one.disturbed || one.age_s > OLD_S;
        }
    }
    const bool is_over = tnd_verdict_judge(out, (enum tandem_type)like->type, times);
    return *out_is_new || is_stale || (!is_over && least < ENOUGH);
}

static void measure(const struct measured *of_threads, struct ggml_object *cpu,
                    const struct tnd_product *product, bool is_fresh)
{
    struct tnd_product like = *product;
    struct rounds rounds[TOKEN_CLASSES];
    struct tandem_hosted_time records[TOKEN_CLASSES * WAYS];
    struct tandem_error error = {0};
    int n = 0;
    double class_s = 0;
    tnd_budget_begin(&budget, now_s());
    for (int i = 0; i < TOKEN_CLASSES; i++) {
        const double begin = now_s();
        like.m = TOKENS[i];
        if ((i > 0 && !tnd_budget_allows(&budget, begin, class_s)) ||
            !measure_one(cpu, &like, &rounds[i])) {
            break; /* the rule has to do */
        }
        class_s = now_s() - begin;
        tell(&like, &rounds[i]);
        for (int way = 0; way < WAYS; way++) {
            struct tandem_hosted_time *one = &records[n++];
            *one = record_of(of_threads, &like, like.m, way);
            one->us = rounds[i].us[way];
            one->n_us = rounds[i].n;
            one->disturbed = rounds[i].is_disturbed;
        }
    }
    if (n > 0 && tandem_runtime_add_hosted(tnd_bridge_runtime(), records, n, is_fresh, &error) !=
                     TANDEM_OK) {
        tnd_host_log(GGML_LOG_WARN, "what was measured is not kept: %s", error.text);
    }
    tnd_budget_end(&budget, now_s());
}

/* ---- what the times depend on ---- */

/* Identity of a file: size and time of modification. */
static void print_file(const char *path, char *out, size_t n)
{
    struct stat status;
    if (path != NULL && stat(path, &status) == 0) {
        (void)snprintf(out, n, "%lld bytes of %lld", (long long)status.st_size,
                       (long long)status.st_mtime);
    } else {
        (void)snprintf(out, n, "none");
    }
}

/* Identifies this library, the host, and the library with its kernels. */
static void print_program(struct ggml_object *cpu, char out[80])
{
    Dl_info info = {.dli_fname = NULL};
    char kernels[48];
    bool is_found = dladdr(cpu->word[DEVICE_GET_NAME].p, &info) != 0;
    print_file(is_found ? info.dli_fname : NULL, kernels, sizeof(kernels));
    (void)snprintf(out, 80, "%.12s in ggml %.14s, %s", tandem_version(), tnd_host.ggml_version(),
                   kernels);
    for (char *at = out; *at != '\0'; at++) {
        *at = *at >= ' ' && *at <= '~' ? *at : '?';
    }
}

/* The record set for the host's present number of threads. */
static struct measured *measured_now(struct ggml_object *cpu)
{
    struct tandem_runtime_info machine = TANDEM_RUNTIME_INFO_INIT;
    int n_threads = tnd_bridge_describe(&machine);
    struct measured *of_threads = measured;
    while (of_threads->n_threads != n_threads && of_threads->n_threads != 0 &&
           of_threads < &measured[THREAD_NUMBERS - 1]) {
        of_threads++;
    }
    if (of_threads->n_threads == 0 && n_threads > 0) {
        of_threads->n_threads = n_threads;
        if (cpu != NULL) {
            print_program(cpu, of_threads->program);
        }
    }
    return of_threads;
}

/* ---- the choice ---- */

static bool is_wanted(const char *word)
{
    const char *wanted = secure_getenv("TANDEM_BRIDGE");
    return wanted != NULL && strcmp(wanted, word) == 0;
}

static int size_class(const struct tnd_product *product)
{
    int i = SIZE_CLASSES - 1;
    while (i > 0 && product->n * product->k < FROM_VALUES[i]) {
        i--;
    }
    return i;
}

/* Decides by the times of the first product of its kind in this process, which are measured again
 * if they leave doubts; by the rule if the host has no CPU backend or there is no time to measure.
 * TANDEM_BRIDGE=measured: ignores earlier times. */
static void decide(struct tnd_bridge_verdict *out, const struct tnd_product *product,
                   struct ggml_object *cpu, const struct measured *of_threads)
{
    static const struct tnd_bridge_times nothing[TOKEN_CLASSES];
    const struct tnd_product like = product_like(product);
    bool is_new;
    (void)tnd_verdict_judge(out, (enum tandem_type)product->type, nothing);
    if (cpu != NULL && of_threads->n_threads > 0) {
        const bool is_fresh = is_wanted("measured");
        const bool is_due = find_times(of_threads, &like, out, &is_new) || is_fresh;
        const double reserve_s = is_new || is_fresh ? 0 : MOST_S - AGAIN_S;
        budget.left_s -= reserve_s; /* reserved for products that were never measured */
        if (is_due && tnd_budget_is_left(&budget) &&
            open_host_backend(cpu, of_threads->n_threads)) {
            measure(of_threads, cpu, &like, is_fresh);
            (void)find_times(of_threads, &like, out, &is_new);
        }
        budget.left_s += reserve_s;
    }
    out->is_known = true;
}

static const struct tnd_bridge_verdict *verdict_on(const struct tnd_product *product)
{
    struct ggml_object *cpu = tnd_host.ggml_backend_dev_by_type(GGML_DEVICE_CPU);
    struct measured *of_threads = measured_now(cpu);
    int kind = tnd_verdicts_kind(product->n_experts > 0, product->k);
    struct tnd_bridge_verdict *own = &of_threads->of[kind][product->type][size_class(product)];
    if (!own->is_known) {
        decide(own, product, cpu, of_threads);
    }
    return own;
}

bool tnd_choice_takes(const struct tnd_product *product)
{
    bool takes = false;
    if (tnd_bridge_runtime() == NULL) {
        return false; /* the host computes it itself */
    }
    if (is_wanted("always")) {
        return true;
    }
    pthread_mutex_lock(&lock);
    const struct tnd_bridge_verdict *verdict = verdict_on(product);
    if (product->w == NULL) {
        takes = verdict->is_placed;
    } else {
        int i = TOKEN_CLASSES - 1;
        while (i > 0 && product->m < FROM_TOKENS[i]) {
            i--;
        }
        takes = verdict->is_faster[i];
    }
    pthread_mutex_unlock(&lock);
    return takes;
}
