/* SPDX-License-Identifier: MIT
 * Validates, once, what drivers report, before anything is computed from it: a driver may be
 * broken, or another library may have its name. */
#include "backends/gpu/gpu_facts.h"

#include "base/alloc.h"
#include "base/emit.h"

/* More than any device has, but small enough that sums and products of a few such numbers fit into
 * 64 bits. */
static const uint64_t most_memory = UINT64_C(1) << 48;
enum { LEAST_MEMORY = 64 << 20, LEAST_GROUP = 16, MOST_GROUP = 1 << 16, MOST_UNITS = 1 << 16 };
enum { MOST_MHZ = 1000000 };

/* Makes a text one line of UTF-8, because messages and tables contain it. */
static void clean(char *text, size_t bytes)
{
    text[bytes - 1] = '\0';
    for (char *at = text; *at != '\0';) {
        const size_t length = tnd_emit_utf8_length(at);
        const bool is_control = (unsigned char)*at < ' ' || *at == 0x7f;
        if (length == 0 || is_control) {
            *at++ = '?';
        } else {
            at += length;
        }
    }
}

static void clean_texts(struct tnd_gpu_found *found)
{
    struct tandem_device_info *info = &found->info;
    clean(found->platform_version, sizeof(found->platform_version));
    clean(found->options, sizeof(found->options));
    clean(info->platform, sizeof(info->platform));
    clean(info->name, sizeof(info->name));
    clean(info->vendor, sizeof(info->vendor));
    clean(info->driver, sizeof(info->driver));
    clean(info->version, sizeof(info->version));
    clean(info->reason, sizeof(info->reason));
}

/* Describes an impossible value; "" if all are plausible. */
static void find_lie(const struct tnd_gpu_caps *caps, char *out, size_t bytes)
{
    const unsigned long long memory = caps->global_bytes;
    const unsigned long long largest = caps->max_alloc_bytes;
    if (memory < LEAST_MEMORY) {
        snprintf(out, bytes, "it has too little memory: %llu bytes", memory);
    } else if (memory > most_memory) {
        snprintf(out, bytes, "its driver says that it has %llu bytes of memory", memory);
    } else if (largest == 0) {
        snprintf(out, bytes, "its driver gives no buffer any memory");
    } else if (caps->compute_units < 1) {
        snprintf(out, bytes, "its driver says that it has %d compute units", caps->compute_units);
    } else if (caps->max_group < LEAST_GROUP || caps->max_items[0] < LEAST_GROUP) {
        snprintf(out, bytes, "its work-groups have less than %d items", LEAST_GROUP);
    } else if (caps->max_items[1] < 1 || caps->max_items[2] < 1) {
        snprintf(out, bytes, "its work-groups do not have three dimensions");
    }
}

/* Limits values: using less than a driver reports is always safe. */
static void limit(struct tnd_gpu_caps *caps)
{
    const uint64_t memory = caps->global_bytes;
    caps->max_alloc_bytes = caps->max_alloc_bytes < memory ? caps->max_alloc_bytes : memory;
    caps->local_bytes = caps->local_bytes < memory ? caps->local_bytes : memory;
    caps->max_group = caps->max_group < MOST_GROUP ? caps->max_group : MOST_GROUP;
    for (int i = 0; i < 3; i++) {
        const size_t items = caps->max_items[i];
        caps->max_items[i] = items < caps->max_group ? items : caps->max_group;
    }
    caps->compute_units = caps->compute_units < MOST_UNITS ? caps->compute_units : MOST_UNITS;
    caps->clock_mhz = caps->clock_mhz > MOST_MHZ ? MOST_MHZ
                      : caps->clock_mhz > 0      ? caps->clock_mhz
                                                 : 0;
}

static void check(struct tnd_gpu_found *found)
{
    struct tandem_device_info *info = &found->info;
    char lie[sizeof(info->reason)] = "";
    clean_texts(found);
    find_lie(&found->caps, lie, sizeof(lie));
    if (lie[0] == '\0') {
        const bool has_fp16 = info->has_fp16; /* a driver may report more than its kernels use */
        limit(&found->caps);
        tnd_gpu_fill_info(&found->caps, info);
        info->has_fp16 = has_fp16;
    } else if (info->is_fit) {
        info->is_fit = false;
        info->is_default = false;
        snprintf(info->reason, sizeof(info->reason), "%s", lie);
    }
}

enum tandem_status tnd_gpu_find_devices(const struct tnd_gpu_driver *driver,
                                        const struct tnd_gpu_libraries *libraries,
                                        struct tnd_gpu_found **out_found, int *out_n,
                                        struct tandem_error *error)
{
    struct tnd_gpu_found *found = NULL;
    int n = 0;
    TND_TRY(driver->find(libraries, &found, &n, error));
    if (n < 1 || n > TND_GPU_MAX_DEVICES) {
        tnd_free(found);
        return tnd_error_set(error, TANDEM_E_DEVICE, driver->name, n, TND_GPU_MAX_DEVICES,
                             "%s: a list of %d devices, expected 1 to %d", driver->name, n,
                             TND_GPU_MAX_DEVICES);
    }
    for (int i = 0; i < n; i++) {
        check(&found[i]);
    }
    *out_found = found;
    *out_n = n;
    return TANDEM_OK;
}
