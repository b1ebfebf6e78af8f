/* SPDX-License-Identifier: MIT
 * Errors and files of all commands. */
#include "tools/mulmat-tune/cmd_output.h"

#include <stdio.h>

int tnd_cmd_failed(const struct tandem_error *error)
{
    fprintf(stderr, "mulmat-tune: %s\n",
            error->text[0] != '\0' ? error->text : tandem_status_text(error->status));
    return 1;
}

int tnd_cmd_write(void *file, const char *bytes, unsigned long n)
{
    return fwrite(bytes, 1, n, file) == n ? 0 : 1;
}
