/* SPDX-License-Identifier: MIT
 * The advice as a command line for llama.cpp, as text, as JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/emit.h"
#include "tools/report/advise.h"

enum { DEFAULT_BATCH = 2048 };

/* Appends a word quoted for a shell. */
static void add_word(struct tnd_text *out, const char *word)
{
    const char *const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                              "%+,-./:=@_";
    if (word[0] != '\0' && word[strspn(word, plain)] == '\0') {
        tnd_text_add(out, word);
        return;
    }
    tnd_text_add_char(out, '\'');
    for (; *word != '\0'; word++) {
        if (*word == '\'') {
            tnd_text_add(out, "'\\''");
        } else {
            tnd_text_add_char(out, *word);
        }
    }
    tnd_text_add_char(out, '\'');
}

void tnd_advise_command(const struct tnd_advise_request *request, const struct tnd_advice *advice,
                        struct tnd_text *out)
{
    if (advice->offload_m > 0) {
        tnd_text_printf(out, "GGML_OP_OFFLOAD_MIN_BATCH=%" PRId64 " ", advice->offload_m);
    }
    tnd_text_add(out, "llama-cli -m ");
    add_word(out, request->model->name);
    tnd_text_printf(out, " -c %" PRId64, request->context);
    if (advice->threads > 0) {
        tnd_text_printf(out, " -t %d", advice->threads);
    }
    if (advice->batch_threads > 0) {
        tnd_text_printf(out, " -tb %d", advice->batch_threads);
    }
    if (advice->ubatch > DEFAULT_BATCH) {
        tnd_text_printf(out, " -b %" PRId64, advice->ubatch);
    }
    if (advice->ubatch > 0) {
        tnd_text_printf(out, " -ub %" PRId64, advice->ubatch);
    }
    if (advice->layers >= 0) {
        tnd_text_printf(out, " -ngl %d", advice->layers);
    }
    if (advice->layers > 0 && advice->expert_layers > 0) {
        tnd_text_printf(out, " --n-cpu-moe %d", advice->expert_layers);
    }
    tnd_text_add(out, advice->no_op_offload ? " --no-op-offload" : "");
    tnd_text_add(out, advice->knows_repack && !advice->repack ? " --no-repack" : "");
    if (advice->cache != TANDEM_TYPE_F16) {
        tnd_text_printf(out, " -fa on -ctk %s -ctv %s", tandem_type_name(advice->cache),
                        tandem_type_name(advice->cache));
    }
}

/* ---- text ---- */

static void add_speed(struct tnd_text *out, const char *what, double tps, const double range[2])
{
    tnd_text_printf(out, "  %-10s ", what);
    if (tps > 0) {
        tnd_text_printf(out, "%.4g tokens/s (%.4g to %.4g)\n", tps, range[0], range[1]);
    } else if (range[1] > 0) {
        tnd_text_printf(out, "unknown, hardly more than %.4g tokens/s\n", range[1]);
    } else {
        tnd_text_add(out, "unknown\n");
    }
}

static void add_reasons(struct tnd_text *out, const struct tnd_advice *advice, bool is_unknown,
                        const char *title)
{
    bool is_first = true;
    for (int i = 0; i < advice->n_reasons; i++) {
        if (advice->reasons[i].is_unknown == is_unknown) {
            tnd_text_printf(out, "%s  - %s\n", is_first ? title : "", advice->reasons[i].text);
            is_first = false;
        }
    }
}

void tnd_advise_text(const struct tnd_advise_request *request, const struct tnd_advice *advice,
                     struct tnd_text *out)
{
    tnd_text_printf(out, "%s (%.2f GiB, %.2f billion weights)\n\n  ", request->model->name,
                    (double)request->model->bytes / 1073741824.0,
                    1e-9 * (double)request->model->weights);
    tnd_advise_command(request, advice, out);
    tnd_text_add(out, "\n\n");
    add_speed(out, "prompt", advice->prompt_tps, advice->prompt_range);
    add_speed(out, "generation", advice->generation_tps, advice->generation_range);
    if (advice->version[0] != '\0') {
        tnd_text_printf(out, "  by times of %s%s\n", advice->version,
                        advice->has_times ? "" : ", measured with another model");
    }
    add_reasons(out, advice, false, "Why:\n");
    add_reasons(out, advice, true, "What this cannot tell:\n");
}

/* ---- JSON ---- */

static void add_whole(struct tnd_text *out, const char *key, bool is_known, int64_t value)
{
    tnd_text_printf(out, ", \"%s\": ", key);
    if (is_known) {
        tnd_text_printf(out, "%" PRId64, value);
    } else {
        tnd_text_add(out, "null");
    }
}

static void add_real(struct tnd_text *out, double value)
{
    if (value > 0) {
        tnd_text_add_double(out, value);
    } else {
        tnd_text_add(out, "null");
    }
}

static void add_range(struct tnd_text *out, const char *key, const double range[2])
{
    tnd_text_printf(out, "\"%s\": [", key);
    add_real(out, range[0]);
    tnd_text_add(out, ", ");
    add_real(out, range[1]);
    tnd_text_add_char(out, ']');
}

static void add_options(const struct tnd_advise_request *request, const struct tnd_advice *advice,
                        struct tnd_text *out)
{
    const bool has_device = advice->layers >= 0;
    tnd_text_printf(out, "{\"context\": %" PRId64, request->context);
    add_whole(out, "threads", advice->threads > 0, advice->threads);
    add_whole(out, "threads_batch", advice->batch_threads > 0, advice->batch_threads);
    add_whole(out, "ubatch", advice->ubatch > 0, advice->ubatch);
    add_whole(out, "gpu_layers", has_device, advice->layers);
    add_whole(out, "cpu_moe_layers", has_device, advice->expert_layers);
    add_whole(out, "op_offload_min_batch", advice->offload_m > 0, advice->offload_m);
    tnd_text_printf(out, ", \"op_offload\": %s", advice->no_op_offload ? "false" : "true");
    tnd_text_printf(out, ", \"repack\": %s",
                    !advice->knows_repack ? "null" : (advice->repack ? "true" : "false"));
    tnd_text_printf(out, ", \"cache_type\": \"%s\"}", tandem_type_name(advice->cache));
}

static void add_list(struct tnd_text *out, const struct tnd_advice *advice, bool is_unknown)
{
    const char *before = "";
    tnd_text_add_char(out, '[');
    for (int i = 0; i < advice->n_reasons; i++) {
        if (advice->reasons[i].is_unknown == is_unknown) {
            tnd_text_add(out, before);
            tnd_emit_json_string(out, advice->reasons[i].text);
            before = ", ";
        }
    }
    tnd_text_add_char(out, ']');
}

void tnd_advise_json(const struct tnd_advise_request *request, const struct tnd_advice *advice,
                     const char *indent, struct tnd_text *out)
{
    struct tnd_text command = TND_TEXT_INIT;
    tnd_advise_command(request, advice, &command);
    tnd_text_add(out, "{\"model\": ");
    tnd_emit_json_string(out, request->model->name);
    tnd_text_printf(out, ",\n%s \"command\": ", indent);
    tnd_emit_json_string(out, tnd_text_string(&command));
    tnd_text_printf(out, ",\n%s \"options\": ", indent);
    add_options(request, advice, out);
    tnd_text_printf(out, ",\n%s \"prompt_tps\": ", indent);
    add_real(out, advice->prompt_tps);
    tnd_text_add(out, ", \"generation_tps\": ");
    add_real(out, advice->generation_tps);
    tnd_text_printf(out, ",\n%s \"range\": {", indent);
    add_range(out, "prompt", advice->prompt_range);
    tnd_text_add(out, ", ");
    add_range(out, "generation", advice->generation_range);
    tnd_text_printf(out, "},\n%s \"times_of\": ", indent);
    if (advice->version[0] != '\0') {
        tnd_emit_json_string(out, advice->version);
    } else {
        tnd_text_add(out, "null");
    }
    tnd_text_printf(out, ",\n%s \"reasons\": ", indent);
    add_list(out, advice, false);
    tnd_text_printf(out, ",\n%s \"unknown\": ", indent);
    add_list(out, advice, true);
    tnd_text_add_char(out, '}');
    out->failed = out->failed || command.failed;
    tnd_text_fini(&command);
}
