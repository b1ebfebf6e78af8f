/* SPDX-License-Identifier: MIT
 * Files of packed weights: what one backend wrote another one maps and computes with to the same
 * bits; what does not fit or is damaged is not used, what is somebody else's is left alone.
 * The bytes of panels, on which files rely, are pinned. */
#include <CUnit/CUnit.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/cpu/packing/packed_weights.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/hash.h"
#include "tests/suite_backends.h"
#include "tests/suite_backends_stage.h"

extern const struct tandem_backend_api tnd_backend_cpu;

enum { N = 80, K = 256, M = 3, ROWS_BYTES = N * K / 32 * 18, BEFORE = 64 };
/* A large model, whose rows lie where no sample of its contents does. */
enum {
    LARGE_BYTES = 4 << 20,
    HEAD = 64 << 10,
    LARGE_BEFORE = HEAD + (LARGE_BYTES - HEAD - 4096) / 64 * 3 / 64 * 64 + 2 * 4096
};

/* Whether files are mapped here, and not read. */
static bool maps_files(void)
{
    const char *path = tnd_test_temp("mapped");
    struct tnd_mapped_file found;
    struct tnd_file file;
    CU_ASSERT_TRUE(tnd_test_write_file(path, "text", 4));
    check_ok(tnd_file_map(path, false, &file, NULL));
    const bool is_mapped = tnd_mapped_find(file.data, 4, &found);
    tnd_file_close(&file);
    return is_mapped;
}

static bool can_pack(void)
{
    if (tnd_cpu_kernels()->packed[TANDEM_TYPE_Q4_0].multiply == NULL) {
        tnd_skip("packed weights need AVX2 or NEON");
        return false;
    }
    if (!maps_files()) {
        tnd_skip("files are not mapped on this system");
        return false;
    }
    return true;
}

/* ---- a model file, a backend with a cache, a product ---- */

struct net {
    tandem_context *context;
    tandem_tensor *node;
    struct tnd_file model;
    tandem_backend *cpu;
    void *packed;
};

static char notes[2048];

static int note(void *user, int level, const char *text)
{
    (void)user;
    (void)level;
    size_t n = strlen(notes);
    snprintf(notes + n, sizeof(notes) - n, "%s\n", text);
    return 0;
}

static void write_model(const char *path, unsigned seed)
{
    static uint8_t bytes[BEFORE + ROWS_BYTES];
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (uint8_t)(i * 2654435761u >> 7) ^ (uint8_t)seed;
    }
    for (size_t i = BEFORE; i < sizeof(bytes); i += 18) {
        bytes[i + 1] = 0x2c; /* a scale that is a usual number */
    }
    CU_ASSERT_TRUE(tnd_test_write_file(path, bytes, sizeof(bytes)));
}

static void write_large_model(const char *path, unsigned seed)
{
    uint8_t *bytes = calloc(1, LARGE_BYTES);
    for (size_t i = LARGE_BEFORE; i < LARGE_BEFORE + ROWS_BYTES; i += 18) {
        for (size_t b = 0; b < 18; b++) {
            bytes[i + b] = (uint8_t)((i + b) * 2654435761u >> 7) ^ (uint8_t)seed;
        }
        bytes[i + 1] = 0x2c;
    }
    CU_ASSERT_TRUE(tnd_test_write_file(path, bytes, LARGE_BYTES));
    free(bytes);
}

static void net_open_at(struct net *net, const char *model, const char *settings, size_t before)
{
    const struct tandem_backend_options options = {
        .size = sizeof(options), .n_threads_max = 4, .settings = settings, .log = note};
    memset(net, 0, sizeof(*net));
    notes[0] = '\0';
    check_ok(tnd_file_map(model, false, &net->model, NULL));
    check_ok(tnd_backend_cpu.open(&options, &net->cpu, NULL));
    check_ok(tandem_context_new(NULL, &net->context, NULL));
    net->node = tnd_test_product(net->context, TANDEM_TYPE_Q4_0, N, K, M, 7);
    net->node->src[0] =
        tandem_tensor_borrow_const(net->context, TANDEM_TYPE_Q4_0, 2, (const int64_t[]){K, N},
                                   net->model.data + before, ROWS_BYTES);
    tandem_tensor_set_name(net->node->src[0], "blk.7.attn_q.weight");
    check_ok(tnd_backend_cpu.prepare(net->cpu, net->node->src[0], &net->packed, NULL));
}

static void net_open_with(struct net *net, const char *model, const char *settings)
{
    net_open_at(net, model, settings, BEFORE);
}

static void net_open(struct net *net, const char *model, const char *folder)
{
    char settings[512];
    snprintf(settings, sizeof(settings), "pack-cache=%s", folder);
    net_open_with(net, model, settings);
}

static void net_close(struct net *net)
{
    tnd_backend_cpu.forget(net->cpu, net->packed);
    tnd_backend_cpu.close(net->cpu);
    tandem_context_free(net->context);
    tnd_file_close(&net->model);
}

/* Finishes and keeps, as tandem_runtime_prepare does. */
static enum tandem_status net_keep(struct net *net, struct tandem_error *error)
{
    tnd_backend_cpu.finish(net->cpu, net->packed, 0, 48, 0);
    tnd_backend_cpu.finish(net->cpu, net->packed, 48, N - 48, 0);
    return tnd_backend_cpu.keep(net->cpu, error);
}

static bool is_cached(const struct net *net)
{
    return ((const struct tnd_packed_weight *)net->packed)->is_cached;
}

/* The product by the rows, or by the packed copy. */
static void compute(struct net *net, enum tandem_task task, float *out)
{
    size_t bytes = tnd_backend_cpu.workspace(net->cpu, net->node, task);
    struct tnd_test_stage stage = {.backend = net->cpu,
                                   .node = net->node,
                                   .task = TANDEM_TASK_QUANTIZE_X,
                                   .n_workers = 2,
                                   .workspace = tnd_guarded_alloc(bytes, 64),
                                   .workspace_bytes = bytes};
    check_ok(tnd_test_run_stage(&stage, NULL));
    stage.task = task;
    stage.prepared = task == TANDEM_TASK_MUL_MAT_PACKED ? net->packed : NULL;
    check_ok(tnd_test_run_stage(&stage, NULL));
    memcpy(out, net->node->data, N * M * sizeof(float));
    tnd_guarded_free(stage.workspace);
}

static void check_product(struct net *net)
{
    float want[N * M];
    float got[N * M];
    compute(net, TANDEM_TASK_MUL_MAT_Q, want);
    compute(net, TANDEM_TASK_MUL_MAT_PACKED, got);
    check_bits(got, want, sizeof(want), "by the cache");
}

/* A folder of its own, and the only file in it. */
static const char *new_folder(const char *name)
{
    static char folder[512];
    snprintf(folder, sizeof(folder), "%s-%ld", tnd_test_temp(name), (long)getpid());
    CU_ASSERT_TRUE(mkdir(folder, 0700) == 0);
    return folder;
}

static int only_file(const char *folder, char out[1024])
{
    int n = 0;
    DIR *open = opendir(folder);
    for (const struct dirent *entry; open != NULL && (entry = readdir(open)) != NULL;) {
        if (entry->d_name[0] != '.') {
            snprintf(out, 1024, "%s/%s", folder, entry->d_name);
            n++;
        }
    }
    closedir(open);
    return n;
}

static void clear(const char *folder)
{
    char path[1024];
    while (only_file(folder, path) > 0) {
        CU_ASSERT_TRUE_FATAL(remove(path) == 0);
    }
    rmdir(folder);
}

/* ---- the tests ---- */

static void what_one_process_packed_the_next_one_maps(void)
{
    const char *model = tnd_test_temp("pack-model");
    const char *folder = new_folder("packs");
    char path[1024] = "";
    struct net net;
    if (!can_pack()) {
        rmdir(folder);
        return;
    }
    write_model(model, 1);
    for (int visit = 0; visit < 3; visit++) {
        net_open(&net, model, folder);
        CU_ASSERT_EQUAL(is_cached(&net), visit > 0);
        check_int((int64_t)tnd_backend_cpu.prepared_bytes(net.cpu) == 0, visit > 0);
        check_ok(net_keep(&net, NULL));
        check_contains(notes, visit > 0 ? "1 packed weights" : "written");
        check_product(&net);
        net_close(&net);
        check_int(only_file(folder, path), 1);
    }
    check_contains(path, "pack-model");
    check_contains(path, ".packed");
    clear(folder);
}

/* ---- of which model ---- */

static void write_byte(const char *path, long at)
{
    FILE *file = fopen(path, "r+b");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_TRUE(fseek(file, at, SEEK_SET) == 0 && fputc(0x55, file) == 0x55);
    CU_ASSERT_TRUE(fclose(file) == 0);
}

/* Writes a byte in the middle of a file; its time is what it was. (Windows' stat knows seconds.) */
static void patch(const char *path, long at)
{
#ifdef _WIN32
    write_byte(path, at);
#else
    struct stat before, now;
    CU_ASSERT_TRUE(stat(path, &before) == 0);
    const struct timespec times[2] = {before.st_atim, before.st_mtim};
    write_byte(path, at);
    do { /* until the system's clock has moved on by a tick */
        CU_ASSERT_TRUE(utimensat(AT_FDCWD, path, times, 0) == 0 && stat(path, &now) == 0);
    } while (now.st_ctim.tv_sec == before.st_ctim.tv_sec &&
             now.st_ctim.tv_nsec == before.st_ctim.tv_nsec);
    CU_ASSERT_TRUE(now.st_mtim.tv_sec == before.st_mtim.tv_sec &&
                   now.st_mtim.tv_nsec == before.st_mtim.tv_nsec);
#endif
}

static void set_time(const char *path, time_t seconds)
{
    const struct timespec times[2] = {{seconds, 0}, {seconds, 0}};
    CU_ASSERT_TRUE(utimensat(AT_FDCWD, path, times, 0) == 0);
}

/* Of the same size, with the same samples: only the rows differ. */
static void a_model_that_was_changed_and_kept_its_time_is_packed_anew(void)
{
    const char *model = tnd_test_temp("pack-patched");
    char beside[600], folder[512], settings[600];
    struct net net;
    snprintf(folder, sizeof(folder), "%s", new_folder("patched"));
    snprintf(beside, sizeof(beside), "%s.packed", model);
    snprintf(settings, sizeof(settings), "pack-cache=%s", folder);
    if (!can_pack()) {
        rmdir(folder);
        return;
    }
    for (int is_beside = 0; is_beside < 2; is_beside++) {
        const char *with = is_beside == 1 ? "packed-file=write" : settings;
        for (int i = 0; i < 3; i++) {
            if (i == 0) {
                write_large_model(model, 1);
            } else if (i == 1) {
                patch(model, LARGE_BEFORE + 1000);
            } else {
                write_large_model(model, 2); /* an older file, copied over with its time */
            }
            set_time(model, i < 2 ? 1000000000 : 900000000);
            net_open_at(&net, model, with, LARGE_BEFORE);
            CU_ASSERT_FALSE(is_cached(&net));
            check_product(&net);
            if (i > 0) {
                check_contains(notes, "the model file was changed");
            }
            check_ok(net_keep(&net, NULL));
            net_close(&net);
            net_open_at(&net, model, with, LARGE_BEFORE);
            CU_ASSERT_TRUE(is_cached(&net));
            check_product(&net);
            net_close(&net);
        }
    }
    remove(beside);
    clear(folder);
}

static void a_model_with_another_time_and_the_same_contents_keeps_its_cache(void)
{
    const char *model = tnd_test_temp("pack-touched");
    const char *folder = new_folder("touched");
    struct net net;
    if (!can_pack()) {
        rmdir(folder);
        return;
    }
    write_model(model, 2);
    net_open(&net, model, folder);
    check_ok(net_keep(&net, NULL));
    net_close(&net);
    set_time(model, 1000000000);
    net_open(&net, model, folder);
    CU_ASSERT_TRUE(is_cached(&net));
    check_product(&net);
    net_close(&net);
    clear(folder);
}

/* ---- damage ---- */

static void no_damaged_panel_is_computed_with(void)
{
    enum { TRIALS = 40 };
    const char *model = tnd_test_temp("pack-flipped");
    const char *folder = new_folder("flipped");
    char path[1024] = "";
    struct net net;
    size_t n = 0, n_now = 0;
    if (!can_pack()) {
        rmdir(folder);
        return;
    }
    uint64_t random = tnd_test_seed();
    write_model(model, 9);
    net_open(&net, model, folder);
    check_ok(net_keep(&net, NULL));
    net_close(&net);
    check_int(only_file(folder, path), 1);
    char *whole = tnd_test_read_file(path, &n);
    for (int i = 0; i < TRIALS; i++) {
        random = tnd_digest_add(random, (uint64_t)i);
        const size_t at = TND_PACK_ALIGNMENT + (size_t)(random % (n - TND_PACK_ALIGNMENT));
        const char mask = (char)(1 << random / n % 8);
        whole[at] ^= mask;
        CU_ASSERT_TRUE(tnd_test_write_file(path, whole, n));
        whole[at] ^= mask;
        net_open(&net, model, folder);
        CU_ASSERT_TRUE(is_cached(&net));
        check_product(&net); /* panels are looked at when they are needed ... */
        check_contains(notes, "is damaged");
        check_contains(notes, "blk.7.attn_q.weight");
        if (i % 2 == 0) { /* ... and the file is made anew where somebody asks */
            check_ok(net_keep(&net, NULL));
            check_contains(notes, "written");
            char *now = tnd_test_read_file(path, &n_now);
            CU_ASSERT_TRUE(n_now == n && memcmp(now, whole, n) == 0);
            free(now);
        }
        net_close(&net);
    }
    free(whole);
    clear(folder);
}

static void files_of_older_versions_are_replaced_and_newer_ones_left_alone(void)
{
    const char *model = tnd_test_temp("pack-versions");
    const char *folder = new_folder("versions");
    char path[1024] = "";
    struct net net;
    struct tandem_error error;
    size_t n = 0;
    if (!can_pack()) {
        rmdir(folder);
        return;
    }
    write_model(model, 10);
    net_open(&net, model, folder);
    check_ok(net_keep(&net, NULL));
    net_close(&net);
    check_int(only_file(folder, path), 1);
    char *whole = tnd_test_read_file(path, &n);
    for (char version = '1'; version <= '3'; version += 2) {
        whole[7] = version;
        CU_ASSERT_TRUE(tnd_test_write_file(path, whole, n));
        net_open(&net, model, folder);
        CU_ASSERT_FALSE(is_cached(&net));
        check_contains(notes, version == '1' ? "older version" : "no header of version 2");
        check_status(net_keep(&net, &error), version == '1' ? TANDEM_OK : TANDEM_E_FILE,
                     version == '1' ? NULL : "left alone", &error);
        check_product(&net);
        net_close(&net);
    }
    free(whole);
    clear(folder);
}

static void where_every_user_may_write_nothing_is_read_or_written(void)
{
    const char *model = tnd_test_temp("pack-open");
    const char *folder = new_folder("open");
    char path[1024] = "";
    struct net net;
    struct tandem_error error;
    if (!can_pack()) {
        rmdir(folder);
        return;
    }
    write_model(model, 11);
    for (int i = 0; i < 2; i++) { /* without a file, and with one */
        CU_ASSERT_TRUE(chmod(folder, 0777) == 0);
        net_open(&net, model, folder);
        CU_ASSERT_FALSE(is_cached(&net));
        check_contains(notes, "every user may write");
        check_status(net_keep(&net, &error), TANDEM_E_FILE, "every user may write", &error);
        check_product(&net);
        net_close(&net);
        check_int(only_file(folder, path), i);
        CU_ASSERT_TRUE(chmod(folder, 0700) == 0);
        net_open(&net, model, folder);
        CU_ASSERT_EQUAL(is_cached(&net), i > 0);
        check_ok(net_keep(&net, NULL));
        net_close(&net);
    }
    clear(folder);
}

static void damage_is_refused_and_what_is_not_ours_left_alone(void)
{
    const char *model = tnd_test_temp("pack-damaged");
    const char *folder = new_folder("damaged");
    char path[1024] = "";
    struct net net;
    struct tandem_error error;
    size_t n = 0;
    if (!can_pack()) {
        rmdir(folder);
        return;
    }
    write_model(model, 3);
    net_open(&net, model, folder);
    check_ok(net_keep(&net, NULL));
    net_close(&net);
    check_int(only_file(folder, path), 1);
    char *whole = tnd_test_read_file(path, &n);
    for (size_t at = 0; at < tnd_pack_index_bytes(1, N / 16); at += 5) {
        whole[at] ^= 16;
        CU_ASSERT_TRUE(tnd_test_write_file(path, whole, n));
        whole[at] ^= 16;
        net_open(&net, model, folder);
        CU_ASSERT_FALSE(is_cached(&net));
        check_product(&net);
        net_close(&net);
    }
    for (size_t left = 0; left < n; left += n / 7) { /* cut short */
        CU_ASSERT_TRUE(tnd_test_write_file(path, whole, left));
        net_open(&net, model, folder);
        CU_ASSERT_FALSE(is_cached(&net));
        check_ok(net_keep(&net, NULL)); /* replaced: empty, or ours */
        net_close(&net);
    }
    CU_ASSERT_TRUE(tnd_test_write_file(path, "a letter", 8));
    net_open(&net, model, folder);
    check_status(net_keep(&net, &error), TANDEM_E_FILE, "left alone", &error);
    check_product(&net);
    net_close(&net);
    char *letter = tnd_test_read_file(path, &n);
    check_int((int64_t)n, 8);
    free(letter);
    free(whole);
    clear(folder);
}

static void a_cache_cut_short_while_it_is_used_fails_the_product(void)
{
    const char *model = tnd_test_temp("pack-cut");
    const char *folder = new_folder("cut");
    char path[1024] = "";
    struct net net;
    struct tandem_error error;
    if (!can_pack()) {
        rmdir(folder);
        return;
    }
    check_ok(tandem_guard_mapped_files(NULL));
    write_model(model, 4);
    net_open(&net, model, folder);
    check_ok(net_keep(&net, NULL));
    net_close(&net);
    check_int(only_file(folder, path), 1);
    net_open(&net, model, folder);
    CU_ASSERT_TRUE(is_cached(&net));
    CU_ASSERT_TRUE(truncate(path, TND_PACK_ALIGNMENT) == 0);
    tnd_backend_cpu.finish(net.cpu, net.packed, 0, N, 0);
    check_status(tnd_packed_weight_check(net.packed, &error), TANDEM_E_FILE, "was gone", &error);
    net_close(&net);
    clear(folder);
}

static void a_folder_that_cannot_be_written_costs_the_cache_alone(void)
{
    const char *model = tnd_test_temp("pack-denied");
    const char *file = tnd_test_temp("no-folder");
    struct net net;
    struct tandem_error error;
    if (!can_pack()) {
        return;
    }
    write_model(model, 5);
    CU_ASSERT_TRUE(tnd_test_write_file(file, "x", 1));
    net_open(&net, model, file);
    check_status(net_keep(&net, &error), TANDEM_E_FILE, "no-folder", &error);
    check_ok(tnd_backend_cpu.keep(net.cpu, NULL)); /* nobody tries again */
    check_product(&net);
    net_close(&net);
}

/* Copies both files: the same contents, from another time, in another place. */
static void copy_file(const char *from, const char *to)
{
    const struct timespec times[2] = {{1000000000, 0}, {1000000000, 0}};
    size_t n = 0;
    char *whole = tnd_test_read_file(from, &n);
    CU_ASSERT_TRUE(tnd_test_write_file(to, whole, n));
    CU_ASSERT_TRUE(utimensat(AT_FDCWD, to, times, 0) == 0);
    free(whole);
}

static void a_file_beside_a_model_goes_along_with_it(void)
{
    char model[600], packed[700], moved[600], moved_packed[700], folder[512];
    struct net net;
    struct tandem_error error;
    snprintf(folder, sizeof(folder), "%s", new_folder("beside")); /* the next overwrites it */
    const char *models = new_folder("beside-models");
    if (!can_pack()) {
        rmdir(folder);
        rmdir(models);
        return;
    }
    snprintf(model, sizeof(model), "%s/m", models);
    snprintf(packed, sizeof(packed), "%s.packed", model);
    snprintf(moved, sizeof(moved), "%s/moved", models);
    snprintf(moved_packed, sizeof(moved_packed), "%s.packed", moved);
    write_model(model, 7);
    net_open_with(&net, model, "packed-file=write");
    CU_ASSERT_FALSE(is_cached(&net));
    check_ok(net_keep(&net, NULL));
    check_contains(notes, "m.packed: written");
    net_close(&net);
    copy_file(model, moved);
    copy_file(packed, moved_packed);
    for (int i = 0; i < 3; i++) { /* nobody has to ask for it, and it comes before a cache */
        net_open_with(&net, moved, i == 1 ? "pack-cache=/nonexistent" : i == 2 ? "rows=keep" : "");
        CU_ASSERT_TRUE(is_cached(&net));
        check_contains(notes, "moved.packed: 1 packed weights");
        check_ok(net_keep(&net, NULL)); /* nothing is new */
        check_product(&net);
        net_close(&net);
    }
    write_model(moved, 8); /* another model of the same size */
    net_open_with(&net, moved, "");
    CU_ASSERT_FALSE(is_cached(&net));
    check_contains(notes, "another model file");
    check_ok(net_keep(&net, NULL)); /* nobody asked for a file */
    check_product(&net);
    net_close(&net);
    net_open(&net, moved, folder); /* a folder was asked for */
    CU_ASSERT_FALSE(is_cached(&net));
    check_ok(net_keep(&net, NULL));
    net_close(&net);
    net_open(&net, moved, folder);
    CU_ASSERT_TRUE(is_cached(&net));
    net_close(&net);
    CU_ASSERT_TRUE(tnd_test_write_file(moved_packed, "a letter", 8));
    net_open_with(&net, moved, "packed-file=write");
    check_status(net_keep(&net, &error), TANDEM_E_FILE, "left alone", &error);
    check_product(&net);
    net_close(&net);
    clear(folder);
    clear(models);
}

static void what_a_file_of_packed_weights_may_be_is_said(void)
{
    const struct tandem_backend_options options = {
        .size = sizeof(options), .n_threads_max = 1, .settings = "packed-file=read"};
    tandem_backend *cpu = NULL;
    struct tandem_error error;
    check_status(tnd_backend_cpu.open(&options, &cpu, &error), TANDEM_E_ARGUMENT, "packed-file",
                 &error);
}

/* Rows that were let go are read from the file again. */
static void rows_of_mapped_files_are_let_go_and_still_there(void)
{
    const char *model = tnd_test_temp("pack-rows");
    const struct tandem_backend_options options = {.size = sizeof(options), .n_threads_max = 1};
    struct net net;
    if (!can_pack()) {
        return;
    }
    write_model(model, 6);
    net_open(&net, model, "/nonexistent");
    tnd_backend_cpu.forget(net.cpu, net.packed);
    tnd_backend_cpu.close(net.cpu);
    check_ok(tnd_backend_cpu.open(&options, &net.cpu, NULL));
    check_ok(tnd_backend_cpu.prepare(net.cpu, net.node->src[0], &net.packed, NULL));
    CU_ASSERT_TRUE(((const struct tnd_packed_weight *)net.packed)->release_advice >= 0);
    tnd_backend_cpu.finish(net.cpu, net.packed, 0, N, 0);
    check_product(&net);
    net_close(&net);
}

/* Packs 19 rows of 512 values. Returns the hash of what came before and of the panels. */
static uint64_t hash_panels(const struct tnd_kernels_q *kernels, enum tandem_type type,
                            uint64_t hash)
{
    enum { WIDTH = 512, TALL = 19 };
    const size_t row_bytes = tandem_type_row_bytes(type, WIDTH);
    const size_t panel = tnd_packed_panel_bytes(type, WIDTH);
    struct tnd_pack_entry size = {.type = type, .k = WIDTH, .n = TALL, .matrices = 1};
    CU_ASSERT_TRUE_FATAL(tnd_pack_weight_size(&size));
    const size_t bytes = size.bytes;
    uint8_t *rows = malloc(row_bytes * TALL);
    uint8_t *out = tnd_guarded_alloc(bytes, 64);
    for (size_t b = 0; b < row_bytes * TALL; b++) {
        rows[b] = (uint8_t)(b * 2654435761u >> 11);
    }
    if (tandem_type_is_quantized(type)) {
        tnd_pack_panel(kernels, type, rows, row_bytes, 16, WIDTH, out);
        tnd_pack_panel(kernels, type, rows + 16 * row_bytes, row_bytes, 3, WIDTH, out + panel);
    } else {
        tnd_pack_panel_f(type, rows, row_bytes, TALL, 0, WIDTH, out);
    }
    hash = tnd_hash_bytes(out, bytes, hash);
    free(rows);
    tnd_guarded_free(out);
    return hash;
}

/* Files rely on these bytes: who changes them raises TND_PACK_LAYOUT and puts the new hash here. */
static void bytes_of_panels_are_those_of_the_layout(void)
{
    static const enum tandem_type types[] = {
        TANDEM_TYPE_Q4_0, TANDEM_TYPE_Q4_1, TANDEM_TYPE_Q5_0,  TANDEM_TYPE_Q5_1, TANDEM_TYPE_Q8_0,
        TANDEM_TYPE_Q2_K, TANDEM_TYPE_Q3_K, TANDEM_TYPE_Q4_K,  TANDEM_TYPE_Q5_K, TANDEM_TYPE_Q6_K,
        TANDEM_TYPE_F32,  TANDEM_TYPE_F16,  TANDEM_TYPE_BCML1,
    };
    struct tnd_cpu_kernels kernels;
    uint64_t hash = TND_PACK_LAYOUT;
    tnd_cpu_kernels_for(0, &kernels); /* of every machine */
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        hash = hash_panels(&kernels.q, types[i], hash);
    }
    check_int((int64_t)hash, INT64_C(8511312923521401936));
}

CU_TestInfo tnd_tests_pack_cache[] = {
    {"what_one_process_packed_the_next_one_maps", what_one_process_packed_the_next_one_maps},
    {"a_model_that_was_changed_and_kept_its_time_is_packed_anew",
     a_model_that_was_changed_and_kept_its_time_is_packed_anew},
    {"a_model_with_another_time_and_the_same_contents_keeps_its_cache",
     a_model_with_another_time_and_the_same_contents_keeps_its_cache},
    {"no_damaged_panel_is_computed_with", no_damaged_panel_is_computed_with},
    {"files_of_older_versions_are_replaced_and_newer_ones_left_alone",
     files_of_older_versions_are_replaced_and_newer_ones_left_alone},
    {"where_every_user_may_write_nothing_is_read_or_written",
     where_every_user_may_write_nothing_is_read_or_written},
    {"damage_is_refused_and_what_is_not_ours_left_alone",
     damage_is_refused_and_what_is_not_ours_left_alone},
    {"a_cache_cut_short_while_it_is_used_fails_the_product",
     a_cache_cut_short_while_it_is_used_fails_the_product},
    {"a_folder_that_cannot_be_written_costs_the_cache_alone",
     a_folder_that_cannot_be_written_costs_the_cache_alone},
    {"a_file_beside_a_model_goes_along_with_it", a_file_beside_a_model_goes_along_with_it},
    {"what_a_file_of_packed_weights_may_be_is_said", what_a_file_of_packed_weights_may_be_is_said},
    {"rows_of_mapped_files_are_let_go_and_still_there",
     rows_of_mapped_files_are_let_go_and_still_there},
    {"bytes_of_panels_are_those_of_the_layout", bytes_of_panels_are_those_of_the_layout},
    CU_TEST_INFO_NULL,
};
