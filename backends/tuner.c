/* SPDX-License-Identifier: MIT
 * The kinds in this build that have a tuner, the only list of them; kernel numbers as text. */
#include "backends/tuner.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "backends/settings.h"
#include "base/text.h"

#ifndef _WIN32 /* as in backend-list.h */
extern const struct tnd_tuner tnd_tuner_cuda;
#endif
#ifdef TND_HAVE_OPENCL
extern const struct tnd_tuner tnd_tuner_opencl;
#endif
extern const struct tnd_tuner tnd_tuner_cpu;

const struct tnd_tuner *tnd_tuner_at(int i)
{
    static const struct tnd_tuner *const tuners[] = {
#ifdef TND_HAVE_OPENCL
        &tnd_tuner_opencl,
#endif
#ifndef _WIN32
        &tnd_tuner_cuda,
#endif
        &tnd_tuner_cpu};
    return i >= 0 && i < (int)(sizeof(tuners) / sizeof(tuners[0])) ? tuners[i] : NULL;
}

const struct tnd_tuner *tnd_tuner_of(const tandem_backend *backend)
{
    const struct tnd_tuner *tuner = NULL;
    for (int i = 0; (tuner = tnd_tuner_at(i)) != NULL; i++) {
        /* a registry's copy of the vtable, with the device's name, has the same `open` */
        if (backend != NULL && tuner->api->open == backend->api->open) {
            return tuner;
        }
    }
    return NULL;
}

/* ---- text ---- */

static const struct tnd_number *find(const struct tnd_number *list, int n,
                                     const struct tnd_setting *setting)
{
    for (int i = 0; i < n; i++) {
        if (tnd_setting_is(setting, list[i].name)) {
            return &list[i];
        }
    }
    return NULL;
}

bool tnd_numbers_print(const struct tnd_number *list, int n, const void *values, const char *names,
                       char out[TND_NUMBERS_MAX])
{
    struct tnd_setting setting;
    size_t used = 0;
    while (tnd_settings_next(&names, &setting)) {
        const struct tnd_number *number = find(list, n, &setting);
        int32_t value = 0;
        if (number == NULL) {
            return false;
        }
        memcpy(&value, (const char *)values + number->offset, sizeof(value));
        int printed = snprintf(out + used, TND_NUMBERS_MAX - used, "%s%s=%" PRId32,
                               used > 0 ? "," : "", number->name, value);
        if (printed < 0 || (size_t)printed >= TND_NUMBERS_MAX - used) {
            return false;
        }
        used += (size_t)printed;
    }
    return used > 0;
}

enum tandem_status tnd_numbers_read(const struct tnd_number *list, int n, const char *numbers,
                                    const char *backend, void *io_values,
                                    struct tandem_error *error)
{
    struct tnd_setting setting;
    const char *cursor = numbers;
    uint64_t seen = 0;
    while (tnd_settings_next(&cursor, &setting)) {
        const struct tnd_number *number = find(list, n, &setting);
        int64_t value = 0;
        if (number == NULL || (seen >> (number - list) & 1) != 0) {
            return tnd_error_set(error, TANDEM_E_ARGUMENT, backend, 0, 0,
                                 "%s: '%s': '%.*s' is no number of its kernels, or comes twice",
                                 backend, numbers, (int)setting.key_n, setting.key);
        }
        if (!tnd_text_to_i64(setting.value, setting.value_n, &value) || value < number->least ||
            value > number->most) {
            return tnd_error_set(error, TANDEM_E_ARGUMENT, backend, value, number->most,
                                 "%s: '%s': %s is '%.*s', expected %" PRId32 " to %" PRId32,
                                 backend, numbers, number->name, (int)setting.value_n,
                                 setting.value, number->least, number->most);
        }
        const int32_t narrow = (int32_t)value;
        memcpy((char *)io_values + number->offset, &narrow, sizeof(narrow));
        seen |= UINT64_C(1) << (number - list);
    }
    return seen != 0 ? TANDEM_OK
                     : tnd_error_set(error, TANDEM_E_ARGUMENT, backend, 0, 0,
                                     "%s: '%s' names no number of its kernels", backend, numbers);
}
