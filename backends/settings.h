/* SPDX-License-Identifier: MIT
 * Backends' settings: "key=value,key=value" for one backend, "name:...;name:..." for several. */
#ifndef TND_SETTINGS_H
#define TND_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/tnd_status.h"
#include "tandem/backend.h"

/* One pair, borrowed from the text that it was read from. Not terminated. */
struct tnd_setting {
    const char *key;
    size_t key_n;
    const char *value; /* "" when there is no '=' */
    size_t value_n;
};

/** Takes the next pair from `*cursor`; false at the end. Empty pairs are skipped. */
bool tnd_settings_next(const char **cursor, struct tnd_setting *out);
bool tnd_setting_is(const struct tnd_setting *setting, const char *key);
bool tnd_setting_value_is(const struct tnd_setting *setting, const char *value);

/** Numbers that are finite and not negative. Errors: ARGUMENT that names `backend`, key and
 *  value. */
enum tandem_status tnd_setting_number(const struct tnd_setting *setting, const char *backend,
                                      double *out, struct tandem_error *error);
/** ARGUMENT for a key or value that the backend does not know; `known` tells what it does. */
enum tandem_status tnd_setting_refuse(const struct tnd_setting *setting, const char *backend,
                                      const char *known, struct tandem_error *error);

/** As tnd_setting_refuse, with the list of keys that the backend tells by its vtable. */
enum tandem_status tnd_setting_refuse_by(const struct tnd_setting *setting,
                                         const struct tandem_backend_api *api, const char *backend,
                                         struct tandem_error *error);
/** ARGUMENT for a key in `text` (may be NULL) that a backend does not list. One that lists no keys
 *  takes any. */
enum tandem_status tnd_settings_check(const struct tandem_backend_api *api, const char *backend,
                                      const char *text, struct tandem_error *error);

/** The parts of "name:...;name:..." that belong to `name`, with ',' between several; false when
 *  there is none. `out` (may be NULL) gets at most `bytes` with the closing zero; `out_n` how long
 *  all of them are. */
bool tnd_settings_of(const char *all, const char *name, char *out, size_t bytes, size_t *out_n);

#endif
