/* SPDX-License-Identifier: MIT
 * Energy counters. Files: Linux Documentation/power/powercap/powercap.rst and
 * ABI/testing/sysfs-class-powercap, sysfs-class-power. NVML: NVIDIA's NVML API reference,
 * nvmlDeviceGetTotalEnergyConsumption. All values read are checked. */
#include "measure/energy.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dl.h"
#include "base/tnd_assert.h"
#include "tune/policy.h"

enum { MAX_ZONES = 16, MAX_GPUS = 16, MAX_PATH = 512 };

/* A counter of the processor; wraps around after range_uj. */
struct zone {
    char path[MAX_PATH];
    uint64_t range_uj; /* 0: unknown */
    uint64_t last_uj;
};

typedef struct nvml_device *nvml_handle;
struct nvml {
    int (*init)(void);
    int (*shutdown)(void);
    int (*count)(unsigned *out_count);
    int (*device)(unsigned index, nvml_handle *out_device);
    int (*energy)(nvml_handle device, unsigned long long *out_mj);
};

struct tnd_energy {
    struct zone zones[MAX_ZONES];
    int n_zones;
    struct nvml nvml;
    void *library; /* NULL: no GPU */
    nvml_handle gpus[MAX_GPUS];
    unsigned long long last_mj[MAX_GPUS];
    int n_gpus;
    char battery[MAX_PATH]; /* folder; "": not used */
    double last_w;          /* from the battery */
    uint64_t last_ns;       /* 0: not read yet */
    char sources[160];
};

/* ---- files ---- */

/* The first line of a file, without its newline; false with errno. */
static bool read_line(const char *folder, const char *file, char *out, size_t bytes)
{
    char path[MAX_PATH + 32];
    snprintf(path, sizeof(path), "%s/%s", folder, file);
    FILE *stream = fopen(path, "re");
    if (stream == NULL) {
        return false;
    }
    bool found = fgets(out, (int)bytes, stream) != NULL;
    fclose(stream);
    errno = found ? errno : EIO;
    out[found ? strcspn(out, "\n") : 0] = '\0';
    return found;
}

/* Reads an integer from 0 to 1e18 and nothing else; a minus sign is skipped where drivers differ in
 * using it. */
static bool read_number(const char *folder, const char *file, bool may_be_negative, uint64_t *out)
{
    char text[32];
    if (!read_line(folder, file, text, sizeof(text))) {
        return false;
    }
    const char *digits = may_be_negative && text[0] == '-' ? text + 1 : text;
    size_t length = strspn(digits, "0123456789");
    if (length == 0 || length > 18 || digits[length] != '\0') {
        errno = EINVAL;
        return false;
    }
    *out = strtoull(digits, NULL, 10);
    return true;
}

static void add_source(struct tnd_energy *energy, const char *name)
{
    size_t at = strlen(energy->sources);
    snprintf(energy->sources + at, sizeof(energy->sources) - at, "%s%s", at > 0 ? ", " : "", name);
}

/* ---- packages ---- */

/* Counts whole packages, and memory, which is not part of them; not "core" and "uncore", which are
 * parts of packages, nor "psys", which contains packages. */
static bool is_counted(const char *entry, const char *name)
{
    static const char prefix[] = "intel-rapl:";
    if (strncmp(entry, prefix, sizeof(prefix) - 1) != 0) {
        return false; /* intel-rapl-mmio: the same packages again */
    }
    bool is_part = strchr(entry + sizeof(prefix) - 1, ':') != NULL;
    return is_part ? strcmp(name, "dram") == 0 : strncmp(name, "package", 7) == 0;
}

/* Returns 0, or the errno of a counter that exists and cannot be read. */
static int open_zone(struct tnd_energy *energy, const char *root, const char *entry)
{
    char name[32];
    struct zone *zone = &energy->zones[energy->n_zones];
    int length = snprintf(zone->path, sizeof(zone->path), "%s/%s", root, entry);
    if (length >= (int)sizeof(zone->path) || !read_line(zone->path, "name", name, sizeof(name)) ||
        !is_counted(entry, name)) {
        return 0;
    }
    if (!read_number(zone->path, "energy_uj", false, &zone->last_uj)) {
        return errno;
    }
    if (!read_number(zone->path, "max_energy_range_uj", false, &zone->range_uj)) {
        zone->range_uj = 0;
    }
    energy->n_zones++;
    add_source(energy, name);
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

static int open_zones(struct tnd_energy *energy, const char *root)
{
    char names[4 * MAX_ZONES][64];
    int n = 0;
    int failure = 0;
    DIR *folder = opendir(root);
    const struct dirent *entry;
    while (folder != NULL && n < 4 * MAX_ZONES && (entry = readdir(folder)) != NULL) {
        if (strlen(entry->d_name) < sizeof(names[0])) {
            strcpy(names[n++], entry->d_name);
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    qsort(names, (size_t)n, sizeof(names[0]), by_name);
    for (int i = 0; i < n && energy->n_zones < MAX_ZONES && failure == 0; i++) {
        failure = open_zone(energy, root, names[i]);
    }
    if (failure != 0) { /* no counter of a part of the machine: an incomplete sum would mislead */
        energy->n_zones = 0;
        energy->sources[0] = '\0';
    }
    return failure;
}

static double lap_zones(struct tnd_energy *energy)
{
    double joules = 0;
    for (int i = 0; i < energy->n_zones; i++) {
        struct zone *zone = &energy->zones[i];
        uint64_t now_uj;
        if (!read_number(zone->path, "energy_uj", false, &now_uj)) {
            return NAN;
        }
        uint64_t last_uj = zone->last_uj;
        zone->last_uj = now_uj;
        if (now_uj >= last_uj) {
            joules += (double)(now_uj - last_uj) * 1e-6;
        } else if (zone->range_uj >= last_uj) {
            joules += (double)(zone->range_uj - last_uj + now_uj) * 1e-6;
        } else {
            joules = NAN;
        }
    }
    return joules;
}

/* ---- GPUs ---- */

static void open_gpus(struct tnd_energy *energy, const char *library)
{
    static const struct tnd_dl_symbol symbols[] = {
        TND_DL_REQUIRED(struct nvml, init, "nvmlInit_v2"),
        TND_DL_REQUIRED(struct nvml, shutdown, "nvmlShutdown"),
        TND_DL_REQUIRED(struct nvml, count, "nvmlDeviceGetCount_v2"),
        TND_DL_REQUIRED(struct nvml, device, "nvmlDeviceGetHandleByIndex_v2"),
        TND_DL_REQUIRED(struct nvml, energy, "nvmlDeviceGetTotalEnergyConsumption"),
    };
    const char *names[] = {library, NULL};
    unsigned count = 0;
    if (library[0] == '\0' ||
        tnd_dl_open(names, symbols, (int)(sizeof(symbols) / sizeof(symbols[0])), &energy->nvml,
                    &energy->library, NULL) != TANDEM_OK) {
        return;
    }
    bool is_open = energy->nvml.init() == 0;
    if (is_open && energy->nvml.count(&count) != 0) {
        count = 0;
    }
    for (unsigned i = 0; i < count && energy->n_gpus < MAX_GPUS; i++) {
        int at = energy->n_gpus;
        if (energy->nvml.device(i, &energy->gpus[at]) == 0 &&
            energy->nvml.energy(energy->gpus[at], &energy->last_mj[at]) == 0) {
            char name[32];
            snprintf(name, sizeof(name), "NVML GPU %u", i);
            add_source(energy, name);
            energy->n_gpus++;
        }
    }
    if (energy->n_gpus == 0) {
        if (is_open) {
            (void)energy->nvml.shutdown();
        }
        tnd_dl_close(energy->library);
        energy->library = NULL;
    }
}

static double lap_gpus(struct tnd_energy *energy)
{
    double joules = 0;
    for (int i = 0; i < energy->n_gpus; i++) {
        unsigned long long now_mj = 0;
        if (energy->nvml.energy(energy->gpus[i], &now_mj) != 0 || now_mj < energy->last_mj[i]) {
            return NAN; /* a 64-bit count since the driver was loaded never falls */
        }
        joules += (double)(now_mj - energy->last_mj[i]) * 1e-3;
        energy->last_mj[i] = now_mj;
    }
    return joules;
}

/* ---- a battery ---- */

/* Watts drawn now; NaN while charging, or when the file cannot be read. */
static double battery_w(const char *folder)
{
    char status[32];
    uint64_t uw, ua, uv;
    if (!read_line(folder, "status", status, sizeof(status)) ||
        strcmp(status, "Discharging") != 0) {
        return NAN;
    }
    if (read_number(folder, "power_now", true, &uw)) {
        return (double)uw * 1e-6;
    }
    if (read_number(folder, "current_now", true, &ua) &&
        read_number(folder, "voltage_now", true, &uv)) {
        return (double)ua * 1e-6 * (double)uv * 1e-6;
    }
    return NAN;
}

static void open_battery(struct tnd_energy *energy, const char *root)
{
    DIR *folder = opendir(root);
    const struct dirent *entry;
    while (folder != NULL && energy->battery[0] == '\0' && (entry = readdir(folder)) != NULL) {
        char path[MAX_PATH];
        int length = snprintf(path, sizeof(path), "%s/%s", root, entry->d_name);
        double watts = length < (int)sizeof(path) ? battery_w(path) : NAN;
        if (entry->d_name[0] != '.' && watts > 0) {
            memcpy(energy->battery, path, (size_t)length + 1);
            energy->last_w = watts;
            add_source(energy, "battery");
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
}

/* ---- all sources ---- */

static enum tandem_status refuse(int failure, const char *powercap, struct tandem_error *error)
{
    if (failure == EACCES || failure == EPERM) {
        return tnd_error_set(error, TANDEM_E_UNSUPPORTED_MACHINE, "energy", failure, 0,
                             "energy counters: this user may not read %s/*/energy_uj; run with "
                             "sudo, or once: sudo chmod a+r %s/*/energy_uj",
                             powercap, powercap);
    }
    if (failure != 0) {
        return tnd_error_set(error, TANDEM_E_UNSUPPORTED_MACHINE, "energy", failure, 0,
                             "energy counters: an energy_uj in %s is no number from 0 on",
                             powercap);
    }
    return tnd_error_set(error, TANDEM_E_UNSUPPORTED_MACHINE, "energy", 0, 0,
                         "this machine shows no energy counters: %s has no readable energy_uj, "
                         "there is no GPU with NVML and no battery that discharges",
                         powercap);
}

enum tandem_status tnd_energy_open(const struct tnd_energy_options *options,
                                   struct tnd_energy **out_energy, struct tandem_error *error)
{
    static const struct tnd_energy_options none;
    options = options != NULL ? options : &none;
    const char *powercap = options->powercap != NULL ? options->powercap : "/sys/class/powercap";
    struct tnd_energy *energy = tnd_calloc(1, sizeof(*energy));
    if (energy == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "energy", 0, 0, "energy: out of memory");
    }
    int failure = open_zones(energy, powercap);
    open_gpus(energy, options->nvml != NULL ? options->nvml : "libnvidia-ml.so.1");
    if (energy->n_zones == 0 && energy->n_gpus == 0) {
        open_battery(energy, options->power_supply != NULL ? options->power_supply
                                                           : "/sys/class/power_supply");
    }
    if (energy->sources[0] == '\0') {
        tnd_energy_close(energy);
        return refuse(failure, powercap, error);
    }
    *out_energy = energy;
    return TANDEM_OK;
}

void tnd_energy_close(struct tnd_energy *energy)
{
    if (energy != NULL && energy->library != NULL) {
        (void)energy->nvml.shutdown();
        tnd_dl_close(energy->library);
    }
    tnd_free(energy);
}

const char *tnd_energy_sources(const struct tnd_energy *energy)
{
    return energy->sources;
}

double tnd_energy_least_s(const struct tnd_energy *energy)
{
    return energy->battery[0] != '\0' ? TND_ENERGY_BATTERY_S
           : energy->n_gpus > 0       ? TND_ENERGY_GPU_S
                                      : TND_ENERGY_PACKAGE_S;
}

double tnd_energy_lap(struct tnd_energy *energy, uint64_t now_ns)
{
    double s = energy->last_ns != 0 && now_ns > energy->last_ns
                   ? (double)(now_ns - energy->last_ns) / 1e9
                   : 0;
    energy->last_ns = now_ns;
    double joules = lap_zones(energy) + lap_gpus(energy);
    if (energy->battery[0] != '\0') {
        double watts = battery_w(energy->battery);
        joules = (energy->last_w + watts) / 2 * s;
        energy->last_w = watts;
    }
    return joules >= 0 && joules <= TND_ENERGY_MOST_W * fmax(s, 1) ? joules : NAN;
}
