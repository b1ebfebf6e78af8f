/* SPDX-License-Identifier: MIT
 * How the vectors of a text's tokens are combined into one. */
#include "tools/pooling_option.h"

#include <string.h>

#include "base/tnd_status.h"

enum tandem_status tnd_pooling_option_read(const char *text, enum tandem_pooling *out,
                                           struct tandem_error *error)
{
    static const char *const names[] = {[TANDEM_POOLING_MEAN] = "mean",
                                        [TANDEM_POOLING_CLS] = "cls",
                                        [TANDEM_POOLING_LAST] = "last"};
    for (int i = TANDEM_POOLING_MEAN; text != NULL && i <= TANDEM_POOLING_LAST; i++) {
        if (strcmp(text, names[i]) == 0) {
            *out = (enum tandem_pooling)i;
            return TANDEM_OK;
        }
    }
    return text == NULL ? TANDEM_OK
                        : tnd_error_set(error, TANDEM_E_ARGUMENT, "--pooling", 0, 0,
                                        "--pooling %.20s: expected mean, cls or last", text);
}
