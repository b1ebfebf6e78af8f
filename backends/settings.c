/* SPDX-License-Identifier: MIT
 * Reading backends' settings. Knows no backend. */
#include "backends/settings.h"

#include <string.h>

#include "base/text.h"

bool tnd_settings_next(const char **cursor, struct tnd_setting *out)
{
    if (*cursor == NULL) {
        return false;
    }
    const char *at = *cursor + strspn(*cursor, ", \t");
    size_t n = strcspn(at, ",");
    *cursor = at + n;
    if (n == 0) {
        return false;
    }
    while (n > 0 && (at[n - 1] == ' ' || at[n - 1] == '\t')) {
        n--;
    }
    const char *equals = memchr(at, '=', n);
    out->key = at;
    out->key_n = equals != NULL ? (size_t)(equals - at) : n;
    out->value = equals != NULL ? equals + 1 : "";
    out->value_n = equals != NULL ? n - out->key_n - 1 : 0;
    return true;
}

static bool span_is(const char *bytes, size_t n, const char *text)
{
    return strlen(text) == n && memcmp(bytes, text, n) == 0;
}

bool tnd_setting_is(const struct tnd_setting *setting, const char *key)
{
    return span_is(setting->key, setting->key_n, key);
}

bool tnd_setting_value_is(const struct tnd_setting *setting, const char *value)
{
    return span_is(setting->value, setting->value_n, value);
}

enum tandem_status tnd_setting_number(const struct tnd_setting *setting, const char *backend,
                                      double *out, struct tandem_error *error)
{
    double value = 0;
    if (!tnd_text_to_double(setting->value, setting->value_n, &value) || !(value >= 0) ||
        value > 1e18) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, backend, 0, 0,
                             "settings of %s: %.*s is '%.*s', expected a number from 0", backend,
                             (int)setting->key_n, setting->key, (int)setting->value_n,
                             setting->value);
    }
    *out = value;
    return TANDEM_OK;
}

enum tandem_status tnd_setting_refuse(const struct tnd_setting *setting, const char *backend,
                                      const char *known, struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_ARGUMENT, backend, 0, 0,
                         "settings of %s: '%.*s=%.*s' is not known, expected %s", backend,
                         (int)setting->key_n, setting->key, (int)setting->value_n, setting->value,
                         known);
}

bool tnd_settings_of(const char *all, const char *name, const char **out_begin, size_t *out_n)
{
    size_t name_n = strlen(name);
    for (const char *at = all; at != NULL && *at != '\0';) {
        at += strspn(at, "; \t");
        size_t n = strcspn(at, ";");
        if (n > name_n && memcmp(at, name, name_n) == 0 && at[name_n] == ':') {
            *out_begin = at + name_n + 1;
            *out_n = n - name_n - 1;
            return true;
        }
        at += n;
    }
    return false;
}
