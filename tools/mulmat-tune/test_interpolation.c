/* SPDX-License-Identifier: MIT
 * mulmat-tune test --interpolation TABLE FULL: compares the predictions of a table with the times
 * of a fuller one of the same machine. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tools/mulmat-tune/cmd_output.h"
#include "tools/mulmat-tune/test_parts.h"
#include "tune/estimate.h"
#include "tune/profiles.h"

enum { M_CLASSES = 10 }; /* M from 2^i to 2^(i + 1) - 1 */

struct comparison {
    const tandem_table *table;
    const tandem_table *full;
    const struct test_request *request;
    int n, capacity;
    double *errors; /* absolute relative errors */
    int *classes;   /* class of each error's M */
    int n_missing;  /* times that the table cannot predict */
};

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static int class_of(int64_t m)
{
    int i = 0;
    while (i < M_CLASSES - 1 && m >> (i + 1) > 0) {
        i++;
    }
    return i;
}

static bool add_error(struct comparison *c, int64_t m, double error)
{
    if (c->n == c->capacity) {
        int capacity = 2 * c->capacity + 256;
        double *errors = tnd_calloc((size_t)capacity, sizeof(errors[0]));
        int *classes = tnd_calloc((size_t)capacity, sizeof(classes[0]));
        if (errors == NULL || classes == NULL) {
            tnd_free(errors);
            tnd_free(classes);
            return false;
        }
        if (c->n > 0) {
            memcpy(errors, c->errors, (size_t)c->n * sizeof(errors[0]));
            memcpy(classes, c->classes, (size_t)c->n * sizeof(classes[0]));
        }
        tnd_free(c->errors);
        tnd_free(c->classes);
        c->errors = errors;
        c->classes = classes;
        c->capacity = capacity;
    }
    c->errors[c->n] = error;
    c->classes[c->n++] = class_of(m);
    return true;
}

/* Whether the fuller table has a time of this profile at exactly this M, thread count and shape:
 * all its stages were measured there. */
static bool full_time(const struct comparison *c, const struct tnd_table_profile *profile,
                      const struct tnd_curve_key *key, int64_t m, double *out_us)
{
    double us = 0;
    for (int s = 0; s < TANDEM_STAGES; s++) {
        const struct tnd_table_stage *stage = &profile->stage[s];
        if (stage->backend[0] == '\0') {
            continue;
        }
        struct tnd_curve_key wanted;
        tnd_stage_key(stage, s, key->type, key->n, key->k, key->threads, &wanted);
        wanted.warm = key->warm;
        const struct tnd_curve *curve = tnd_table_find(c->full, &wanted);
        int i = 0;
        while (curve != NULL && i < curve->n_samples && curve->samples[i].m != m) {
            i++;
        }
        if (curve == NULL || i == curve->n_samples) {
            return false;
        }
        us += curve->samples[i].median_us;
    }
    *out_us = us;
    return us > 0;
}

/* Compares one profile at the cells of one COMPUTE curve. */
static bool compare_curve(struct comparison *c, const struct tnd_table_profile *profile,
                          const struct tnd_curve *curve)
{
    const struct tnd_curve_key *key = &curve->key;
    for (int i = 0; i < curve->n_samples; i++) {
        struct tnd_estimate stages[TANDEM_STAGES];
        struct tnd_estimate sum;
        double us;
        if (!full_time(c, profile, key, curve->samples[i].m, &us)) {
            continue;
        }
        if (!tnd_estimate_stages(c->table, profile, key->type, key->n, key->k, curve->samples[i].m,
                                 key->threads, false, stages, &sum)) {
            c->n_missing++;
        } else if (!add_error(c, curve->samples[i].m, fabs(sum.us / us - 1))) {
            return false;
        }
    }
    return true;
}

static bool compare_all(struct comparison *c)
{
    for (int p = 0; p < tnd_profile_count(NULL); p++) {
        for (int i = 0; i < c->full->n_curves; i++) {
            const struct tnd_curve_key *key = &c->full->curves[i].key;
            struct tnd_table_profile profile;
            if (!tnd_profile_describe(NULL, p, key->type, &profile)) {
                continue;
            }
            const struct tnd_table_stage *compute = &profile.stage[TANDEM_STAGE_COMPUTE];
            if (!key->warm && key->stage == TANDEM_STAGE_COMPUTE &&
                strcmp(key->op, "mul_mat") == 0 && strcmp(key->backend, compute->backend) == 0 &&
                key->task == compute->task && key->parallel == compute->parallel &&
                key->own_threads == compute->own_threads &&
                !compare_curve(c, &profile, &c->full->curves[i])) {
                return false;
            }
        }
    }
    return true;
}

/* Prints the summary; sorts the errors. */
static int print(struct comparison *c)
{
    printf("%-12s %8s %12s\n", "M", "times", "median error");
    for (int class = 0; class < M_CLASSES; class ++) {
        double *chosen = tnd_calloc((size_t)c->n + 1, sizeof(chosen[0]));
        int n = 0;
        for (int i = 0; i < c->n && chosen != NULL; i++) {
            if (c->classes[i] == class) {
                chosen[n++] = c->errors[i];
            }
        }
        if (n > 0) {
            qsort(chosen, (size_t)n, sizeof(chosen[0]), compare_doubles);
            printf("%4d to %-4d %8d %10.2f %%\n", 1 << class, (2 << class) - 1, n,
                   100 * chosen[n / 2]);
        }
        tnd_free(chosen);
    }
    qsort(c->errors, (size_t)c->n, sizeof(c->errors[0]), compare_doubles);
    double middle = 100 * c->errors[c->n / 2];
    printf("%d times: median error %.2f %%, 95th percentile %.2f %%, worst %.2f %%; %d times that "
           "the table says nothing about\n",
           c->n, middle, 100 * c->errors[(int)(0.95 * (c->n - 1))], 100 * c->errors[c->n - 1],
           c->n_missing);
    double bound = c->request->max_median;
    if (middle > bound || c->n_missing > 0) {
        fprintf(stderr, "mulmat-tune test: allowed are %.1f %% in the median and none missing\n",
                bound);
        return 1;
    }
    return 0;
}

int test_interpolation(const struct test_request *request, const char *path, const char *full_path)
{
    struct tandem_error error = {0};
    tandem_table *table = NULL;
    tandem_table *full = NULL;
    int result = 1;
    struct comparison c = {.request = request};
    if (tandem_table_load(path, &table, &error) != TANDEM_OK ||
        tandem_table_load(full_path, &full, &error) != TANDEM_OK) {
        result = tnd_cmd_failed(&error);
        goto done;
    }
    c.table = table;
    c.full = full;
    if (!compare_all(&c)) {
        fprintf(stderr, "mulmat-tune test: out of memory\n");
    } else if (c.n == 0) {
        fprintf(stderr, "mulmat-tune test: the two tables have nothing in common\n");
    } else {
        result = print(&c);
    }
done:
    tnd_free(c.errors);
    tnd_free(c.classes);
    tandem_table_free(table);
    tandem_table_free(full);
    return result;
}
