/* SPDX-License-Identifier: MIT
 * Reading lists of machines. Unknown keys are refused: a misspelt key would change the plan. */
#include "tools/report/machines_file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_status.h"
#include "formats/json_pull.h"

#define GIB               (1024.0 * 1024.0 * 1024.0)
#define MOST_GIB          1048576.0
#define BYTES_US_PER_GBIT 125.0 /* bytes per microsecond in a gigabit per second */

enum { KEY = 32, MOST_THREADS = 1024 };

struct reading {
    struct tnd_json json;
    struct tnd_machines out;
    bool has_link[TND_CLUSTER_MOST][TND_CLUSTER_MOST];
    bool has_default;
    struct tnd_cluster_link usual; /* for pairs without a link of their own */
};

/* A link as in the file. */
struct told_link {
    char from[TND_CLUSTER_NAME], to[TND_CLUSTER_NAME];
    double latency_us, gbit_s;
};

static enum tandem_status wrong(const struct reading *r, const char *what, const char *value,
                                struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_FORMAT, r->json.name, r->json.at - r->json.begin, 0,
                         "%.120s: byte %lld: %s '%.60s'", r->json.name,
                         (long long)(r->json.at - r->json.begin), what, value);
}

static enum tandem_status read_number(struct reading *r, const char *key, double low, double high,
                                      double *out, struct tandem_error *error)
{
    int64_t whole;
    bool is_whole;
    TND_TRY(tnd_json_number(&r->json, out, &whole, &is_whole, error));
    if (!(*out >= low && *out <= high)) {
        char range[96];
        snprintf(range, sizeof(range), "expected %g to %g, got %g for", low, high, *out);
        return wrong(r, range, key, error);
    }
    return TANDEM_OK;
}

/* ---- machines ---- */

static int find_machine(const struct tnd_machines *machines, const char *name)
{
    int i = 0;
    while (i < machines->n && strcmp(machines->list[i].name, name) != 0) {
        i++;
    }
    return i < machines->n ? i : -1;
}

static enum tandem_status read_member(struct reading *r, const char *key, struct tnd_machine *one,
                                      struct tandem_error *error)
{
    double number = 0;
    if (strcmp(key, "name") == 0) {
        return tnd_json_pull_string(&r->json, one->name, sizeof(one->name), error);
    }
    if (strcmp(key, "table") == 0) {
        return tnd_json_pull_string(&r->json, one->table, sizeof(one->table), error);
    }
    if (strcmp(key, "memory_gib") == 0) {
        TND_TRY(read_number(r, key, 0, MOST_GIB, &number, error));
        one->memory = (int64_t)(number * GIB);
        return TANDEM_OK;
    }
    if (strcmp(key, "device_gib") == 0) {
        TND_TRY(read_number(r, key, 0, MOST_GIB, &number, error));
        one->device_memory = (int64_t)(number * GIB);
        return TANDEM_OK;
    }
    if (strcmp(key, "threads") == 0) {
        TND_TRY(read_number(r, key, 1, MOST_THREADS, &number, error));
        one->threads = (int64_t)number;
        return TANDEM_OK;
    }
    return wrong(r, "a machine has name, table, memory_gib, device_gib and threads, not", key,
                 error);
}

static enum tandem_status read_machine(struct reading *r, struct tandem_error *error)
{
    struct tnd_machine one = {.name = ""};
    char key[KEY];
    struct tnd_json_walk walk = {.json = &r->json, .error = error};
    while (tnd_json_next_member(&walk, key, sizeof(key))) {
        TND_TRY(read_member(r, key, &one, error));
    }
    TND_TRY(walk.status);
    if (one.name[0] == '\0' || one.table[0] == '\0') {
        return wrong(r, "a machine needs a name and a table:", one.name, error);
    }
    if (find_machine(&r->out, one.name) >= 0) {
        return wrong(r, "two machines have the name", one.name, error);
    }
    if (r->out.n == TND_CLUSTER_MOST) {
        return tnd_error_set(error, TANDEM_E_LIMIT, r->json.name, r->out.n + 1, TND_CLUSTER_MOST,
                             "%.120s: more than %d machines", r->json.name, TND_CLUSTER_MOST);
    }
    r->out.list[r->out.n++] = one;
    return TANDEM_OK;
}

/* ---- links ---- */

static enum tandem_status read_link_member(struct reading *r, const char *key,
                                           struct told_link *one, struct tandem_error *error)
{
    if (strcmp(key, "from") == 0) {
        return tnd_json_pull_string(&r->json, one->from, sizeof(one->from), error);
    }
    if (strcmp(key, "to") == 0) {
        return tnd_json_pull_string(&r->json, one->to, sizeof(one->to), error);
    }
    if (strcmp(key, "latency_us") == 0) {
        return read_number(r, key, 0, 1e9, &one->latency_us, error);
    }
    if (strcmp(key, "gbit_s") == 0) {
        return read_number(r, key, 1e-6, 1e6, &one->gbit_s, error);
    }
    return wrong(r, "a link has from, to, latency_us and gbit_s, not", key, error);
}

static enum tandem_status read_link(struct reading *r, struct tandem_error *error)
{
    struct told_link one = {.latency_us = -1};
    char key[KEY];
    struct tnd_json_walk walk = {.json = &r->json, .error = error};
    while (tnd_json_next_member(&walk, key, sizeof(key))) {
        TND_TRY(read_link_member(r, key, &one, error));
    }
    TND_TRY(walk.status);
    if (one.latency_us < 0 || one.gbit_s <= 0) {
        return wrong(r, "a link needs latency_us and gbit_s:", one.from, error);
    }
    const struct tnd_cluster_link link =
        tnd_cluster_link_of(one.latency_us, one.gbit_s * BYTES_US_PER_GBIT);
    if (one.from[0] == '\0' && one.to[0] == '\0') {
        r->usual = link;
        r->has_default = true;
        return TANDEM_OK;
    }
    const int from = find_machine(&r->out, one.from), to = find_machine(&r->out, one.to);
    if (from < 0 || to < 0 || from == to) {
        return wrong(r, "a link goes from one machine of the list above to another one, not from",
                     from < 0 ? one.from : one.to, error);
    }
    r->out.links[from * TND_CLUSTER_MOST + to] = link;
    r->out.links[to * TND_CLUSTER_MOST + from] = link;
    r->has_link[from][to] = r->has_link[to][from] = true;
    return TANDEM_OK;
}

/* ---- the file ---- */

static enum tandem_status
read_list(struct reading *r, enum tandem_status (*item)(struct reading *, struct tandem_error *),
          struct tandem_error *error)
{
    struct tnd_json_walk walk = {.json = &r->json, .error = error};
    while (tnd_json_next_item(&walk)) {
        TND_TRY(item(r, error));
    }
    return walk.status;
}

static enum tandem_status read_key(struct reading *r, const char *key, struct tandem_error *error)
{
    if (strcmp(key, "machines") == 0) {
        return read_list(r, read_machine, error);
    }
    if (strcmp(key, "links") == 0) {
        return read_list(r, read_link, error);
    }
    if (strcmp(key, "one_medium") == 0) {
        return tnd_json_pull_bool(&r->json, &r->out.is_medium, error);
    }
    if (strcmp(key, "note") == 0) {
        return tnd_json_skip(&r->json, error);
    }
    return wrong(r, "expected machines, links, one_medium or note, got", key, error);
}

/* Shrinks rows of TND_CLUSTER_MOST to rows of n. */
static enum tandem_status close_links(struct reading *r, struct tandem_error *error)
{
    const int n = r->out.n;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            const struct tnd_cluster_link link = r->out.links[i * TND_CLUSTER_MOST + j];
            if (i != j && !r->has_link[i][j] && !r->has_default) {
                char pair[2 * TND_CLUSTER_NAME + 8];
                snprintf(pair, sizeof(pair), "%s and %s", r->out.list[i].name, r->out.list[j].name);
                return wrong(r, "there is no link between", pair, error);
            }
            r->out.links[i * n + j] = r->has_link[i][j] ? link : r->usual;
        }
    }
    return TANDEM_OK;
}

static enum tandem_status read_file(struct reading *r, struct tandem_error *error)
{
    char key[KEY];
    struct tnd_json_walk walk = {.json = &r->json, .error = error};
    while (tnd_json_next_member(&walk, key, sizeof(key))) {
        TND_TRY(read_key(r, key, error));
    }
    TND_TRY(walk.status);
    TND_TRY(tnd_json_end(&r->json, error));
    if (r->out.n == 0) {
        return wrong(r, "no machine in the list", "machines", error);
    }
    return close_links(r, error);
}

enum tandem_status tnd_machines_read(const char *text, size_t n, const char *name,
                                     struct tnd_machines *out, struct tandem_error *error)
{
    struct reading *r = tnd_calloc(1, sizeof(*r));
    enum tandem_status status = TANDEM_E_MEMORY;
    const size_t most = TND_CLUSTER_MOST;
    if (r != NULL) {
        r->json = (struct tnd_json){text, text, text + n, name};
        r->out.list = tnd_calloc(most, sizeof(r->out.list[0]));
        r->out.links = tnd_calloc(most * most, sizeof(r->out.links[0]));
    }
    if (r == NULL || r->out.list == NULL || r->out.links == NULL) {
        tnd_error_set(error, status, name, 0, 0, "%.120s: no memory for a list of machines", name);
    } else {
        status = read_file(r, error);
    }
    if (status == TANDEM_OK) {
        *out = r->out;
    } else if (r != NULL) {
        tnd_machines_fini(&r->out);
    }
    tnd_free(r);
    return status;
}

void tnd_machines_fini(struct tnd_machines *machines)
{
    tnd_free(machines->list);
    tnd_free(machines->links);
    memset(machines, 0, sizeof(*machines));
}
