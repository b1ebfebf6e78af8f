/* SPDX-License-Identifier: MIT
 * Printing the results of `fit`, as text and as JSON. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/emit.h"
#include "tools/tandem-llama/fit_result.h"

#define GIB        (1024.0 * 1024.0 * 1024.0)
#define MOST_RANGE 48 /* characters in a list of layers */
#define BAR        30 /* characters in the longest bar */

static double speed(const struct fit_result *r, enum tnd_fit_phase phase, double us)
{
    return tnd_fit_tokens(r->priced, phase) * 1e6 / us;
}

static const char *side_name(const struct fit_result *r, int side)
{
    return side == 0 ? "cpu" : r->options->devices[side];
}

/* ---- what is where ---- */

struct share {
    int n_groups;
    int64_t n_experts; /* hot experts of layers whose experts are split */
    int64_t bytes, cache_bytes;
    char layers[MOST_RANGE + 8]; /* "0-11, 40-47" */
};

static void add_range(struct share *share, int32_t first, int32_t last)
{
    const size_t n = strlen(share->layers);
    char text[32];
    if (first == last) {
        snprintf(text, sizeof(text), "%s%d", n > 0 ? ", " : "", (int)first);
    } else {
        snprintf(text, sizeof(text), "%s%d-%d", n > 0 ? ", " : "", (int)first, (int)last);
    }
    if (n + strlen(text) <= MOST_RANGE) {
        snprintf(share->layers + n, sizeof(share->layers) - n, "%s", text);
    } else if (n < 3 || strcmp(share->layers + n - 3, "...") != 0) {
        snprintf(share->layers + n, sizeof(share->layers) - n, ", ...");
    }
}

static struct share share_of(const struct fit_result *r, enum tnd_fit_part part, int side)
{
    const struct tnd_fit_model *model = r->priced;
    struct share share = {.n_groups = 0};
    int32_t first = -1;
    int32_t last = -1;
    for (int g = 0; g < model->n_groups; g++) {
        const struct tnd_fit_group *group = &model->groups[g];
        if (group->part != part || r->placements[FIT_CHOSEN].sides[g] != side) {
            continue;
        }
        share.n_groups++;
        share.bytes += group->bytes;
        share.cache_bytes += group->cache_bytes;
        share.n_experts += group->n_ranks;
        if (group->layer == last || group->layer < 0 || group->layer >= model->n_layers) {
            continue;
        }
        if (first >= 0 && group->layer != last + 1) {
            add_range(&share, first, last);
            first = -1;
        }
        first = first < 0 ? group->layer : first;
        last = group->layer;
    }
    if (first >= 0) {
        add_range(&share, first, last);
    }
    return share;
}

static void print_places(const struct fit_result *r, struct tnd_text *out)
{
    tnd_text_printf(out, "\n%-13s %-8s %10s %15s  %s\n", "what", "where", "weights",
                    "keys and values", "layers");
    for (int part = 0; part < TND_FIT_PARTS; part++) {
        for (int side = r->priced->n_sides - 1; side >= 0; side--) {
            const struct share share = share_of(r, (enum tnd_fit_part)part, side);
            if (share.n_groups == 0) {
                continue;
            }
            tnd_text_printf(out, "%-13s %-8s %6.2f GiB ",
                            tnd_fit_part_name((enum tnd_fit_part)part), side_name(r, side),
                            (double)share.bytes / GIB);
            if (share.cache_bytes > 0) {
                tnd_text_printf(out, "%11.2f GiB", (double)share.cache_bytes / GIB);
            } else {
                tnd_text_add_repeat(out, ' ', 15);
            }
            tnd_text_printf(out, "%s%s", share.layers[0] != '\0' ? "  " : "", share.layers);
            if (share.n_experts > 0) {
                tnd_text_printf(out, " (%lld experts, %s)", (long long)share.n_experts,
                                side > 0 ? "hot" : "cold");
            }
            tnd_text_add_char(out, '\n');
        }
    }
}

/* ---- how fast it is ---- */

static void name_placement(const struct fit_result *r, int rule, char *out, size_t n)
{
    if (rule == FIT_HOST) {
        snprintf(out, n, "CPU alone");
    } else if (rule == FIT_DEVICE) {
        snprintf(out, n, "%.16s alone", side_name(r, 1));
    } else if (rule == FIT_LAYERS) {
        snprintf(out, n, "%d whole layers", r->n_whole_layers);
    } else {
        snprintf(out, n, "placed as above");
    }
}

static void print_phase(const struct fit_result *r, enum tnd_fit_phase phase, struct tnd_text *out)
{
    double best = 0;
    for (int rule = 0; rule < FIT_PLACEMENTS; rule++) {
        best = r->placements[rule].fits ? fmax(best, speed(r, phase, r->placements[rule].us[phase]))
                                        : best;
    }
    tnd_text_printf(out, "\n%-18s %10s  %s\n", phase == TND_FIT_PROMPT ? "prompt" : "generation",
                    "tokens/s", "range");
    for (int rule = 0; rule < FIT_PLACEMENTS; rule++) {
        const struct fit_placement *w = &r->placements[rule];
        char name[40];
        if (r->priced->n_sides == 1 && rule != FIT_HOST) {
            continue;
        }
        name_placement(r, rule, name, sizeof(name));
        tnd_text_printf(out, "%-18s ", name);
        if (!w->fits || !isfinite(w->us[phase])) {
            tnd_text_printf(out, "%10s  %.2f GiB do not fit\n", "-", (double)w->bytes / GIB);
            continue;
        }
        const double tps = speed(r, phase, w->us[phase]);
        const double low = speed(r, phase, w->us[phase] + w->error_us[phase]);
        const double high =
            speed(r, phase, fmax(w->us[phase] - w->error_us[phase], 0.1 * w->us[phase]));
        char range[40];
        const int digits = tps < 10 ? 2 : 1;
        snprintf(range, sizeof(range), "%.*f - %.*f", digits, low, digits, high);
        tnd_text_printf(out, "%10.*f  %-17s ", digits, tps, range);
        tnd_text_add_repeat(out, '#', (size_t)(BAR * tps / best + 0.5));
        tnd_text_add_char(out, '\n');
    }
}

static void print_more(const struct fit_result *r, struct tnd_text *out)
{
    if (r->n_more == 0) {
        return;
    }
    tnd_text_printf(out, "\nWith more memory of %s:\n%10s %16s %16s\n", side_name(r, 1), "GiB",
                    "prompt tokens/s", "generation");
    for (int i = 0; i < r->n_more; i++) {
        tnd_text_printf(out, "%10.1f %16.1f %16.1f\n", (double)r->more[i].memory / GIB,
                        speed(r, TND_FIT_PROMPT, r->more[i].us[TND_FIT_PROMPT]),
                        speed(r, TND_FIT_GENERATION, r->more[i].us[TND_FIT_GENERATION]));
    }
}

void tnd_fit_print_text(const struct fit_result *r, struct tnd_text *out)
{
    const struct tnd_fit_model *model = r->priced;
    tnd_text_printf(
        out, "%s: %.2f GiB of weights, mostly %s, %d layers; a text of %lld tokens, %s\n", r->model,
        (double)r->weights->bytes / GIB, tandem_type_name(r->weights->type), (int)model->n_layers,
        (long long)r->options->context, tandem_type_name(r->options->cache_type));
    tnd_text_printf(out, "Timing table: %s. Nothing was run: times are what it predicts.\n",
                    r->table);
    for (int side = 1; side < model->n_sides; side++) {
        tnd_text_printf(out, "%s: %.2f GiB, %.2f GiB of them for weights, keys and values\n",
                        side_name(r, side), (double)r->options->memory[side] / GIB,
                        (double)model->capacity[side] / GIB);
    }
    if (model->n_sides == 1) {
        tnd_text_add(out, "The table knows no device with memory of its own.\n");
    }
    print_places(r, out);
    print_phase(r, TND_FIT_PROMPT, out);
    print_phase(r, TND_FIT_GENERATION, out);
    print_more(r, out);
}

/* ---- JSON ---- */

static void json_number(struct tnd_text *out, const char *key, double value)
{
    tnd_text_printf(out, "\"%s\": ", key);
    if (isfinite(value)) {
        tnd_text_printf(out, "%.3f", value);
    } else {
        tnd_text_add(out, "null");
    }
}

static void json_placement(const struct fit_result *r, int rule, struct tnd_text *out)
{
    static const char *const names[] = {"cpu", "device", "whole_layers", "placed"};
    static const char *const phases[] = {"prompt", "generation"};
    const struct fit_placement *w = &r->placements[rule];
    tnd_text_printf(out, "    {\"name\": \"%s\", \"fits\": %s, \"device_bytes\": %lld", names[rule],
                    w->fits ? "true" : "false", (long long)w->bytes);
    for (int phase = 0; phase < TND_FIT_PHASES; phase++) {
        const double us = w->us[phase];
        const double error_us = w->error_us[phase];
        char key[32];
        snprintf(key, sizeof(key), "%s_tps", phases[phase]);
        tnd_text_add(out, ", ");
        json_number(out, key, w->fits ? speed(r, (enum tnd_fit_phase)phase, us) : NAN);
        tnd_text_printf(out, ", \"%s_range\": ", phases[phase]);
        if (w->fits && isfinite(us)) {
            tnd_text_printf(out, "[%.3f, %.3f]", speed(r, (enum tnd_fit_phase)phase, us + error_us),
                            speed(r, (enum tnd_fit_phase)phase, fmax(us - error_us, 0.1 * us)));
        } else {
            tnd_text_add(out, "null");
        }
    }
    tnd_text_printf(out, "}%s\n", rule + 1 < FIT_PLACEMENTS ? "," : "");
}

static void json_groups(const struct fit_result *r, struct tnd_text *out)
{
    const struct tnd_fit_model *model = r->priced;
    tnd_text_add(out, "  \"groups\": [\n");
    for (int g = 0; g < model->n_groups; g++) {
        const struct tnd_fit_group *group = &model->groups[g];
        tnd_text_printf(
            out,
            "    {\"what\": \"%s\", \"layer\": %d, \"bytes\": %lld, \"cache_bytes\": %lld, "
            "\"experts\": %d, \"where\": ",
            tnd_fit_part_name(group->part), group->layer < model->n_layers ? (int)group->layer : -1,
            (long long)group->bytes, (long long)group->cache_bytes, (int)group->n_ranks);
        tnd_emit_json_string(out, side_name(r, r->placements[FIT_CHOSEN].sides[g]));
        tnd_text_printf(out, "}%s\n", g + 1 < model->n_groups ? "," : "");
    }
    tnd_text_add(out, "  ],\n");
}

void tnd_fit_print_json(const struct fit_result *r, struct tnd_text *out)
{
    const struct tnd_fit_model *model = r->priced;
    tnd_text_add(out, "{\n  \"model\": ");
    tnd_emit_json_string(out, r->model);
    tnd_text_add(out, ",\n  \"table\": ");
    tnd_emit_json_string(out, r->table);
    tnd_text_printf(out,
                    ",\n  \"objective\": \"%s\",\n  \"bytes\": %lld,\n  \"context\": %lld,\n"
                    "  \"prompt\": %lld,\n  \"devices\": [",
                    r->objective, (long long)r->weights->bytes, (long long)r->options->context,
                    (long long)model->prompt_tokens);
    for (int side = 1; side < model->n_sides; side++) {
        tnd_text_add(out, side > 1 ? ", {\"name\": " : "{\"name\": ");
        tnd_emit_json_string(out, side_name(r, side));
        tnd_text_printf(out, ", \"memory\": %lld, \"room\": %lld}",
                        (long long)r->options->memory[side], (long long)model->capacity[side]);
    }
    tnd_text_add(out, "],\n");
    json_groups(r, out);
    tnd_text_add(out, "  \"placements\": [\n");
    for (int rule = 0; rule < FIT_PLACEMENTS; rule++) {
        json_placement(r, rule, out);
    }
    tnd_text_add(out, "  ],\n  \"more_memory\": [");
    for (int i = 0; i < r->n_more; i++) {
        tnd_text_printf(out, "%s{\"memory\": %lld, ", i > 0 ? ", " : "",
                        (long long)r->more[i].memory);
        json_number(out, "prompt_tps", speed(r, TND_FIT_PROMPT, r->more[i].us[TND_FIT_PROMPT]));
        tnd_text_add(out, ", ");
        json_number(out, "generation_tps",
                    speed(r, TND_FIT_GENERATION, r->more[i].us[TND_FIT_GENERATION]));
        tnd_text_add_char(out, '}');
    }
    tnd_text_add(out, "]\n}\n");
}
