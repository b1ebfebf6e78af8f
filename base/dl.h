/* SPDX-License-Identifier: MIT
 * Optional libraries, found when the program runs. */
#ifndef TND_DL_H
#define TND_DL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/tnd_status.h"

/** A function pointer in a struct that is filled from a library. */
struct tnd_dl_symbol {
    const char *name;
    size_t offset;    /* offsetof of the pointer in the struct */
    bool is_required; /* else a missing symbol becomes NULL */
};
#define TND_DL_REQUIRED(type, member, name)                                                        \
    {                                                                                              \
        name, offsetof(type, member), true                                                         \
    }
#define TND_DL_OPTIONAL(type, member, name)                                                        \
    {                                                                                              \
        name, offsetof(type, member), false                                                        \
    }

/** Opens the first of `names` (ends with NULL; file names or paths) that loads and has all required
 * symbols, and fills `table`. `out_library` is closed with tnd_dl_close. `table` is untouched on
 * failure. Errors: UNSUPPORTED_MACHINE, with the reason for each name. */
enum tandem_status tnd_dl_open(const char *const *names, const struct tnd_dl_symbol *symbols,
                               int n_symbols, void *table, void **out_library,
                               struct tandem_error *error);

/** NULL is allowed. */
void tnd_dl_close(void *library);

/** The file that `function` of a loaded library was loaded from, or NULL. Lives as long as the
 * library. */
const char *tnd_dl_path(void (*function)(void));

#endif
