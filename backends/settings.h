/* SPDX-License-Identifier: MIT
 * Backends' settings: "key=value,key=value" for one backend, "name:...;name:..." for several. */
#ifndef TND_SETTINGS_H
#define TND_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/tnd_status.h"
#include "tandem/backend.h"

/* One pair, borrowed from the text that is parsed. Not terminated. */
struct tnd_setting {
    const char *key;
    size_t key_n;
    const char *value; /* "" if there is no '=' */
    size_t value_n;
};

/** Consumes the next pair at `*cursor`; false at the end. Empty pairs are skipped. */
bool tnd_settings_next(const char **cursor, struct tnd_setting *out);
bool tnd_setting_is(const struct tnd_setting *setting, const char *key);
bool tnd_setting_value_is(const struct tnd_setting *setting, const char *value);

/** A finite, non-negative number. Errors: ARGUMENT that names `backend`, key and value. */
enum tandem_status tnd_setting_number(const struct tnd_setting *setting, const char *backend,
                                      double *out, struct tandem_error *error);
/** Fails with ARGUMENT for a key or value that the backend does not know; `known` lists what it
 * knows. */
enum tandem_status tnd_setting_refuse(const struct tnd_setting *setting, const char *backend,
                                      const char *known, struct tandem_error *error);

/** As tnd_setting_refuse, with the keys that the backend's vtable lists. */
enum tandem_status tnd_setting_refuse_by(const struct tnd_setting *setting,
                                         const struct tandem_backend_api *api, const char *backend,
                                         struct tandem_error *error);
/** Fails with ARGUMENT for a key in `text` (may be NULL) that a backend does not list. A backend
 * that lists no keys accepts any. */
enum tandem_status tnd_settings_check(const struct tandem_backend_api *api, const char *backend,
                                      const char *text, struct tandem_error *error);

/** The parts of "name:...;name:..." that belong to `name`, joined by ','; false if there are none.
 * `out` (may be NULL) receives at most `bytes`, terminated; `out_n` their full length. */
bool tnd_settings_of(const char *all, const char *name, char *out, size_t bytes, size_t *out_n);

#endif
