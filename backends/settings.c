/* SPDX-License-Identifier: MIT
 * Parses backends' settings. Knows no backend. */
#include "backends/settings.h"

#include <stddef.h>
#include <stdio.h>
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

static bool next_of(const struct tandem_backend_api *api, int i, struct tandem_backend_setting *out)
{
    memset(out, 0, sizeof(*out));
    return api->size >= offsetof(struct tandem_backend_api, setting) + sizeof(api->setting) &&
           api->setting != NULL && api->setting(i, out) && out->key != NULL;
}

enum tandem_status tnd_setting_refuse_by(const struct tnd_setting *setting,
                                         const struct tandem_backend_api *api, const char *backend,
                                         struct tandem_error *error)
{
    char known[192] = "none";
    size_t n = 0;
    struct tandem_backend_setting offered;
    for (int i = 0; n < sizeof(known) && next_of(api, i, &offered); i++) {
        int length = snprintf(known + n, sizeof(known) - n, "%s%s=%s", n > 0 ? ", " : "",
                              offered.key, offered.value != NULL ? offered.value : "");
        n += length > 0 ? (size_t)length : 0;
    }
    return tnd_setting_refuse(setting, backend, known, error);
}

enum tandem_status tnd_settings_check(const struct tandem_backend_api *api, const char *backend,
                                      const char *text, struct tandem_error *error)
{
    struct tandem_backend_setting offered;
    struct tnd_setting setting;
    while (next_of(api, 0, &offered) && tnd_settings_next(&text, &setting)) {
        bool is_known = false;
        for (int i = 0; !is_known && next_of(api, i, &offered); i++) {
            is_known = tnd_setting_is(&setting, offered.key);
        }
        if (!is_known) {
            return tnd_setting_refuse_by(&setting, api, backend, error);
        }
    }
    return TANDEM_OK;
}

bool tnd_settings_of(const char *all, const char *name, char *out, size_t bytes, size_t *out_n)
{
    size_t name_n = strlen(name);
    size_t length = 0;
    int n_parts = 0;
    for (const char *at = all; at != NULL && *at != '\0';) {
        at += strspn(at, "; \t");
        size_t n = strcspn(at, ";");
        if (n > name_n && memcmp(at, name, name_n) == 0 && at[name_n] == ':') {
            if (out != NULL && length < bytes) {
                snprintf(out + length, bytes - length, "%s%.*s", n_parts > 0 ? "," : "",
                         (int)(n - name_n - 1), at + name_n + 1);
            }
            length += (n_parts > 0) + n - name_n - 1;
            n_parts++;
        }
        at += n;
    }
    *out_n = length;
    return n_parts > 0;
}
