/* SPDX-License-Identifier: MIT
 * tandem-llama fit: which weights of a model should live in the memory of which device, and how
 * fast that is, by a timing table of any machine. Computes nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/emit.h"
#include "tandem/device.h"
#include "tandem/table.h"
#include "tools/cache_option.h"
#include "tools/report/model_graph.h"
#include "tools/report/stub_backends.h"
#include "tools/tandem-llama/fit_machines.h"
#include "tools/tandem-llama/fit_result.h"
#include "tune/place.h"
#include "tune/policy.h"

enum { MOST_THREADS = 1024, MOST_LISTED = 16 };
#define GIB (1024.0 * 1024.0 * 1024.0)

struct request {
    const char *model, *type, *table, *memory, *objective, *cache, *machines, *divide, *experts;
    int64_t threads, context, prompt, texts;
    double skew; /* exponent of the experts' use; below 0: not given */
    bool json;
};

struct fit {
    const struct request *request;
    bool is_cache_planned;
    char table_path[4096];
    tandem_table *table;
    struct tnd_registry *registry; /* stubs for the table's backends */
    tandem_source *source;
    struct tnd_fit_weights weights;
    struct tnd_fit_options options;
    struct tnd_fit_model priced;
    double count[TND_FIT_PHASES];
    double *expert_use;
    uint8_t *sides; /* of all placements */
    struct tnd_fit_item *items;
};

/* ---- the request ---- */

static enum tandem_status read_objective(struct fit *fit, struct tandem_error *error)
{
    const char *name = fit->request->objective;
    const bool is_mixed = strcmp(name, "mixed") == 0;
    const bool is_prompt = strcmp(name, "prompt") == 0;
    if (!is_mixed && !is_prompt && strcmp(name, "generation") != 0) {
        return tnd_cli_error(error, TANDEM_E_ARGUMENT,
                             "objective: expected prompt, generation or mixed, got", name);
    }
    fit->count[TND_FIT_PROMPT] = is_mixed || is_prompt ? 1 : 0;
    fit->count[TND_FIT_GENERATION] = is_mixed ? TND_FIT_ANSWER_TOKENS : is_prompt ? 0 : 1;
    return TANDEM_OK;
}

int tnd_fit_most_threads(const tandem_table *table)
{
    int most = 1;
    for (int i = 0; i < table->n_curves; i++) {
        most = table->curves[i].key.threads > most ? table->curves[i].key.threads : most;
    }
    return most < MOST_THREADS ? most : MOST_THREADS;
}

static enum tandem_status open_table(struct fit *fit, struct tandem_error *error)
{
    const char *path = fit->request->table;
    if (path == NULL) {
        CLI_TRY(tandem_table_default_path(fit->table_path, sizeof(fit->table_path), error));
    } else {
        snprintf(fit->table_path, sizeof(fit->table_path), "%s", path);
    }
    CLI_TRY(tandem_table_load(fit->table_path, &fit->table, error));
    const int wanted = (int)fit->request->threads;
    fit->options.table = fit->table;
    fit->options.n_threads = wanted > 0 ? wanted : tnd_fit_most_threads(fit->table);
    return tnd_stub_backends_open(fit->table, fit->options.n_threads, &fit->registry, error);
}

/* Memory of this machine's n-th default device; 0: there is none. */
static int64_t memory_here(int n)
{
    struct tandem_device_info devices[MOST_LISTED];
    struct tandem_error error;
    memset(devices, 0, sizeof(devices));
    devices[0].size = sizeof(devices[0]);
    int listed = tandem_devices(devices, MOST_LISTED, &error);
    for (int i = 0; i < listed && i < MOST_LISTED; i++) {
        if (devices[i].is_default && n-- == 0) {
            return (int64_t)devices[i].memory_bytes;
        }
    }
    return 0;
}

static enum tandem_status find_devices(struct fit *fit, struct tandem_error *error)
{
    uint8_t slots[TND_MAX_SLOTS];
    int n = tnd_place_devices(fit->registry, slots);
    n = n < TND_FIT_SIDES ? n : TND_FIT_SIDES - 1;
    fit->options.n_devices = n;
    for (int side = 1; side <= n; side++) {
        fit->options.devices[side] = tnd_registry_name(fit->registry, slots[side - 1]);
        fit->options.memory[side] = fit->request->table == NULL ? memory_here(side - 1) : 0;
    }
    const char *memory = fit->request->memory;
    if (memory != NULL && !tnd_fit_read_memory(memory, n, fit->options.memory)) {
        snprintf(error->text, sizeof(error->text),
                 "--device-memory '%.64s': expected %d number%s of GiB with ',' between, one a "
                 "device of the table",
                 memory, n, n == 1 ? "" : "s");
        return error->status = TANDEM_E_ARGUMENT;
    }
    for (int side = 1; side <= n && memory == NULL; side++) {
        if (fit->options.memory[side] == 0) {
            snprintf(error->text, sizeof(error->text),
                     "the memory of '%s' is not known here: --device-memory GiB says it",
                     fit->options.devices[side]);
            return error->status = TANDEM_E_NOT_FOUND;
        }
    }
    return TANDEM_OK;
}

/* Opens the model and parses the request; not the table. */
static enum tandem_status open_model(struct fit *fit, struct tandem_error *error)
{
    const struct request *r = fit->request;
    enum tandem_type type = TANDEM_TYPE_Q4_0;
    CLI_TRY(tnd_cli_type(r->type, &type, error));
    struct tandem_session_options cache = {.cache_type = TANDEM_TYPE_F16};
    CLI_TRY(tnd_cache_option_read(r->cache, NULL, &cache, error));
    fit->options.cache_type = cache.cache_type;
    fit->is_cache_planned = cache.is_cache_planned;
    CLI_TRY(read_objective(fit, error));
    CLI_TRY(model_source_open(r->model, type, &fit->source, error));
    CLI_TRY(tnd_fit_weights_list(fit->source, &fit->weights, error));
    fit->options.n_used = fit->weights.n_used;
    fit->options.context = r->context;
    fit->options.prompt_tokens = r->prompt;
    fit->options.n_texts = r->texts;
    return TANDEM_OK;
}

static enum tandem_status price(struct fit *fit, struct tandem_error *error)
{
    const struct request *r = fit->request;
    if (r->skew >= 0 && fit->weights.n_experts > 1) {
        fit->options.use_experts = fit->weights.n_experts;
        fit->options.use_layers = fit->weights.n_layers;
        fit->expert_use = tnd_fit_skewed_use(r->skew, fit->weights.n_used, fit->weights.n_experts,
                                             fit->weights.n_layers);
        fit->options.expert_use = fit->expert_use;
    }
    CLI_TRY(
        tnd_fit_model_new(fit->weights.list, fit->weights.n, &fit->options, &fit->priced, error));
    const size_t n = (size_t)fit->priced.n_groups + 1;
    fit->sides = calloc(FIT_PLACEMENTS + 1, n);
    fit->items = calloc(n, sizeof(fit->items[0]));
    return fit->sides != NULL && fit->items != NULL
               ? TANDEM_OK
               : tnd_cli_error(error, TANDEM_E_MEMORY, "no memory for the groups of", r->model);
}

/* ---- the placements ---- */

double tnd_fit_tokens(const struct tnd_fit_model *model, enum tnd_fit_phase phase)
{
    return phase == TND_FIT_PROMPT ? (double)model->prompt_tokens : (double)model->n_texts;
}

static void time_placement(const struct fit *fit, const struct tnd_fit_problem *problem,
                           struct fit_placement *placement)
{
    placement->fits = tnd_fit_holds(problem, placement->sides);
    for (int side = 1; side < problem->n_sides; side++) {
        placement->bytes += tnd_fit_bytes(problem, placement->sides, side);
    }
    for (int phase = 0; phase < TND_FIT_PHASES; phase++) {
        placement->us[phase] = tnd_fit_model_us(
            &fit->priced, placement->sides, (enum tnd_fit_phase)phase, &placement->error_us[phase]);
    }
}

/* Number of layers that are entirely on devices. */
static int count_whole_layers(const struct fit *fit, const uint8_t *sides)
{
    int n = 0;
    int32_t broken = -1; /* a layer that is partly in host memory */
    for (int g = 0; g < fit->priced.n_groups; g++) {
        const struct tnd_fit_group *group = &fit->priced.groups[g];
        const bool is_inside = group->layer >= 0 && group->layer < fit->priced.n_layers;
        broken = sides[g] == 0 ? group->layer : broken;
        const bool is_last =
            g + 1 == fit->priced.n_groups || fit->priced.groups[g + 1].layer != group->layer;
        n += is_inside && is_last && broken != group->layer;
    }
    return n;
}

static enum tandem_status find_placements(struct fit *fit, struct fit_result *result,
                                          struct tandem_error *error)
{
    struct tnd_fit_problem problem;
    const size_t n = (size_t)fit->priced.n_groups;
    int32_t *layers = calloc(n + 1, sizeof(layers[0]));
    if (layers == NULL) {
        return tnd_cli_error(error, TANDEM_E_MEMORY, "no memory for the layers of",
                             fit->request->model);
    }
    tnd_fit_model_problem(&fit->priced, fit->count, fit->items, &problem);
    for (int rule = 0; rule < FIT_PLACEMENTS; rule++) {
        result->placements[rule].sides = fit->sides + (size_t)rule * (n + 1);
    }
    for (size_t g = 0; g < n; g++) {
        const bool stays = fit->priced.groups[g].part == TND_FIT_EMBEDDING;
        layers[g] = fit->priced.groups[g].layer;
        result->placements[FIT_DEVICE].sides[g] = !stays && problem.n_sides > 1;
    }
    tnd_fit_whole_layers(&problem, layers, fit->priced.n_layers,
                         result->placements[FIT_LAYERS].sides);
    free(layers);
    CLI_TRY(tnd_fit_choose(&problem, result->placements[FIT_CHOSEN].sides, error));
    for (int rule = 0; rule < FIT_PLACEMENTS; rule++) {
        time_placement(fit, &problem, &result->placements[rule]);
    }
    struct fit_placement *host = &result->placements[FIT_HOST];
    for (int phase = 0; phase < TND_FIT_PHASES; phase++) {
        host->us[phase] =
            tnd_fit_model_cpu_us(&fit->priced, (enum tnd_fit_phase)phase, &host->error_us[phase]);
    }
    result->n_whole_layers = count_whole_layers(fit, result->placements[FIT_LAYERS].sides);
    return TANDEM_OK;
}

/* Finds the gain of a larger first device: one GiB more, then doubling the increment until
 * everything fits. */
static enum tandem_status find_more(struct fit *fit, struct fit_result *result,
                                    struct tandem_error *error)
{
    struct tnd_fit_problem problem;
    uint8_t *sides = fit->sides + FIT_PLACEMENTS * ((size_t)fit->priced.n_groups + 1);
    const int64_t all = result->placements[FIT_DEVICE].bytes;
    tnd_fit_model_problem(&fit->priced, fit->count, fit->items, &problem);
    const int64_t own = problem.capacity[1];
    int64_t added = (int64_t)GIB;
    while (problem.n_sides > 1 && result->n_more < FIT_MORE && problem.capacity[1] < all) {
        double error_us;
        problem.capacity[1] = own + added;
        CLI_TRY(tnd_fit_choose(&problem, sides, error));
        result->more[result->n_more].memory = fit->options.memory[1] + added;
        for (int phase = 0; phase < TND_FIT_PHASES; phase++) {
            result->more[result->n_more].us[phase] =
                tnd_fit_model_us(&fit->priced, sides, (enum tnd_fit_phase)phase, &error_us);
        }
        result->n_more++;
        added *= 2;
    }
    return TANDEM_OK;
}

/* ---- keys and values ---- */

static double chosen_us(const struct fit *fit, const struct fit_result *result)
{
    double us = 0;
    for (int phase = 0; phase < TND_FIT_PHASES; phase++) {
        us += fit->count[phase] * result->placements[FIT_CHOSEN].us[phase];
    }
    return us;
}

static enum tandem_status price_again(struct fit *fit, enum tandem_type type,
                                      struct fit_result *result, struct tandem_error *error)
{
    tnd_free(fit->expert_use);
    free(fit->sides);
    free(fit->items);
    tnd_fit_model_fini(&fit->priced);
    fit->expert_use = NULL;
    fit->sides = NULL;
    fit->items = NULL;
    fit->options.cache_type = type;
    CLI_TRY(price(fit, error));
    return find_placements(fit, result, error);
}

/* Tries Q8_0 after F16 and keeps it if it saves a tenth of the time, as sessions do
 * (llama/cache_choice.c): devices then hold more weights. */
static enum tandem_status plan_cache(struct fit *fit, struct fit_result *result,
                                     struct tandem_error *error)
{
    const double LEAST_GAIN = 0.1;
    const double before = chosen_us(fit, result);
    CLI_TRY(price_again(fit, TANDEM_TYPE_Q8_0, result, error));
    return chosen_us(fit, result) < before * (1 - LEAST_GAIN)
               ? TANDEM_OK
               : price_again(fit, TANDEM_TYPE_F16, result, error);
}

/* ---- all of it ---- */

static enum tandem_status run(struct fit *fit, struct tandem_error *error)
{
    unsigned refused = 0;
    CLI_TRY(tnd_ranks_refused(fit->request->divide, fit->request->experts, &refused, error));
    CLI_TRY(open_model(fit, error));
    if (fit->request->machines != NULL) {
        return tnd_fit_machines(fit->request->machines, fit->source, &fit->weights, &fit->options,
                                refused, fit->count, fit->request->json, error);
    }
    if (tnd_ranks_joined() != NULL) {
        return tnd_fit_ranks(fit->request->table, fit->request->threads, fit->source, &fit->options,
                             refused, fit->count, fit->request->json, error);
    }
    CLI_TRY(open_table(fit, error));
    CLI_TRY(find_devices(fit, error));
    CLI_TRY(price(fit, error));
    struct fit_result result = {.model = fit->request->model,
                                .table = fit->table_path,
                                .objective = fit->request->objective,
                                .weights = &fit->weights,
                                .options = &fit->options,
                                .priced = &fit->priced};
    CLI_TRY(find_placements(fit, &result, error));
    CLI_TRY(fit->is_cache_planned ? plan_cache(fit, &result, error) : TANDEM_OK);
    CLI_TRY(find_more(fit, &result, error));
    struct tnd_text out = TND_TEXT_INIT;
    if (fit->request->json) {
        tnd_fit_print_json(&result, &out);
    } else {
        tnd_fit_print_text(&result, &out);
    }
    return tnd_emit_end(&out, tnd_cli_write, stdout, "fit", error);
}

static void close_fit(struct fit *fit)
{
    tnd_free(fit->expert_use);
    free(fit->sides);
    free(fit->items);
    tnd_fit_model_fini(&fit->priced);
    tnd_fit_weights_fini(&fit->weights);
    tandem_source_close(fit->source);
    tnd_registry_close(fit->registry);
    tandem_table_free(fit->table);
}

int tnd_cmd_fit(int argc, char **argv)
{
    struct request r = {.objective = "mixed", .context = 4096, .skew = -1};
    const struct args_option rows[] = {
        {"device-memory", ARGS_STRING, &r.memory, 0, 0, "GiB[,GiB]",
         "of each device of the table; default: ask this machine's"},
        {"context", ARGS_INT, &r.context, 0, 1e9, "N", "tokens of a text; 4096"},
        {"cache", ARGS_STRING, &r.cache, 0, 0, "TYPE",
         "of keys and values: f32, f16, q8_0, q4_0, or auto; f16"},
        {"objective", ARGS_STRING, &r.objective, 0, 0, "O",
         "prompt, generation or mixed (a prompt, then 128 tokens); mixed"},
        {"prompt", ARGS_INT, &r.prompt, 1, 65536, "M", "tokens of a prompt; 512"},
        {"texts", ARGS_INT, &r.texts, 1, 127, "N",
         "that tokens are generated for at the same time; all of them count; 1"},
        {"expert-skew", ARGS_NUMBER, &r.skew, 0, 10, "S",
         "experts of a layer apart: the r-th most used counts r^-S; 0: all alike"},
        {"type", ARGS_STRING, &r.type, 0, 0, "TYPE", "of the weights of a known model; q4_0"},
        {"table", ARGS_STRING, &r.table, 0, 0, "FILE", "timing table; default: this machine's"},
        {"threads", ARGS_INT, &r.threads, 1, MOST_THREADS, "N",
         "of the CPU; default: the most in the table"},
        {"machines", ARGS_STRING, &r.machines, 0, 0, "FILE",
         "a list of machines and links (docs/cluster.md): who computes how much"},
        {"divide", ARGS_STRING, &r.divide, 0, 0, "WHAT",
         "among them: rows of all layers, layers, or mixed (layers of prompts, rows of generated "
         "tokens); default: what is faster"},
        {"experts", ARGS_STRING, &r.experts, 0, 0, "WHAT",
         "by rows: rows of all experts, or some experts whole; default: what is faster"},
        {"json", ARGS_FLAG, &r.json, 0, 0, NULL, "one JSON object"},
    };
    const struct args_command command = {
        "fit",
        "MODEL",
        "Says which weights should live in the memory of which device, by saved time per byte,\n"
        "and what that brings against the CPU alone, the device alone and whole layers. MODEL:\n"
        "a file, or 1.1B, 3B, 7B, 8B, 13B, 30B, 30B-A3B, 65B, 70B. Nothing is computed: times\n"
        "are predicted by the timing table. docs/placing-weights.md",
        CLI_ROWS(rows),
        1,
        1};
    const int result = args_parse(&command, argc, argv, &r.model, NULL);
    if (result != ARGS_OK) {
        return args_code(result);
    }
    struct fit *fit = calloc(1, sizeof(*fit));
    struct tandem_error error = {0};
    if (fit == NULL) {
        (void)tnd_cli_error(&error, TANDEM_E_MEMORY, "no memory for fit of", r.model);
        return tnd_cli_fail(&error);
    }
    fit->request = &r;
    const enum tandem_status status = run(fit, &error);
    close_fit(fit);
    free(fit);
    return status == TANDEM_OK ? 0 : tnd_cli_fail(&error);
}
