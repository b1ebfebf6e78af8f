/* SPDX-License-Identifier: MIT
 * Plans of several ranks for people: how a model is divided, what that is predicted to bring, and
 * what would bring more. */
#ifndef TND_CLUSTER_REPORT_H
#define TND_CLUSTER_REPORT_H

#include "base/text.h"
#include "tandem/formats.h"
#include "tune/cluster.h"

/** How a model is divided among ranks; static texts. */
void tnd_cluster_shape_of(const struct tandem_hparams *hparams,
                          const struct tnd_fit_weight *weights, int n_weights,
                          struct tnd_cluster_shape *out);

struct tnd_cluster_report {
    const struct tnd_cluster *cluster;
    const double *count;                  /* {TND_FIT_PHASES} */
    int leader;                           /* -1: any */
    const struct tnd_cluster_plan *plans; /* {cluster->n}, of 1, 2, ... ranks */
    int best;                             /* of plans; -1: none is possible */
};

/** Plans of 1, 2, ... ranks with their speeds, what the best one keeps where, who is left out and
 *  why, and what faster links and more memory would bring. */
void tnd_cluster_print(const struct tnd_cluster_report *report, struct tnd_text *out);
/** As tnd_cluster_print, as one JSON object. */
void tnd_cluster_print_json(const struct tnd_cluster_report *report, struct tnd_text *out);
/** One line: who computes, and why. */
void tnd_cluster_print_choice(const struct tnd_cluster_report *report, struct tnd_text *out);

#endif
