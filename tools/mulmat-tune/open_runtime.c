/* SPDX-License-Identifier: MIT
 * Shared by the commands that compute. */
#include "tools/mulmat-tune/open_runtime.h"

#include <stdio.h>
#include <string.h>

#include "base/tnd_status.h"
#include "tools/runtime_option.h"
#include "table/table_layers.h"
#include "tune/objective.h"
#include "tools/say.h"

enum tandem_status tnd_cmd_open_runtime(const char *table_path, int n_threads, const char *profile,
                                        const char *device, tandem_runtime **out_runtime,
                                        struct tandem_error *error)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    options.n_threads = n_threads;
    options.profile = profile;
    return tnd_runtime_option_open(&options, table_path, device, out_runtime, error);
}

static int all_types(enum tandem_type *out_types, int capacity)
{
    static const enum tandem_type types[] = {
#define TYPE(name, number, text, block_values, block_bytes) TANDEM_TYPE_##name,
        TANDEM_TYPE_LIST(TYPE)
#undef TYPE
    };
    int n = 0;
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]) && n < capacity; i++) {
        if (types[i] != TANDEM_TYPE_I32) {
            out_types[n++] = types[i];
        }
    }
    return n;
}

enum tandem_status tnd_cmd_parse_types(const char *text, enum tandem_type *out_types, int capacity,
                                       int *out_n, struct tandem_error *error)
{
    if (strcmp(text, "all") == 0) {
        *out_n = all_types(out_types, capacity);
        return TANDEM_OK;
    }
    int n = 0;
    while (*text != '\0') {
        char name[16];
        size_t length = strcspn(text, ",");
        snprintf(name, sizeof(name), "%.*s", (int)length, text);
        if (n == capacity) {
            return tnd_error_set(error, TANDEM_E_LIMIT, text, n, capacity, "more than %d types",
                                 capacity);
        }
        if (length >= sizeof(name) || !tandem_type_from_name(name, &out_types[n]) ||
            out_types[n] == TANDEM_TYPE_I32) {
            return tnd_error_set(error, TANDEM_E_NOT_FOUND, text, 0, 0,
                                 "'%.*s' is no weight type, expected q4_0 and the like, or all",
                                 (int)length, text);
        }
        n++;
        text += length + (text[length] == ',' ? 1 : 0);
    }
    *out_n = n;
    return n > 0 ? TANDEM_OK
                 : tnd_error_set(error, TANDEM_E_ARGUMENT, "", 0, 1, "no weight type is given");
}

enum tandem_status tnd_cmd_aim(const char *objective, tandem_table *table,
                               struct tandem_error *error)
{
    enum tandem_objective wanted = TANDEM_OBJECTIVE_TIME;
    if (objective != NULL && !tnd_objective_parse(objective, &wanted)) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "objective", 0, 0,
                             "--objective '%s': expected time, energy or edp", objective);
    }
    if (table == NULL) {
        return wanted == TANDEM_OBJECTIVE_TIME
                   ? TANDEM_OK
                   : tnd_error_set(error, TANDEM_E_NOT_FOUND, "table", 0, 0,
                                   "--objective %s: there is no timing table; run 'sudo "
                                   "mulmat-tune bench'",
                                   objective);
    }
    return tnd_objective_set(table, wanted, error);
}

struct tnd_measure_options tnd_cmd_measure_options(const struct tnd_runtime_parts *parts)
{
    struct tnd_measure_options options;
    memset(&options, 0, sizeof(options));
    options.registry = parts->registry;
    options.exec = parts->exec;
    options.clock = parts->clock;
    options.seed = 1;
    return options;
}

void tnd_cmd_show_note(const struct tandem_error *note)
{
    if (note->status != TANDEM_OK) {
        tnd_say("mulmat-tune: %s%s\n",
                note->status == TANDEM_E_TABLE_FOREIGN ? "the machine has changed: " : "",
                note->text);
    }
}

enum tandem_status tnd_cmd_update_own_table(const tandem_table *table, char *out_path, size_t n,
                                            struct tandem_error *error)
{
    struct tandem_error note;
    TND_TRY(tnd_table_own_path(out_path, n, error));
    TND_TRY(tnd_table_update_file(out_path, table, &note, error));
    tnd_cmd_show_note(&note);
    return TANDEM_OK;
}
