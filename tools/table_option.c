/* SPDX-License-Identifier: MIT
 * A runtime goes on with its other tables, or the rule, when a file is missing. Who names a file
 * wants that one. */
#include "tools/table_option.h"

#include <string.h>

#include "base/tnd_status.h"
#include "tandem/table.h"

enum tandem_status tnd_table_option_check(const char *named, const tandem_runtime *runtime,
                                          struct tandem_error *error)
{
    struct tandem_runtime_info info = TANDEM_RUNTIME_INFO_INIT;
    tandem_table *table = NULL;
    if (named == NULL || named[0] == '\0' || strcmp(named, "none") == 0 ||
        (tandem_runtime_describe(runtime, &info) == TANDEM_OK && strcmp(info.table, named) == 0)) {
        return TANDEM_OK;
    }
    enum tandem_status status = tandem_table_load(named, &table, error);
    tandem_table_free(table);
    if (status != TANDEM_OK) {
        return status;
    }
    return tnd_error_set(error, TANDEM_E_TABLE_FOREIGN, "table", 0, 0,
                         "%.300s: none of its times hold on this machine; 'mulmat-tune table "
                         "check' says why",
                         named);
}
