/* SPDX-License-Identifier: MIT
 * Messages as latency and bandwidth; all-reduce as predicted from them and as measured. */
#include "tools/report/links.h"

#include <string.h>

#include "base/alloc.h"
#include "tune/cluster.h"

static bool is_new_transport(const struct tandem_table *table, int i)
{
    for (int j = 0; j < i; j++) {
        if (strcmp(table->links[j].transport, table->links[i].transport) == 0) {
            return false;
        }
    }
    return true;
}

static double rate_of(const struct tnd_sample *sample)
{
    return sample->median_us > 0 ? (double)sample->m / sample->median_us / 1e3 : 0.0;
}

/* Adds the bandwidth of each direction when both are used at once, if it was measured. */
static void print_both(struct tnd_text *out, const struct tandem_table *table,
                       const struct tnd_link *message)
{
    for (int i = 0; i < table->n_links; i++) {
        const struct tnd_link *link = &table->links[i];
        if (strcmp(link->kind, "both directions") == 0 &&
            strcmp(link->transport, message->transport) == 0 &&
            strcmp(link->from, message->from) == 0 && strcmp(link->to, message->to) == 0 &&
            link->curve.n_samples > 0) {
            tnd_text_printf(out, ", %.3g in both directions at once",
                            rate_of(&link->curve.samples[link->curve.n_samples - 1]));
        }
    }
}

static void print_messages(struct tnd_text *out, const struct tandem_table *table,
                           const char *transport)
{
    for (int i = 0; i < table->n_links; i++) {
        const struct tnd_link *link = &table->links[i];
        const struct tnd_curve *curve = &link->curve;
        if (strcmp(link->kind, "message") != 0 || strcmp(link->transport, transport) != 0 ||
            curve->n_samples == 0) {
            continue;
        }
        const struct tnd_sample *last = &curve->samples[curve->n_samples - 1];
        tnd_text_printf(out, "  %s to %s: latency %.1f us, %.3g GB/s", link->from, link->to,
                        curve->samples[0].median_us, rate_of(last));
        print_both(out, table, link);
        tnd_text_printf(out, " at %lld bytes\n", (long long)last->m);
    }
}

/* A cluster in which every pair has the slowest message of the transport. False: there is none. */
static bool open_slowest(const struct tandem_table *table, const char *transport, int n,
                         struct tnd_cluster *out)
{
    const char *ends[TND_CLUSTER_MOST];
    for (int i = 0; i < n && i < TND_CLUSTER_MOST; i++) {
        ends[i] = ""; /* matches no end */
    }
    *out = (struct tnd_cluster){.n = n};
    out->links =
        n <= TND_CLUSTER_MOST ? tnd_calloc((size_t)n * (size_t)n + 1, sizeof(out->links[0])) : NULL;
    return out->links != NULL && tnd_cluster_links_of(table, transport, ends, n, out->links);
}

static void print_together(struct tnd_text *out, const struct tandem_table *table,
                           const struct tnd_link *link)
{
    int ranks[TND_CLUSTER_MOST];
    struct tnd_cluster cluster = {.n = 0};
    const bool is_sum = strcmp(link->kind, "all-reduce") == 0 &&
                        open_slowest(table, link->transport, link->ranks, &cluster);
    for (int i = 0; i < TND_CLUSTER_MOST; i++) {
        ranks[i] = i;
    }
    tnd_text_printf(out, "  %s of %d ranks, us\n    %9s %10s%s\n", link->kind, link->ranks, "bytes",
                    "measured", is_sum ? "  predicted: whole, in segments" : "");
    for (int i = 0; i < link->curve.n_samples; i++) {
        const struct tnd_sample *sample = &link->curve.samples[i];
        const double bytes = (double)sample->m;
        tnd_text_printf(out, "    %9lld %10.1f", (long long)sample->m, sample->median_us);
        if (is_sum) {
            tnd_text_printf(out, "  %15.1f %12.1f",
                            tnd_cluster_reduce_us(&cluster, ranks, cluster.n, bytes, false),
                            tnd_cluster_reduce_us(&cluster, ranks, cluster.n, bytes, true));
        }
        tnd_text_add_char(out, '\n');
    }
    tnd_free(cluster.links);
}

void tnd_links_print(struct tnd_text *out, const struct tandem_table *table)
{
    double factor;
    for (int i = 0; i < table->n_links; i++) {
        const char *transport = table->links[i].transport;
        if (!is_new_transport(table, i)) {
            continue;
        }
        tnd_text_printf(out, "\nlinks by %s\n", transport);
        print_messages(out, table, transport);
        for (int j = 0; j < table->n_links; j++) {
            if (strcmp(table->links[j].transport, transport) == 0 &&
                strncmp(table->links[j].kind, "all-", strlen("all-")) == 0) {
                print_together(out, table, &table->links[j]);
            }
        }
    }
    if (table->n_links > 0 && tnd_table_slowdown(table, "cpu", "links", &factor)) {
        tnd_text_printf(out, "\nproducts take %.2f times as long while messages come and go\n",
                        factor);
    }
}
