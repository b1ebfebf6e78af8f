/* SPDX-License-Identifier: MIT
 * usage: bridge-host-VERSION LIBGGML_TANDEM.so
 * Loads the bridge into the small host and holds its products against double precision, what it
 * must leave to the host, and that freed weights are forgotten. Prints "N passed, N failed". */
#include <dirent.h>
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bridge/ggml/bridge_verdicts.h"
#include "tandem/tensor.h"
#include "tests/bridge/small_host.h"

enum { N = 96, K = 512, MOST_M = 70 };

static int n_passed;
static int n_failed;
static struct device *device;
static struct backend *backend;
static struct buffer *activations; /* X, then Y, then Z */
static const size_t Y_AT = sizeof(float) * K * MOST_M;
static const size_t Z_AT = sizeof(float) * (K + N) * MOST_M;

#define CHECK(condition, ...) check((condition), __LINE__, #condition, __VA_ARGS__)

__attribute__((format(printf, 4, 5))) static bool check(bool is_good, int line, const char *text,
                                                        const char *format, ...)
{
    if (is_good) {
        n_passed++;
        return true;
    }
    n_failed++;
    va_list arguments;
    va_start(arguments, format);
    printf("FAILED: line %d: %s: ", line, text);
    (void)vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
    return false;
}

static uint32_t random_state = 1;

static float next_random(void)
{
    random_state = random_state * UINT32_C(1664525) + UINT32_C(1013904223);
    return (float)(random_state >> 8) / (float)(1 << 24) - 0.5f;
}

static void fill(void *out, int64_t n)
{
    float *values = out;
    for (int64_t i = 0; i < n; i++) {
        values[i] = next_random();
    }
}

static void fill_weights(const struct tensor *w)
{
    static float values[K];
    for (int64_t row = 0; row < w->ne[1]; row++) {
        fill(values, w->ne[0]);
        (void)tandem_quantize((enum tandem_type)w->type, values,
                              (char *)w->data + (size_t)row * w->nb[1], w->ne[0]);
    }
}

static struct tensor matrix(int type, int64_t ne0, int64_t ne1, struct buffer *buffer, size_t at)
{
    return small_host_tensor(type, (const int64_t[]){ne0, ne1, 1, 1}, buffer, at);
}

static struct tensor product(struct tensor *w, struct tensor *x, struct buffer *buffer, size_t at)
{
    struct tensor y = matrix(TANDEM_TYPE_F32, w->ne[1], x->ne[1], buffer, at);
    y.op = OP_MUL_MAT;
    y.src[0] = w;
    y.src[1] = x;
    return y;
}

/* The sum of squared errors over the sum of squares. */
static double error_of(const struct tensor *y)
{
    static float row[K];
    const struct tensor *w = y->src[0];
    const struct tensor *x = y->src[1];
    double wrong = 0;
    double all = 0;
    for (int64_t n = 0; n < w->ne[1]; n++) {
        (void)tandem_dequantize((enum tandem_type)w->type,
                                (const char *)w->data + (size_t)n * w->nb[1], row, w->ne[0]);
        for (int64_t m = 0; m < x->ne[1]; m++) {
            const float *values = (const float *)x->data + m * x->ne[0];
            double sum = 0;
            for (int64_t k = 0; k < w->ne[0]; k++) {
                sum += (double)row[k] * (double)values[k];
            }
            double got = (double)((const float *)y->data)[m * w->ne[1] + n];
            wrong += (got - sum) * (got - sum);
            all += sum * sum;
        }
    }
    return wrong / all;
}

static int compute(struct tensor **nodes, int n)
{
    struct ggml_cgraph graph = {.n_nodes = n};
    memcpy(graph.nodes, nodes, (size_t)n * sizeof(nodes[0]));
    return backend->graph_compute(backend, &graph);
}

/* ---- what is computed ---- */

static const int types[] = {TANDEM_TYPE_F32,  TANDEM_TYPE_F16,  TANDEM_TYPE_BF16, TANDEM_TYPE_Q4_0,
                            TANDEM_TYPE_Q4_1, TANDEM_TYPE_Q5_0, TANDEM_TYPE_Q5_1, TANDEM_TYPE_Q8_0,
                            TANDEM_TYPE_Q2_K, TANDEM_TYPE_Q3_K, TANDEM_TYPE_Q4_K, TANDEM_TYPE_Q5_K,
                            TANDEM_TYPE_Q6_K};

static void products_of_every_type_are_right(void)
{
    static const int64_t ms[] = {1, 2, 7, 64};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        const char *name = tandem_type_name((enum tandem_type)types[i]);
        struct tensor w = matrix(types[i], K, N, NULL, 0);
        struct buffer *buffer =
            small_host_buffer(device->get_buffer_type(device), w.nb[1] * N, USAGE_WEIGHTS);
        w = matrix(types[i], K, N, buffer, 0);
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
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        for (int j = 0; j < 6; j++) {
            const char *name = tandem_type_name((enum tandem_type)types[i]);
            make_experts(&experts, types[i], ms[j / 2], j % 2 == 0 ? 1 : USED);
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
    int before = small_host_lines();
    experts.numbers[ID_ROW] = EXPERTS;
    CHECK(compute(nodes, 1) == -1, "an expert too many");
    experts.numbers[ID_ROW] = 1;
    experts.ids.data = experts.numbers + MOST_M * ID_ROW - 2 * ID_ROW;
    CHECK(compute(nodes, 1) == -1, "numbers beyond the end");
    experts.ids = ids;
    CHECK(small_host_lines() == before + 2, "%d lines", small_host_lines() - before);
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

/* KiB of a mapping that are in this process's memory. */
static long resident_of(const void *begin)
{
    char line[256];
    long kib = -1;
    bool is_it = false;
    FILE *maps = fopen("/proc/self/smaps", "r");
    while (maps != NULL && kib < 0 && fgets(line, sizeof(line), maps) != NULL) {
        unsigned long from;
        unsigned long to;
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2) {
            is_it = from == (uintptr_t)begin;
        } else if (is_it && strncmp(line, "Rss:", 4) == 0) {
            kib = strtol(line + 4, NULL, 10);
        }
    }
    if (maps != NULL) {
        (void)fclose(maps);
    }
    return kib;
}

static void weights_of_a_mapped_file_leave_memory_when_they_are_packed(void)
{
    enum { BYTES = (K / 32) * 34 * N * 16 }; /* Q8_0, 16 N rows */
    FILE *file = tmpfile();
    char *writable = file != NULL && ftruncate(fileno(file), BYTES) == 0
                         ? mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0)
                         : MAP_FAILED;
    if (!CHECK(writable != MAP_FAILED, "no mapping")) {
        return;
    }
    char *data = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fileno(file), 0);
    struct buffer *buffer = device->buffer_from_host_ptr(device, writable, BYTES, BYTES);
    struct tensor w = matrix(TANDEM_TYPE_Q8_0, K, N * 16, buffer, 0);
    fill_weights(&w);
    small_host_free(buffer);
    (void)munmap(writable, BYTES);
    buffer = device->buffer_from_host_ptr(device, data, BYTES, BYTES);
    buffer->usage = USAGE_WEIGHTS;
    w = matrix(TANDEM_TYPE_Q8_0, K, N * 16, buffer, 0);
    struct tensor x = matrix(TANDEM_TYPE_F32, K, 1, activations, 0);
    struct tensor y = product(&w, &x, activations, Y_AT);
    struct tensor *nodes[] = {&y};
    fill(x.data, K);
    CHECK(compute(nodes, 1) == 0, "%s", small_host_last_line());
    long kib = resident_of(data);
    CHECK(kib >= 0 && kib < BYTES / 1024 / 8, "%ld KiB of %d", kib, BYTES / 1024);
    CHECK(compute(nodes, 1) == 0, "%s", small_host_last_line());
    CHECK(resident_of(data) == kib, "they are read again: %ld KiB", resident_of(data));
    CHECK(error_of(&y) < 2e-4, "%g", error_of(&y));
    small_host_free(buffer);
    (void)munmap(data, BYTES);
    (void)fclose(file);
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

/* Without OpenMP in the host there are threads of its own. */
static void threads_of_the_hosts_openmp_compute(const char *openmp)
{
    set_threads(2);
    products_of_every_type_are_right();
    products_of_experts_are_right();
    products_that_follow_from_each_other_are_right();
    CHECK(sysconf(_SC_NPROCESSORS_ONLN) < 2 || (own_threads() == 0) == (openmp != NULL),
          "%s: %d threads of its own", openmp != NULL ? openmp : "no OpenMP", own_threads());
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
    int before = small_host_lines();
    w.data = (char *)w.data + 4;
    CHECK(compute(nodes, 1) == -1, "weights beyond the end");
    w.data = NULL;
    CHECK(compute(nodes, 1) == -1, "no weights");
    w = matrix(TANDEM_TYPE_F32, K, N, buffer, 0);
    x.data = (char *)x.data - 64;
    CHECK(compute(nodes, 1) == -1, "activations before the beginning");
    CHECK(small_host_lines() == before + 3, "%d lines", small_host_lines() - before);
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
    CHECK(backend->device == device && strcmp(backend->get_name(backend), "Tandem") == 0,
          "backend");
}

/* ---- what is kept from process to process ---- */

static void verdicts_are_read_as_they_were_written(void)
{
    static struct tnd_bridge_verdicts out;
    static struct tnd_bridge_verdicts in;
    static const char name[] = "0.2.0, ggml 0.26.0";
    out.of[0][TANDEM_TYPE_Q4_0][3] =
        (struct tnd_bridge_verdict){true, true, true, true, {false, true, true}};
    out.of[1][TANDEM_TYPE_F16][0] =
        (struct tnd_bridge_verdict){true, true, true, false, {true, false, true}};
    out.of[0][TANDEM_TYPE_Q8_0][1] =
        (struct tnd_bridge_verdict){true, false, false, true, {true, true, true}};
    out.of[0][TANDEM_TYPE_Q8_0][2] =
        (struct tnd_bridge_verdict){true, true, false, true, {true, true, true}};
    tnd_verdicts_save(name, &out);
    tnd_verdicts_load("another", &in);
    CHECK(!in.of[0][TANDEM_TYPE_Q4_0][3].is_known, "those of another host");
    tnd_verdicts_load(name, &in);
    CHECK(!in.of[0][TANDEM_TYPE_Q8_0][1].is_known, "one that was not measured");
    CHECK(!in.of[0][TANDEM_TYPE_Q8_0][2].is_known, "one that was measured in unrest");
    memset(&out.of[0][TANDEM_TYPE_Q8_0][2], 0, sizeof(struct tnd_bridge_verdict));
    memset(&out.of[0][TANDEM_TYPE_Q8_0][1], 0, sizeof(struct tnd_bridge_verdict));
    CHECK(memcmp(&in, &out, sizeof(in)) == 0, "other verdicts than were written");
}

static void files_that_are_no_verdicts_change_nothing(void)
{
    static const char *const wrong[] = {"",
                                        "tandem-bridge 1 a",
                                        "tandem-bridge 2 a\n0 2 3 1 1 1 1\n",
                                        "tandem-bridge 1 ab\n0 2 3 1 1 1 1\n",
                                        "tandem-bridge 1 a\n0 2 3 1 1 1 1",
                                        "tandem-bridge 1 a\n0 2 3 1 1 1\n",
                                        "tandem-bridge 1 a\n0 2 3 1 1 1 2\n",
                                        "tandem-bridge 1 a\n2 2 3 1 1 1 1\n",
                                        "tandem-bridge 1 a\n0 256 3 1 1 1 1\n",
                                        "tandem-bridge 1 a\n0 -1 3 1 1 1 1\n",
                                        "tandem-bridge 1 a\n0 99999999999999999999 3 1 1 1 1\n",
                                        "tandem-bridge 1 a\n0 2 4 1 1 1 1\n",
                                        "tandem-bridge 1 a\n0 2 3 1 1 1 1\nx"};
    static const struct tnd_bridge_verdicts nothing;
    static struct tnd_bridge_verdicts in;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        CHECK(!tnd_verdicts_parse(wrong[i], strlen(wrong[i]), "a", &in), "%s", wrong[i]);
        CHECK(memcmp(&in, &nothing, sizeof(in)) == 0, "%s", wrong[i]);
    }
    static const char right[] = "tandem-bridge 1 a\n0 2 3 1 1 1 1\n";
    CHECK(tnd_verdicts_parse(right, sizeof(right) - 1, "a", &in), "the one that is right");
}

int main(int argc, char **argv)
{
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
    threads_of_the_hosts_openmp_compute(openmp);
    the_device_says_what_it_is();
    loaders_are_answered_without_memory();
    freed_weights_are_forgotten();
    weights_of_a_mapped_file_leave_memory_when_they_are_packed();
    any_number_of_threads_serves();
    what_it_cannot_do_is_left_to_the_host();
    pointers_outside_of_buffers_fail_with_a_word();
    experts_that_are_not_there_fail_with_a_word();
    verdicts_are_read_as_they_were_written();
    files_that_are_no_verdicts_change_nothing();
    small_host_free(activations);
    backend->free(backend);
    printf("%d passed, %d failed\n", n_passed, n_failed);
    return n_failed == 0 ? 0 : 1;
}
