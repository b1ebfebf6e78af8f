/* SPDX-License-Identifier: MIT
 * Counts unreliable cells and names the worst. */
#include "tools/report/table_health.h"

#include <inttypes.h>
#include <string.h>

#include "measure/measure_reference.h"
#include "table/judge.h"

enum { MOST_NAMED = 5, MAX_BACKENDS = TND_TABLE_MAX_PROFILES * TANDEM_STAGES };

/* ---- cells ---- */

struct cell {
    const struct tnd_curve_key *key;
    const struct tnd_sample *sample;
};

static double noise_of(const struct tnd_sample *sample)
{
    return sample->median_us > 0 ? sample->spread_us / sample->median_us : 1.0;
}

/* Keeps the noisiest cells, worst first. */
static void name_cell(struct cell *named, int *n_named, struct cell cell)
{
    int at = *n_named;
    while (at > 0 && noise_of(named[at - 1].sample) < noise_of(cell.sample)) {
        at--;
    }
    if (at < MOST_NAMED) {
        int n_behind = *n_named - at - (*n_named == MOST_NAMED ? 1 : 0);
        memmove(&named[at + 1], &named[at], (size_t)n_behind * sizeof(cell));
        named[at] = cell;
        *n_named = at + 1 + n_behind;
    }
}

static void print_cells(struct tnd_text *out, const struct cell *cells, int n, int64_t n_all)
{
    for (int i = 0; i < n; i++) {
        const struct tnd_curve_key *key = cells[i].key;
        const struct tnd_sample *sample = cells[i].sample;
        tnd_text_printf(out,
                        "        %s:%s:n%" PRId64 ":k%" PRId64 ":m%" PRId64 ":t%d %s %s%s: %.1f us,"
                        " spread %.0f %%\n",
                        key->op, tandem_type_name(key->type), key->n, key->k, sample->m,
                        key->threads, key->backend, tandem_task_name((enum tandem_task)key->task),
                        key->warm ? ", warm" : "", sample->median_us, 100 * noise_of(sample));
    }
    if (n_all > n) {
        tnd_text_printf(out, "        and %" PRId64 " more\n", n_all - n);
    }
}

static void judge_cells(const struct tandem_table *table, struct tnd_health *health,
                        struct tnd_text *words)
{
    struct cell noisy[MOST_NAMED];
    struct cell stale[MOST_NAMED];
    struct cell doubtful[MOST_NAMED];
    int n_noisy = 0;
    int n_stale = 0;
    int n_doubtful = 0;
    for (int i = 0; i < table->n_curves; i++) {
        const struct tnd_curve *curve = &table->curves[i];
        health->n_samples += curve->n_samples;
        for (int s = 0; s < curve->n_samples; s++) {
            struct cell cell = {&curve->key, &curve->samples[s]};
            if (tnd_sample_is_noisy(cell.sample)) {
                health->n_noisy++;
                name_cell(noisy, &n_noisy, cell);
            }
            if (tnd_sample_is_stale(cell.sample)) {
                health->n_stale++;
                name_cell(stale, &n_stale, cell);
            }
            if (tnd_sample_is_contradicted(cell.sample)) {
                health->n_contradicted++;
                name_cell(doubtful, &n_doubtful, cell);
            }
        }
    }
    if (words != NULL && n_noisy > 0) {
        tnd_text_printf(words,
                        "    %" PRId64 " of %" PRId64 " times %s noisy (spread above %.0f %% of "
                        "the median), the worst:\n",
                        health->n_noisy, health->n_samples, health->n_noisy == 1 ? "is" : "are",
                        100 * TND_NOISY_FRAC);
        print_cells(words, noisy, n_noisy, health->n_noisy);
    }
    if (words != NULL && n_stale > 0) {
        tnd_text_printf(words,
                        "    %" PRId64 " time%s stale (programs took longer or shorter); 'bench' "
                        "begins with them:\n",
                        health->n_stale, health->n_stale == 1 ? " is" : "s are");
        print_cells(words, stale, n_stale, health->n_stale);
    }
    if (words != NULL && n_doubtful > 0) {
        tnd_text_printf(words,
                        "    %" PRId64 " time%s contradicted (more tokens took clearly less); a "
                        "curve that does not fall is believed instead:\n",
                        health->n_contradicted, health->n_contradicted == 1 ? " is" : "s are");
        print_cells(words, doubtful, n_doubtful, health->n_contradicted);
    }
}

/* ---- results ---- */

static bool has_times(const struct tandem_table *table, const struct tnd_table_profile *profile,
                      enum tandem_type type)
{
    const struct tnd_table_stage *stage = &profile->stage[TANDEM_STAGE_COMPUTE];
    for (int i = 0; i < table->n_curves; i++) {
        const struct tnd_curve_key *key = &table->curves[i].key;
        if (key->type == type && key->task == stage->task && key->stage == TANDEM_STAGE_COMPUTE &&
            strcmp(key->backend, stage->backend) == 0) {
            return true;
        }
    }
    return false;
}

static void judge_results(const struct tandem_table *table, struct tnd_health *health,
                          struct tnd_text *words)
{
    for (int p = 0; p < table->n_profiles; p++) {
        const struct tnd_table_profile *profile = &table->profiles[p];
        for (int t = 0; t < TANDEM_TYPE_NUMBERS; t++) {
            enum tandem_type type = (enum tandem_type)t;
            double nmse;
            enum tnd_verdict verdict = tnd_table_check(table, profile->name, type, 0, &nmse);
            if (verdict == TND_VERDICT_UNKNOWN) {
                health->n_unchecked += has_times(table, profile, type);
            } else if (verdict == TND_VERDICT_WRONG) {
                health->n_wrong++;
                if (words != NULL) {
                    tnd_text_printf(words,
                                    "    profile %s computes wrong results from %s weights (error "
                                    "%.2g): it is not chosen\n",
                                    profile->name, tandem_type_name(type), nmse);
                }
            }
        }
    }
    if (words != NULL && health->n_unchecked > 0) {
        tnd_text_printf(words,
                        "    the results of %d profile%s (each with one weight type) were never "
                        "checked; 'bench' does it\n",
                        health->n_unchecked, health->n_unchecked > 1 ? "s" : "");
    }
}

/* ---- pairs ---- */

static int find_backends(const struct tandem_table *table, const char *names[MAX_BACKENDS])
{
    int n = 0;
    for (int i = 0; i < table->n_profiles * TANDEM_STAGES; i++) {
        const char *name = table->profiles[i / TANDEM_STAGES].stage[i % TANDEM_STAGES].backend;
        bool is_new = name[0] != '\0';
        for (int j = 0; j < n && is_new; j++) {
            is_new = strcmp(names[j], name) != 0;
        }
        if (is_new) {
            names[n++] = name;
        }
    }
    return n;
}

static void judge_pairs(const struct tandem_table *table, struct tnd_health *health,
                        struct tnd_text *words)
{
    const char *names[MAX_BACKENDS];
    int n = find_backends(table, names);
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            double factor;
            if (i == j || tnd_table_slowdown(table, names[i], names[j], &factor)) {
                continue;
            }
            if (words != NULL && health->n_missing_pairs < MOST_NAMED) {
                tnd_text_printf(words,
                                "    nobody measured how much %s slows down while %s works\n",
                                names[i], names[j]);
            }
            health->n_missing_pairs++;
        }
    }
    if (words != NULL && health->n_missing_pairs > MOST_NAMED) {
        tnd_text_printf(words, "        and %d more pairs\n", health->n_missing_pairs - MOST_NAMED);
    }
}

void tnd_table_health(const struct tandem_table *table, struct tnd_health *out,
                      struct tnd_text *words)
{
    struct tnd_health health = {.is_steady = true};
    for (int i = 0; i < table->n_transfers; i++) {
        const struct tnd_curve *curve = &table->transfers[i].curve;
        health.n_samples += curve->n_samples;
        for (int s = 0; s < curve->n_samples; s++) {
            health.n_noisy += tnd_sample_is_noisy(&curve->samples[s]);
        }
    }
    judge_results(table, &health, words);
    judge_cells(table, &health, words);
    judge_pairs(table, &health, words);
    char text[160];
    if (table->n_sweeps > 0 && tnd_sweep_state_text(&table->sweeps[0], text, sizeof(text))) {
        health.is_steady = false;
        if (words != NULL) {
            tnd_text_printf(words, "    at the last measuring %s\n", text);
        }
    }
    *out = health;
}
