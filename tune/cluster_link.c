/* SPDX-License-Identifier: MIT
 * Times of messages between ranks. A rank receives the messages of all others one after the other,
 * and waits once for the highest latency of their links. */
#include <math.h>
#include <string.h>

#include "table/curve_line.h"
#include "tune/cluster.h"
#include "tune/policy.h"

static double size_of(int i)
{
    return (double)((int64_t)8 << 3 * i);
}

struct tnd_cluster_link tnd_cluster_link_of(double latency_us, double bytes_per_us)
{
    struct tnd_cluster_link link = {{0}, {0}};
    for (int i = 0; i < TND_CLUSTER_SIZES; i++) {
        link.us[i] = latency_us + (bytes_per_us > 0 ? size_of(i) / bytes_per_us : 0);
    }
    return link;
}

static void read_times(const struct tnd_curve *curve, double out_us[TND_CLUSTER_SIZES])
{
    for (int i = 0; i < TND_CLUSTER_SIZES; i++) {
        out_us[i] = tnd_transfer_line(curve, (int64_t)size_of(i));
    }
}

static bool is_kind(const struct tnd_link *link, const char *kind, const char *transport)
{
    return strcmp(link->kind, kind) == 0 && strcmp(link->transport, transport) == 0 &&
           link->curve.n_samples > 0;
}

/* Reads the times of a pair's messages; `ends` NULL: for each size those of the slowest pair.
 * Returns whether any were measured. */
static bool read_pair(const struct tandem_table *table, const char *kind, const char *transport,
                      const char *const ends[2], double out_us[TND_CLUSTER_SIZES])
{
    bool has_any = false;
    for (int i = 0; i < table->n_links; i++) {
        const struct tnd_link *link = &table->links[i];
        double us[TND_CLUSTER_SIZES];
        const bool is_pair = ends == NULL ||
                             (strcmp(link->from, ends[0]) == 0 && strcmp(link->to, ends[1]) == 0) ||
                             (strcmp(link->from, ends[1]) == 0 && strcmp(link->to, ends[0]) == 0);
        if (!is_kind(link, kind, transport) || !is_pair) {
            continue;
        }
        read_times(&link->curve, us);
        for (int s = 0; s < TND_CLUSTER_SIZES; s++) {
            out_us[s] = has_any ? fmax(out_us[s], us[s]) : us[s];
        }
        has_any = true;
    }
    return has_any;
}

bool tnd_cluster_links_of(const struct tandem_table *table, const char *transport,
                          const char *const *ends, int n, struct tnd_cluster_link *out_links)
{
    struct tnd_cluster_link slowest = {{0}, {0}};
    const bool has_any = read_pair(table, "message", transport, NULL, slowest.us);
    (void)read_pair(table, "both directions", transport, NULL, slowest.both_us);
    for (int i = 0; i < n && has_any; i++) {
        for (int j = 0; j < n; j++) {
            struct tnd_cluster_link *link = &out_links[i * n + j];
            const char *const pair[2] = {ends[i], ends[j]};
            *link = slowest;
            (void)read_pair(table, "message", transport, pair, link->us);
            (void)read_pair(table, "both directions", transport, pair, link->both_us);
        }
    }
    return has_any;
}

double tnd_cluster_beside_of(const struct tandem_table *table)
{
    double factor = 1;
    (void)tnd_table_slowdown(table, "cpu", "links", &factor);
    return factor;
}

bool tnd_cluster_sum_of(const struct tandem_table *table, const char *transport, const char *end,
                        int n, struct tnd_cluster_link *out)
{
    for (int i = 0; i < table->n_links; i++) {
        const struct tnd_link *link = &table->links[i];
        if (is_kind(link, "all-reduce", transport) && link->ranks == n &&
            strcmp(link->from, end) == 0) {
            read_times(&link->curve, out->us);
            return true;
        }
    }
    return false;
}

static double line_us(const double us[TND_CLUSTER_SIZES], double bytes)
{
    int i = 0;
    if (bytes <= size_of(0)) {
        return us[0];
    }
    while (i < TND_CLUSTER_SIZES - 2 && bytes > size_of(i + 1)) {
        i++;
    }
    const double slope = (us[i + 1] - us[i]) / (size_of(i + 1) - size_of(i));
    return fmax(0, us[i] + slope * (bytes - size_of(i)));
}

double tnd_cluster_link_us(const struct tnd_cluster_link *link, double bytes)
{
    return line_us(link->us, bytes);
}

/* Time until every rank has received `bytes` from each other one; messages go in both directions at
 * once. */
static double exchange_us(const struct tnd_cluster *cluster, const int *ranks, int n, double bytes)
{
    double most_us = 0, latency_us = 0, all_us = 0;
    for (int i = 0; i < n; i++) {
        double waiting_us = 0, moving_us = 0;
        for (int j = 0; j < n; j++) {
            const struct tnd_cluster_link *link = &cluster->links[ranks[j] * cluster->n + ranks[i]];
            const double *us = link->both_us[0] > 0 ? link->both_us : link->us;
            if (i != j) {
                waiting_us = fmax(waiting_us, us[0]);
                moving_us += fmax(0, line_us(us, bytes) - us[0]);
            }
        }
        most_us = fmax(most_us, waiting_us + moving_us);
        latency_us = fmax(latency_us, waiting_us);
        all_us += moving_us;
    }
    return cluster->is_medium ? latency_us + all_us : most_us;
}

double tnd_cluster_reduce_us(const struct tnd_cluster *cluster, const int *ranks, int n,
                             double bytes, bool in_segments)
{
    if (n < 2) {
        return 0;
    }
    return in_segments
               ? 2 * exchange_us(cluster, ranks, n, bytes / n) + bytes / TND_CLUSTER_ADD_RATE
               : exchange_us(cluster, ranks, n, bytes) + n * bytes / TND_CLUSTER_ADD_RATE;
}

double tnd_cluster_sum_us(const struct tnd_cluster *cluster, const int *ranks, int n, double bytes)
{
    if (cluster->has_sum && n == cluster->n) {
        return tnd_cluster_link_us(&cluster->sum, bytes);
    }
    return tnd_cluster_reduce_us(cluster, ranks, n, bytes,
                                 n > 2 && bytes >= TND_CLUSTER_SEGMENTS_BYTES);
}

double tnd_cluster_gather_us(const struct tnd_cluster *cluster, const int *ranks, int n,
                             double bytes)
{
    return n < 2 ? 0 : exchange_us(cluster, ranks, n, bytes / n);
}
