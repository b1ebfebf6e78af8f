/* SPDX-License-Identifier: MIT
 * usage: bridge-host-VERSION LIBGGML_TANDEM.so
 * Loads the bridge into the small host and holds its products against double precision, what it
 * must leave to the host, and that freed weights are forgotten. Prints "N passed, N failed". */
#include <dirent.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bridge/ggml/bridge_verdicts.h"
#include "tandem/tensor.h"
#include "tests/bridge/bridge_check.h"
#include "tests/bridge/nodes.h"
#include "tests/bridge/pace.h"

/* ---- what is computed ---- */

static void products_of_a_type_are_right(int type)
{
    static const int64_t ms[] = {1, 2, 7, 64};
    const char *name = tandem_type_name((enum tandem_type)type);
    struct tensor w = matrix(type, K, N, NULL, 0);
    struct buffer *buffer =
        small_host_buffer(device->get_buffer_type(device), w.nb[1] * N, USAGE_WEIGHTS);
    w = matrix(type, K, N, buffer, 0);
    fill_weights(&w);
    for (size_t j = 0; j < sizeof(ms) / sizeof(ms[0]); j++) {
        struct tensor x = matrix(TANDEM_TYPE_F32, K, ms[j], activations, 0);
        struct tensor y = product(&w, &x, activations, Y_AT);
        struct tensor *nodes[] = {&y};
        fill(x.data, K * ms[j]);
        CHECK(device->supports_op(device, &y), "%s, M %d", name, (int)ms[j]);
        for (int again = 0; again < 2; again++) {
            memset(y.data, 0xff, sizeof(float) * N * (size_t)ms[j]);
            CHECK(compute(nodes, 1) == 0, "%s", small_host_last_line());
            double error = error_of(&y);
            CHECK(error < 2e-4, "%s, M %d: %g", name, (int)ms[j], error);
        }
    }
    small_host_free(buffer);
}

static void products_of_every_type_are_right(void)
{
    for (int i = 0; i < TYPES; i++) {
        products_of_a_type_are_right(bridge_types[i]);
    }
}

/* Weights for the experts of a layer, of which tokens use 2 of 5; the numbers of experts are the
 * beginnings of longer rows, as hosts have them. */
enum { EXPERTS = 5, USED = 2, ID_ROW = 5 };
struct experts {
    struct buffer *buffer;
    struct tensor w, x, ids, y;
    int32_t numbers[MOST_M * ID_ROW];
};

static void make_experts(struct experts *out, int type, int64_t m, int64_t rows_of_x)
{
    memset(out, 0, sizeof(*out));
    struct tensor w = matrix(type, K, N, NULL, 0);
    out->buffer =
        small_host_buffer(device->get_buffer_type(device), w.nb[1] * N * EXPERTS, USAGE_WEIGHTS);
    out->w = small_host_tensor(type, (const int64_t[]){K, N, EXPERTS, 1}, out->buffer, 0);
    out->x = small_host_tensor(0, (const int64_t[]){K, rows_of_x, m, 1}, activations, 0);
    out->y = small_host_tensor(0, (const int64_t[]){N, USED, m, 1}, activations, Y_AT);
    out->ids = small_host_tensor(TANDEM_TYPE_I32, (const int64_t[]){USED, m, 1, 1}, NULL, 0);
    out->ids.nb[1] = sizeof(int32_t) * ID_ROW;
    out->ids.nb[2] = out->ids.nb[1] * (size_t)m;
    out->ids.nb[3] = out->ids.nb[2];
    out->ids.data = out->numbers;
    out->ids.buffer = device->buffer_from_host_ptr(device, out->numbers, sizeof(out->numbers),
                                                   sizeof(out->numbers));
    out->y.op = OP_MUL_MAT_ID;
    out->y.src[0] = &out->w;
    out->y.src[1] = &out->x;
    out->y.src[2] = &out->ids;
    struct tensor all =
        small_host_tensor(type, (const int64_t[]){K, N * EXPERTS, 1, 1}, out->buffer, 0);
    fill_weights(&all);
    fill(out->x.data, K * rows_of_x * m);
    for (int64_t i = 0; i < m * ID_ROW; i++) {
        out->numbers[i] = (int32_t)((i % ID_ROW + i / ID_ROW * 2) % (EXPERTS - 1)); /* not 4 */
    }
}

static void free_experts(struct experts *experts)
{
    small_host_free(experts->ids.buffer);
    small_host_free(experts->buffer);
}

/* As error_of. */
static double error_of_experts(const struct experts *experts)
{
    static float row[K];
    const struct tensor *w = &experts->w;
    double wrong = 0;
    double all = 0;
    for (int64_t i = 0; i < experts->ids.ne[1] * USED * N; i++) {
        int64_t n = i % N;
        int64_t u = i / N % USED;
        int64_t m = i / N / USED;
        size_t at = w->nb[2] * (size_t)experts->numbers[m * ID_ROW + u] + w->nb[1] * (size_t)n;
        (void)tandem_dequantize((enum tandem_type)w->type, (const char *)w->data + at, row, K);
        const float *x =
            (const float *)experts->x.data + (m * experts->x.ne[1] + u % experts->x.ne[1]) * K;
        double sum = 0;
        for (int64_t k = 0; k < K; k++) {
            sum += (double)row[k] * (double)x[k];
        }
        double got = (double)((const float *)experts->y.data)[i];
        wrong += (got - sum) * (got - sum);
        all += sum * sum;
    }
    return wrong / all;
}

static void products_of_experts_are_right(void)
{
    static struct experts experts;
    static const int64_t ms[] = {1, 3, 24};
    for (int i = 0; i < TYPES; i++) {
        for (int j = 0; j < 6; j++) {
            const char *name = tandem_type_name((enum tandem_type)bridge_types[i]);
            make_experts(&experts, bridge_types[i], ms[j / 2], j % 2 == 0 ? 1 : USED);
            struct tensor *nodes[] = {&experts.y};
            CHECK(device->supports_op(device, &experts.y), "%s, case %d", name, j);
            for (int again = 0; again < 2; again++) {
                experts.numbers[0] = again; /* other experts at the same addresses */
                memset(experts.y.data, 0xff, sizeof(float) * N * USED * (size_t)ms[j / 2]);
                CHECK(compute(nodes, 1) == 0, "%s", small_host_last_line());
                double error = error_of_experts(&experts);
                CHECK(error < 2e-4, "%s, case %d: %g", name, j, error);
            }
            free_experts(&experts);
        }
    }
}

static void experts_that_are_not_there_fail_with_a_word(void)
{
    static struct experts experts;
    make_experts(&experts, TANDEM_TYPE_Q8_0, 3, 1);
    struct tensor *nodes[] = {&experts.y};
    const struct tensor ids = experts.ids;
    int before = small_host_errors();
    experts.numbers[ID_ROW] = EXPERTS;
    CHECK(compute(nodes, 1) == -1, "an expert too many");
    experts.numbers[ID_ROW] = 1;
    experts.ids.data = experts.numbers + MOST_M * ID_ROW - 2 * ID_ROW;
    CHECK(compute(nodes, 1) == -1, "numbers beyond the end");
    experts.ids = ids;
    CHECK(small_host_errors() == before + 2, "%d errors", small_host_errors() - before);
    CHECK(compute(nodes, 1) == 0, "%s", small_host_last_line());
#define REFUSES(change)                                                                            \
    do {                                                                                           \
        const struct experts good = experts;                                                       \
        change;                                                                                    \
        CHECK(!device->supports_op(device, &experts.y), "takes it");                               \
        experts = good;                                                                            \
    } while (0)
    REFUSES(experts.y.src[2] = NULL);
    REFUSES(experts.y.op = OP_MUL_MAT);
    REFUSES(experts.y.op_params[3] = 1);
    REFUSES(experts.ids.type = TANDEM_TYPE_F32);
    REFUSES(experts.ids.nb[0] = 8);
    REFUSES(experts.ids.nb[1] = 4);
    REFUSES(experts.ids.nb[1] = 9);
    REFUSES(experts.ids.nb[1] = SIZE_MAX - 3);
    REFUSES(experts.ids.ne[0] = 3);
    REFUSES(experts.ids.ne[1] = 4);
    REFUSES(experts.ids.ne[2] = 2);
    REFUSES(experts.x.ne[1] = 3);
    REFUSES(experts.w.ne[3] = 2);
    REFUSES(experts.w.nb[2] += 34);
    REFUSES(experts.y.ne[1] = 1);
#undef REFUSES
    free_experts(&experts);
}

static void products_that_follow_from_each_other_are_right(void)
{
    struct buffer *buffer = small_host_buffer(device->get_buffer_type(device),
                                              sizeof(float) * (K * N + N * N), USAGE_WEIGHTS);
    struct tensor w = matrix(TANDEM_TYPE_F32, K, N, buffer, 0);
    struct tensor v = matrix(TANDEM_TYPE_F32, N, N, buffer, sizeof(float) * K * N);
    struct tensor x = matrix(TANDEM_TYPE_F32, K, 3, activations, 0);
    struct tensor y = product(&w, &x, activations, Y_AT);
    struct tensor view = matrix(TANDEM_TYPE_F32, N, 3, activations, Y_AT);
    struct tensor z = product(&v, &view, activations, Z_AT);
    struct tensor *nodes[] = {&y, &view, &z};
    view.op = OP_VIEW;
    view.src[0] = &y;
    view.view_src = &y;
    fill_weights(&w);
    fill_weights(&v);
    fill(x.data, K * 3);
    CHECK(compute(nodes, 3) == 0, "%s", small_host_last_line());
    CHECK(error_of(&y) < 1e-9, "%g", error_of(&y));
    CHECK(error_of(&z) < 1e-9, "%g", error_of(&z));
    small_host_free(buffer);
}

/* A buffer over memory that lives on: the next weights have the same address. */
static void freed_weights_are_forgotten(void)
{
    static float memory[N * K];
    struct buffer *buffer = NULL;
    struct tensor x = matrix(TANDEM_TYPE_F32, K, 1, activations, 0);
    fill(x.data, K);
    for (int i = 0; i < 3; i++) {
        buffer = device->buffer_from_host_ptr(device, memory, sizeof(memory), sizeof(memory));
        buffer->usage = USAGE_WEIGHTS;
        struct tensor w = matrix(TANDEM_TYPE_Q8_0, K, N, buffer, 0);
        struct tensor y = product(&w, &x, activations, Y_AT);
        struct tensor *nodes[] = {&y};
        fill_weights(&w);
        CHECK(compute(nodes, 1) == 0, "%s", small_host_last_line());
        CHECK(error_of(&y) < 2e-4, "time %d: %g", i, error_of(&y));
        small_host_free(buffer);
    }
}

static void set_threads(int n)
{
    union {
        void *p;
        void (*set)(struct backend *, int);
    } found = {.p = device->reg->get_proc_address(device->reg, "ggml_backend_set_n_threads")};
    if (CHECK(found.p != NULL, "no ggml_backend_set_n_threads")) {
        found.set(backend, n);
    }
}

static void any_number_of_threads_serves(void)
{
    static const int numbers[] = {1, 2, 1000, 0, -3, 1};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        set_threads(numbers[i]);
        freed_weights_are_forgotten();
    }
}

/* Threads of this process that the library has started. */
static int own_threads(void)
{
    int n = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *one = readdir(tasks); one != NULL; one = readdir(tasks)) {
        char path[300];
        char name[32] = "";
        (void)snprintf(path, sizeof(path), "/proc/self/task/%s/comm", one->d_name);
        FILE *file = fopen(path, "r");
        n += file != NULL && fgets(name, sizeof(name), file) != NULL &&
             strncmp(name, "tandem-w", 8) == 0;
        if (file != NULL) {
            (void)fclose(file);
        }
    }
    (void)closedir(tasks);
    return n;
}

/* Without OpenMP in the host there are threads of its own; with it not before other ways are
 * tried. */
static void threads_of_the_hosts_openmp_compute(const char *openmp)
{
    set_threads(2);
    products_of_a_type_are_right(TANDEM_TYPE_F32);
    CHECK(sysconf(_SC_NPROCESSORS_ONLN) < 2 || (own_threads() == 0) == (openmp != NULL),
          "%s: %d threads of its own", openmp != NULL ? openmp : "no OpenMP", own_threads());
    products_of_every_type_are_right();
    products_of_experts_are_right();
    products_that_follow_from_each_other_are_right();
}

static void nodes_between_products(void)
{
    const char *const wrong[] = {nodes_of_a_layer_are_right(device, backend),
                                 memory_that_the_host_uses_again_is_right(device, backend),
                                 nodes_are_taken_where_they_follow_from_products(device),
                                 nodes_with_unknown_parameters_are_left_to_the_host(device),
                                 nodes_outside_of_buffers_fail(device, backend)};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        CHECK(wrong[i] == NULL, "%s", wrong[i]);
    }
}

/* ---- what is left to the host ---- */

static bool takes(const struct tensor *y)
{
    return device->supports_op(device, y);
}

static void what_it_cannot_do_is_left_to_the_host(void)
{
    struct buffer *buffer = small_host_buffer(device->get_buffer_type(device),
                                              sizeof(float) * K * N * 2, USAGE_WEIGHTS);
    struct tensor w = matrix(TANDEM_TYPE_Q8_0, K, N, buffer, 0);
    struct tensor x = matrix(TANDEM_TYPE_F32, K, 4, activations, 0);
    const struct tensor good_w = w;
    const struct tensor good_x = x;
    const struct tensor good = product(&w, &x, activations, Y_AT);
    struct tensor y = good;
    CHECK(takes(&y), "the product from which the others differ");
#define REFUSES(change)                                                                            \
    do {                                                                                           \
        change;                                                                                    \
        CHECK(!takes(&y), "takes it");                                                             \
        w = good_w;                                                                                \
        x = good_x;                                                                                \
        y = good;                                                                                  \
    } while (0)
    REFUSES(y.op = OP_ADD);
    REFUSES(y.op = 12345);
    REFUSES(y.op_params[0] = 10); /* precision F32 */
    REFUSES(y.op_params[1] = 1);  /* a hint */
    REFUSES(y.src[0] = NULL);
    REFUSES(y.src[1] = NULL);
    REFUSES(w.type = 39);
    REFUSES(w.type = -1);
    REFUSES(w.type = 100000);
    REFUSES(w.type = TANDEM_TYPE_I32);
    REFUSES(w.view_src = &x);
    REFUSES(w.nb[1] += 34);
    REFUSES(w.ne[0] = K - 1);
    REFUSES(w.ne[2] = 2);
    REFUSES(w.ne[1] = INT64_MAX);
    REFUSES(w.ne[1] = 0);
    REFUSES(w.ne[1] = -5);
    REFUSES(w.buffer = NULL);
    REFUSES(x.type = TANDEM_TYPE_F16);
    REFUSES(x.nb[0] = 8);
    REFUSES(x.nb[1] += 4);
    REFUSES(x.ne[0] = K / 2);
    REFUSES(x.ne[3] = INT64_C(1) << 40);
    REFUSES(y.ne[0] = N - 1);
    REFUSES(y.ne[1] = 5);
    REFUSES(y.nb[1] += 4);
    buffer->usage = USAGE_COMPUTE;
    CHECK(!takes(&y), "activations as weights");
    buffer->usage = USAGE_WEIGHTS;
    y.op = OP_VIEW;
    CHECK(takes(&y), "a view computes nothing");
    small_host_free(buffer);
}

static void pointers_outside_of_buffers_fail_with_a_word(void)
{
    struct buffer *buffer =
        small_host_buffer(device->get_buffer_type(device), sizeof(float) * K * N, USAGE_WEIGHTS);
    struct tensor w = matrix(TANDEM_TYPE_F32, K, N, buffer, 0);
    struct tensor x = matrix(TANDEM_TYPE_F32, K, 1, activations, 0);
    struct tensor y = product(&w, &x, activations, Y_AT);
    struct tensor *nodes[] = {&y};
    int before = small_host_errors();
    w.data = (char *)w.data + 4;
    CHECK(compute(nodes, 1) == -1, "weights beyond the end");
    w.data = NULL;
    CHECK(compute(nodes, 1) == -1, "no weights");
    w = matrix(TANDEM_TYPE_F32, K, N, buffer, 0);
    x.data = (char *)x.data - 64;
    CHECK(compute(nodes, 1) == -1, "activations before the beginning");
    CHECK(small_host_errors() == before + 3, "%d errors", small_host_errors() - before);
    small_host_free(buffer);
}

static void loaders_are_answered_without_memory(void)
{
    struct buffer *nothing = small_host_buffer(device->get_buffer_type(device), 0, USAGE_ANY);
    struct tensor w = matrix(TANDEM_TYPE_Q4_0, K, N, nothing, 0);
    struct tensor x = matrix(TANDEM_TYPE_F32, K, 512, NULL, 0);
    struct tensor y = product(&w, &x, NULL, 0);
    CHECK(takes(&y), "weights that have no memory yet");
    small_host_free(nothing);
}

static void the_device_says_what_it_is(void)
{
    struct props props;
    struct buft *buft = device->get_buffer_type(device);
    memset(&props, 0, sizeof(props));
    device->get_props(device, &props);
    CHECK(device->get_type(device) == 3 && props.type == 3, "not ACCEL");
    CHECK(strcmp(device->get_name(device), "Tandem") == 0 && strcmp(props.name, "Tandem") == 0,
          "name");
    CHECK(buft->is_host(buft) && buft->get_alignment(buft) == 64 && buft->device == device,
          "buffer type");
    CHECK(device->supports_buft(device, buft), "its own buffer type");
    CHECK(backend->device->get_buffer_type(backend->device) == ggml_backend_cpu_buffer_type(),
          "results lie in another type than those of the CPU");
    CHECK(strcmp(backend->device->get_name(backend->device), "Tandem") == 0 &&
              strcmp(backend->get_name(backend), "Tandem") == 0,
          "backend");
}

/* ---- verdicts ---- */

static void short_rows_have_verdicts_of_their_own(void)
{
    CHECK(tnd_verdicts_kind(false, 288) != tnd_verdicts_kind(false, 2048), "plain");
    CHECK(tnd_verdicts_kind(true, 288) != tnd_verdicts_kind(true, 2048), "experts");
    CHECK(tnd_verdicts_kind(false, 288) != tnd_verdicts_kind(true, 288), "short");
    for (int i = 0; i < 4; i++) {
        int kind = tnd_verdicts_kind(i % 2 == 0, i < 2 ? 32 : 65536);
        CHECK(kind >= 0 && kind < TND_PRODUCT_KINDS, "kind %d", kind);
    }
}

/* Times of 1, 8 and 64 tokens with a hundredth of error each. */
static void set_times(struct tnd_bridge_times times[TND_TOKEN_CLASSES], double ours, double loaded,
                      double plain)
{
    for (int i = 0; i < TND_TOKEN_CLASSES; i++) {
        times[i] = (struct tnd_bridge_times){
            {ours, ours / 100}, {loaded, loaded / 100}, {plain, plain / 100}};
    }
}

static void weights_are_placed_where_nobody_loses(void)
{
    struct tnd_bridge_verdict verdict = {.is_known = true};
    struct tnd_bridge_times times[TND_TOKEN_CLASSES];
    set_times(times, 1, 2, 3);
    (void)tnd_verdict_judge(&verdict, TANDEM_TYPE_Q4_0, times);
    CHECK(verdict.is_placed && verdict.is_faster[0] && verdict.is_faster[2], "all are faster");
    times[2].ours.us = 4;
    (void)tnd_verdict_judge(&verdict, TANDEM_TYPE_Q4_0, times);
    CHECK(!verdict.is_placed && verdict.is_faster[0] && !verdict.is_faster[2], "prompts lose");
    times[2].ours.us = 2.5;
    (void)tnd_verdict_judge(&verdict, TANDEM_TYPE_Q4_0, times);
    CHECK(!verdict.is_placed && verdict.is_faster[2], "prompts lose by the place of weights");
    times[2].ours.us = 2.01;
    (void)tnd_verdict_judge(&verdict, TANDEM_TYPE_Q4_0, times);
    CHECK(verdict.is_placed, "as fast as before");
    times[0].ours.us = 2.5;
    (void)tnd_verdict_judge(&verdict, TANDEM_TYPE_Q4_0, times);
    CHECK(!verdict.is_placed, "generation loses");
}

static void verdicts_leave_the_rule_for_what_is_clear(void)
{
    static const struct tnd_bridge_times nothing[TND_TOKEN_CLASSES];
    struct tnd_bridge_verdict verdict = {.is_known = true};
    struct tnd_bridge_times times[TND_TOKEN_CLASSES];
    CHECK(!tnd_verdict_judge(&verdict, TANDEM_TYPE_Q4_0, nothing), "nobody measured");
    CHECK(verdict.is_placed && verdict.is_faster[0] && verdict.is_faster[2], "the rule of Q4_0");
    CHECK(!tnd_verdict_judge(&verdict, TANDEM_TYPE_F16, nothing), "nobody measured F16");
    CHECK(verdict.is_placed && !verdict.is_faster[0] && verdict.is_faster[1], "the rule of F16");
    set_times(times, 1.3, 1, 1);
    times[0].ours.error_us = 0.15; /* beside busy programs */
    times[0].plain.error_us = times[0].loaded.error_us = 0.1;
    (void)tnd_verdict_judge(&verdict, TANDEM_TYPE_Q4_0, times);
    CHECK(verdict.is_faster[0] && !verdict.is_faster[1], "1.3 +- 0.15 is not clearly above 1");
    set_times(times, 0.9, 1, 1);
    (void)tnd_verdict_judge(&verdict, TANDEM_TYPE_F16, times);
    CHECK(verdict.is_faster[0], "what is clear changes the rule of F16");
    set_times(times, 1.015, 1, 1);
    times[0].ours.error_us = times[0].plain.error_us = 1e-6;
    (void)tnd_verdict_judge(&verdict, TANDEM_TYPE_Q4_0, times);
    CHECK(verdict.is_faster[0], "a loss below 2 %% is none");
}

static void verdicts_know_when_measuring_is_over(void)
{
    struct tnd_bridge_verdict verdict = {.is_known = true};
    struct tnd_bridge_times times[TND_TOKEN_CLASSES];
    set_times(times, 1, 1, 1);
    CHECK(tnd_verdict_judge(&verdict, TANDEM_TYPE_Q4_0, times), "no difference, and small errors");
    times[1].ours.error_us = 0.05;
    CHECK(!tnd_verdict_judge(&verdict, TANDEM_TYPE_Q4_0, times), "a doubt of 5 %%");
    times[1].ours.us = 0.5;
    CHECK(tnd_verdict_judge(&verdict, TANDEM_TYPE_Q4_0, times), "large errors, and a clear lead");
    times[2].loaded.us = 0;
    CHECK(!tnd_verdict_judge(&verdict, TANDEM_TYPE_Q4_0, times), "one is missing");
}

/* ---- devices ---- */

/* A device is open, and the log has what SMALL_HOST_DEVICE expects: that it was left where the
 * table has it as faster than it is. */
static void a_device_serves_as_long_as_it_wins(const char *line)
{
    enum { M = 64, USES = 24 };
    struct tensor w = matrix(TANDEM_TYPE_Q4_0, K, N, NULL, 0);
    struct buffer *buffer =
        small_host_buffer(device->get_buffer_type(device), w.nb[1] * N, USAGE_WEIGHTS);
    w = matrix(TANDEM_TYPE_Q4_0, K, N, buffer, 0);
    fill_weights(&w);
    struct tensor x = matrix(TANDEM_TYPE_F32, K, M, activations, 0);
    struct tensor y = product(&w, &x, activations, Y_AT);
    struct tensor *nodes[] = {&y};
    fill(x.data, (int64_t)K * M);
    CHECK(device->supports_op(device, &y), "takes it");
    CHECK(strstr(small_host_all_lines(), "computes by opencl, too") != NULL, "%s",
          small_host_all_lines());
    for (int i = 0; i < USES; i++) {
        memset(y.data, 0xff, sizeof(float) * N * M);
        CHECK(compute(nodes, 1) == 0, "%s", small_host_last_line());
        CHECK(error_of(&y) < 2e-4, "use %d: %g", i, error_of(&y));
    }
    CHECK(strstr(small_host_all_lines(), line) != NULL, "%s", small_host_all_lines());
    small_host_free(buffer); /* the device's copy goes, too */
}

/* ---- which threads ---- */

static int levels_of_host(void)
{
    union {
        void *p;
        int (*fn)(void);
    } found = {.p = dlsym(RTLD_DEFAULT, "omp_get_max_active_levels")};
    return found.p != NULL ? found.fn() : -1;
}

/* Regions of so many threads would wait for each other's time slices. */
static void a_host_with_more_threads_than_cores_gets_one_until_it_is_done(const char *openmp)
{
    int before = levels_of_host();
    set_threads(1000);
    products_that_follow_from_each_other_are_right();
    CHECK(openmp == NULL || levels_of_host() == 0, "%d levels", levels_of_host());
    struct backend *other = device->init_backend(device, NULL);
    other->free(other);
    CHECK(levels_of_host() == before, "%d levels, before %d", levels_of_host(), before);
}

static void threads_are_chosen_by_what_they_gain(void)
{
    CHECK(tokens_are_in_classes_of_doubling_numbers(), "classes");
    CHECK(a_calm_machine_keeps_the_fastest_way(), "calm");
    CHECK(trying_other_ways_costs_little(), "trials");
    CHECK(a_busy_program_moves_it_to_one_thread_and_back(), "busy");
    CHECK(a_crowded_host_begins_with_threads_that_sleep(), "crowded");
    CHECK(without_a_team_it_is_never_chosen(), "no team");
    CHECK(pauses_of_the_host_do_not_count(), "pauses");
    CHECK(measuring_keeps_to_its_time_whatever_a_trial_takes(), "time of measuring");
}

/* A driver may crash in a thread of its own, also while the process ends: the log shows where. */
static void tell_crash(int signal_number)
{
    void *frames[48];
    static const char text[] = "crashed:\n";
    (void)!write(STDOUT_FILENO, text, sizeof(text) - 1);
    backtrace_symbols_fd(frames, backtrace(frames, 48), STDOUT_FILENO);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

int main(int argc, char **argv)
{
    (void)backtrace((void *[1]){NULL}, 1); /* loads what it needs */
    signal(SIGSEGV, tell_crash);
    signal(SIGBUS, tell_crash);
    signal(SIGILL, tell_crash);
    signal(SIGABRT, tell_crash);
    setvbuf(stdout, NULL, _IOLBF, 0); /* a crash loses nothing */
    const char *openmp = getenv("SMALL_HOST_OPENMP");
    if (openmp != NULL && dlopen(openmp, RTLD_NOW | RTLD_GLOBAL) == NULL) {
        printf("skipped: no %s here\n", openmp);
        return 77;
    }
    struct reg *reg = argc > 1 ? small_host_load(argv[1]) : NULL;
    if (reg == NULL) {
        printf("not loaded: %s\n", small_host_last_line());
        return 3;
    }
    device = reg->get_device(reg, 0);
    backend = device->init_backend(device, NULL);
    activations = small_host_buffer(device->get_buffer_type(device), Z_AT + sizeof(float) * N * 64,
                                    USAGE_COMPUTE);
    if (getenv("SMALL_HOST_DEVICE") != NULL) {
        a_device_serves_as_long_as_it_wins(getenv("SMALL_HOST_DEVICE"));
    }
    threads_of_the_hosts_openmp_compute(openmp);
    nodes_between_products();
    the_device_says_what_it_is();
    loaders_are_answered_without_memory();
    freed_weights_are_forgotten();
    weights_are_packed_while_they_are_loaded();
    any_number_of_threads_serves();
    a_host_with_more_threads_than_cores_gets_one_until_it_is_done(openmp);
    threads_are_chosen_by_what_they_gain();
    what_it_cannot_do_is_left_to_the_host();
    pointers_outside_of_buffers_fail_with_a_word();
    experts_that_are_not_there_fail_with_a_word();
    short_rows_have_verdicts_of_their_own();
    weights_are_placed_where_nobody_loses();
    verdicts_leave_the_rule_for_what_is_clear();
    verdicts_know_when_measuring_is_over();
    small_host_free(activations);
    backend->free(backend);
    printf("%d passed, %d failed\n", n_passed, n_failed);
    return n_failed == 0 ? 0 : 1;
}
