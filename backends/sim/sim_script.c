/* SPDX-License-Identifier: MIT
 * Parses and evaluates the script of the simulated device. Knows no tensors. */
#include "backends/sim/sim_script.h"

#include <stddef.h>

#include "backends/settings.h"

static const struct {
    const char *key;
    size_t offset;
} numbers[] = {
    {"latency_us", offsetof(struct tnd_sim_script, latency_us)},
    {"gflops", offsetof(struct tnd_sim_script, gflops)},
    {"upload_gbps", offsetof(struct tnd_sim_script, upload_gbps)},
    {"download_gbps", offsetof(struct tnd_sim_script, download_gbps)},
    {"budget", offsetof(struct tnd_sim_script, budget)},
    {"stall_at", offsetof(struct tnd_sim_script, stall_at)},
    {"stall_us", offsetof(struct tnd_sim_script, stall_us)},
};

static const struct {
    const char *value;
    enum tnd_sim_fault fault;
} faults[] = {
    {"submit", TND_SIM_FAULT_SUBMIT},   {"memory", TND_SIM_FAULT_MEMORY},
    {"sync", TND_SIM_FAULT_SYNC},       {"timeout", TND_SIM_FAULT_TIMEOUT},
    {"lost", TND_SIM_FAULT_LOST},       {"map", TND_SIM_FAULT_MAP},
    {"upload", TND_SIM_FAULT_UPLOAD},   {"download", TND_SIM_FAULT_DOWNLOAD},
    {"prepare", TND_SIM_FAULT_PREPARE}, {"any", TND_SIM_FAULT_ANY},
};

static enum tandem_status read_flag(const struct tnd_setting *setting, bool *out,
                                    struct tandem_error *error)
{
    if (!tnd_setting_value_is(setting, "0") && !tnd_setting_value_is(setting, "1")) {
        return tnd_setting_refuse(setting, "sim", "0 or 1", error);
    }
    *out = tnd_setting_value_is(setting, "1");
    return TANDEM_OK;
}

static enum tandem_status read_fault(const struct tnd_setting *setting, enum tnd_sim_fault *out,
                                     struct tandem_error *error)
{
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        if (tnd_setting_value_is(setting, faults[i].value)) {
            *out = faults[i].fault;
            return TANDEM_OK;
        }
    }
    return tnd_setting_refuse(
        setting, "sim",
        "submit, memory, sync, timeout, lost, map, upload, download, prepare or any", error);
}

static enum tandem_status read_setting(const struct tnd_setting *setting,
                                       struct tnd_sim_script *script, struct tandem_error *error)
{
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (tnd_setting_is(setting, numbers[i].key)) {
            return tnd_setting_number(
                setting, "sim", (double *)(void *)((char *)script + numbers[i].offset), error);
        }
    }
    if (tnd_setting_is(setting, "sync")) {
        return read_flag(setting, &script->submit_waits, error);
    }
    if (tnd_setting_is(setting, "wrong")) {
        return read_flag(setting, &script->spoils_results, error);
    }
    if (tnd_setting_is(setting, "memory")) {
        if (!tnd_setting_value_is(setting, "own") && !tnd_setting_value_is(setting, "host")) {
            return tnd_setting_refuse(setting, "sim", "own or host", error);
        }
        script->is_own = tnd_setting_value_is(setting, "own");
        return TANDEM_OK;
    }
    if (tnd_setting_is(setting, "fail")) {
        return read_fault(setting, &script->fault, error);
    }
    if (tnd_setting_is(setting, "fail_at")) {
        double at = 0;
        TND_TRY(tnd_setting_number(setting, "sim", &at, error));
        script->fault_at = (uint64_t)at;
        return TANDEM_OK;
    }
    return tnd_setting_refuse(setting, "sim",
                              "latency_us, gflops, upload_gbps, download_gbps, sync, wrong, fail, "
                              "fail_at, memory, budget, stall_at, stall_us",
                              error);
}

enum tandem_status tnd_sim_script_read(const char *settings, struct tnd_sim_script *out,
                                       struct tandem_error *error)
{
    struct tnd_sim_script script = {0};
    struct tnd_setting setting;
    while (tnd_settings_next(&settings, &setting)) {
        TND_TRY(read_setting(&setting, &script, error));
    }
    if (script.fault != TND_SIM_FAULT_NONE && script.fault_at == 0) {
        script.fault_at = 1;
    }
    *out = script;
    return TANDEM_OK;
}

/* Nanoseconds for `amount` at `per_ns` per nanosecond (GB/s and GFLOP/s are such units). */
static double duration(double amount, double per_ns)
{
    return per_ns > 0 ? amount / per_ns : 0;
}

uint64_t tnd_sim_script_ns(const struct tnd_sim_script *script, double flops, double upload_bytes,
                           double download_bytes)
{
    double ns = script->latency_us * 1e3 + duration(flops, script->gflops) +
                duration(upload_bytes, script->upload_gbps) +
                duration(download_bytes, script->download_gbps);
    return ns < 1e18 ? (uint64_t)ns : (uint64_t)1e18; /* 30 years, and far from overflow */
}

enum tandem_status tnd_sim_script_submit_fault(const struct tnd_sim_script *script, uint64_t n,
                                               struct tandem_error *error)
{
    if (script->fault == TND_SIM_FAULT_LOST && script->fault_at != 0 && n > script->fault_at) {
        return tnd_error_set(error, TANDEM_E_DEVICE_LOST, "sim", (int64_t)n, 0,
                             "backend sim: the device was lost before (as scripted)");
    }
    if (n != script->fault_at) {
        return TANDEM_OK;
    }
    if (script->fault == TND_SIM_FAULT_SUBMIT) {
        return tnd_error_set(error, TANDEM_E_DEVICE, "sim", (int64_t)n, 0,
                             "backend sim: submit %llu fails (as scripted)", (unsigned long long)n);
    }
    if (script->fault == TND_SIM_FAULT_MEMORY) {
        return tnd_error_set(error, TANDEM_E_DEVICE_MEMORY, "sim", (int64_t)n, 0,
                             "backend sim: no device memory for submit %llu (as scripted)",
                             (unsigned long long)n);
    }
    return TANDEM_OK;
}

enum tandem_status tnd_sim_script_sync_fault(const struct tnd_sim_script *script, uint64_t n,
                                             struct tandem_error *error)
{
    if (script->fault_at == 0 || n < script->fault_at) {
        return TANDEM_OK;
    }
    if (script->fault == TND_SIM_FAULT_LOST) {
        return tnd_error_set(error, TANDEM_E_DEVICE_LOST, "sim", (int64_t)n, 0,
                             "backend sim: the device was lost while it worked (as scripted)");
    }
    if (n != script->fault_at) {
        return TANDEM_OK;
    }
    if (script->fault == TND_SIM_FAULT_SYNC) {
        return tnd_error_set(error, TANDEM_E_DEVICE, "sim", (int64_t)n, 0,
                             "backend sim: work %llu fails (as scripted)", (unsigned long long)n);
    }
    if (script->fault == TND_SIM_FAULT_TIMEOUT) {
        return tnd_error_set(error, TANDEM_E_DEVICE_TIMEOUT, "sim", (int64_t)n, 0,
                             "backend sim: work %llu does not end (as scripted)",
                             (unsigned long long)n);
    }
    return TANDEM_OK;
}

enum tandem_status tnd_sim_script_call_fault(const struct tnd_sim_script *script,
                                             enum tnd_sim_call call, uint64_t n, uint64_t n_all,
                                             struct tandem_error *error)
{
    static const struct {
        const char *name;
        enum tnd_sim_fault fault;
    } calls[TND_SIM_CALLS] = {
        {"submit", TND_SIM_FAULT_SUBMIT},     {"sync", TND_SIM_FAULT_NONE},
        {"map", TND_SIM_FAULT_MAP},           {"upload", TND_SIM_FAULT_UPLOAD},
        {"download", TND_SIM_FAULT_DOWNLOAD}, {"prepare", TND_SIM_FAULT_PREPARE},
    };
    if (script->fault_at == 0) {
        return TANDEM_OK;
    }
    if (script->fault == TND_SIM_FAULT_LOST && n_all >= script->fault_at) {
        return tnd_error_set(error, TANDEM_E_DEVICE_LOST, "sim", (int64_t)n_all, 0,
                             "backend sim: the device is lost in %s (as scripted)",
                             calls[call].name);
    }
    bool is_hit = script->fault == TND_SIM_FAULT_ANY ? n_all == script->fault_at
                  : script->fault != TND_SIM_FAULT_NONE && script->fault == calls[call].fault
                      ? n == script->fault_at
                      : false;
    if (is_hit) {
        return tnd_error_set(error, TANDEM_E_DEVICE, "sim", (int64_t)n, 0,
                             "backend sim: %s %llu fails (as scripted)", calls[call].name,
                             (unsigned long long)n);
    }
    if (script->fault == TND_SIM_FAULT_MEMORY && call == TND_SIM_CALL_SUBMIT &&
        n == script->fault_at) {
        return tnd_error_set(error, TANDEM_E_DEVICE_MEMORY, "sim", (int64_t)n, 0,
                             "backend sim: no device memory for submit %llu (as scripted)",
                             (unsigned long long)n);
    }
    return TANDEM_OK;
}
