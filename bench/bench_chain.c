/* SPDX-License-Identifier: MIT
 * bench-chain: times of 8 elementwise operations over 16 Mi values: by the interpreter, and by the
 * same program printed as C and compiled by the system's compiler, beside the speed of copying
 * memory. */
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backends/cpu/net/cpu_net.h"
#include "bench/arguments.h"
#include "graph/fuse_print.h"

extern char **environ;

enum { VALUES = 1 << 24, ROUNDS = 9, MAX_THREADS = 64 };

static const char usage[] =
    "usage: bench-chain [--threads N]\n"
    "Prints what 8 operations, value by value, over 16 Mi values take: by the interpreter of "
    "fused\n"
    "programs, by the same program compiled as C (where there is a compiler), and by a copy.\n\n"
    "  --threads N  threads (default: 1, then 2)\n";

typedef void (*printed_fn)(void *y, const void *const *b, long long begin, long long end);

enum method { INTERPRETED, COMPILED, COPIED, N_METHODS };

struct chain {
    struct tnd_fuse fuse;
    struct tnd_fuse_space space;
    struct tnd_fuse_printed printed;
    printed_fn compiled; /* NULL: no compiler */
};

static float *from;
static float *to;

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

/* ---- programs ---- */

static const float constants[] = {1.5f, 0.25f, -0.125f, 0.75f, 2.0f, -1.0f, 0.5f};

/* Operand 0 is the array, the others are constants: 7 at most. */
static void make(struct chain *chain, const int *unary, int n_unary)
{
    static const int kinds[] = {TANDEM_BINARY_MUL, TANDEM_BINARY_ADD, TANDEM_BINARY_SUB,
                                TANDEM_BINARY_MUL, TANDEM_BINARY_MIN, TANDEM_BINARY_MAX,
                                TANDEM_BINARY_ADD};
    const struct tnd_dims shape = {1, {VALUES}};
    int64_t strides[TND_FUSE_INPUTS][TANDEM_NET_MAX_DIMS] = {{1}};
    const int n_binary = 8 - n_unary;
    int last = 0;
    memset(chain, 0, sizeof(*chain));
    (void)tnd_fuse_input(&chain->fuse, TANDEM_DTYPE_F32);
    for (int i = 0; i < n_binary; i++) {
        const int input = tnd_fuse_input(&chain->fuse, TANDEM_DTYPE_F32);
        chain->printed.in[input] = (struct tnd_fuse_place){.buffer = -1, .value = &constants[i]};
    }
    for (int i = 0; i < n_binary; i++) {
        const int in[] = {last, 1 + i};
        last = tnd_fuse_step(&chain->fuse, TND_NET_BINARY, kinds[i], TANDEM_DTYPE_F32, in, 2);
    }
    for (int i = 0; i < n_unary; i++) {
        last = tnd_fuse_step(&chain->fuse, TND_NET_UNARY, unary[i], TANDEM_DTYPE_F32, &last, 1);
    }
    tnd_fuse_space(&chain->space, chain->fuse.n_inputs, &shape, strides, NULL);
    chain->printed.fuse = &chain->fuse;
    chain->printed.space = &chain->space;
    chain->printed.n_buffers = 1;
}

/* Leaves `compiled` NULL when there is no compiler. */
static void compile(struct chain *chain)
{
    char source[] = "/tmp/bench-chain-XXXXXX.c";
    char library[sizeof(source) + 1];
    const char *const words[] = {"cc", "-w",    "-O3",  "-march=native", "-shared", "-fPIC",
                                 "-o", library, source, "-lm",           NULL};
    struct tnd_text text = TND_TEXT_INIT;
    const int file = mkstemps(source, 2);
    pid_t child;
    int status = 1;
    if (file < 0) {
        return;
    }
    snprintf(library, sizeof(library), "%.*sso", (int)strlen(source) - 1, source);
    const double begin = now_ms();
    if (tnd_fuse_print(&chain->printed, TND_DIALECT_C, &text) &&
        write(file, text.bytes, text.n) == (ssize_t)text.n &&
        posix_spawnp(&child, "cc", NULL, NULL, (char *const *)words, environ) == 0 &&
        waitpid(child, &status, 0) == child && status == 0) {
        void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
        void *symbol = handle == NULL ? NULL : dlsym(handle, TND_PRINTED_NAME);
        memcpy(&chain->compiled, &symbol, sizeof(symbol));
        printf("  (compiled in %.0f ms)\n", now_ms() - begin);
    }
    close(file);
    unlink(source);
    unlink(library);
    tnd_text_fini(&text);
}

/* ---- running ---- */

struct part {
    const struct chain *chain;
    enum method method;
    int index, n_threads;
};

static void *run_part(void *argument)
{
    const struct part *part = argument;
    const struct chain *chain = part->chain;
    const int64_t items = chain->space.n_items;
    const int64_t begin = (int64_t)VALUES / part->n_threads * part->index;
    const int64_t end = part->index + 1 == part->n_threads
                            ? VALUES
                            : (int64_t)VALUES / part->n_threads * (part->index + 1);
    const void *in[TND_FUSE_INPUTS] = {from};
    for (int i = 1; i < chain->fuse.n_inputs; i++) {
        in[i] = chain->printed.in[i].value;
    }
    if (part->method == INTERPRETED) {
        tnd_fuse_run(tnd_cpu_kernels()->strip, &chain->fuse, &chain->space, in, to,
                     items * part->index / part->n_threads,
                     items * (part->index + 1) / part->n_threads);
    } else if (part->method == COMPILED) {
        chain->compiled(to, in, begin, end);
    } else {
        memcpy(to + begin, from + begin, (size_t)(end - begin) * sizeof(float));
    }
    return NULL;
}

static double run_ms(const struct chain *chain, enum method method, int n_threads)
{
    struct part parts[MAX_THREADS];
    pthread_t threads[MAX_THREADS];
    const double begin = now_ms();
    for (int i = 0; i < n_threads; i++) {
        parts[i] = (struct part){chain, method, i, n_threads};
        if (i > 0 && pthread_create(&threads[i], NULL, run_part, &parts[i]) != 0) {
            abort();
        }
    }
    run_part(&parts[0]);
    for (int i = 1; i < n_threads; i++) {
        pthread_join(threads[i], NULL);
    }
    return now_ms() - begin;
}

static int compare_times(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The methods take turns, so that disturbances affect all of them. */
static void measure(const struct chain *chain, const char *name, int n_threads)
{
    static const char *const methods[N_METHODS] = {"interpreter", "compiled", "copy"};
    double ms[N_METHODS][ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        for (int method = 0; method < N_METHODS; method++) {
            if (method != COMPILED || chain->compiled != NULL) {
                ms[method][round] = run_ms(chain, (enum method)method, n_threads);
            }
        }
    }
    double median[N_METHODS] = {0};
    for (int method = 0; method < N_METHODS; method++) {
        if (method != COMPILED || chain->compiled != NULL) {
            qsort(ms[method], ROUNDS, sizeof(double), compare_times);
            median[method] = ms[method][ROUNDS / 2];
        }
    }
    for (int method = 0; method < N_METHODS; method++) {
        printf("%-12s %d threads  %-12s ", name, n_threads, methods[method]);
        if (median[method] == 0) {
            printf("no compiler is called cc\n");
            continue;
        }
        printf("%7.2f ms  %5.1f GB/s  %3.0f %% of a copy", median[method],
               8e-6 * VALUES / median[method], 100 * median[COPIED] / median[method]);
        if (method == INTERPRETED && median[COMPILED] > 0) {
            printf("  %3.0f %% of compiled", 100 * median[COMPILED] / median[method]);
        }
        printf("\n");
    }
}

int main(int argc, char **argv)
{
    static const int functions[] = {TANDEM_UNARY_ABS, TANDEM_UNARY_EXP, TANDEM_UNARY_TANH};
    static struct chain chains[2];
    static const char *const names[] = {"arithmetic", "exp and tanh"};
    struct tnd_bench_number numbers[] = {{"--threads", 1, MAX_THREADS, 0}};
    tnd_bench_arguments(argc, argv, usage, numbers, 1);
    const int wanted = (int)numbers[0].value;
    from = aligned_alloc(64, VALUES * sizeof(float));
    to = aligned_alloc(64, VALUES * sizeof(float));
    if (from == NULL || to == NULL) {
        return 1;
    }
    for (int i = 0; i < VALUES; i++) {
        from[i] = (float)(i % 1000) * 0.001f;
        to[i] = 0;
    }
    for (int c = 0; c < 2; c++) {
        make(&chains[c], functions, c == 0 ? 1 : 3);
        compile(&chains[c]);
        for (int n = wanted > 0 ? wanted : 1; n <= (wanted > 0 ? wanted : 2); n++) {
            measure(&chains[c], names[c], n);
        }
    }
    return 0;
}
