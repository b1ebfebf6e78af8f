/* SPDX-License-Identifier: MIT
 * Checks whether an output file may be written. */
#include "tools/new_file.h"

#include "base/file.h"
#include "base/tnd_status.h"

enum tandem_status tnd_new_file_check(const char *path, bool replaces, struct tandem_error *error)
{
    if (!replaces && tnd_file_exists(path)) {
        return tnd_error_set(error, TANDEM_E_EXISTS, path, 0, 0,
                             "%s is there, expected a new file, or -y", path);
    }
    return TANDEM_OK;
}
