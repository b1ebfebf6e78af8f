/* SPDX-License-Identifier: MIT
 * Pretended devices that a program adds to a runtime, and made-up tables that know them. */
#include <stdio.h>
#include <string.h>

#include "backends/sim/sim.h"
#include "tests/support_tune.h"
#include "tune/profiles.h"

const char *const tune_sim_names[TUNE_SIM_DEVICES] = {"simown", "simown2", "simown3"};

static bool describe(int device, int i, struct tandem_backend_profile *out)
{
    *out =
        (struct tandem_backend_profile){.name = tune_sim_names[device],
                                        .what = "the product on a pretended device",
                                        .compute = {.task = TANDEM_TASK_NODE, .wait = true},
                                        .finalize = {.task = TANDEM_TASK_FINALIZE, .wait = true}};
    return i == 0;
}

static bool first_profile(int i, enum tandem_type type, struct tandem_backend_profile *out)
{
    (void)type;
    return describe(0, i, out);
}

static bool second_profile(int i, enum tandem_type type, struct tandem_backend_profile *out)
{
    (void)type;
    return describe(1, i, out);
}

static bool third_profile(int i, enum tandem_type type, struct tandem_backend_profile *out)
{
    (void)type;
    return describe(2, i, out);
}

struct tandem_backend_api tune_sim_api(int i)
{
    struct tandem_backend_api api = tnd_sim_own_api;
    api.name = tune_sim_names[i];
    api.profile = i == 0 ? first_profile : i == 1 ? second_profile : third_profile;
    return api;
}

enum tandem_task tune_add_profile(tandem_table *table, const char *name)
{
    struct tnd_table_profile profile;
    memset(&profile, 0, sizeof(profile));
    if (strncmp(name, "simown", 6) == 0) {
        struct tnd_table_stage *compute = &profile.stage[TANDEM_STAGE_COMPUTE];
        snprintf(profile.name, sizeof(profile.name), "%s", name);
        snprintf(compute->backend, sizeof(compute->backend), "%s", name);
        compute->kind = TANDEM_KIND_SIM;
        compute->task = TANDEM_TASK_NODE;
        compute->wait = true;
    } else {
        CU_ASSERT_TRUE(tnd_profile_describe_name(NULL, name, TANDEM_TYPE_F32, &profile));
    }
    check_ok(tnd_table_add_profile(table, &profile));
    return (enum tandem_task)profile.stage[TANDEM_STAGE_COMPUTE].task;
}

void tune_add_rate(tandem_table *table, const char *backend, enum tandem_task task, int64_t n,
                   int64_t k, double fixed_us, double per_token_us)
{
    struct tnd_curve_key key = tune_key(n, k, task, false, 1);
    key.type = TANDEM_TYPE_F32;
    key.stage = TANDEM_STAGE_COMPUTE;
    key.parallel = strcmp(backend, "cpu") == 0;
    snprintf(key.backend, sizeof(key.backend), "%s", backend);
    for (int64_t m = 1; m <= 1024; m *= 4) {
        const struct tnd_sample sample = {m, fixed_us + per_token_us * (double)m, 0, 10, 1, 0, 0, 0,
                                          0};
        check_ok(tnd_table_add(table, &key, &sample));
    }
}
