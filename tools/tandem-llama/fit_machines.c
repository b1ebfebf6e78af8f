/* SPDX-License-Identifier: MIT
 * Prices every machine of a list by its own table. */
#include "tools/tandem-llama/fit_machines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/emit.h"
#include "base/file.h"
#include "tandem/table.h"
#include "tools/report/machines_file.h"
#include "tools/report/ranks_plan.h"
#include "tools/report/stub_backends.h"
#include "tools/say.h"
#include "tune/place.h"

/* Path of a table in the list: relative to the list's folder, unless it begins with '/'. */
static void path_beside(const char *list, const char *table, char *out, size_t n)
{
    const char *slash = strrchr(list, '/');
    const int folder = table[0] == '/' || slash == NULL ? 0 : (int)(slash - list) + 1;
    snprintf(out, n, "%.*s%s", folder, list, table);
}

/* What the machines are priced for. */
struct pricing {
    const char *path;
    const struct tnd_fit_weights *weights;
    struct tnd_cluster_shape shape;
    struct tnd_fit_options options;
};

/* The first device of the table, if the list says how much memory it has. */
static enum tandem_status use_device(const struct tnd_machine *machine,
                                     const struct tnd_registry *registry,
                                     struct tnd_fit_options *io_options, bool *out_is_unused,
                                     struct tandem_error *error)
{
    uint8_t slots[TND_MAX_SLOTS];
    const int n = tnd_place_devices(registry, slots);
    io_options->n_devices = machine->device_memory > 0;
    if (io_options->n_devices > n) {
        snprintf(error->text, sizeof(error->text),
                 "device_gib of machine '%.64s': its table has no device with memory of its own",
                 machine->name);
        return error->status = TANDEM_E_ARGUMENT;
    }
    if (io_options->n_devices > 0) {
        io_options->devices[1] = tnd_registry_name(registry, slots[0]);
        io_options->memory[1] = machine->device_memory;
    }
    *out_is_unused = io_options->n_devices < (n > 0);
    return TANDEM_OK;
}

static enum tandem_status price_machine(const struct pricing *p, const struct tnd_machine *machine,
                                        struct tnd_cluster_rank *out,
                                        struct tnd_cluster_model *out_model, bool *out_is_unused,
                                        struct tandem_error *error)
{
    struct tnd_fit_options own = p->options;
    struct tnd_registry *registry = NULL;
    tandem_table *table = NULL;
    char file[4096];
    path_beside(p->path, machine->table, file, sizeof(file));
    snprintf(out->name, sizeof(out->name), "%s", machine->name);
    out->memory = machine->memory;
    enum tandem_status status = tandem_table_load(file, &table, error);
    if (status == TANDEM_OK) {
        own.table = table;
        own.n_threads = machine->threads > 0 ? (int)machine->threads : tnd_fit_most_threads(table);
        status = tnd_stub_backends_open(table, own.n_threads, &registry, error);
    }
    if (status == TANDEM_OK) {
        own.registry = registry;
        status = use_device(machine, registry, &own, out_is_unused, error);
    }
    if (status == TANDEM_OK) {
        status = tnd_cluster_price(p->weights->list, p->weights->n, &p->shape, &own, 1,
                                   own.n_threads, out, out_model, error);
    }
    tnd_registry_close(registry);
    tandem_table_free(table);
    return status;
}

/* A machine whose table has no times for the model is left out, unless it is the only one. */
static enum tandem_status price_all(const struct pricing *p, const struct tnd_machines *machines,
                                    struct tnd_cluster *cluster, struct tandem_error *error)
{
    int n_priced = 0, n_unused = 0;
    for (int i = 0; i < machines->n; i++) {
        bool is_unused = false;
        const enum tandem_status status = price_machine(p, &machines->list[i], &cluster->ranks[i],
                                                        &cluster->model, &is_unused, error);
        n_unused += is_unused;
        cluster->ranks[i].is_left_out = status == TANDEM_E_NOT_FOUND;
        n_priced += status == TANDEM_OK;
        if (status != TANDEM_OK &&
            (status != TANDEM_E_NOT_FOUND || (i == machines->n - 1 && n_priced == 0))) {
            return status;
        }
        if (status != TANDEM_OK) {
            tnd_say("%s: %s\n", machines->list[i].name, error->text);
        }
    }
    if (n_unused > 0) {
        tnd_say("note: device_gib would count with the devices of %d machines\n", n_unused);
    }
    return TANDEM_OK;
}

static enum tandem_status print_report(const struct tnd_cluster_report *report, const char *what,
                                       bool as_json, struct tandem_error *error)
{
    struct tnd_text out = TND_TEXT_INIT;
    if (as_json) {
        tnd_cluster_print_json(report, &out);
    } else {
        tnd_text_printf(&out, "%s. Nothing was run: times are what tables predict.\n", what);
        tnd_cluster_print(report, &out);
    }
    return tnd_emit_end(&out, tnd_cli_write, stdout, "fit", error);
}

static enum tandem_status print_plans(const struct tnd_cluster *cluster, const char *path,
                                      const double count[TND_FIT_PHASES], bool as_json,
                                      struct tandem_error *error)
{
    struct tnd_cluster_plan *plans = calloc((size_t)cluster->n, sizeof(plans[0]));
    char what[4096];
    if (plans == NULL) {
        return tnd_cli_error(error, TANDEM_E_MEMORY, "no memory for the plans of", path);
    }
    snprintf(what, sizeof(what), "Machines: %s", path);
    const struct tnd_cluster_report report = {cluster, count, -1, plans,
                                              tnd_cluster_best(cluster, count, -1, plans)};
    const enum tandem_status status = print_report(&report, what, as_json, error);
    free(plans);
    return status;
}

static enum tandem_status plan_ranks(tandem_runtime *runtime, const tandem_model *model,
                                     const struct tnd_fit_options *options, unsigned refused,
                                     const double count[TND_FIT_PHASES], bool as_json,
                                     struct tandem_error *error)
{
    const struct tnd_ranks_request request = {.model = model,
                                              .runtime = runtime,
                                              .context = options->context,
                                              .cache_type = options->cache_type,
                                              .prompt_tokens = options->prompt_tokens,
                                              .n_texts = options->n_texts,
                                              .leader = -1,
                                              .refused = refused,
                                              .count = count};
    struct tnd_ranks_plan plan;
    CLI_TRY(tnd_ranks_plan_new(tnd_ranks_joined(), &request, &plan, error));
    enum tandem_status status = TANDEM_OK;
    if (plan.plans == NULL) {
        status = tnd_cli_error(error, TANDEM_E_NOT_FOUND, "no plan", plan.why_not);
    } else if (tandem_communicator_rank(tnd_ranks_joined()) == 0) {
        const struct tnd_cluster_report report = {&plan.cluster, count, -1, plan.plans, plan.best};
        status = print_report(&report, "The ranks that run", as_json, error);
    }
    tnd_ranks_plan_fini(&plan);
    return status;
}

enum tandem_status tnd_fit_ranks(const char *table, int64_t threads, const tandem_source *source,
                                 const struct tnd_fit_options *options, unsigned refused,
                                 const double count[TND_FIT_PHASES], bool as_json,
                                 struct tandem_error *error)
{
    const struct tnd_cli_runtime wanted = {.threads = threads, .table = table};
    tandem_runtime *runtime = NULL;
    tandem_model *model = NULL;
    enum tandem_status status = tandem_model_new(source, &model, error);
    if (status == TANDEM_OK) {
        status = tnd_cli_open_runtime(&wanted, &runtime, error);
    }
    if (status == TANDEM_OK) {
        status = plan_ranks(runtime, model, options, refused, count, as_json, error);
    }
    tandem_runtime_close(runtime);
    tandem_model_free(model);
    return status;
}

enum tandem_status tnd_fit_machines(const char *path, const tandem_source *source,
                                    const struct tnd_fit_weights *weights,
                                    const struct tnd_fit_options *options, unsigned refused,
                                    const double count[TND_FIT_PHASES], bool as_json,
                                    struct tandem_error *error)
{
    struct pricing p = {.path = path, .weights = weights, .options = *options};
    struct tandem_hparams hparams = {.size = sizeof(hparams)};
    struct tnd_machines machines = {.n = 0};
    struct tnd_file file;
    CLI_TRY(tandem_source_hparams(source, &hparams, error));
    tnd_cluster_shape_of(&hparams, weights->list, weights->n, &p.shape);
    CLI_TRY(tnd_file_read(path, TND_MACHINES_BYTES, &file, error));
    enum tandem_status status =
        tnd_machines_read((const char *)file.data, file.bytes, path, &machines, error);
    tnd_file_close(&file);
    CLI_TRY(status);
    struct tnd_cluster cluster = {.n = machines.n,
                                  .links = machines.links,
                                  .is_medium = machines.is_medium,
                                  .refused = refused};
    cluster.ranks = calloc((size_t)machines.n, sizeof(cluster.ranks[0]));
    status = cluster.ranks != NULL
                 ? price_all(&p, &machines, &cluster, error)
                 : tnd_cli_error(error, TANDEM_E_MEMORY, "no memory for the machines of", path);
    if (status == TANDEM_OK) {
        status = print_plans(&cluster, path, count, as_json, error);
    }
    free(cluster.ranks);
    tnd_machines_fini(&machines);
    return status;
}
