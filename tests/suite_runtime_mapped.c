/* SPDX-License-Identifier: MIT
 * Weights in a mapped file that another program cuts short: what a computation says of it, and
 * whom the guard leaves alone. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/tnd_mapped.h"
#include "tandem/tandem.h"
#include "tests/support.h"

enum { WIDTH = 256, BYTES = WIDTH * WIDTH * 4 };

static const char *write_weights(const char *name)
{
    static float weights[WIDTH * WIDTH];
    struct tnd_test_rng rng = tnd_test_rng_new(5);
    const char *path = tnd_test_temp(name);
    tnd_test_fill(&rng, weights, WIDTH * WIDTH);
    CU_ASSERT_TRUE(tnd_test_write_file(path, weights, sizeof(weights)));
    return path;
}

/* One product by the weights of a file. */
struct product {
    tandem_context *context;
    tandem_runtime *runtime;
    tandem_graph *graph;
};

static struct product product_new(const struct tnd_file *file, int n_threads)
{
    static const int64_t ne[] = {WIDTH, WIDTH};
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    struct product product = {0};
    options.n_threads = n_threads;
    options.table_path = "";
    options.profile = "cpu";
    check_ok(tandem_runtime_open(&options, &product.runtime, NULL));
    check_ok(tandem_context_new(NULL, &product.context, NULL));
    tandem_tensor *w =
        tandem_tensor_borrow_const(product.context, TANDEM_TYPE_F32, 2, ne, file->data, BYTES);
    tandem_tensor *x =
        tandem_tensor_new(product.context, TANDEM_TYPE_F32, 2, (const int64_t[]){WIDTH, 3});
    memset(tandem_tensor_data(x), 0, tandem_tensor_bytes(x));
    product.graph = tandem_graph_new(product.context);
    tandem_graph_add(product.graph, tandem_mul_mat(product.context, w, x));
    check_ok(tandem_graph_finish(product.graph, NULL));
    return product;
}

static void product_free(struct product *product)
{
    tandem_runtime_close(product->runtime);
    tandem_context_free(product->context);
}

static void a_computation_on_a_file_cut_short_fails_and_names_it(void)
{
    check_ok(tandem_guard_mapped_files(NULL));
    for (int n_threads = 1; n_threads <= 3; n_threads++) {
        const char *path = write_weights("cut.bin");
        struct tandem_error error;
        struct tnd_file file;
        check_ok(tnd_file_map(path, false, &file, NULL));
        struct product product = product_new(&file, n_threads);
        CU_ASSERT_EQUAL(truncate(path, 8192), 0);
        check_status(tandem_runtime_compute(product.runtime, product.graph, NULL, NULL, &error),
                     TANDEM_E_FILE, "cut.bin", &error);
        check_status(tandem_runtime_compute(product.runtime, product.graph, NULL, NULL, &error),
                     TANDEM_E_FILE, "gone", &error);       /* nothing is kept of the zeros */
        check_ok(tandem_mapped_check(file.data, 4096, NULL)); /* this part is there */
        check_status(tandem_mapped_files_status(&error), TANDEM_E_FILE, "cut.bin", &error);
        product_free(&product);
        tnd_file_close(&file);
    }
}

static void a_runtime_goes_on_after_a_file_was_cut_short(void)
{
    const char *path = write_weights("whole.bin");
    struct tnd_file file;
    check_ok(tnd_file_map(path, false, &file, NULL));
    struct product product = product_new(&file, 2);
    check_ok(tandem_runtime_compute(product.runtime, product.graph, NULL, NULL, NULL));
    check_ok(tnd_file_check(&file, NULL));
    product_free(&product);
    tnd_file_close(&file);
}

static void a_file_that_is_read_may_be_cut_short(void)
{
    for (int by_environment = 0; by_environment < 2; by_environment++) {
        const char *path = write_weights("copied.bin");
        struct tnd_file file;
        if (by_environment) {
            setenv("TANDEM_MAP", "copy", 1);
        }
        check_ok(tnd_file_map(path, !by_environment, &file, NULL));
        unsetenv("TANDEM_MAP");
        struct product product = product_new(&file, 2);
        CU_ASSERT_EQUAL(truncate(path, 0), 0);
        check_ok(tandem_runtime_compute(product.runtime, product.graph, NULL, NULL, NULL));
        check_ok(tnd_file_check(&file, NULL));
        product_free(&product);
        tnd_file_close(&file);
    }
}

static void a_file_that_was_written_over_is_told(void)
{
    const char *path = write_weights("over.bin");
    struct tandem_error error;
    struct tnd_file file;
    check_ok(tnd_file_map(path, false, &file, NULL));
    struct timespec old[2] = {{1, 0}, {1, 0}};
    CU_ASSERT_EQUAL(utimensat(AT_FDCWD, path, old, 0), 0);
    check_status(tnd_file_check(&file, &error), TANDEM_E_FILE, "changed or replaced", &error);
    tnd_file_close(&file);
}

/* ---- faults of others ---- */

/* Memory of a file of the program itself that is not there. */
static void fault_elsewhere(const char *path)
{
    int fd = open(path, O_RDWR);
    volatile const char *bytes = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0);
    (void)!ftruncate(fd, 0);
    (void)bytes[4096];
}

static void leave(int number)
{
    (void)number;
    _exit(7);
}

static void leave_with_info(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    _exit(info->si_addr != NULL ? 8 : 9);
}

/* State of a child that installs `action` or nothing, then the guard, and faults or is sent one. */
static int fate(const struct sigaction *action, bool is_sent)
{
    const char *path = write_weights("other.bin");
    int state = 0;
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        sigaction(SIGBUS, action, NULL);
        (void)tandem_guard_mapped_files(NULL);
        if (is_sent) {
            raise(SIGBUS);
        } else {
            fault_elsewhere(path);
        }
        _exit(0);
    }
    CU_ASSERT_TRUE(child > 0 && waitpid(child, &state, 0) == child);
    return state;
}

static void faults_outside_of_mapped_files_go_to_the_handler_before(void)
{
    struct sigaction plain = {.sa_handler = leave};
    struct sigaction with_info = {.sa_sigaction = leave_with_info, .sa_flags = SA_SIGINFO};
    struct sigaction ends = {.sa_handler = SIG_DFL};
    struct sigaction ignores = {.sa_handler = SIG_IGN};
    int state = fate(&plain, false);
    CU_ASSERT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == 7);
    state = fate(&with_info, false);
    CU_ASSERT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == 8);
    state = fate(&plain, true);
    CU_ASSERT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == 7);
    for (int is_sent = 0; is_sent < 2; is_sent++) {
        state = fate(&ends, is_sent);
        CU_ASSERT_TRUE(WIFSIGNALED(state) && WTERMSIG(state) == SIGBUS);
    }
    state = fate(&ignores, false);
    CU_ASSERT_TRUE(WIFSIGNALED(state) && WTERMSIG(state) == SIGBUS);
    state = fate(&ignores, true);
    CU_ASSERT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == 0);
}

static CU_TestInfo tests[] = {
    {"a_computation_on_a_file_cut_short_fails_and_names_it",
     a_computation_on_a_file_cut_short_fails_and_names_it},
    {"a_runtime_goes_on_after_a_file_was_cut_short", a_runtime_goes_on_after_a_file_was_cut_short},
    {"a_file_that_is_read_may_be_cut_short", a_file_that_is_read_may_be_cut_short},
    {"a_file_that_was_written_over_is_told", a_file_that_was_written_over_is_told},
    {"faults_outside_of_mapped_files_go_to_the_handler_before",
     faults_outside_of_mapped_files_go_to_the_handler_before},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_runtime_mapped[];
CU_SuiteInfo suites_runtime_mapped[] = {
    {"mapped", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
