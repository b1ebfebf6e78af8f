/* SPDX-License-Identifier: MIT
 * The options --device, for all kinds of backends that list devices, and --plugin. Contains no name
 * of a kind. */
#include "tools/device_option.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/tnd_status.h"
#include "tandem/device.h"

enum { MAX_LISTED = 64 };

static enum tandem_status fail(struct tandem_error *error, enum tandem_status status,
                               const char *format, ...) __attribute__((format(printf, 3, 4)));
static enum tandem_status fail(struct tandem_error *error, enum tandem_status status,
                               const char *format, ...)
{
    va_list arguments;
    memset(error, 0, sizeof(*error));
    error->status = status;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof(error->text), format, arguments);
    va_end(arguments);
    return status;
}

static char plugins[4096]; /* of the command line, separated by ';' */

/* False when there is no room left: the option stays in argv and is refused as unknown. */
static bool add_plugin(const char *spec)
{
    const size_t n = strlen(plugins);
    const bool fits = n + strlen(spec) + 2 <= sizeof(plugins);
    if (fits) {
        snprintf(plugins + n, sizeof(plugins) - n, "%s%s", n > 0 ? ";" : "", spec);
    }
    return fits;
}

int tnd_plugin_option_take(int argc, char **argv)
{
    static const char with_value[] = "--plugin=";
    int n = 0;
    for (int i = 0; i < argc; i++) {
        const bool has_next = i > 0 && strcmp(argv[i], "--plugin") == 0 && i + 1 < argc;
        const bool has_value = i > 0 && strncmp(argv[i], with_value, strlen(with_value)) == 0;
        if (has_next && add_plugin(argv[i + 1])) {
            i++;
        } else if (!has_value || !add_plugin(argv[i] + strlen(with_value))) {
            argv[n++] = argv[i];
        }
    }
    argv[n] = NULL;
    return n;
}

/* ---- which device a profile needs ---- */

/* False for a profile that needs no device, or is unknown. */
static bool device_of_profile(const char *name, struct tnd_profile *out)
{
    return name != NULL && tnd_profiles_find(tnd_profiles_built_in(), name, out) &&
           out->api->devices != NULL;
}

bool tnd_device_option_has_profile(const char *profile)
{
    struct tnd_profile found;
    return device_of_profile(profile, &found);
}

static void need(struct tnd_device_option *option, const char *kind, int index)
{
    if (option->n_needed < TND_MAX_DEVICES) {
        tnd_device_name(kind, index, option->needed[option->n_needed++]);
    }
}

/* A backend that is named explicitly may use a CPU. Libraries stay open beside it. */
static void name_backends(struct tnd_device_option *option, const struct tnd_profile *profile)
{
    int last = tnd_device_index(profile->api->name, profile->device, strlen(profile->device));
    size_t n = 0;
    for (int i = 0; tnd_kind_at(i) != NULL; i++) {
        const struct tandem_backend_api *kind = tnd_kind_at(i);
        bool is_wanted = kind == profile->api || (tnd_kind_is_default(i) && kind->devices == NULL &&
                                                  kind->kind != TANDEM_KIND_CPU);
        for (int index = 0; is_wanted && index <= (kind == profile->api ? last : 0); index++) {
            char name[TND_BACKEND_NAME];
            tnd_device_name(kind->name, index, name);
            n += (size_t)snprintf(option->backends + n, sizeof(option->backends) - n, "%s%s",
                                  n > 0 ? "," : "", name);
        }
    }
}

static void need_profile(struct tnd_device_option *option, const struct tnd_profile *profile)
{
    int last = tnd_device_index(profile->api->name, profile->device, strlen(profile->device));
    for (int index = 0; index <= last; index++) {
        need(option, profile->api->name, index);
    }
}

/* ---- selectors ---- */

/* The devices of this machine; empty without a kind that lists any. */
struct listed {
    struct tandem_device_info devices[MAX_LISTED];
    int n;
};

/* Kind of the device that a selector means; when it means none, the first kind that lists devices,
 * which reports the error. Turns an index among all devices into one within the kind. */
static const char *kind_of(const struct listed *listed, const char *selector, long *io_index)
{
    const char *first = NULL;
    for (int i = 0; tnd_kind_at(i) != NULL && first == NULL; i++) {
        first = tnd_kind_at(i)->devices != NULL ? tnd_kind_at(i)->name : NULL;
    }
    long before = 0;
    for (int i = 0; i < listed->n; i++) {
        const struct tandem_device_info *info = &listed->devices[i];
        before = i > 0 && strcmp(info->backend, info[-1].backend) == 0 ? before : i;
        if (*io_index < 0 ? strcasestr(info->name, selector) != NULL ||
                                strcasestr(info->platform, selector) != NULL
                          : *io_index == i) {
            *io_index -= *io_index < 0 ? 0 : before;
            return info->backend;
        }
    }
    return first;
}

/* Adds the settings of one device of `kind`; false when they are too long. */
static bool add_setting(struct tnd_device_option *option, const char *kind, int index,
                        const char *value)
{
    char name[TND_BACKEND_NAME];
    size_t n = strlen(option->settings);
    tnd_device_name(kind, index, name);
    int length = snprintf(option->settings + n, sizeof(option->settings) - n, "%s%s:device=%s",
                          n > 0 ? ";" : "", name, value);
    return (size_t)length < sizeof(option->settings) - n;
}

/* Number of needed devices of this kind so far. */
static int count_needed(const struct tnd_device_option *option, const char *kind)
{
    int n = 0;
    for (int i = 0; i < option->n_needed; i++) {
        n += tnd_device_index(kind, option->needed[i], strlen(option->needed[i])) >= 0;
    }
    return n;
}

static bool add_selector(struct tnd_device_option *option, const struct listed *listed,
                         const char *selector)
{
    bool is_index = selector[strspn(selector, "0123456789")] == '\0';
    long index = is_index ? strtol(selector, NULL, 10) : -1;
    const char *kind = kind_of(listed, selector, &index);
    char value[256];
    snprintf(value, sizeof(value), "%s", selector);
    if (is_index && index < listed->n) {
        snprintf(value, sizeof(value), "%ld", index);
    }
    int nth = kind != NULL ? count_needed(option, kind) : TND_MAX_DEVICES;
    if (nth >= TND_MAX_DEVICES - 1 || option->n_needed >= TND_MAX_DEVICES - 1) {
        return false;
    }
    need(option, kind, nth);
    return add_setting(option, kind, nth, value);
}

/* Opens only the chosen devices: of each kind, the device after the last chosen one is set to
 * "none". */
static bool end_settings(struct tnd_device_option *option)
{
    bool fits = true;
    for (int i = 0; tnd_kind_at(i) != NULL; i++) {
        const struct tandem_backend_api *kind = tnd_kind_at(i);
        int n = kind->devices != NULL ? count_needed(option, kind->name) : 0;
        for (int index = n; kind->devices != NULL && index <= (n > 0 ? n : 1); index++) {
            fits = add_setting(option, kind->name, index, "none") && fits;
        }
    }
    return fits;
}

static bool add_selectors(struct tnd_device_option *option, const struct listed *listed,
                          const char *device)
{
    char text[256];
    bool is_valid = device[0] != '\0' && strpbrk(device, ";:=") == NULL &&
                    strlen(device) < sizeof(text) && device[strlen(device) - 1] != ',';
    for (const char *at = device; is_valid && *at != '\0'; at += *at == ',') {
        size_t n = strcspn(at, ",");
        snprintf(text, sizeof(text), "%.*s", (int)n, at);
        is_valid = n > 0 && strcmp(text, "none") != 0 && add_selector(option, listed, text);
        at += n;
    }
    return is_valid;
}

static enum tandem_status choose_devices(const char *device, struct tnd_device_option *option,
                                         struct tandem_error *error)
{
    bool is_valid = true;
    if (strcmp(device, "none") != 0) {
        struct listed *listed = calloc(1, sizeof(*listed));
        struct tandem_error told; /* opening it reports the error better */
        if (listed == NULL) {
            return fail(error, TANDEM_E_MEMORY, "no memory for the list of devices");
        }
        listed->devices[0].size = sizeof(listed->devices[0]);
        listed->n = tandem_devices(listed->devices, MAX_LISTED, &told);
        listed->n = listed->n < MAX_LISTED ? listed->n : MAX_LISTED;
        is_valid = add_selectors(option, listed, device);
        free(listed);
    }
    if (!is_valid || !end_settings(option)) {
        return fail(error, TANDEM_E_ARGUMENT,
                    "--device '%.100s': expected an index or part of a name, or several of them "
                    "with a comma between; mulmat-tune devices lists them",
                    device);
    }
    return TANDEM_OK;
}

enum tandem_status tnd_device_option_apply(const char *device, const char *profile,
                                           struct tnd_device_option *memory,
                                           struct tandem_runtime_options *options,
                                           struct tandem_error *error)
{
    struct tnd_profile forced;
    bool has_forced = device_of_profile(profile, &forced);
    memset(memory, 0, sizeof(*memory));
    const char *asked = options->settings != NULL ? options->settings : "";
    if (snprintf(memory->settings, sizeof(memory->settings), "%s", asked) >=
        (int)sizeof(memory->settings)) {
        return fail(error, TANDEM_E_ARGUMENT, "the settings of backends are too long: '%.100s'",
                    asked);
    }
    options->plugins = plugins[0] != '\0' ? plugins : NULL;
    if (device != NULL) {
        TND_TRY(choose_devices(device, memory, error));
        options->settings = memory->settings;
    } else if (has_forced) {
        name_backends(memory, &forced);
        options->backends = memory->backends;
    }
    if (has_forced) {
        need_profile(memory, &forced);
    }
    return TANDEM_OK;
}

/* ---- checking that they are open ---- */

static bool is_open(const tandem_runtime *runtime, const char *backend)
{
    for (int slot = 1; slot < tandem_runtime_backend_count(runtime); slot++) {
        if (strcmp(tandem_runtime_backend_name(runtime, slot), backend) == 0) {
            return true;
        }
    }
    return false;
}

/* The reason why a device is not open, from its first profile. */
static void find_reason(const tandem_runtime *runtime, const char *device, char *out, size_t bytes)
{
    struct tandem_profile_info profiles[TND_MAX_PROFILES];
    struct tnd_profile profile;
    int n = tandem_runtime_profiles(runtime, profiles, TND_MAX_PROFILES);
    out[0] = '\0';
    for (int i = 0; i < n && i < TND_MAX_PROFILES && out[0] == '\0'; i++) {
        if (tnd_profiles_find(tnd_profiles_built_in(), profiles[i].name, &profile) &&
            strcmp(profile.device, device) == 0) {
            snprintf(out, bytes, "%s", profiles[i].reason);
        }
    }
}

enum tandem_status tnd_device_option_check(const struct tnd_device_option *option,
                                           const tandem_runtime *runtime,
                                           struct tandem_error *error)
{
    for (int i = 0; i < option->n_needed; i++) {
        if (!is_open(runtime, option->needed[i])) {
            char reason[sizeof(((struct tandem_profile_info *)0)->reason)];
            find_reason(runtime, option->needed[i], reason, sizeof(reason));
            const char *said = tnd_text_behind(reason, option->needed[i]);
            return fail(error, TANDEM_E_NOT_FOUND, "no device for %s%s%s", option->needed[i],
                        said != reason ? "" : ": ", said);
        }
    }
    return TANDEM_OK;
}
