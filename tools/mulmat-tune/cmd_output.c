/* SPDX-License-Identifier: MIT
 * Errors and files of all commands. */
#include "tools/mulmat-tune/cmd_output.h"

#include <stdio.h>
#include <string.h>

#include "table/table_text.h"
#include "tools/say.h"

int tnd_cmd_failed(const struct tandem_error *error)
{
    fprintf(stderr, "mulmat-tune: %s\n",
            error->text[0] != '\0' ? error->text : tandem_status_text(error->status));
    /* an unknown profile is wrong usage, as an unknown type is */
    return error->status == TANDEM_E_NOT_FOUND && strncmp(error->text, "profile '", 9) == 0 ? 2 : 1;
}

int tnd_cmd_write(void *file, const char *bytes, unsigned long n)
{
    return fwrite(bytes, 1, n, file) == n ? 0 : 1;
}

void tnd_cmd_tell_shared(const tandem_table *table, enum tandem_table_format format)
{
    struct tnd_text names = TND_TEXT_INIT;
    if (format == TANDEM_TABLE_TEXT && tnd_table_text_shares(table, &names)) {
        tnd_say("%s share one row in a text table; that of the fastest one is written\n",
                tnd_text_string(&names));
    }
    tnd_text_fini(&names);
}
