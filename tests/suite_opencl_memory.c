/* SPDX-License-Identifier: MIT
 * Memory of an OpenCL device: mirrors, transfers, resident weights and their other forms. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "backends/gpu/gpu_launch.h"
#include "backends/gpu/gpu_memory.h"
#include "backends/gpu/gpu_stream.h"
#include "backends/gpu/gpu_times.h"
#include "ggml-like/tnd_tensor.h"
#include "tests/suite_opencl.h"

static void carry_bytes(bool without_unified)
{
    struct tnd_gpu_device *device =
        tnd_test_cl_open((struct tnd_gpu_options){.without_unified = without_unified});
    if (device == NULL) {
        return;
    }
    /* More than the staging ring, in odd pieces. */
    const size_t n = (size_t)(17 << 20) + 12345;
    unsigned char *memory = malloc(n);
    unsigned char *copy = malloc(n);
    CU_ASSERT_FATAL(memory != NULL && copy != NULL);
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    for (size_t i = 0; i < n; i++) {
        memory[i] = (unsigned char)(i % 251 ^ (tnd_test_rng_next(&rng) & 15));
    }
    memcpy(copy, memory, n);
    check_ok(tnd_test_cl_map(device, memory, n, NULL));
    check_int(tnd_test_cl_statistics(device).mirror_bytes, n);
    for (size_t at = 0; at < n;) {
        size_t piece = (size_t)tnd_test_rng_int(&rng, 1, at < (1 << 20) ? 70000 : 9 << 20);
        piece = piece < n - at ? piece : n - at;
        check_ok(tnd_test_cl_upload(device, memory + at, piece, NULL));
        memset(memory + at, 0, piece); /* reusable as soon as upload returns */
        at += piece;
    }
    uint64_t tickets[3] = {0};
    check_ok(tnd_test_cl_download(device, memory, 1, &tickets[0], NULL));
    check_ok(tnd_test_cl_download(device, memory + 1, n - 2, &tickets[1], NULL));
    check_ok(tnd_test_cl_download(device, memory + n - 1, 1, &tickets[2], NULL));
    CU_ASSERT(tickets[0] < tickets[1] && tickets[1] < tickets[2]);
    check_ok(tnd_gpu_sync(device, tickets[2], NULL));
    check_bits(memory, copy, n, "mirror");
    check_ok(tnd_gpu_sync(device, tickets[0], NULL));
    check_ok(tnd_gpu_sync(device, tnd_gpu_ticket(device), NULL));
    const struct tnd_gpu_statistics statistics = tnd_test_cl_statistics(device);
    check_int(statistics.uploaded_bytes, n);
    check_int(statistics.downloaded_bytes, n);
    tnd_test_cl_give_back(device, memory);
    check_int(tnd_test_cl_statistics(device).mirror_bytes, 0);
    tnd_gpu_device_close(device);
    tnd_test_cl_closed(device);
    free(memory);
    free(copy);
}

static void mirrors_carry_bytes_there_and_back(void)
{
    carry_bytes(false);
    carry_bytes(true);
}

static void a_large_upload_arrives_as_a_whole(void)
{
    for (int without_unified = 0; without_unified < 2; without_unified++) {
        struct tnd_gpu_device *device =
            tnd_test_cl_open((struct tnd_gpu_options){.without_unified = without_unified});
        if (device == NULL) {
            return;
        }
        const size_t n = (size_t)(37 << 20) / sizeof(uint32_t) + 3;
        uint32_t *memory = malloc(n * sizeof(*memory));
        CU_ASSERT_FATAL(memory != NULL);
        for (size_t i = 0; i < n; i++) {
            memory[i] = (uint32_t)i * 2654435761U;
        }
        uint64_t ticket = 0;
        check_ok(tnd_test_cl_map(device, memory, n * sizeof(*memory), NULL));
        check_ok(tnd_test_cl_upload(device, memory, n * sizeof(*memory), NULL));
        memset(memory, 0, n * sizeof(*memory));
        check_ok(tnd_test_cl_download(device, memory, n * sizeof(*memory), &ticket, NULL));
        check_ok(tnd_gpu_sync(device, ticket, NULL));
        size_t n_wrong = 0;
        for (size_t i = 0; i < n; i++) {
            n_wrong += memory[i] != (uint32_t)i * 2654435761U;
        }
        check_int(n_wrong, 0);
        tnd_gpu_device_close(device);
        tnd_test_cl_closed(device);
        free(memory);
    }
}

static void more_downloads_may_be_on_their_way_than_there_are_places(void)
{
    struct tnd_gpu_device *device = tnd_test_cl_open((struct tnd_gpu_options){0});
    if (device == NULL) {
        return;
    }
    enum { N = 700 };
    int32_t memory[N];
    for (int i = 0; i < N; i++) {
        memory[i] = i * 7;
    }
    uint64_t ticket = 0;
    check_ok(tnd_test_cl_map(device, memory, sizeof(memory), NULL));
    check_ok(tnd_test_cl_upload(device, memory, sizeof(memory), NULL));
    memset(memory, 0, sizeof(memory));
    for (int i = 0; i < N; i++) {
        check_ok(tnd_test_cl_download(device, &memory[i], sizeof(memory[i]), &ticket, NULL));
    }
    check_ok(tnd_gpu_sync(device, ticket, NULL));
    int n_wrong = 0;
    for (int i = 0; i < N; i++) {
        n_wrong += memory[i] != i * 7;
    }
    check_int(n_wrong, 0);
    tnd_gpu_device_close(device);
    tnd_test_cl_closed(device); /* mirrors left over are freed */
}

static void places_outside_of_a_block_are_not_found(void)
{
    struct tnd_gpu_device *device = tnd_test_cl_open((struct tnd_gpu_options){0});
    if (device == NULL) {
        return;
    }
    char memory[16] = {0};
    uint64_t ticket = 0;
    struct tnd_gpu_block *block = NULL;
    struct tnd_gpu_range range = {0};
    check_ok(tnd_gpu_map(device, 100, &block, NULL));
    check_ok(tnd_gpu_find(device, (struct tandem_place){block, 50}, 50, &range, NULL));
    check_int(range.offset, 50);
    check_ok(tnd_gpu_find(device, (struct tandem_place){block, 99}, 1, &range, NULL));
    check_int(range.offset, 99);
    static const struct {
        size_t offset, bytes;
    } outside[] = {{50, 51}, {100, 1}, {99, 2}, {0, 101}, {50, SIZE_MAX}, {SIZE_MAX, 1}};
    for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++) {
        struct tandem_place place = {block, outside[i].offset};
        CU_ASSERT(tnd_gpu_find(device, place, outside[i].bytes, &range, NULL) == TANDEM_E_STATE);
    }
    CU_ASSERT(tnd_gpu_find(device, (struct tandem_place){NULL, 0}, 1, &range, NULL) ==
              TANDEM_E_STATE);
    CU_ASSERT(tnd_gpu_upload(device, (struct tandem_place){block, 90}, memory, 11, NULL) ==
              TANDEM_E_STATE);
    CU_ASSERT(tnd_gpu_download(device, (struct tandem_place){block, 90}, memory, 11, &ticket,
                               NULL) == TANDEM_E_STATE);
    tnd_gpu_give_back(device, block);
    tnd_gpu_give_back(device, NULL);
    check_int(tnd_test_cl_statistics(device).mirror_bytes, 0);
    tnd_gpu_device_close(device);
}

static tandem_tensor *new_f32(tandem_context *context, int64_t n, int64_t m)
{
    const int64_t ne[] = {n, m};
    tandem_tensor *tensor = tandem_tensor_new(context, TANDEM_TYPE_F32, 2, ne);
    CU_ASSERT_FATAL(tensor != NULL);
    memset(tensor->data, 0, tandem_tensor_bytes(tensor));
    return tensor;
}

/* The bytes that the device has of a weight. */
static void check_resident(struct tnd_gpu_device *device, const tandem_tensor *weight)
{
    struct tnd_gpu_range range = {0};
    const size_t bytes = tandem_tensor_bytes(weight);
    unsigned char *back = calloc(1, bytes);
    CU_ASSERT_FATAL(back != NULL);
    check_ok(tnd_test_cl_find(device, weight->data, bytes, &range, NULL));
    CU_ASSERT_FATAL(range.buffer != NULL);
    check_ok(device->driver->read(device->context, TND_GPU_QUEUE_WORK, NULL, range.buffer,
                                  range.offset, back, bytes, NULL, NULL));
    check_ok(tnd_gpu_sync(device, tnd_gpu_ticket(device), NULL));
    check_bits(back, weight->data, bytes, "weight");
    free(back);
}

static void weights_stay_until_they_are_forgotten(void)
{
    for (int without_unified = 0; without_unified < 2; without_unified++) {
        struct tnd_gpu_device *device =
            tnd_test_cl_open((struct tnd_gpu_options){.without_unified = without_unified});
        if (device == NULL) {
            return;
        }
        tandem_context *context = NULL;
        CU_ASSERT_FATAL(tandem_context_new(NULL, &context, NULL) == TANDEM_OK);
        tandem_tensor *weights[3];
        struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
        for (int i = 0; i < 3; i++) {
            weights[i] = new_f32(context, 129, 33 + i);
            CU_ASSERT_FATAL(weights[i] != NULL);
            tnd_test_fill(&rng, weights[i]->data, 129 * (33 + i));
            check_ok(tnd_test_cl_prepare(device, weights[i], NULL));
        }
        struct tnd_gpu_statistics statistics = tnd_test_cl_statistics(device);
        check_int(statistics.resident_count, 3);
        check_int(statistics.resident_bytes, 129 * 4 * (33 + 34 + 35));
        check_int(statistics.uploaded_bytes, device->caps.unified ? 0 : statistics.resident_bytes);
        for (int i = 0; i < 3; i++) {
            check_resident(device, weights[i]);
        }
        struct tnd_gpu_range range = {0};
        tnd_test_cl_give_back(device, weights[1]->data);
        tnd_test_cl_give_back(device, weights[1]->data);
        check_int(tnd_test_cl_statistics(device).resident_count, 2);
        CU_ASSERT(tnd_test_cl_find(device, weights[1]->data, 1, &range, NULL) == TANDEM_E_STATE);
        check_resident(device, weights[0]);
        check_resident(device, weights[2]);
        tnd_gpu_device_close(device);
        tnd_test_cl_closed(device);
        tandem_context_free(context);
    }
}

static void the_budget_bounds_what_is_resident(void)
{
    struct tnd_gpu_device *device =
        tnd_test_cl_open((struct tnd_gpu_options){.budget_bytes = 10000});
    if (device == NULL) {
        return;
    }
    tandem_context *context = NULL;
    struct tandem_error error = {0};
    CU_ASSERT_FATAL(tandem_context_new(NULL, &context, NULL) == TANDEM_OK);
    tandem_tensor *small = new_f32(context, 40, 40);
    tandem_tensor *other = new_f32(context, 40, 40);
    CU_ASSERT_FATAL(small != NULL && other != NULL);
    check_ok(tnd_test_cl_prepare(device, small, NULL));
    check_status(tnd_test_cl_prepare(device, other, &error), TANDEM_E_DEVICE_MEMORY, "budget",
                 &error);
    check_int(error.limit, 10000 - 6400);
    check_int(tnd_test_cl_statistics(device).resident_count, 1);
    tnd_test_cl_give_back(device, small->data);
    check_ok(tnd_test_cl_prepare(device, other, NULL));
    tnd_gpu_device_close(device);
    tnd_test_cl_closed(device);
    tandem_context_free(context);
}

static int n_made;
static enum tandem_status make_copy(struct tnd_gpu_device *device, const tandem_tensor *weight,
                                    struct tnd_gpu_range from, struct tnd_gpu_range to,
                                    struct tandem_error *error)
{
    n_made++;
    return device->driver->copy(device->context, from.buffer, from.offset, to.buffer, to.offset,
                                tandem_tensor_bytes(weight), error);
}

static enum tandem_status make_nothing(struct tnd_gpu_device *device, const tandem_tensor *weight,
                                       struct tnd_gpu_range from, struct tnd_gpu_range to,
                                       struct tandem_error *error)
{
    (void)from;
    (void)to;
    return tnd_error_set(error, TANDEM_E_DEVICE, weight->name, 0, 0, "%s: nothing", device->name);
}

static void other_forms_of_a_weight_are_made_once(void)
{
    struct tnd_gpu_device *device =
        tnd_test_cl_open((struct tnd_gpu_options){.budget_bytes = 20000});
    if (device == NULL) {
        return;
    }
    tandem_context *context = NULL;
    struct tandem_error error = {0};
    struct tnd_gpu_range range = {0};
    struct tnd_gpu_range again = {0};
    CU_ASSERT_FATAL(tandem_context_new(NULL, &context, NULL) == TANDEM_OK);
    tandem_tensor *weight = new_f32(context, 40, 40);
    CU_ASSERT_FATAL(weight != NULL);
    n_made = 0;
    CU_ASSERT(tnd_gpu_find_form(device, weight, tnd_test_cl_place(device, weight->data), 1, 6400,
                                make_copy, &range, NULL) == TANDEM_E_STATE);
    check_ok(tnd_test_cl_prepare(device, weight, NULL));
    check_ok(tnd_gpu_find_form(device, weight, tnd_test_cl_place(device, weight->data), 1, 6400,
                               make_copy, &range, NULL));
    check_ok(tnd_gpu_find_form(device, weight, tnd_test_cl_place(device, weight->data), 1, 6400,
                               make_copy, &again, NULL));
    CU_ASSERT(range.buffer == again.buffer);
    check_int(n_made, 1);
    check_int(tnd_test_cl_statistics(device).resident_bytes, 12800);
    check_status(tnd_gpu_find_form(device, weight, tnd_test_cl_place(device, weight->data), 2, 7300,
                                   make_copy, &range, &error),
                 TANDEM_E_DEVICE_MEMORY, "budget", &error);
    check_status(tnd_gpu_find_form(device, weight, tnd_test_cl_place(device, weight->data), 3, 100,
                                   make_nothing, &range, &error),
                 TANDEM_E_DEVICE, "nothing", &error);
    check_ok(tnd_gpu_find_form(device, weight, tnd_test_cl_place(device, weight->data), 4, 6400,
                               make_copy, &again, NULL));
    CU_ASSERT(range.buffer != again.buffer);
    tnd_test_cl_give_back(device, weight->data);
    check_int(tnd_test_cl_statistics(device).resident_bytes, 0);
    tnd_gpu_device_close(device);
    tnd_test_cl_closed(device);
    tandem_context_free(context);
}

/* ---- threads ---- */

enum { N_THREADS = 4, N_ROUNDS = 25, N_VALUES = 3000 };

struct user {
    struct tnd_gpu_device *device;
    int number;
    bool good;
};

/* One round: y = x * number + round, with memory of its own and a weight that comes and goes. */
static bool use_device(struct user *user, float *memory, const tandem_tensor *weight, int round)
{
    struct tnd_gpu_device *device = user->device;
    const size_t bytes = N_VALUES * sizeof(float);
    const size_t local = 8;
    const size_t global = N_VALUES / 8 * 8 + 8;
    const struct tnd_gpu_variant variant = {.flags = round % 3};
    struct tnd_gpu_range x = {0};
    struct tnd_gpu_range y = {0};
    struct tnd_gpu_launch launch;
    uint64_t ticket = 0;
    for (int i = 0; i < N_VALUES; i++) {
        memory[i] = (float)(i % 97 + user->number);
    }
    bool good =
        (tnd_test_cl_place(device, memory).handle != NULL ||
         tnd_test_cl_map(device, memory, 2 * bytes, NULL) == TANDEM_OK) &&
        tnd_test_cl_prepare(device, weight, NULL) == TANDEM_OK &&
        tnd_test_cl_upload(device, memory, bytes, NULL) == TANDEM_OK &&
        tnd_test_cl_find(device, memory, bytes, &x, NULL) == TANDEM_OK &&
        tnd_test_cl_find(device, memory + N_VALUES, bytes, &y, NULL) == TANDEM_OK &&
        tnd_gpu_launch_begin(&launch, device, TND_GPU_SOURCE_SMOKE, &variant, NULL) == TANDEM_OK &&
        tnd_gpu_bind_smoke(&launch, x, y, local * sizeof(float), (float)user->number, round,
                           N_VALUES, NULL) == TANDEM_OK &&
        tnd_gpu_launch_run(&launch, 1, &global, &local, NULL) == TANDEM_OK &&
        tnd_test_cl_download(device, memory + N_VALUES, bytes, &ticket, NULL) == TANDEM_OK &&
        tnd_gpu_sync(device, ticket, NULL) == TANDEM_OK;
    for (int i = 0; good && i < N_VALUES; i++) {
        const float want = memory[i] * (float)user->number + (float)(round + round % 3);
        good = memory[N_VALUES + i] == want;
    }
    tnd_test_cl_give_back(device, weight->data);
    if (round % 2 == 0) {
        tnd_test_cl_give_back(device, memory);
    }
    return good;
}

static void *use_device_often(void *argument)
{
    struct user *user = argument;
    tandem_context *context = NULL;
    float *memory = malloc(2 * N_VALUES * sizeof(float));
    const int64_t ne[] = {1000};
    user->good = memory != NULL && tandem_context_new(NULL, &context, NULL) == TANDEM_OK;
    tandem_tensor *weight = user->good ? tandem_tensor_new(context, TANDEM_TYPE_F32, 1, ne) : NULL;
    user->good = user->good && weight != NULL;
    for (int round = 0; user->good && round < N_ROUNDS; round++) {
        user->good = use_device(user, memory, weight, round);
    }
    if (memory != NULL) {
        tnd_test_cl_give_back(user->device, memory);
    }
    tandem_context_free(context);
    free(memory);
    return NULL;
}

static void several_threads_use_one_device(void)
{
    struct tnd_gpu_device *device = tnd_test_cl_open((struct tnd_gpu_options){0});
    if (device == NULL) {
        return;
    }
    pthread_t threads[N_THREADS];
    struct user users[N_THREADS];
    for (int i = 0; i < N_THREADS; i++) {
        users[i] = (struct user){device, i + 1, false};
        CU_ASSERT_FATAL(pthread_create(&threads[i], NULL, use_device_often, &users[i]) == 0);
    }
    for (int i = 0; i < N_THREADS; i++) {
        pthread_join(threads[i], NULL);
        CU_ASSERT(users[i].good);
    }
    const struct tnd_gpu_statistics statistics = tnd_test_cl_statistics(device);
    check_int(statistics.programs_compiled, 3);
    check_int(statistics.launches, N_THREADS * N_ROUNDS);
    check_int(statistics.mirror_bytes, 0);
    check_int(statistics.resident_bytes, 0);
    tnd_gpu_device_close(device);
    tnd_test_cl_closed(device);
}

/* Two slots in turns, as weights in flight use them: each stream must wait for the reading of what
 * was there before, and each reading for the stream. */
static void streams_keep_the_order_of_what_uses_their_block(void)
{
    enum { ROUNDS = 6, N_SLOTS = 2 };
    const size_t n = (size_t)(19 << 20) / sizeof(uint32_t) + 7; /* more than the staging ring */
    struct tnd_gpu_device *device = tnd_test_cl_open((struct tnd_gpu_options){0});
    if (device == NULL) {
        return;
    }
    struct tnd_gpu_block *slots[N_SLOTS] = {NULL};
    uint32_t *from = malloc(n * sizeof(*from));
    uint32_t *to = malloc(ROUNDS * n * sizeof(*to));
    uint64_t ticket = 0;
    CU_ASSERT_FATAL(from != NULL && to != NULL);
    memset(to, 0, ROUNDS * n * sizeof(*to));
    for (int i = 0; i < N_SLOTS; i++) {
        check_ok(tnd_gpu_map(device, n * sizeof(*from), &slots[i], NULL));
    }
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct tandem_place place = {slots[round % N_SLOTS], 0};
        for (size_t i = 0; i < n; i++) {
            from[i] = (uint32_t)i * 2654435761U + round;
        }
        check_ok(tnd_gpu_stream(device, place, from, n * sizeof(*from), NULL));
        check_ok(tnd_gpu_download(device, place, to + round * n, n * sizeof(*to), &ticket, NULL));
    }
    check_ok(tnd_gpu_sync(device, ticket, NULL));
    size_t n_wrong = 0;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < n; i++) {
            n_wrong += to[round * n + i] != (uint32_t)i * 2654435761U + round;
        }
    }
    check_int(n_wrong, 0);
    check_int(tnd_test_cl_statistics(device).streamed_bytes, ROUNDS * n * sizeof(*from));
    /* into a block that goes while it is under way */
    check_ok(
        tnd_gpu_stream(device, (struct tandem_place){slots[0], 0}, from, n * sizeof(*from), NULL));
    check_status(
        tnd_gpu_stream(device, (struct tandem_place){slots[0], 4}, from, n * sizeof(*from), NULL),
        TANDEM_E_STATE, NULL, NULL);
    for (int i = 0; i < N_SLOTS; i++) {
        tnd_gpu_give_back(device, slots[i]);
    }
    tnd_gpu_device_close(device);
    tnd_test_cl_closed(device);
    free(from);
    free(to);
}

/* ---- small constants ---- */

enum { CONSTANTS = 20 };

/* The bytes of a resident weight as the device has them. */
static bool is_as_on_the_host(struct tnd_gpu_device *device, struct tnd_gpu_block *block,
                              const tandem_tensor *weight)
{
    unsigned char copy[9000];
    uint64_t ticket = 0;
    const size_t bytes = tandem_tensor_bytes(weight);
    return bytes <= sizeof(copy) &&
           check_ok(tnd_gpu_download(device, (struct tandem_place){block, 0}, copy, bytes, &ticket,
                                     NULL)) &&
           check_ok(tnd_gpu_sync(device, ticket, NULL)) && memcmp(copy, weight->data, bytes) == 0;
}

/* Rows share one buffer, are uploaded once each, and keep their bytes; the buffer goes with the
 * last of them. Matrices and long rows have buffers of their own. */
static void small_constants_share_a_buffer(void)
{
    struct tnd_gpu_device *device =
        tnd_test_cl_open((struct tnd_gpu_options){.without_unified = true});
    tandem_context *context = NULL;
    struct tnd_gpu_block *blocks[CONSTANTS], *others[2];
    tandem_tensor *weights[CONSTANTS];
    int64_t bytes = 0;
    if (device == NULL) {
        return;
    }
    check_ok(tandem_context_new(NULL, &context, NULL));
    for (int i = 0; i < CONSTANTS; i++) {
        const int64_t n = i == 0 ? 1 : 1 + i * 53;
        weights[i] = tandem_tensor_new(context, TANDEM_TYPE_F32, 1, &n);
        for (int64_t j = 0; j < n; j++) {
            ((float *)weights[i]->data)[j] = (float)(i * 10000 + j);
        }
        check_ok(tnd_gpu_prepare(device, weights[i], &blocks[i], NULL));
        bytes += (int64_t)tandem_tensor_bytes(weights[i]);
    }
    struct tnd_gpu_statistics statistics = tnd_test_cl_statistics(device);
    check_int(statistics.constant_count, CONSTANTS);
    check_int(statistics.constant_bytes, bytes);
    check_int(statistics.shared_count, 1);
    check_int(statistics.uploaded_bytes, bytes);
    check_int(statistics.resident_count, CONSTANTS);
    for (int i = 0; i < CONSTANTS; i++) {
        CU_ASSERT(blocks[i]->buffer == blocks[0]->buffer && blocks[i]->offset % 256 == 0);
        CU_ASSERT(is_as_on_the_host(device, blocks[i], weights[i]));
    }
    tandem_tensor *matrix = tandem_tensor_new(context, TANDEM_TYPE_F32, 2, (int64_t[]){4, 4});
    tandem_tensor *row = tandem_tensor_new(context, TANDEM_TYPE_F32, 1, (int64_t[]){20000});
    check_ok(tnd_gpu_prepare(device, matrix, &others[0], NULL));
    check_ok(tnd_gpu_prepare(device, row, &others[1], NULL));
    CU_ASSERT(others[0]->buffer != blocks[0]->buffer && others[1]->buffer != blocks[0]->buffer);
    check_int(tnd_test_cl_statistics(device).constant_count, CONSTANTS);
    for (int i = 1; i < CONSTANTS; i++) { /* all but the first */
        tnd_gpu_give_back(device, blocks[i]);
    }
    CU_ASSERT(is_as_on_the_host(device, blocks[0], weights[0]));
    check_int(tnd_test_cl_statistics(device).shared_count, 1);
    tnd_gpu_give_back(device, blocks[0]);
    tnd_gpu_give_back(device, others[0]);
    tnd_gpu_give_back(device, others[1]);
    statistics = tnd_test_cl_statistics(device);
    check_int(statistics.shared_count, 0);
    check_int(statistics.shared_bytes, 0);
    check_int(statistics.constant_bytes, 0);
    check_int(statistics.resident_bytes, 0);
    tandem_context_free(context);
    tnd_gpu_device_close(device);
    tnd_test_cl_closed(device);
}

/* More than fit into one buffer, which come and go. */
static void full_buffers_of_constants_are_followed_by_others(void)
{
    enum { LONG = 16384, N = 50 };
    struct tnd_gpu_device *device =
        tnd_test_cl_open((struct tnd_gpu_options){.without_unified = true});
    tandem_context *context = NULL;
    struct tnd_gpu_block *blocks[N];
    const int64_t n = LONG;
    if (device == NULL) {
        return;
    }
    check_ok(tandem_context_new(NULL, &context, NULL));
    tandem_tensor *weight = tandem_tensor_new(context, TANDEM_TYPE_F32, 1, &n);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < N; i++) {
            check_ok(tnd_gpu_prepare(device, weight, &blocks[i], NULL));
        }
        const struct tnd_gpu_statistics statistics = tnd_test_cl_statistics(device);
        CU_ASSERT(statistics.shared_count > 1 && statistics.shared_count < 8);
        CU_ASSERT(statistics.shared_bytes >= statistics.constant_bytes);
        for (int i = N - 1; i >= 0; i--) {
            tnd_gpu_give_back(device, blocks[i]);
        }
        check_int(tnd_test_cl_statistics(device).shared_count, 0);
    }
    tandem_context_free(context);
    tnd_gpu_device_close(device);
    tnd_test_cl_closed(device);
}

/* A copy of 16 MiB on the device takes longer than nothing, and less than the host waits for it. */
static void works_are_timed_on_the_device_when_asked(void)
{
    const size_t n = 16 << 20;
    for (int is_asked = 0; is_asked < 2; is_asked++) {
        struct tnd_gpu_block *blocks[2] = {NULL};
        struct tnd_gpu_device *device =
            tnd_test_cl_open((struct tnd_gpu_options){.with_profiling = is_asked != 0});
        int64_t ns = -1;
        if (device == NULL) {
            return;
        }
        for (int i = 0; i < 2; i++) {
            check_ok(tnd_gpu_map(device, n, &blocks[i], NULL));
        }
        struct tnd_gpu_event *begin = tnd_gpu_times_begin(device);
        CU_ASSERT_EQUAL(begin != NULL, is_asked != 0);
        check_ok(device->driver->copy(device->context, blocks[0]->buffer, 0, blocks[1]->buffer, 0,
                                      n, NULL));
        const uint64_t ticket = tnd_gpu_ticket(device);
        tnd_gpu_times_end(device, begin, ticket);
        check_ok(tnd_gpu_sync(device, ticket, NULL));
        CU_ASSERT_EQUAL(tnd_gpu_took(device, ticket, &ns), is_asked != 0);
        CU_ASSERT(is_asked == 0 || (ns > 10000 && ns < INT64_C(60000000000)));
        CU_ASSERT_FALSE(tnd_gpu_took(device, ticket + 1, &ns));
        for (int i = 0; i < 2; i++) {
            tnd_gpu_give_back(device, blocks[i]);
        }
        tnd_gpu_device_close(device);
    }
}

CU_TestInfo tnd_tests_opencl_memory[] = {
    {"works are timed on the device when asked", works_are_timed_on_the_device_when_asked},
    {"mirrors carry bytes there and back", mirrors_carry_bytes_there_and_back},
    {"a large upload arrives as a whole", a_large_upload_arrives_as_a_whole},
    {"more downloads may be on their way than there are places",
     more_downloads_may_be_on_their_way_than_there_are_places},
    {"places outside of a block are not found", places_outside_of_a_block_are_not_found},
    {"weights stay until they are forgotten", weights_stay_until_they_are_forgotten},
    {"the budget bounds what is resident", the_budget_bounds_what_is_resident},
    {"other forms of a weight are made once", other_forms_of_a_weight_are_made_once},
    {"streams keep the order of what uses their block",
     streams_keep_the_order_of_what_uses_their_block},
    {"several threads use one device", several_threads_use_one_device},
    {"small constants share a buffer", small_constants_share_a_buffer},
    {"full buffers of constants are followed by others",
     full_buffers_of_constants_are_followed_by_others},
    CU_TEST_INFO_NULL,
};
