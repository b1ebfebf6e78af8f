/* SPDX-License-Identifier: MIT
 * What more threads gain, stage by stage, and each stage's share of the time: used by the page and
 * the text. */
#ifndef TND_SCALING_H
#define TND_SCALING_H

#include "tools/report/analyze_data.h"
#include "tools/report/report_parts.h"

enum { TND_SCALING_MAX = TND_REPORT_STYLES, TND_SHARES = TANDEM_STAGES + 1, TND_SHARE_POINTS = 3 };

/** "INIT", "COMPUTE", "FINALIZE", "transfers". */
extern const char *const tnd_share_names[TND_SHARES];

/* One stage of one profile at one M on all thread counts that it was measured on. */
struct tnd_stage_scaling {
    const struct tnd_table_profile *profile;
    enum tandem_stage stage;
    int n;
    double counts[TND_REPORT_COUNTS]; /* ascending */
    double us[TND_REPORT_COUNTS];
    int enough; /* index from which more threads do not pay */
};

/** Stages that were measured on at least two thread counts; a stage that several profiles share
 * appears once. Returns how many. */
int tnd_scalings(const struct tnd_analysis *a, int64_t m,
                 struct tnd_stage_scaling out[TND_SCALING_MAX]);
/** Estimated time of the stage on any number of threads; false when there is none. */
bool tnd_scaling_time(const struct tnd_analysis *a, const struct tnd_stage_scaling *line, int64_t m,
                      int threads, double *out_us);
/** Speed-up over the smallest measured count, or the efficiency: that divided by the factor of
 * threads. */
double tnd_scaling_gain(const struct tnd_stage_scaling *line, bool efficiency, double threads,
                        double us);
/** Whether some count gains more than threads alone can (by more than TND_RULE_LEAD). */
bool tnd_scaling_is_above_ideal(const struct tnd_stage_scaling *line);

/** Indices of the M whose shares are shown: first, middle, last. Returns how many. */
int tnd_share_points(const struct tnd_analysis *a, int out[TND_SHARE_POINTS]);
/** Times of a profile's stages at a point, and of its transfers. Returns their sum. */
double tnd_shares(const struct tnd_analysis *a, int profile, int point, double out_us[TND_SHARES]);

#endif
