/* SPDX-License-Identifier: MIT
 * Weights that a host maps or sets: packed while it loads, and still its own bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tandem/tensor.h"
#include "tests/bridge/bridge_check.h"

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

/* A file of weights, mapped as loaders do it. */
enum { MAPPED_ROWS = N * 64, MAPPED_BYTES = (K / 32) * 34 * MAPPED_ROWS /* Q8_0 */ };
struct mapped {
    FILE *file;
    char *data;
    struct buffer *buffer;
};

static bool map_file(struct mapped *out)
{
    out->file = tmpfile();
    char *writable =
        out->file != NULL && ftruncate(fileno(out->file), MAPPED_BYTES) == 0
            ? mmap(NULL, MAPPED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(out->file), 0)
            : MAP_FAILED;
    if (!CHECK(writable != MAP_FAILED, "no mapping")) {
        return false;
    }
    struct buffer *buffer =
        device->buffer_from_host_ptr(device, writable, MAPPED_BYTES, MAPPED_BYTES);
    struct tensor w = matrix(TANDEM_TYPE_Q8_0, K, MAPPED_ROWS, buffer, 0);
    fill_weights(&w);
    small_host_free(buffer);
    (void)munmap(writable, MAPPED_BYTES);
    out->data = mmap(NULL, MAPPED_BYTES, PROT_READ, MAP_SHARED, fileno(out->file), 0);
    out->buffer = device->buffer_from_host_ptr(device, out->data, MAPPED_BYTES, MAPPED_BYTES);
    out->buffer->usage = USAGE_WEIGHTS;
    return true;
}

static void unmap_file(struct mapped *mapped)
{
    small_host_free(mapped->buffer);
    (void)munmap(mapped->data, MAPPED_BYTES);
    (void)fclose(mapped->file);
}

/* Nothing of them is in memory, and products do not read them again. */
static void check_that_only_packed_weights_serve(const struct mapped *mapped, struct tensor *w)
{
    struct tensor x = matrix(TANDEM_TYPE_F32, K, 1, activations, 0);
    struct tensor y = product(w, &x, activations, Y_AT);
    struct tensor *nodes[] = {&y};
    fill(x.data, K);
    long kib = resident_of(mapped->data);
    CHECK(kib >= 0 && kib < MAPPED_BYTES / 1024 / 8, "%ld KiB of %d", kib, MAPPED_BYTES / 1024);
    CHECK(compute(nodes, 1) == 0, "%s", small_host_last_line());
    CHECK(resident_of(mapped->data) <= kib, "they are read: %ld KiB", resident_of(mapped->data));
    CHECK(error_of(&y) < 2e-4, "%g", error_of(&y));
}

static void weights_of_a_mapped_file_leave_memory_when_they_are_packed(void)
{
    struct mapped mapped;
    if (!map_file(&mapped)) {
        return;
    }
    struct tensor w = matrix(TANDEM_TYPE_Q8_0, K, MAPPED_ROWS, mapped.buffer, 0);
    struct tensor x = matrix(TANDEM_TYPE_F32, K, 1, activations, 0);
    struct tensor y = product(&w, &x, activations, Y_AT);
    struct tensor *nodes[] = {&y};
    CHECK(compute(nodes, 1) == 0, "%s", small_host_last_line());
    check_that_only_packed_weights_serve(&mapped, &w);
    unmap_file(&mapped);
}

static void weights_of_a_mapped_file_are_packed_when_they_are_placed(void)
{
    static uint8_t bytes[MAPPED_BYTES];
    struct mapped mapped;
    if (!map_file(&mapped)) {
        return;
    }
    for (int i = 0; i < MAPPED_BYTES; i += 4096) {
        bytes[i] = ((volatile uint8_t *)mapped.data)[i]; /* as a host that fetches ahead */
    }
    struct tensor w = matrix(TANDEM_TYPE_Q8_0, K, MAPPED_ROWS, NULL, 0);
    small_host_place(&w, mapped.buffer, mapped.data);
    check_that_only_packed_weights_serve(&mapped, &w);
    ggml_backend_tensor_get(&w, bytes, 0, MAPPED_BYTES);
    CHECK(memcmp(bytes, mapped.data, MAPPED_BYTES) == 0, "other bytes than in the file");
    CHECK(pread(fileno(mapped.file), bytes, MAPPED_BYTES, 0) == MAPPED_BYTES &&
              memcmp(bytes, mapped.data, MAPPED_BYTES) == 0,
          "the file has changed");
    unmap_file(&mapped);
}

/* What lies at the same place before somebody writes the weights there is none of them. */
static void memory_that_is_no_file_is_not_packed_when_it_is_placed(void)
{
    static _Alignas(64) uint8_t memory[(K / 32) * 34 * N];
    struct buffer *buffer =
        device->buffer_from_host_ptr(device, memory, sizeof(memory), sizeof(memory));
    struct tensor w = matrix(TANDEM_TYPE_Q8_0, K, N, NULL, 0);
    struct tensor x = matrix(TANDEM_TYPE_F32, K, 1, activations, 0);
    struct tensor y = product(&w, &x, activations, Y_AT);
    struct tensor *nodes[] = {&y};
    buffer->usage = USAGE_WEIGHTS;
    small_host_place(&w, buffer, memory);
    fill_weights(&w);
    fill(x.data, K);
    CHECK(compute(nodes, 1) == 0, "%s", small_host_last_line());
    CHECK(error_of(&y) < 2e-4, "%g", error_of(&y));
    small_host_free(buffer);
}

/* They come back as they were set, and what was packed of those before serves no more. */
static void weights_that_are_set_are_the_ones_that_compute(int type)
{
    static uint8_t bytes[sizeof(float) * K * N];
    static uint8_t got[sizeof(float) * K * N];
    struct tensor like = matrix(type, K, N, NULL, 0);
    size_t n = like.nb[2];
    struct buffer *buffer = small_host_buffer(device->get_buffer_type(device), n, USAGE_WEIGHTS);
    struct tensor w = matrix(type, K, N, buffer, 0);
    struct tensor x = matrix(TANDEM_TYPE_F32, K, 3, activations, 0);
    struct tensor y = product(&w, &x, activations, Y_AT);
    struct tensor *nodes[] = {&y};
    const char *name = tandem_type_name((enum tandem_type)type);
    for (int i = 0; i < 4; i++) {
        bool is_whole = i % 2 == 0;
        like.data = bytes;
        fill_weights(&like);
        ggml_backend_tensor_set(&w, bytes, 0, is_whole ? n : n / 2);
        if (!is_whole) {
            ggml_backend_tensor_set(&w, bytes + n / 2, n / 2, n - n / 2);
        }
        ggml_backend_tensor_get(&w, got, 0, n);
        CHECK(memcmp(got, bytes, n) == 0, "%s: other bytes than were set", name);
        fill(x.data, K * 3);
        CHECK(compute(nodes, 1) == 0, "%s", small_host_last_line());
        CHECK(error_of(&y) < 2e-4, "%s, time %d: %g", name, i, error_of(&y));
    }
    small_host_free(buffer);
}

static void weights_of_any_type_that_are_set_are_the_ones_that_compute(void)
{
    for (int i = 0; i < TYPES; i++) {
        weights_that_are_set_are_the_ones_that_compute(bridge_types[i]);
    }
}

/* What is written past the host's functions afterwards reaches no product. */
static void weights_are_packed_when_they_are_set(void)
{
    static uint8_t bytes[MAPPED_BYTES];
    struct tensor like = matrix(TANDEM_TYPE_Q8_0, K, MAPPED_ROWS, NULL, 0);
    struct buffer *buffer =
        small_host_buffer(device->get_buffer_type(device), sizeof(bytes), USAGE_WEIGHTS);
    struct tensor w = matrix(TANDEM_TYPE_Q8_0, K, MAPPED_ROWS, buffer, 0);
    struct tensor x = matrix(TANDEM_TYPE_F32, K, 1, activations, 0);
    struct tensor y = product(&w, &x, activations, Y_AT);
    struct tensor *nodes[] = {&y};
    like.data = bytes;
    fill_weights(&like);
    ggml_backend_tensor_set(&w, bytes, 0, sizeof(bytes));
    memset(w.data, 0, sizeof(bytes));
    fill(x.data, K);
    CHECK(compute(nodes, 1) == 0, "%s", small_host_last_line());
    memcpy(w.data, bytes, sizeof(bytes));
    CHECK(error_of(&y) < 2e-4, "%g", error_of(&y));
    small_host_free(buffer);
}

void weights_are_packed_while_they_are_loaded(void)
{
    weights_of_a_mapped_file_leave_memory_when_they_are_packed();
    weights_of_a_mapped_file_are_packed_when_they_are_placed();
    memory_that_is_no_file_is_not_packed_when_it_is_placed();
    weights_of_any_type_that_are_set_are_the_ones_that_compute();
    weights_are_packed_when_they_are_set();
}
