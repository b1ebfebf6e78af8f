/* SPDX-License-Identifier: MIT
 * Kernel numbers of this CPU's products (kernels/tuning.h) as a tuner, with the sweeps that measure
 * them. */
#include "backends/cpu/cpu_tuner.h"

#include <string.h>

#include "backends/cpu/ops/cpu_ops.h"

extern const struct tnd_tuner tnd_tuner_cpu;

static const struct tnd_number list[] = {
#define NUMBER(name, value, least, most, step)                                                     \
    {#name, (least), (most), offsetof(struct tnd_tuning, name)},
    TND_TUNING_LIST(NUMBER)
#undef NUMBER
};
enum { N_NUMBERS = sizeof(list) / sizeof(list[0]) };

static bool present(tandem_backend *backend, const char *names, char out[TND_NUMBERS_MAX])
{
    return tnd_numbers_print(list, N_NUMBERS, tnd_cpu_tuning(backend), names, out);
}

static enum tandem_status use(tandem_backend *backend, const char *numbers,
                              struct tandem_error *error)
{
    struct tnd_tuning tuning = *tnd_cpu_tuning(backend);
    TND_TRY(tnd_numbers_read(list, N_NUMBERS, numbers, "cpu", &tuning, error));
#define CHECK(name, value, least, most, step)                                                      \
    if (tuning.name % (step) != 0) {                                                               \
        return tnd_error_set(error, TANDEM_E_ARGUMENT, #name, tuning.name, (step),                 \
                             "cpu: '%s': %s is no multiple of %d", numbers, #name, (step));        \
    }
    TND_TUNING_LIST(CHECK)
#undef CHECK
    *tnd_cpu_tuning(backend) = tuning;
    return TANDEM_OK;
}

/* Values besides the present one, and products whose times distinguish them. */
#define QUANTIZED                                                                                  \
    {TANDEM_TYPE_Q4_0, TANDEM_TYPE_Q8_0, TANDEM_TYPE_Q4_K, TANDEM_TYPE_Q6_K, TANDEM_TYPE_Q2_K}, 5
#define FLOATS {TANDEM_TYPE_F32, TANDEM_TYPE_F16, TANDEM_TYPE_BF16}, 3
static const struct tnd_number_sweep sweeps[] = {
    {"packed_into_l1", "cpu-packed", {4096, 16384, -1}, QUANTIZED, {1, 2, 4}},
    {"packed_ahead_1", "cpu-packed", {0, 2048, 4096, 8192, -1}, QUANTIZED, {1}},
    {"packed_ahead", "cpu-packed", {0, 4096, 8192, 16384, -1}, QUANTIZED, {2, 4, 16, 48}},
    {"packed_skinny",
     "cpu-packed",
     {12, 16, 24, 48, 96, 128, 192, -1},
     QUANTIZED,
     {16, 24, 32, 48, 96, 128}},
    {"unpack_part", "cpu-packed", {256, 512, 768, 1024, -1}, QUANTIZED, {256, 512}},
    {"float_ahead", "cpu-packed", {0, 2048, 4096, 8192, -1}, FLOATS, {1, 2}},
    {"float_ahead_many", "cpu-packed", {0, 4096, 8192, 16384, -1}, FLOATS, {8, 12, 32, 128}},
};

const struct tnd_tuner tnd_tuner_cpu = {.api = &tnd_backend_cpu,
                                        .present = present,
                                        .use = use,
                                        .sweeps = sweeps,
                                        .n_sweeps = sizeof(sweeps) / sizeof(sweeps[0])};
