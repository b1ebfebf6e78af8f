/* SPDX-License-Identifier: MIT
 * Time of whole experts on ranks: a token's experts decide how much each rank has to do, and all
 * ranks wait for the one with the most. Its expected time follows from counting the choices of k of
 * n experts, all equally likely. (Real routers are less even.) */
#include <math.h>
#include <string.h>

#include "tune/cluster.h"

/* ln (n choose k) */
static double choose_ln(double n, double k)
{
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1);
}

/* Probability that no rank takes longer than `us` for one token: the fraction of choices of k
 * experts that give no rank more than it can compute in that time. */
static double chance_of(const struct tnd_cluster_duty *duties, int n_ranks, int64_t n, int64_t k,
                        double us)
{
    /* choices of this many experts so far, as a fraction of all choices */
    double counts[TND_CLUSTER_USED + 1] = {1};
    const double all = choose_ln((double)n, (double)k) / (double)k;
    for (int r = 0; r < n_ranks; r++) {
        const struct tnd_cluster_duty *duty = &duties[r];
        const double room = (us - duty->beside_us) * (1 + 1e-12) * (double)k;
        double sums[TND_CLUSTER_USED + 1] = {0};
        for (int64_t own = 0; own <= k && own <= duty->n; own++) {
            if ((double)own * duty->all_us > room && (own > 0 || duty->beside_us > us)) {
                break;
            }
            const double more = exp(choose_ln((double)duty->n, (double)own) - all * (double)own);
            for (int64_t i = 0; i + own <= k; i++) {
                sums[i + own] += counts[i] * more;
            }
        }
        memcpy(counts, sums, sizeof(counts));
    }
    return counts[k];
}

/* Like chance_of, for many tokens: the number of choices per rank is nearly normal; ranks are
 * treated as independent. */
static double chance_of_many(const struct tnd_cluster_duty *duties, int n_ranks, int64_t n,
                             int64_t k, double tokens, double us)
{
    double chance = 1;
    for (int r = 0; r < n_ranks; r++) {
        const double p = (double)duties[r].n / (double)n;
        const double left = n > 1 ? (double)(n - k) / (double)(n - 1) : 0;
        const double mean = duties[r].beside_us + p * duties[r].all_us;
        const double deviation = duties[r].all_us * sqrt(p * (1 - p) * left / (tokens * (double)k));
        chance *=
            deviation > 0 ? 0.5 * erfc((mean - us) / deviation * M_SQRT1_2) : (double)(us >= mean);
    }
    return chance;
}

double tnd_cluster_slowest_us(const struct tnd_cluster_duty *duties, int n_ranks, int64_t n,
                              int64_t k, double tokens)
{
    enum { STEPS = 512 };
    double least = 0, most = 0, us = 0;
    k = k < TND_CLUSTER_USED ? k : TND_CLUSTER_USED;
    for (int r = 0; r < n_ranks; r++) {
        least = fmax(least, duties[r].beside_us);
        most = fmax(most, duties[r].beside_us + (duties[r].n > 0 ? duties[r].all_us : 0));
    }
    for (int i = 0; i < STEPS; i++) { /* integrates the probability of taking longer */
        const double at = least + (most - least) * (i + 0.5) / STEPS;
        us += 1 - (tokens > 1 ? chance_of_many(duties, n_ranks, n, k, tokens, at)
                              : chance_of(duties, n_ranks, n, k, at));
    }
    return least + us * (most - least) / STEPS;
}
