/* SPDX-License-Identifier: MIT
 * Methods of convolutions by a runtime's table. */
#include "runtime/choose_convs.h"

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
    if (threads == 0) { /* a child of the process that opened it */
        tnd_conv_choose_by_rule(question, out);
        return;
    }
    pthread_mutex_lock(&runtime->lock);
    tnd_conv_choose(tnd_runtime_locked_table(runtime), threads, question, out);
    pthread_mutex_unlock(&runtime->lock);
}

static bool is_for_device(const tandem_runtime *runtime)
{
    const int forced = tnd_planner_forced(runtime->planner);
    const struct tnd_profile *profile =
        forced < 0 ? NULL : tnd_profile_at(runtime->registry, forced);
    return profile != NULL && profile->api->devices != NULL;
}

/* ---- on first use ---- */

/* Copies those that the table has no times of. */
static int list_unknown(tandem_runtime *runtime, const struct tnd_conv_shape *shapes, int n,
                        struct tnd_conv_shape *out)
{
    const int threads = tandem_runtime_threads(runtime);
    int n_unknown = 0;
    pthread_mutex_lock(&runtime->lock);
    const struct tandem_table *table = tnd_runtime_locked_table(runtime);
    for (int i = 0; i < n; i++) {
        struct tnd_conv_estimate time;
        tnd_conv_estimate(table, &shapes[i], TND_CONV_DIRECT, threads, &time);
        if (time.us < 0 || time.n_near > 0) {
            out[n_unknown++] = shapes[i];
        }
    }
    pthread_mutex_unlock(&runtime->lock);
    return tnd_conv_distinct(out, n_unknown);
}

static enum tandem_status measure(tandem_runtime *runtime, const struct tnd_conv_shape *shapes,
                                  int n, uint64_t begin_ns, struct tandem_error *error)
{
    const struct tnd_conv_tuning tuning = {
        .shapes = shapes, .n = n, .budget_s = tnd_tune_first_use_s(), .begin_ns = begin_ns};
    tandem_table *fresh = NULL;
    tnd_log_line(&runtime->log, TANDEM_LOG_INFO, "runtime",
                 "first use of %d convolutions that no table knows: measuring for %.1f s", n,
                 tuning.budget_s);
    TND_TRY(tandem_table_new(&fresh, error));
    tnd_fingerprint_read_all(runtime->registry, &fresh->fingerprint);
    enum tandem_status status = tnd_tune_convs(runtime, &tuning, fresh, error);
    if (fresh->n_convolutions > 0) {
        const enum tandem_status kept =
            tnd_tune_adopt(runtime, fresh, true, status == TANDEM_OK ? error : NULL);
        status = status == TANDEM_OK ? kept : status;
    }
    tandem_table_free(fresh);
    return status;
}

/* Whether something was unknown. */
static bool measure_unknown(tandem_runtime *runtime, const struct tnd_conv_shape *shapes, int n)
{
    const uint64_t begin_ns = runtime->clock->now_ns(runtime->clock);
    struct tandem_error error = {0};
    struct tnd_conv_shape *unknown = tnd_calloc((size_t)n + 1, sizeof(unknown[0]));
    const int n_unknown = unknown == NULL ? 0 : list_unknown(runtime, shapes, n, unknown);
    if (n_unknown > 0 && measure(runtime, unknown, n_unknown, begin_ns, &error) != TANDEM_OK) {
        tnd_log_line(&runtime->log, TANDEM_LOG_WARN, "runtime", "measuring on first use: %s",
                     error.text);
    }
    tnd_free(unknown);
    return n_unknown > 0;
}

static bool begin(void *user, const struct tnd_conv_shape *shapes, int n)
{
    tandem_runtime *runtime = user;
    if (tnd_runtime_check(runtime, "chooser", NULL) != TANDEM_OK) {
        return false;
    }
    const bool for_device = is_for_device(runtime);
    /* One of several threads measures, once in the life of a runtime (as in runtime.c). */
    if (!for_device && atomic_load_explicit(&runtime->may_tune_convs, memory_order_relaxed) &&
        atomic_exchange_explicit(&runtime->may_tune_convs, false, memory_order_acquire) &&
        !measure_unknown(runtime, shapes, n)) {
        atomic_store_explicit(&runtime->may_tune_convs, true, memory_order_release);
    }
    return for_device;
}

struct tandem_chooser tnd_runtime_make_chooser(tandem_runtime *runtime)
{
    return (struct tandem_chooser){begin, choose, runtime};
}
