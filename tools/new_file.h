/* SPDX-License-Identifier: MIT
 * Files that a command line names for output: none is replaced unless -y asks for it. */
#ifndef TND_TOOLS_NEW_FILE_H
#define TND_TOOLS_NEW_FILE_H

#include "tandem/status.h"
#include "tools/args.h"

/** The row of the option in a command's list; `flag` is a bool. */
#define TND_NEW_FILE_OPTION(flag)                                                                  \
    {"y", ARGS_FLAG, &(flag), 0, 0, NULL, "replace a file that is there"}

/** Asked before the work begins. Errors: EXISTS. */
enum tandem_status tnd_new_file_check(const char *path, bool replaces, struct tandem_error *error);

#endif
