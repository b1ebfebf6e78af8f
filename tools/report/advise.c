/* SPDX-License-Identifier: MIT
 * The advice: placement by bytes, threads by the table's times, the rest by times of the program
 * itself. */
#include "tools/report/advise.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tune/candidates.h"

enum {
    PROMPT_M = 512,       /* tokens of a pass, for choosing prompt threads */
    DEFAULT_UBATCH = 512, /* of llama.cpp */
    DEFAULT_OFFLOAD = 32  /* of llama.cpp: GGML_OP_OFFLOAD_MIN_BATCH */
};
/* Memory left free on a device for computing, as llama.cpp's own -fit does. Bytes. */
static const double reserve_bytes = 1073741824.0;
/* Relative difference below which two times count as equal; then fewer threads, the smaller batch,
 * the default is chosen. */
static const double equal = 0.02;
/* Relative error of speeds that are scaled from another model by its bytes. */
static const double scaled_error = 0.3;

/* Weights larger than the last-level cache by this factor are read from memory. */
static const double in_memory = 4;

struct work {
    const struct tnd_advise_request *request;
    const struct tnd_advise_model *model;
    const struct tandem_table *table;
    const struct tnd_program_time *newest; /* latest time of the program; NULL: none */
    bool is_own;                           /* of exactly this model */
    struct tnd_advice *out;
};

static void __attribute__((format(printf, 3, 4)))
say(struct work *work, bool is_unknown, const char *format, ...)
{
    struct tnd_advice *out = work->out;
    va_list arguments;
    if (out->n_reasons < TND_ADVISE_REASONS) {
        struct tnd_advise_reason *reason = &out->reasons[out->n_reasons++];
        reason->is_unknown = is_unknown;
        va_start(arguments, format);
        (void)vsnprintf(reason->text, sizeof(reason->text), format, arguments);
        va_end(arguments);
    }
}

static double gib(double bytes)
{
    return bytes / 1073741824.0;
}

/* ---- the program's own times ---- */

static bool is_of_model(const struct tnd_program_time *time, const struct tnd_advise_model *model)
{
    return time->bytes == model->bytes && time->weights == model->weights;
}

/* Finds the newest measurement of this model, or else of any. */
static void find_newest(struct work *work)
{
    for (int i = 0; i < work->table->n_programs; i++) { /* newest first */
        const struct tnd_program_time *time = &work->table->programs[i];
        const bool is_own = is_of_model(time, work->model);
        if (strcmp(time->program, "llama.cpp") == 0 && time->median_us > 0 &&
            (work->newest == NULL || (is_own && !work->is_own))) {
            work->newest = time;
            work->is_own = is_own;
        }
    }
}

static double speed_of(const struct tnd_program_time *time)
{
    return 1e6 * (double)(time->prompt + time->generated) / time->median_us;
}

/* Whether program, machine and model are those of the newest time. */
static bool is_valid(const struct work *work, const struct tnd_program_time *time)
{
    const struct tnd_program_time *newest = work->newest;
    return newest != NULL && strcmp(time->program, newest->program) == 0 &&
           strcmp(time->version, newest->version) == 0 &&
           strcmp(time->backends, newest->backends) == 0 &&
           strcmp(time->device, newest->device) == 0 && time->bytes == newest->bytes &&
           time->weights == newest->weights && time->median_us > 0;
}

/* Conditions for a time; negative: any. */
struct setting {
    bool generates;
    int threads;
    int64_t ubatch;
    int64_t layers, expert_layers;
    int repack, no_op_offload;
};
static const struct setting any = {false, -1, -1, -1, -1, -1, -1};

static bool has(const struct tnd_program_time *time, const struct setting *setting)
{
    return (time->generated > 0) == setting->generates &&
           (setting->threads < 0 || time->threads == setting->threads) &&
           (setting->ubatch < 0 || time->ubatch == setting->ubatch) &&
           (setting->layers < 0 || time->layers == (uint32_t)setting->layers) &&
           (setting->expert_layers < 0 ||
            time->expert_layers == (uint32_t)setting->expert_layers) &&
           (setting->repack < 0 || time->repack == setting->repack) &&
           (setting->no_op_offload < 0 || time->no_op_offload == setting->no_op_offload);
}

/* The fastest time; of those within `slack`, the one with fewer threads, then the smaller batch. */
static const struct tnd_program_time *fastest(const struct work *work,
                                              const struct setting *setting, double slack)
{
    const struct tnd_program_time *best = NULL;
    double most = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < work->table->n_programs; i++) {
            const struct tnd_program_time *time = &work->table->programs[i];
            if (!is_valid(work, time) || !has(time, setting)) {
                continue;
            }
            if (pass == 0) {
                most = fmax(most, speed_of(time));
            } else if (speed_of(time) >= most * (1 - slack) &&
                       (best == NULL || time->threads < best->threads ||
                        (time->threads == best->threads && time->ubatch < best->ubatch))) {
                best = time;
            }
        }
    }
    return best;
}

static double fastest_speed(const struct work *work, struct setting setting)
{
    const struct tnd_program_time *time = fastest(work, &setting, 0);
    return time != NULL ? speed_of(time) : 0;
}

/* ---- placement ---- */

struct placement {
    int layers, expert_layers;
    double bytes;
};

/* Layers as counted by llama.cpp's -ngl: the output first, then the last layers. `with_experts`
 * false: experts stay on the CPU. */
static int fit_layers(const struct work *work, double room, enum tandem_type cache,
                      bool with_experts, double *out_bytes)
{
    const struct tnd_advise_model *model = work->model;
    double bytes = (double)model->output_bytes;
    int layers = bytes <= room ? 1 : 0;
    for (int i = model->n_layers - 1; i >= 0 && layers > 0; i--) {
        const double more = (double)model->layers[i].dense_bytes +
                            (with_experts ? (double)model->layers[i].expert_bytes : 0) +
                            tnd_advise_kv_bytes(&model->layers[i], work->request->context, cache);
        if (bytes + more > room) {
            break;
        }
        bytes += more;
        layers++;
    }
    *out_bytes = layers > 0 ? bytes : 0;
    return layers;
}

/* Places everything but experts first: all of it is read for every token, an expert only for
 * some. */
static struct placement place(const struct work *work, double room, enum tandem_type cache)
{
    const struct tnd_advise_model *model = work->model;
    struct placement placement = {0, 0, 0};
    placement.layers = fit_layers(work, room, cache, model->experts == 0, &placement.bytes);
    if (model->experts == 0 || placement.layers <= model->n_layers) {
        placement.expert_layers = model->experts > 0 ? model->n_layers : 0;
        return placement;
    }
    int first = model->n_layers;
    while (first > 0 && placement.bytes + (double)model->layers[first - 1].expert_bytes <= room) {
        first--;
        placement.bytes += (double)model->layers[first].expert_bytes;
    }
    placement.expert_layers = first;
    return placement;
}

static bool is_better(const struct placement *a, const struct placement *b)
{
    return a->layers > b->layers || (a->layers == b->layers && a->expert_layers < b->expert_layers);
}

static void explain_placement(struct work *work, const struct placement *placement, double room)
{
    const struct tnd_advise_model *model = work->model;
    struct tnd_advice *out = work->out;
    if (placement->layers > model->n_layers && placement->expert_layers == 0) {
        say(work, false,
            "-ngl %d: the whole model with %" PRId64
            " tokens of keys and values takes %.2f of %.2f GiB that are free on the device",
            out->layers, work->request->context, gib(placement->bytes), gib(room));
    } else if (placement->layers > model->n_layers) {
        say(work, false,
            "--n-cpu-moe %d: experts of the other %d layers fill the device (%.2f of "
            "%.2f GiB); a token reads %" PRId64 " of %" PRId64
            " experts, so their bytes pay least there",
            out->expert_layers, model->n_layers - out->expert_layers, gib(placement->bytes),
            gib(room), model->experts_used, model->experts);
    } else {
        say(work, false,
            "-ngl %d: the logits and the last %d of %d layers fill the device (%.2f of "
            "%.2f GiB); the rest is computed on the CPU",
            out->layers, placement->layers > 0 ? placement->layers - 1 : 0, model->n_layers,
            gib(placement->bytes), gib(room));
    }
}

static void choose_placement(struct work *work)
{
    struct tnd_advice *out = work->out;
    const double device = work->request->device_bytes;
    out->layers = -1;
    out->cache = TANDEM_TYPE_F16;
    if (!(device > 0)) {
        say(work, true,
            "how many layers belong on a device: its memory is not known; give "
            "--device-memory GiB (llama.cpp then fits them itself: -fit on)");
        return;
    }
    const double room = device - fmin(reserve_bytes, 0.25 * device);
    struct placement placement = place(work, room, TANDEM_TYPE_F16);
    const struct placement small = place(work, room, TANDEM_TYPE_Q8_0);
    if (is_better(&small, &placement)) {
        placement = small;
        out->cache = TANDEM_TYPE_Q8_0;
        say(work, false,
            "-ctk q8_0 -ctv q8_0: keys and values of half the size let more of the "
            "model onto the device; they need -fa on, and round a little");
    }
    out->layers = placement.layers;
    out->expert_layers = placement.expert_layers;
    explain_placement(work, &placement, room);
}

/* The program's own times may show that the device does not pay. */
static void check_placement(struct work *work)
{
    struct tnd_advice *out = work->out;
    struct setting setting = any;
    double cpu[2];
    double device[2];
    if (!work->is_own || out->layers <= 0) {
        return;
    }
    for (int i = 0; i < 2; i++) {
        setting.generates = i == 1;
        setting.layers = 0;
        cpu[i] = fastest_speed(work, setting);
        setting.layers = out->layers;
        device[i] = fastest_speed(work, setting);
    }
    if (cpu[0] > 0 && cpu[1] > 0 && device[0] > 0 && device[1] > 0) {
        const double gain = sqrt(device[0] / cpu[0] * (device[1] / cpu[1]));
        say(work, false,
            "%s: measured, the device makes prompts %.2f and generation %.2f times as "
            "fast as the CPU alone",
            gain < 1 ? "-ngl 0" : "the device pays", device[0] / cpu[0], device[1] / cpu[1]);
        if (gain < 1) {
            out->layers = 0;
            out->expert_layers = 0;
            out->cache = TANDEM_TYPE_F16;
        }
    } else {
        say(work, true, "whether the device pays: llama-bench was not run with it and without");
    }
}

/* ---- threads ---- */

static int most_threads(const struct tandem_table *table)
{
    int most = 1;
    for (int i = 0; i < table->n_curves; i++) {
        most = table->curves[i].key.threads > most ? table->curves[i].key.threads : most;
    }
    return table->fingerprint.n_cpus > most ? table->fingerprint.n_cpus : most;
}

/* Chooses by Tandem's times; 0: unknown. */
static int threads_by_table(const struct work *work, int64_t m, double *out_us)
{
    const int limit = most_threads(work->table);
    int best = 0;
    *out_us = INFINITY;
    for (int threads = 1; threads <= limit;) {
        const double us = tnd_advise_cpu_us(work->table, work->model, m, threads);
        if (us < *out_us * (1 - equal)) {
            *out_us = us;
            best = threads;
        }
        const int next = tnd_next_thread_count(work->table, threads, limit);
        threads = next > threads ? next : limit + 1;
    }
    return best;
}

static int threads_for(struct work *work, bool generates)
{
    const char *option = generates ? "-t" : "-tb";
    const char *what = generates ? "generation" : "prompts";
    struct setting setting = any;
    setting.generates = generates;
    setting.layers = work->is_own && work->out->layers >= 0 ? work->out->layers : -1;
    const struct tnd_program_time *time = fastest(work, &setting, equal);
    if (time == NULL) {
        setting.layers = -1;
        time = fastest(work, &setting, equal);
    }
    if (time != NULL) {
        say(work, false, "%s %d: llama-bench is fastest with it in %s (%.4g tokens/s%s)", option,
            time->threads, what, speed_of(time), work->is_own ? "" : ", of another model");
        return time->threads;
    }
    double us = 0;
    const int threads = threads_by_table(work, generates ? 1 : PROMPT_M, &us);
    if (threads > 0) {
        say(work, false,
            "%s %d: the products of %s are fastest with it by Tandem's own kernels "
            "(%.1f ms a pass)",
            option, threads, what, 1e-3 * us);
        return threads;
    }
    say(work, true,
        "threads for %s: the table has no times for the shapes of this model; run "
        "'mulmat-tune bench --model %.200s'",
        what, work->model->name);
    return 0;
}

/* ---- choices that need the program's own times ---- */

static void choose_ubatch(struct work *work)
{
    struct tnd_advice *out = work->out;
    struct setting setting = any;
    setting.threads = out->batch_threads;
    setting.repack = 1;
    setting.layers = out->layers;
    const struct tnd_program_time *best = work->is_own ? fastest(work, &setting, equal) : NULL;
    setting.ubatch = DEFAULT_UBATCH;
    const double usual = fastest_speed(work, setting);
    if (best == NULL) {
        say(work, true, "the size of a batch (-ub): it depends on llama.cpp's own kernels");
        return;
    }
    out->ubatch = usual >= speed_of(best) * (1 - equal) ? DEFAULT_UBATCH : best->ubatch;
    say(work, false, "-ub %" PRId64 ": %s", out->ubatch,
        out->ubatch == DEFAULT_UBATCH ? "llama.cpp's default, and no measured size is faster"
                                      : "measured as the fastest for prompts");
}

static void choose_repack(struct work *work)
{
    struct tnd_advice *out = work->out;
    double ratio = 1;
    for (int i = 0; i < 2 && work->is_own && ratio > 0; i++) {
        struct setting setting = any;
        setting.generates = i == 1;
        setting.threads = i == 1 ? out->threads : out->batch_threads;
        setting.layers = out->layers;
        setting.ubatch = DEFAULT_UBATCH;
        setting.repack = 1;
        const double on = fastest_speed(work, setting);
        setting.repack = 0;
        ratio = on > 0 ? ratio * fastest_speed(work, setting) / on : 0;
    }
    if (!work->is_own || ratio == 0) {
        say(work, true,
            "whether repacking of weights pays (--no-repack): it depends on llama.cpp's "
            "own kernels");
        return;
    }
    out->knows_repack = true;
    out->repack = ratio < (1 + equal) * (1 + equal);
    say(work, false, "%s: without repacking prompts and generation together are %.2f times as fast",
        out->repack ? "repacking stays on" : "--no-repack", sqrt(ratio));
}

/* Only if weights on the host may be moved to a device for a prompt. */
static void choose_offload(struct work *work)
{
    struct tnd_advice *out = work->out;
    struct setting setting = any;
    if (out->layers < 0 || (out->layers > work->model->n_layers && out->expert_layers == 0)) {
        return;
    }
    setting.layers = out->layers;
    setting.no_op_offload = 0;
    const double with = work->is_own ? fastest_speed(work, setting) : 0;
    setting.no_op_offload = 1;
    const double without = work->is_own ? fastest_speed(work, setting) : 0;
    if (with > 0 && without > 0) {
        out->no_op_offload = without > with * (1 + equal);
        say(work, false,
            "%s: prompts of %d tokens are %.2f times as fast when the host's weights "
            "are moved to the device",
            out->no_op_offload ? "--no-op-offload" : "op-offload stays on", PROMPT_M,
            with / without);
        return;
    }
    const int64_t m = tnd_advise_offload_m(work->table, work->model,
                                           out->batch_threads > 0 ? out->batch_threads : 1, 4096);
    if (m < 0) {
        say(work, true,
            "from how many tokens on moving the host's weights to the device pays: the "
            "table has no device");
    } else if (m == 0) {
        out->no_op_offload = true;
        say(work, false,
            "--no-op-offload: moving the host's weights to the device never pays, by "
            "the transfers and times of Tandem's table");
    } else {
        out->offload_m = m;
        say(work, false,
            "GGML_OP_OFFLOAD_MIN_BATCH=%" PRId64 ": from so many tokens on moving the "
            "host's weights to the device pays, by Tandem's table (llama.cpp's default: %d)",
            m, DEFAULT_OFFLOAD);
    }
}

/* ---- predictions ---- */

static void predict_own(struct work *work, bool generates, double *out_tps, double range[2])
{
    const struct tnd_advice *out = work->out;
    struct setting setting = any;
    setting.generates = generates;
    setting.threads = generates ? out->threads : out->batch_threads;
    setting.layers = out->layers;
    setting.expert_layers = out->layers >= 0 ? out->expert_layers : -1;
    setting.repack = out->knows_repack ? out->repack : 1;
    setting.no_op_offload = out->no_op_offload;
    setting.ubatch = out->ubatch > 0 && !generates ? out->ubatch : -1;
    const struct tnd_program_time *time = fastest(work, &setting, 0);
    if (time == NULL) {
        return;
    }
    const double share = fmin(0.9, fmax(0.05, 3 * time->spread_us / time->median_us));
    *out_tps = speed_of(time);
    range[0] = *out_tps * (1 - share);
    range[1] = *out_tps * (1 + share);
}

/* Generation time scales with the active bytes, prompt time with all weights that are used. */
static void predict_by_other(struct work *work, bool generates, double *out_tps, double range[2])
{
    const double active = tnd_advise_active_bytes(work->model);
    struct setting setting = any;
    setting.generates = generates;
    setting.layers = 0;
    const struct tnd_program_time *time = fastest(work, &setting, 0);
    if (time == NULL || work->out->layers > 0 || !(active > 0)) {
        return;
    }
    const double ratio = generates ? (double)time->bytes / active
                                   : (double)time->weights / (double)work->model->weights *
                                         (double)work->model->bytes / active;
    *out_tps = speed_of(time) * ratio;
    range[0] = *out_tps * (1 - scaled_error);
    range[1] = *out_tps * (1 + scaled_error);
}

/* Generation reads the active weights for each token: it is bounded by the peak rate of reading, or
 * by the time of only the products with Tandem's kernels, since a measured peak may have been
 * disturbed. */
static void bound_generation(struct work *work)
{
    struct tnd_advice *out = work->out;
    const int limit = out->threads > 0 ? out->threads : most_threads(work->table);
    const double active = tnd_advise_active_bytes(work->model);
    const double cache = (double)work->table->fingerprint.l3_bytes;
    const double by_peak = 1e9 * tnd_table_peak(work->table, "read", limit) / active;
    const double by_times = 1e6 / tnd_advise_cpu_us(work->table, work->model, 1, limit);
    const double bound = fmax(by_peak, by_times);
    if (out->generation_tps == 0 && out->layers <= 0 && by_peak > 0 && active > in_memory * cache) {
        out->generation_range[1] = bound;
        say(work, false,
            "generation reads %.2f GiB a token, and this machine's memory gives %.3g GB/s: hardly "
            "more than %.3g tokens/s, whoever computes",
            gib(active), 1e-9 * bound * active, bound);
    }
}

static void predict(struct work *work)
{
    struct tnd_advice *out = work->out;
    void (*const by)(struct work *, bool, double *, double *) =
        work->is_own ? predict_own : predict_by_other;
    if (work->newest != NULL) {
        by(work, false, &out->prompt_tps, out->prompt_range);
        by(work, true, &out->generation_tps, out->generation_range);
    }
    bound_generation(work);
    if (out->prompt_tps == 0 || out->generation_tps == 0) {
        say(work, true,
            "how fast it will be: llama.cpp's own times with these options are not in "
            "the table; measure them by --measure PATH/llama-bench");
    } else if (!work->is_own) {
        say(work, false,
            "speeds are those of another model, scaled by bytes and weights: %.0f %% "
            "off at worst, we believe",
            100 * scaled_error);
    }
}

static void check_memory(struct work *work)
{
    const struct tnd_advise_model *model = work->model;
    const double ram = (double)work->table->fingerprint.ram_bytes;
    double bytes = (double)model->bytes;
    for (int i = 0; i < model->n_layers; i++) {
        bytes += tnd_advise_kv_bytes(&model->layers[i], work->request->context, TANDEM_TYPE_F16);
    }
    if (ram > 0 && bytes - work->request->device_bytes > ram) {
        say(work, false,
            "the model with its keys and values takes %.2f GiB, and this machine has "
            "%.2f GiB: parts will be read from the disk again and again",
            gib(bytes), gib(ram));
    }
}

void tnd_advise(const struct tnd_advise_request *request, struct tnd_advice *out)
{
    struct work work = {
        .request = request, .model = request->model, .table = request->table, .out = out};
    memset(out, 0, sizeof(*out));
    find_newest(&work);
    out->has_times = work.is_own;
    if (work.newest != NULL) {
        snprintf(out->version, sizeof(out->version), "llama.cpp %s, %s", work.newest->version,
                 work.newest->backends);
    }
    choose_placement(&work);
    check_placement(&work);
    out->threads = threads_for(&work, true);
    out->batch_threads = threads_for(&work, false);
    choose_ubatch(&work);
    choose_repack(&work);
    choose_offload(&work);
    check_memory(&work);
    predict(&work);
}
