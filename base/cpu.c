/* SPDX-License-Identifier: MIT
 * CPU features, model and memory sizes. Features decide which kernels run; the model is only shown
 * to people and stored in fingerprints. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/environment.h"
#include "base/isa-list.h"

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#endif
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

/* ---- features ---- */

#if defined(__x86_64__)
/* Registers whose contents the operating system saves (XCR0): Intel SDM volume 1, 13.3. */
static uint64_t saved_registers(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

static uint32_t bit_if(uint32_t word, int bit, enum tnd_cpu_feature feature)
{
    return (word >> bit & 1) != 0 ? (uint32_t)feature : 0;
}

/* Feature bits: Intel SDM volume 2, CPUID. */
static uint32_t detect(void)
{
    const uint64_t avx_state = 0x6, avx512_state = 0xe6, amx_state = 0x60000;
    uint32_t a, b, c, d;
    uint32_t found = 0;
    if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c >> 27 & 1) == 0) { /* no xgetbv */
        return 0;
    }
    uint64_t saved = saved_registers();
    if ((saved & avx_state) != avx_state || (c >> 28 & 1) == 0) {
        return 0;
    }
    found |= bit_if(c, 12, TND_CPU_FMA) | bit_if(c, 29, TND_CPU_F16C);
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) {
        return found;
    }
    uint32_t subleaves = a;
    found |= bit_if(b, 5, TND_CPU_AVX2) | bit_if(b, 8, TND_CPU_BMI2);
    bool has_avx512 = (saved & avx512_state) == avx512_state && (b >> 16 & 1) != 0;
    if (has_avx512) {
        found |= (uint32_t)TND_CPU_AVX512F | bit_if(b, 30, TND_CPU_AVX512BW) |
                 bit_if(b, 31, TND_CPU_AVX512VL) | bit_if(b, 17, TND_CPU_AVX512DQ) |
                 bit_if(c, 11, TND_CPU_AVX512_VNNI) | bit_if(c, 1, TND_CPU_AVX512_VBMI) |
                 bit_if(c, 8, TND_CPU_GFNI);
    }
    if ((saved & amx_state) == amx_state) {
        found |= bit_if(d, 25, TND_CPU_AMX_INT8) | bit_if(d, 22, TND_CPU_AMX_BF16);
    }
    if (subleaves >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0) {
        found |= bit_if(a, 4, TND_CPU_AVX_VNNI);
        found |= has_avx512 ? bit_if(a, 5, TND_CPU_AVX512_BF16) : 0;
    }
    return found;
}
#elif defined(__aarch64__)
/* Feature bits: Linux, Documentation/arch/arm64/elf_hwcaps. */
static uint32_t detect(void)
{
    unsigned long capabilities = getauxval(AT_HWCAP), more = getauxval(AT_HWCAP2);
    uint32_t found = 0;
    found |= (capabilities >> 1 & 1) != 0 ? (uint32_t)TND_CPU_NEON : 0;
    found |= (capabilities >> 20 & 1) != 0 ? (uint32_t)TND_CPU_DOTPROD : 0;
    found |= (more >> 13 & 1) != 0 ? (uint32_t)TND_CPU_I8MM : 0;
    return found;
}
#else
static uint32_t detect(void)
{
    return 0;
}
#endif

/* Linux saves tile registers only for processes that asked for them: arch_prctl as in
 * Documentation/arch/x86/xstate.rst. */
static int ask_for_tiles(void)
{
#if defined(__x86_64__) && defined(__linux__)
    const long request_permission = 0x1023; /* ARCH_REQ_XCOMP_PERM */
    const long tile_data = 18;              /* XFEATURE_XTILEDATA */
    return syscall(SYS_arch_prctl, request_permission, tile_data) == 0 ? 0 : -1;
#else
    return -1;
#endif
}

uint32_t tnd_cpu_permit_tiles(uint32_t features, int (*ask)(void))
{
    const uint32_t amx = (uint32_t)TND_CPU_AMX_INT8 | (uint32_t)TND_CPU_AMX_BF16;
    return (features & amx) != 0 && ask() != 0 ? features & ~amx : features;
}

/* ---- levels of TANDEM_CPU ---- */

/* Not a level: adds the AMX kernels to all others, also on machines without AMX. */
static const char emulated_tiles[] = "amx-emulated";

static const struct {
    const char *name;
    uint32_t allowed;
} levels[] = {
#define LEVEL(name, features, files) {#name, features},
    TND_ISA_LIST(LEVEL, NONE)
#undef LEVEL
};
enum { N_LEVELS = sizeof(levels) / sizeof(levels[0]) };

/* Index of a level, or -1. */
static int find_level(const char *text)
{
    for (int i = 0; i < N_LEVELS; i++) {
        if (strcmp(text, levels[i].name) == 0) {
            return i;
        }
    }
    return -1;
}

uint32_t tnd_cpu_mask(uint32_t features, const char *text)
{
    int level = text != NULL ? find_level(text) : -1;
    return level >= 0 ? features & levels[level].allowed : features;
}

uint32_t tnd_cpu_used(uint32_t features)
{
    uint32_t used = 0;
    for (int i = 0; i < N_LEVELS; i++) {
        used |= (features & levels[i].allowed) == levels[i].allowed ? levels[i].allowed : 0;
    }
    return used;
}

/* ---- detected once ---- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint32_t all_features;
static uint32_t masked_features;
static bool emulates_tiles;
static char unknown_level[64];
static char model[128];
static char id[48];
static struct tnd_cpu_caches caches;
static uint64_t ram_bytes;

/* Stores a model name without the blanks around it; false when it is empty. */
static bool take_model(const char *name)
{
    name += strspn(name, " \t");
    size_t n = strcspn(name, "\r\n");
    while (n > 0 && name[n - 1] == ' ') {
        n--;
    }
    if (n > 0) {
        snprintf(model, sizeof(model), "%.*s", n < sizeof(model) ? (int)n : 127, name);
    }
    return n > 0;
}

/* The name that the CPU reports ("Processor Brand String", AMD64 manual volume 3, CPUID 8000_0002
 * to 4). */
static void read_model_from_cpu(void)
{
#if defined(__x86_64__)
    unsigned int brand[13] = {0};
    unsigned int *at = brand;
    for (unsigned int leaf = 0x80000002; leaf <= 0x80000004; leaf++, at += 4) {
        if (__get_cpuid(leaf, &at[0], &at[1], &at[2], &at[3]) == 0) {
            return;
        }
    }
    (void)take_model((const char *)brand);
#endif
}

/* The first "model name" line of /proc/cpuinfo; without /proc (some containers) the name that the
 * CPU reports. */
static void read_model(void)
{
    char line[512];
    snprintf(model, sizeof(model), "unknown CPU");
    FILE *file = fopen("/proc/cpuinfo", "re");
    if (file == NULL) {
        read_model_from_cpu();
        return;
    }
    while (fgets(line, sizeof(line), file) != NULL) {
        const char *value = strchr(line, ':');
        if (value != NULL && strncmp(line, "model name", 10) == 0 && take_model(value + 1)) {
            break;
        }
    }
    fclose(file);
}

#if defined(__x86_64__)
/* Vendor, family and model: Intel SDM volume 2, CPUID leaves 0 and 1; the same on AMD. */
static void read_id(void)
{
    char vendor[13] = "";
    unsigned int eax, ebx, ecx, edx;
    if (__get_cpuid(0, &eax, &ebx, &ecx, &edx) == 0) {
        return;
    }
    memcpy(vendor, &ebx, 4);
    memcpy(vendor + 4, &edx, 4);
    memcpy(vendor + 8, &ecx, 4);
    if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0) {
        unsigned int family = eax >> 8 & 15;
        unsigned int number = eax >> 4 & 15;
        number += family == 6 || family == 15 ? (eax >> 16 & 15) << 4 : 0;
        family += family == 15 ? eax >> 20 & 255 : 0;
        snprintf(id, sizeof(id), "%s %u %u", vendor, family, number);
    }
}
#else
/* Implementer and part of the first core, as the kernel reports them on ARM. */
static void read_id(void)
{
    char line[512];
    unsigned int implementer = 0;
    unsigned int part = 0;
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file != NULL && part == 0 && fgets(line, sizeof(line), file) != NULL) {
        const char *value = strchr(line, ':');
        if (value != NULL && strncmp(line, "CPU implementer", 15) == 0) {
            implementer = (unsigned int)strtoul(value + 1, NULL, 16);
        } else if (value != NULL && strncmp(line, "CPU part", 8) == 0) {
            part = (unsigned int)strtoul(value + 1, NULL, 16);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    if (part != 0) {
        snprintf(id, sizeof(id), "0x%02x 0x%03x", implementer, part);
    }
}
#endif

/* Reads the first word of a sysfs file; false when the file does not exist. */
static bool read_word(const char *folder, const char *name, char *out, int bytes)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    bool ok = fgets(out, bytes, file) != NULL;
    fclose(file);
    if (ok) {
        out[strcspn(out, " \r\n")] = '\0';
    }
    return ok;
}

/* Parses "48K", "1024K", "32M" into bytes. */
static size_t parse_size(const char *text)
{
    char *end;
    unsigned long long size = strtoull(text, &end, 10);
    int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    return (size_t)size << shift;
}

static void read_caches(void)
{
    for (int i = 0; i < 8; i++) {
        char folder[64], level[16], type[32], size[32];
        snprintf(folder, sizeof(folder), "/sys/devices/system/cpu/cpu0/cache/index%d", i);
        if (!read_word(folder, "level", level, sizeof(level)) ||
            !read_word(folder, "type", type, sizeof(type)) ||
            !read_word(folder, "size", size, sizeof(size)) || strcmp(type, "Instruction") == 0) {
            continue;
        }
        size_t *cache = level[0] == '1'   ? &caches.l1d_bytes
                        : level[0] == '2' ? &caches.l2_bytes
                        : level[0] == '3' ? &caches.l3_bytes
                                          : NULL;
        if (cache != NULL) {
            *cache = parse_size(size);
        }
    }
}

static size_t positive(long value)
{
    return value > 0 ? (size_t)value : 0;
}

/* Asks the C library for sizes missing in sysfs (containers hide it). */
static void complete_caches(void)
{
#ifdef _SC_LEVEL1_DCACHE_SIZE
    if (caches.l1d_bytes == 0) {
        caches.l1d_bytes = positive(sysconf(_SC_LEVEL1_DCACHE_SIZE));
    }
    if (caches.l2_bytes == 0) {
        caches.l2_bytes = positive(sysconf(_SC_LEVEL2_CACHE_SIZE));
    }
    if (caches.l3_bytes == 0) {
        caches.l3_bytes = positive(sysconf(_SC_LEVEL3_CACHE_SIZE));
    }
#endif
}

static void look_once(void)
{
    const char *level = tnd_environment(TND_ENVIRONMENT_CPU);
    all_features = tnd_cpu_permit_tiles(detect(), ask_for_tiles);
    masked_features = tnd_cpu_mask(all_features, level);
    emulates_tiles = level != NULL && strcmp(level, emulated_tiles) == 0;
    if (level != NULL && find_level(level) < 0 && !emulates_tiles) {
        snprintf(unknown_level, sizeof(unknown_level), "%s", level);
    }
    read_model();
    read_id();
    read_caches();
    complete_caches();
    ram_bytes = (uint64_t)positive(sysconf(_SC_PHYS_PAGES)) * positive(sysconf(_SC_PAGESIZE));
}

uint32_t tnd_cpu_features(void)
{
    pthread_once(&once, look_once);
    return masked_features;
}

uint32_t tnd_cpu_features_all(void)
{
    pthread_once(&once, look_once);
    return all_features;
}

bool tnd_cpu_emulates_tiles(void)
{
    pthread_once(&once, look_once);
    return emulates_tiles;
}

const char *tnd_cpu_unknown_level(void)
{
    pthread_once(&once, look_once);
    return unknown_level[0] != '\0' ? unknown_level : NULL;
}

const char *tnd_cpu_id(void)
{
    pthread_once(&once, look_once);
    return id;
}

const char *tnd_cpu_model(void)
{
    pthread_once(&once, look_once);
    return model;
}

struct tnd_cpu_caches tnd_cpu_caches(void)
{
    pthread_once(&once, look_once);
    return caches;
}

uint64_t tnd_cpu_ram_bytes(void)
{
    pthread_once(&once, look_once);
    return ram_bytes;
}

const char *tnd_cpu_isa_name(uint32_t features)
{
    /* Richest set first; the first row whose features are all present names the CPU. */
    static const struct {
        uint32_t needs;
        const char *name;
    } names[] = {
        {TND_CPU_SET_AMX | TND_CPU_AVX512_BF16, "avx512+vnni+bf16+amx"},
        {TND_CPU_SET_AMX, "avx512+vnni+amx"},
        {TND_CPU_SET_AVX512 | TND_CPU_AVX512_VNNI | TND_CPU_AVX512_BF16, "avx512+vnni+bf16"},
        {TND_CPU_SET_AVX512 | TND_CPU_AVX512_VNNI, "avx512+vnni"},
        {TND_CPU_SET_AVX512, "avx512"},
        {TND_CPU_SET_AVX2 | TND_CPU_AVX_VNNI, "avx2+vnni"},
        {TND_CPU_SET_AVX2, "avx2"},
        {TND_CPU_SET_I8MM, "neon+dotprod+i8mm"},
        {TND_CPU_SET_DOTPROD, "neon+dotprod"},
        {TND_CPU_NEON, "neon"},
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if ((features & names[i].needs) == names[i].needs) {
            return names[i].name;
        }
    }
    return "scalar";
}
