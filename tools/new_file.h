/* SPDX-License-Identifier: MIT
 * Output files named on the command line: existing ones are replaced only with -y. */
#ifndef TND_TOOLS_NEW_FILE_H
#define TND_TOOLS_NEW_FILE_H

#include "tandem/status.h"
#include "tools/args.h"

/** The entry of the option in a command's list; `flag` is a bool. */
#define TND_NEW_FILE_OPTION(flag)                                                                  \
    {"y", ARGS_FLAG, &(flag), 0, 0, NULL, "replace a file that is there"}

/** Call before the work begins. Errors: EXISTS. */
enum tandem_status tnd_new_file_check(const char *path, bool replaces, struct tandem_error *error);

#endif
