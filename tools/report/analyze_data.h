/* SPDX-License-Identifier: MIT
 * Results of analyze.c, printed by analyze_print.c. */
#ifndef TND_ANALYZE_DATA_H
#define TND_ANALYZE_DATA_H

#include "base/text.h"
#include "tools/report/analyze.h"
#include "tools/report/crossover.h"

/* Reasons to distrust a cell, as bits. */
enum tnd_analysis_mark {
    TND_MARK_NOISY = 1,        /* spread above TND_NOISY_FRAC of the time */
    TND_MARK_STALE = 2,        /* found wrong while programs ran, to be measured again */
    TND_MARK_CONTRADICTED = 4, /* more tokens took clearly less (table/judge.h) */
};

/* One shape on one thread count. Profiles with wrong results are left out. */
struct tnd_analysis {
    const struct tandem_table *table;
    enum tandem_type type;
    int64_t n, k;
    int threads;
    bool measured_threads; /* this thread count was measured on this shape */
    int n_profiles;
    const struct tnd_table_profile *profiles[TND_TABLE_MAX_PROFILES];
    struct tnd_table_profile *described; /* profiles with other stages for this type; owned */
    int n_points;
    int64_t *m;                      /* [n_points] */
    double *times;                   /* [n_profiles][n_points], microseconds */
    double *errors;                  /* [n_profiles][n_points] standard errors of the times */
    double *spreads;                 /* [n_profiles][n_points] deviations of the samples alone */
    double *joules;                  /* [n_profiles][n_points] 0: unknown */
    uint8_t *marks;                  /* [n_profiles][n_points] enum tnd_analysis_mark */
    double (*stages)[TANDEM_STAGES]; /* [n_profiles][n_points] */
    int n_crossovers;
    struct tnd_crossover *crossovers; /* with clear leads only */
    int n_exact;
    struct tnd_crossover *exact; /* all, wherever the curves cross */
};

/** Printer of one format: begin once, add for each analysis, end once. */
struct tnd_analyze_printer {
    void (*begin)(struct tnd_text *out, const struct tandem_table *table,
                  const struct tnd_analyze_options *options, int n_types, enum tandem_type first);
    void (*add)(struct tnd_text *out, const struct tnd_analysis *analysis, int index, int n_types);
    void (*end)(struct tnd_text *out, const struct tnd_text *crossovers);
    /** Appends the crossovers to a text of their own, which `end` gets. May be NULL. */
    void (*crossovers)(struct tnd_text *out, const struct tnd_analysis *analysis, int n_types);
    /** Called once per shape, after its last thread count. May be NULL. */
    void (*shape)(struct tnd_text *out, const struct tnd_analysis *analysis);
};

/* All analyses of a table in the order of the reports: thread counts within shapes. */
struct tnd_analyses {
    int n, capacity;
    struct tnd_analysis *list;
};

/** Uses only name, threads, n_threads and type of `options`. Errors: TABLE (nothing to report on),
 * MEMORY. */
enum tandem_status tnd_analyses_make(const struct tandem_table *table,
                                     const struct tnd_analyze_options *options,
                                     struct tnd_analyses *out, struct tandem_error *error);
/** A zeroed one is allowed. */
void tnd_analyses_free(struct tnd_analyses *analyses);

/** Adds the names of profiles with wrong results for a type, separated by `between`. False, without
 * adding anything, if there are none. */
bool tnd_analyses_add_wrong(const struct tandem_table *table, enum tandem_type type,
                            const char *between,
                            void (*add)(struct tnd_text *out, const char *name),
                            struct tnd_text *out);

extern const struct tnd_analyze_printer tnd_analyze_text;
extern const struct tnd_analyze_printer tnd_analyze_json;
extern const struct tnd_analyze_printer tnd_analyze_csv;

#endif
