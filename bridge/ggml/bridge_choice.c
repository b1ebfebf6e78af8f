/* SPDX-License-Identifier: MIT
 * Measuring against the host. Its product runs in the buffer type that its loaders would take, and
 * ours as part of a computation in which the host has just used its threads: the change from one
 * thread pool to the other and back is part of our time. */
#include "bridge/ggml/bridge_choice.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bridge/ggml/bridge_compute.h"
#include "bridge/ggml/bridge_host.h"
#include "tandem/tensor.h"

enum { TOKEN_CLASSES = 3, SIZE_CLASSES = 4, ROUNDS = 6 };
static const int64_t TOKENS[TOKEN_CLASSES] = {1, 8, 64};      /* measured */
static const int64_t FROM_TOKENS[TOKEN_CLASSES] = {1, 2, 16}; /* of the class */
static const int64_t FROM_VALUES[SIZE_CLASSES] = {0, INT64_C(1) << 19, INT64_C(1) << 21,
                                                  INT64_C(1) << 23};
static const int64_t MOST_VALUES_MEASURED = INT64_C(12) << 20; /* time; most caches hold less */
static const double BUDGET_S = 3;
static const double NO_LOSS = 1.02; /* what two measurements of one thing differ by */

struct verdict {
    bool is_known;
    bool is_placed;                /* weights where we can use them cost the host nothing */
    bool is_faster[TOKEN_CLASSES]; /* than the host with weights there */
};
/* Least seconds of a product. */
struct times {
    double ours;
    double loaded; /* the host, with weights as its loaders would keep them */
    double plain;  /* the host, with weights where we can use them */
    double tiny;   /* starting the host's threads once more, as each product of ours makes it */
};
/* A product of the host: its weights, what they meet, and a tiny one beside it. */
struct trial {
    struct ggml_context *weights;
    struct ggml_context *others;
    struct ggml_backend_buffer *weight_buffer;
    struct ggml_backend_buffer *other_buffer;
    struct ggml_cgraph *product;
    struct ggml_cgraph *tiny;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct verdict verdicts[TANDEM_TYPE_NUMBERS][SIZE_CLASSES];
static double spent_s;
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

static bool open_host_backend(struct ggml_object *cpu)
{
    if (host_backend == NULL) {
        host_backend = tnd_host.ggml_backend_dev_init(cpu, NULL);
        int n_threads = tnd_bridge_use_own_threads();
        void (*set_n_threads)(struct ggml_object *, int) =
            (void (*)(struct ggml_object *, int))procedure(cpu, "ggml_backend_set_n_threads");
        if (host_backend != NULL && set_n_threads != NULL) {
            set_n_threads(host_backend, n_threads);
        }
    }
    return host_backend != NULL;
}

/* As loaders choose: the first of the CPU's extra buffer types that it can use, else its own. */
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

static bool fill(const struct trial *trial, const struct tnd_product *product,
                 struct ggml_tensor *w)
{
    enum tandem_type type = (enum tandem_type)product->type;
    size_t row_bytes = tandem_type_row_bytes(type, product->k);
    float *values = malloc((size_t)product->k * sizeof(values[0]));
    char *all = malloc(row_bytes * (size_t)product->n);
    bool is_made = values != NULL && all != NULL;
    for (int64_t i = 0; is_made && i < product->k; i++) {
        values[i] = (float)((i * 7919) % 1009) / 1009.0f - 0.5f;
    }
    is_made = is_made && tandem_quantize(type, values, all, product->k) == TANDEM_OK;
    for (int64_t i = 1; is_made && i < product->n; i++) {
        memcpy(all + (size_t)i * row_bytes, all, row_bytes);
    }
    if (is_made) {
        tnd_host.ggml_backend_tensor_set(w, all, 0, row_bytes * (size_t)product->n);
        memset(tnd_host.ggml_backend_buffer_get_base(trial->other_buffer), 0,
               tnd_host.ggml_backend_buffer_get_size(trial->other_buffer));
    }
    free(values);
    free(all);
    return is_made;
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

/* `buft` NULL: the one that the host would take. */
static bool begin_trial(struct trial *out, struct ggml_object *cpu,
                        const struct tnd_product *product, struct ggml_object *buft)
{
    static const struct ggml_init_params small = {1 << 20, NULL, true};
    memset(out, 0, sizeof(*out));
    out->weights = tnd_host.ggml_init(small);
    out->others = tnd_host.ggml_init(small);
    if (out->weights == NULL || out->others == NULL) {
        return false;
    }
    struct ggml_tensor *w =
        tnd_host.ggml_new_tensor_2d(out->weights, (int)product->type, product->k, product->n);
    struct ggml_tensor *x = tnd_host.ggml_new_tensor_2d(out->others, 0, product->k, product->m);
    struct ggml_tensor *a = tnd_host.ggml_new_tensor_2d(out->others, 0, 32, 32);
    struct ggml_tensor *y = tnd_host.ggml_mul_mat(out->others, w, x);
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
    return fill(out, product, w);
}

/* ---- comparing ---- */

static int compute(const struct trial *trial, bool is_ours)
{
    return is_ours ? tnd_bridge_compute(trial->product)
                   : tnd_host.ggml_backend_graph_compute(host_backend, trial->product);
}

/* A product between two tiny ones of the host; at most *io_least. */
static bool time_once(const struct trial *trial, bool is_ours, double *io_least, double *io_tiny)
{
    (void)tnd_host.ggml_backend_graph_compute(host_backend, trial->tiny);
    double begin = now_s();
    int status = compute(trial, is_ours);
    double middle = now_s();
    (void)tnd_host.ggml_backend_graph_compute(host_backend, trial->tiny);
    double end = now_s();
    *io_least = end - begin < *io_least ? end - begin : *io_least;
    *io_tiny = end - middle < *io_tiny ? end - middle : *io_tiny;
    return status == GGML_STATUS_SUCCESS;
}

/* In turns, so that all meet the same disturbances. */
static bool race(const struct trial *loaded, const struct trial *ours, struct times *out)
{
    *out = (struct times){1e9, 1e9, 1e9, 1e9};
    bool is_good = compute(ours, true) == GGML_STATUS_SUCCESS; /* packs and plans */
    for (int i = 0; i < ROUNDS && is_good; i++) {
        is_good = time_once(loaded, false, &out->loaded, &out->tiny) &&
                  time_once(ours, false, &out->plain, &out->tiny) &&
                  time_once(ours, true, &out->ours, &out->tiny);
    }
    out->ours += out->tiny;
    return is_good;
}

static bool measure_one(struct ggml_object *cpu, const struct tnd_product *product,
                        struct times *out)
{
    struct trial loaded;
    struct trial ours;
    struct ggml_object *plain = tnd_host.ggml_backend_cpu_buffer_type();
    bool is_begun = begin_trial(&loaded, cpu, product, NULL);
    is_begun = begin_trial(&ours, cpu, product, plain) && is_begun;
    bool is_good = is_begun && race(&loaded, &ours, out);
    end_trial(&loaded);
    end_trial(&ours);
    if (is_good) {
        tnd_host_log(GGML_LOG_INFO,
                     "%s, %lld x %lld, %lld tokens: %.0f us, the program's own %.0f, or %.0f with "
                     "these weights",
                     tandem_type_name((enum tandem_type)product->type), (long long)product->n,
                     (long long)product->k, (long long)product->m, out->ours * 1e6,
                     out->loaded * 1e6, out->plain * 1e6);
    }
    return is_good;
}

/* Generation must not lose by where weights are, prompts or generation must gain. */
static void judge(struct verdict *out, const struct times *times)
{
    double alone = times[0].ours < times[0].plain ? times[0].ours : times[0].plain;
    bool gains = false;
    for (int i = 0; i < TOKEN_CLASSES; i++) {
        out->is_faster[i] = times[i].ours < times[i].plain;
        gains = gains || times[i].ours < times[i].loaded;
    }
    out->is_placed = gains && alone <= times[0].loaded * NO_LOSS;
}

/* As large as the product, up to what caches do not hold. */
static void measure(struct verdict *verdict, struct ggml_object *cpu,
                    const struct tnd_product *product)
{
    struct tnd_product like = *product;
    int64_t most_n = MOST_VALUES_MEASURED / product->k;
    like.n = product->n <= most_n ? product->n : most_n < 1 ? 1 : most_n;
    struct times times[TOKEN_CLASSES];
    bool is_good = true;
    double begin = now_s();
    for (int i = 0; i < TOKEN_CLASSES && is_good; i++) {
        like.m = TOKENS[i];
        is_good = measure_one(cpu, &like, &times[i]);
    }
    if (is_good) {
        judge(verdict, times);
    }
    spent_s += now_s() - begin;
}

static bool is_wanted_always(void)
{
    const char *wanted = secure_getenv("TANDEM_BRIDGE");
    return wanted != NULL && strcmp(wanted, "always") == 0;
}

static int size_class(const struct tnd_product *product)
{
    int i = SIZE_CLASSES - 1;
    while (i > 0 && product->n * product->k < FROM_VALUES[i]) {
        i--;
    }
    return i;
}

/* Without a CPU backend in the host, or time for more, the next size known of the type must do. */
static const struct verdict *verdict_on(const struct tnd_product *product)
{
    struct verdict *of_type = verdicts[product->type];
    int own = size_class(product);
    struct ggml_object *cpu = NULL;
    if (of_type[own].is_known) {
        return &of_type[own];
    }
    if (spent_s < BUDGET_S) {
        cpu = tnd_host.ggml_backend_dev_by_type(GGML_DEVICE_CPU);
    }
    if (cpu != NULL && open_host_backend(cpu)) {
        measure(&of_type[own], cpu, product);
    } else {
        for (int i = 0; i < SIZE_CLASSES; i++) {
            if (of_type[i].is_known && (i <= own || !of_type[own].is_known)) {
                of_type[own] = of_type[i];
            }
        }
    }
    of_type[own].is_known = true;
    return &of_type[own];
}

bool tnd_choice_takes(const struct tnd_product *product)
{
    bool takes = false;
    if (is_wanted_always()) {
        return true;
    }
    pthread_mutex_lock(&lock);
    const struct verdict *verdict = verdict_on(product);
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
