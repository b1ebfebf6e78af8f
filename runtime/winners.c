/* SPDX-License-Identifier: MIT
 * Chooses devices to open before their drivers are loaded: those that the planner would use by the
 * tables. A wrong table opens a device too many or too few, nothing worse; planner and observer
 * decide what runs. */
#include "runtime/winners.h"

#include <stdio.h>
#include <string.h>

#include "backends/kinds.h"
#include "base/alloc.h"
#include "base/tnd_status.h"
#include "tune/candidates.h"

/* MOST_CURVES: comparisons for one device, counted per lookup. That bounds opening to half a second
 * (Zen 5); a sweep's table of 150 curves needs a tenth of it. */
enum { MOST_DEVICES = 8, MOST_CURVES = 1 << 20, NAMES = (MOST_DEVICES + 1) * TND_BACKEND_NAME };

enum tandem_status tnd_winners_load_table(const struct tnd_registry *registry,
                                          struct tnd_layers *layers, tandem_table **out_table,
                                          struct tandem_error *error)
{
    struct tnd_fingerprint *machine = tnd_alloc(sizeof(*machine)); /* too large for small stacks */
    if (machine == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "table", 0, 0, "table: out of memory");
    }
    tnd_fingerprint_read_all(registry, machine);
    enum tandem_status status = tnd_layers_load(layers, machine, out_table, error);
    tnd_free(machine);
    return status;
}

/* ---- winners ---- */

static bool is_a_products(const struct tnd_curve_key *key)
{
    return strcmp(key->op, "mul_mat") == 0 && key->stage == TANDEM_STAGE_COMPUTE &&
           tnd_kind_is_device(tnd_kind_of(key->backend));
}

static bool uses(const struct tnd_table_profile *profile, const char *device)
{
    bool is_used = false;
    for (int s = 0; s < TANDEM_STAGES; s++) {
        is_used = is_used || strcmp(profile->stage[s].backend, device) == 0;
    }
    return is_used;
}

/* Whether the planner would run the product on its device if that were open. `candidates`: room for
 * TND_TABLE_MAX_PROFILES; *io_n candidates of `io_type`. */
static bool wins(const struct tandem_table *table, const struct tnd_curve_key *key, int64_t m,
                 int n_threads, struct tnd_candidate *candidates, enum tandem_type *io_type,
                 int *io_n)
{
    const struct tnd_problem problem = {
        .op = "mul_mat", .type = key->type, .n = key->n, .k = key->k, .m = m};
    struct tnd_choice choice;
    if (*io_n < 0 || *io_type != key->type) {
        *io_n = tnd_candidates_of_table(table, key->type, 0, candidates);
        *io_type = key->type;
    }
    tnd_choose(table, candidates, *io_n, &problem, n_threads, NULL, NULL, NULL, &choice);
    return choice.best.candidate >= 0 &&
           uses(&candidates[choice.best.candidate].profile, key->backend);
}

/* The sample `back` positions before the last; NULL: none, or the curve is not a product of
 * `device`. */
static const struct tnd_sample *sample_of(const struct tnd_curve *curve, const char *device,
                                          int back)
{
    return is_a_products(&curve->key) && strcmp(curve->key.backend, device) == 0 &&
                   back < curve->n_samples
               ? &curve->samples[curve->n_samples - 1 - back]
               : NULL;
}

bool tnd_winners_is_one(const struct tandem_table *table, const char *device, int n_threads,
                        struct tnd_curve_key *out_key, int64_t *out_m)
{
    struct tnd_candidate *candidates = tnd_calloc(TND_TABLE_MAX_PROFILES, sizeof(candidates[0]));
    enum tandem_type type = TANDEM_TYPE_F32;
    int n_candidates = -1;
    int64_t n_curves = 0; /* each comparison searches all curves of the table */
    bool has_more = candidates != NULL;
    bool is_one = false;
    for (int back = 0; has_more && n_curves < MOST_CURVES; back++) { /* devices like many tokens */
        has_more = false;
        for (int i = 0; !is_one && i < table->n_curves && n_curves < MOST_CURVES; i++) {
            const struct tnd_curve *curve = &table->curves[i];
            const struct tnd_sample *sample = sample_of(curve, device, back);
            if (sample == NULL) {
                continue;
            }
            has_more = true;
            n_curves += table->n_curves;
            is_one =
                wins(table, &curve->key, sample->m, n_threads, candidates, &type, &n_candidates);
            if (is_one && out_key != NULL) {
                *out_key = curve->key;
                *out_m = sample->m;
            }
        }
        has_more = has_more && !is_one;
    }
    tnd_free(candidates);
    return is_one;
}

/* ---- opening ---- */

static bool is_named(const char *names, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = names; (at = strstr(at, name)) != NULL; at++) {
        if ((at == names || at[-1] == ',') && (at[n] == ',' || at[n] == '\0')) {
            return true;
        }
    }
    return false;
}

/* Adds the winners to `names`, with a line each. */
static void add_winners(const struct tandem_table *table, int n_threads, const struct tnd_log *log,
                        char names[NAMES])
{
    char seen[NAMES] = "";
    int n_seen = 0;
    for (int i = 0; i < table->n_curves && n_seen < MOST_DEVICES; i++) {
        const char *device = table->curves[i].key.backend;
        struct tnd_curve_key key;
        int64_t m = 0;
        if (!is_a_products(&table->curves[i].key) || is_named(seen, device)) {
            continue;
        }
        (void)snprintf(seen + strlen(seen), sizeof(seen) - strlen(seen), ",%s", device);
        n_seen++;
        if (tnd_winners_is_one(table, device, n_threads, &key, &m)) {
            (void)snprintf(names + strlen(names), NAMES - strlen(names), ",%s", device);
            tnd_log_line(log, TANDEM_LOG_INFO, "runtime",
                         "%s is opened: by the table it is the fastest for %s, %lld x %lld, with "
                         "%lld tokens",
                         device, tandem_type_name(key.type), (long long)key.n, (long long)key.k,
                         (long long)m);
        }
    }
}

/* Finds winners. Problems of tables are reported when the table is loaded for planning. */
static void find_winners(const struct tnd_registry *registry, const char *table_path, int n_threads,
                         const struct tnd_log *log, char names[NAMES])
{
    struct tnd_layers *layers = NULL;
    tandem_table *table = NULL;
    struct tandem_error error;
    const bool is_wanted = table_path == NULL || table_path[0] != '\0';
    if (is_wanted && tnd_layers_find(table_path, &layers, &error) == TANDEM_OK &&
        tnd_winners_load_table(registry, layers, &table, &error) == TANDEM_OK) {
        add_winners(table, n_threads, log, names);
    }
    tandem_table_free(table);
    tnd_free(layers);
}

enum tandem_status tnd_winners_open(const struct tnd_registry_options *options,
                                    const char *table_path, int n_threads,
                                    struct tnd_registry **out_registry, struct tandem_error *error)
{
    struct tnd_registry_options asked = *options;
    char names[NAMES] = "cpu";
    if (asked.backends == NULL || strcmp(asked.backends, "auto") != 0) {
        return tnd_registry_open(&asked, out_registry, error);
    }
    asked.backends = names;
    TND_TRY(tnd_registry_open(&asked, out_registry, error));
    find_winners(*out_registry, table_path, n_threads, &options->log, names);
    if (strcmp(names, "cpu") == 0) {
        return TANDEM_OK;
    }
    tnd_registry_close(*out_registry);
    *out_registry = NULL;
    return tnd_registry_open(&asked, out_registry, error);
}
