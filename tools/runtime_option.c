/* SPDX-License-Identifier: MIT
 * A runtime ignores a table file that is missing and uses its other tables, or the rule. But a user
 * who names a file wants that one, so it is loaded before the runtime is opened, and errors are
 * reported. */
#include "tools/runtime_option.h"

#include <string.h>

#include "base/tnd_status.h"
#include "tandem/table.h"
#include "tools/device_option.h"
#include "tools/say.h"

static enum tandem_status check_readable(const char *path, struct tandem_error *error)
{
    tandem_table *table = NULL;
    const enum tandem_status status = tandem_table_load(path, &table, error);
    tandem_table_free(table);
    return status;
}

static enum tandem_status check_used(const char *path, const tandem_runtime *runtime,
                                     struct tandem_error *error)
{
    struct tandem_runtime_info info = TANDEM_RUNTIME_INFO_INIT;
    if (tandem_runtime_describe(runtime, &info) == TANDEM_OK && strcmp(info.table, path) == 0) {
        return TANDEM_OK;
    }
    return tnd_error_set(error, TANDEM_E_TABLE_FOREIGN, "table", 0, 0,
                         "%.300s: none of its times hold on this machine; 'mulmat-tune table "
                         "check' says why",
                         path);
}

enum tandem_status tnd_runtime_option_open(struct tandem_runtime_options *options,
                                           const char *table, const char *device,
                                           tandem_runtime **out_runtime, struct tandem_error *error)
{
    static bool is_opening;
    struct tnd_device_option memory;
    tandem_runtime *runtime = NULL;
    options->table_path = table != NULL && strcmp(table, "none") == 0 ? "" : table;
    const bool is_named = options->table_path != NULL && options->table_path[0] != '\0';
    options->log = tnd_say_log;
    options->log_user = &is_opening;
    options->log_level = tnd_say_log_level();
    TND_TRY(is_named ? check_readable(table, error) : TANDEM_OK);
    TND_TRY(tnd_device_option_apply(device, options->profile, &memory, options, error));
    is_opening = true;
    enum tandem_status status = tandem_runtime_open(options, &runtime, error);
    is_opening = false;
    TND_TRY(status);
    status = tnd_device_option_check(&memory, runtime, error);
    if (status == TANDEM_OK && is_named) {
        status = check_used(table, runtime, error);
    }
    if (status != TANDEM_OK) {
        tandem_runtime_close(runtime);
        return status;
    }
    *out_runtime = runtime;
    return TANDEM_OK;
}
