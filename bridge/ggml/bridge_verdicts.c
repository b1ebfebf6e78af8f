/* SPDX-License-Identifier: MIT
 * A line for what it is and a line for each verdict: kind, type, class of sizes, placed, faster
 * with one token, with few, with many. Numbers are those of the program and of ggml. */
#include "bridge/ggml/bridge_verdicts.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NUMBERS = 4 + TND_TOKEN_CLASSES, PATH_MOST = 1024 };
static const double NO_LOSS = 1.02; /* what two measurements of one thing differ by */
static const char TITLE[] = "tandem-bridge 2 ";

/* ---- judging ---- */

/* Weights that we can use are slow for the host's own kernels: nobody must lose by that. */
void tnd_verdict_judge(struct tnd_bridge_verdict *out,
                       const struct tnd_bridge_times times[TND_TOKEN_CLASSES])
{
    bool gains = false;
    bool loses = false;
    for (int i = 0; i < TND_TOKEN_CLASSES; i++) {
        double with_us = times[i].ours < times[i].plain ? times[i].ours : times[i].plain;
        out->is_faster[i] = times[i].ours < times[i].plain;
        gains = gains || times[i].ours < times[i].loaded;
        loses = loses || with_us > times[i].loaded * NO_LOSS;
    }
    out->is_placed = gains && !loses;
}

/* ---- text ---- */

/* A decimal number below `limit` and the character behind it. */
static bool take_number(const char **io_at, const char *end, char behind, int limit, int *out)
{
    const char *at = *io_at;
    int value = 0;
    int digits = 0;
    while (at < end && *at >= '0' && *at <= '9' && digits < 4) {
        value = value * 10 + (*at++ - '0');
        digits++;
    }
    if (digits == 0 || value >= limit || at == end || *at != behind) {
        return false;
    }
    *io_at = at + 1;
    *out = value;
    return true;
}

static bool take_line(const char **io_at, const char *end, struct tnd_bridge_verdicts *io)
{
    static const int limits[NUMBERS] = {
        TND_PRODUCT_KINDS, TANDEM_TYPE_NUMBERS, TND_SIZE_CLASSES, 2, 2, 2, 2};
    int numbers[NUMBERS];
    for (int i = 0; i < NUMBERS; i++) {
        char behind = i == NUMBERS - 1 ? '\n' : ' ';
        if (!take_number(io_at, end, behind, limits[i], &numbers[i])) {
            return false;
        }
    }
    struct tnd_bridge_verdict *verdict = &io->of[numbers[0]][numbers[1]][numbers[2]];
    *verdict = (struct tnd_bridge_verdict){true, true, true, numbers[3] == 1, {false}};
    for (int i = 0; i < TND_TOKEN_CLASSES; i++) {
        verdict->is_faster[i] = numbers[4 + i] == 1;
    }
    return true;
}

int tnd_verdicts_kind(bool has_experts, int64_t k)
{
    enum { SHORT = 768 };
    return (has_experts ? 1 : 0) + (k < SHORT ? 2 : 0);
}

bool tnd_verdicts_parse(const char *bytes, size_t n, const char *fingerprint,
                        struct tnd_bridge_verdicts *out)
{
    struct tnd_bridge_verdicts found = *out;
    size_t title = strlen(TITLE);
    size_t length = strlen(fingerprint);
    if (n < title + length + 1 || memcmp(bytes, TITLE, title) != 0 ||
        memcmp(bytes + title, fingerprint, length) != 0 || bytes[title + length] != '\n') {
        return false;
    }
    const char *at = bytes + title + length + 1;
    while (at < bytes + n) {
        if (!take_line(&at, bytes + n, &found)) {
            return false;
        }
    }
    *out = found;
    return true;
}

size_t tnd_verdicts_print(const struct tnd_bridge_verdicts *verdicts, const char *fingerprint,
                          char *out, size_t n)
{
    int length = snprintf(out, n, "%s%s\n", TITLE, fingerprint);
    size_t used = length > 0 && (size_t)length < n ? (size_t)length : 0;
    for (int i = 0; i < TND_PRODUCT_KINDS * TANDEM_TYPE_NUMBERS * TND_SIZE_CLASSES && used > 0;
         i++) {
        int size = i % TND_SIZE_CLASSES;
        int type = i / TND_SIZE_CLASSES % TANDEM_TYPE_NUMBERS;
        int kind = i / TND_SIZE_CLASSES / TANDEM_TYPE_NUMBERS;
        const struct tnd_bridge_verdict *verdict = &verdicts->of[kind][type][size];
        if (verdict->is_measured && verdict->is_calm) {
            length = snprintf(out + used, n - used, "%d %d %d %d %d %d %d\n", kind, type, size,
                              verdict->is_placed, verdict->is_faster[0], verdict->is_faster[1],
                              verdict->is_faster[2]);
            used = length > 0 && (size_t)length < n - used ? used + (size_t)length : 0;
        }
    }
    return used;
}

/* ---- files ---- */

static uint64_t hash_of(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (; *text != '\0'; text++) {
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    }
    return hash;
}

/* In the folder of timing tables, which is made where it is not there. */
static bool find_path(const char *fingerprint, char out[PATH_MOST])
{
    const char *cache = secure_getenv("XDG_CACHE_HOME");
    const char *home = secure_getenv("HOME");
    bool has_cache = cache != NULL && cache[0] == '/';
    if (!has_cache && (home == NULL || home[0] != '/')) {
        return false;
    }
    int n = snprintf(out, PATH_MOST, "%s%s", has_cache ? cache : home, has_cache ? "" : "/.cache");
    if (n < 0 || n > PATH_MOST - 64) {
        return false;
    }
    (void)mkdir(out, 0700);
    (void)snprintf(out + n, (size_t)(PATH_MOST - n), "/tandem");
    (void)mkdir(out, 0755);
    (void)snprintf(out + n, (size_t)(PATH_MOST - n), "/tandem/bridge-%016" PRIx64 ".txt",
                   hash_of(fingerprint));
    return true;
}

/* The user's own and nobody else's to write. */
static bool is_trusted(int file)
{
    struct stat status;
    return fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
           (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

void tnd_verdicts_load(const char *fingerprint, struct tnd_bridge_verdicts *io)
{
    char path[PATH_MOST];
    char bytes[TND_VERDICTS_MOST_BYTES];
    int file = find_path(fingerprint, path)
                   ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
                   : -1;
    if (file < 0) {
        return;
    }
    ssize_t n = is_trusted(file) ? read(file, bytes, sizeof(bytes)) : -1;
    if (n > 0 && (size_t)n < sizeof(bytes)) {
        (void)tnd_verdicts_parse(bytes, (size_t)n, fingerprint, io);
    }
    (void)close(file);
}

void tnd_verdicts_save(const char *fingerprint, const struct tnd_bridge_verdicts *verdicts)
{
    char path[PATH_MOST];
    char temporary[PATH_MOST + 8];
    char bytes[TND_VERDICTS_MOST_BYTES];
    size_t n = tnd_verdicts_print(verdicts, fingerprint, bytes, sizeof(bytes));
    if (n == 0 || !find_path(fingerprint, path)) {
        return;
    }
    (void)snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path);
    int file = mkstemp(temporary);
    if (file < 0) {
        return;
    }
    bool is_written = write(file, bytes, n) == (ssize_t)n;
    is_written = close(file) == 0 && is_written;
    if (!is_written || rename(temporary, path) != 0) {
        (void)unlink(temporary);
    }
}
