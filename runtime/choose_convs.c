/* SPDX-License-Identifier: MIT
 * Methods of convolutions by a runtime's table. */
#include "runtime/choose_convs.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/tnd_log.h"
#include "base/tnd_status.h"
#include "runtime/runtime_internal.h"
#include "runtime/tune_convs.h"
#include "runtime/tune_graph.h"
#include "tune/conv_choice.h"
#include "tune/profiles.h"

const tandem_chooser *tandem_runtime_chooser(const tandem_runtime *runtime)
{
    return tnd_runtime_check(runtime, "chooser", NULL) == TANDEM_OK ? &runtime->chooser : NULL;
}

/* ---- choosing ---- */

static void choose(void *user, const struct tnd_conv_question *question,
                   struct tnd_conv_choice *out)
{
    tandem_runtime *runtime = user;
    const int threads = tandem_runtime_threads(runtime);
    if (threads == 0) { /* after a fork, in a child of the process that opened it */
        tnd_conv_choose_by_rule(question, out);
        return;
    }
    struct tnd_conv_question asked = *question;
    uint8_t slots[TND_MAX_SLOTS];
    if (question->for_device && tnd_conv_devices(runtime, slots) > 0) {
        (void)snprintf(asked.device, sizeof(asked.device), "%s",
                       tnd_registry_name(runtime->registry, slots[0]));
    }
    pthread_mutex_lock(&runtime->lock);
    tnd_conv_choose(tnd_runtime_locked_table(runtime), threads, &asked, out);
    pthread_mutex_unlock(&runtime->lock);
}

/* Whether the table says that the net is clearly faster on the first device. */
static bool prefers_device(tandem_runtime *runtime, const struct tnd_conv_shape *shapes, int n)
{
    uint8_t slots[TND_MAX_SLOTS];
    if (tnd_planner_forced(runtime->planner) >= 0 || tnd_conv_devices(runtime, slots) == 0) {
        return false;
    }
    const int threads = tandem_runtime_threads(runtime);
    pthread_mutex_lock(&runtime->lock);
    const bool is_preferred =
        tnd_conv_prefers_device(tnd_runtime_locked_table(runtime), threads,
                                tnd_registry_name(runtime->registry, slots[0]), shapes, n);
    pthread_mutex_unlock(&runtime->lock);
    return is_preferred;
}

static bool is_for_device(const tandem_runtime *runtime)
{
    const int forced = tnd_planner_forced(runtime->planner);
    const struct tnd_profile *profile =
        forced < 0 ? NULL : tnd_profile_at(runtime->registry, forced);
    return profile != NULL && profile->api->devices != NULL;
}

/* ---- measuring on first use ---- */

/* Copies the shapes that the table has no times of, on the CPU or a device. */
static int list_unknown(tandem_runtime *runtime, const struct tnd_conv_shape *shapes, int n,
                        int slot, struct tnd_conv_shape *out)
{
    const int threads = tandem_runtime_threads(runtime);
    int n_unknown = 0;
    pthread_mutex_lock(&runtime->lock);
    const struct tandem_table *table = tnd_runtime_locked_table(runtime);
    for (int i = 0; i < n; i++) {
        struct tnd_conv_estimate time;
        if (slot == TND_CONV_ON_CPU) {
            tnd_conv_estimate(table, &shapes[i], TND_CONV_DIRECT, threads, &time);
        } else {
            tnd_conv_device_estimate(table, &shapes[i], TND_CONV_DIRECT,
                                     tnd_registry_name(runtime->registry, slot), &time);
        }
        if (time.us < 0 || time.n_near > 0) {
            out[n_unknown++] = shapes[i];
        }
    }
    pthread_mutex_unlock(&runtime->lock);
    return tnd_conv_distinct(out, n_unknown);
}

static enum tandem_status measure(tandem_runtime *runtime, const struct tnd_conv_tuning *tuning,
                                  struct tandem_error *error)
{
    const bool on_device = tuning->slot != TND_CONV_ON_CPU;
    tandem_table *fresh = NULL;
    tnd_log_line(&runtime->log, TANDEM_LOG_INFO, "runtime",
                 "first use of %d convolutions that no table knows%s%s: measuring for %.1f s",
                 tuning->n, on_device ? " on " : "",
                 on_device ? tnd_registry_name(runtime->registry, tuning->slot) : "",
                 tuning->budget_s);
    TND_TRY(tandem_table_new(&fresh, error));
    tnd_fingerprint_read_all(runtime->registry, &fresh->fingerprint);
    enum tandem_status status = tnd_tune_convs(runtime, tuning, fresh, error);
    if (fresh->n_convolutions > 0) {
        const enum tandem_status kept =
            tnd_tune_adopt(runtime, fresh, true, status == TANDEM_OK ? error : NULL);
        status = status == TANDEM_OK ? kept : status;
    }
    tandem_table_free(fresh);
    return status;
}

/* Measures unknown shapes. False: there were none. */
static bool measure_unknown(tandem_runtime *runtime, const struct tnd_conv_shape *shapes, int n,
                            int slot, double budget_s)
{
    struct tandem_error error = {0};
    struct tnd_conv_shape *unknown = tnd_calloc((size_t)n + 1, sizeof(unknown[0]));
    const struct tnd_conv_tuning tuning = {
        .shapes = unknown,
        .n = unknown == NULL ? 0 : list_unknown(runtime, shapes, n, slot, unknown),
        .slot = slot,
        .budget_s = budget_s,
        .begin_ns = runtime->clock->now_ns(runtime->clock)};
    if (tuning.n > 0 && measure(runtime, &tuning, &error) != TANDEM_OK) {
        tnd_log_line(&runtime->log, TANDEM_LOG_WARN, "runtime", "measuring on first use: %s",
                     error.text);
    }
    tnd_free(unknown);
    return tuning.n > 0;
}

/* Measures on the CPU, unless a device is forced, and on devices; they share the time. */
static bool measure_all_unknown(tandem_runtime *runtime, const struct tnd_conv_shape *shapes, int n,
                                bool for_device)
{
    uint8_t slots[TND_MAX_SLOTS];
    const int n_devices = tnd_conv_devices(runtime, slots);
    const double budget_s = tnd_tune_first_use_s() / (n_devices + (for_device ? 0 : 1));
    bool any = !for_device && measure_unknown(runtime, shapes, n, TND_CONV_ON_CPU, budget_s);
    for (int i = 0; i < n_devices; i++) {
        any = measure_unknown(runtime, shapes, n, slots[i], budget_s) || any;
    }
    return any;
}

static bool begin(void *user, const struct tnd_conv_shape *shapes, int n)
{
    tandem_runtime *runtime = user;
    if (tnd_runtime_check(runtime, "chooser", NULL) != TANDEM_OK) {
        return false;
    }
    const bool for_device = is_for_device(runtime);
    /* One of several threads measures, once in the life of a runtime (as in runtime.c). */
    if (atomic_load_explicit(&runtime->may_tune_convs, memory_order_relaxed) &&
        atomic_exchange_explicit(&runtime->may_tune_convs, false, memory_order_acquire) &&
        !measure_all_unknown(runtime, shapes, n, for_device)) {
        atomic_store_explicit(&runtime->may_tune_convs, true, memory_order_release);
    }
    return for_device || prefers_device(runtime, shapes, n);
}

struct tandem_chooser tnd_runtime_make_chooser(tandem_runtime *runtime)
{
    return (struct tandem_chooser){begin, choose, runtime};
}
