/* SPDX-License-Identifier: MIT
 * Plans for several ranks as text: how the model is divided, its predicted speed, and what would
 * make it faster. */
#ifndef TND_CLUSTER_REPORT_H
#define TND_CLUSTER_REPORT_H

#include "base/text.h"
#include "tandem/formats.h"
#include "tune/cluster.h"

/** How a model can be divided among ranks; strings are static. */
void tnd_cluster_shape_of(const struct tandem_hparams *hparams,
                          const struct tnd_fit_weight *weights, int n_weights,
                          struct tnd_cluster_shape *out);

struct tnd_cluster_report {
    const struct tnd_cluster *cluster;
    const double *count;                  /* {TND_FIT_PHASES} */
    int leader;                           /* -1: any */
    const struct tnd_cluster_plan *plans; /* {cluster->n}, of 1, 2, ... ranks */
    int best;                             /* index of the best plan; -1: none is possible */
};

/** Prints plans for 1, 2, ... ranks with their speeds, what each rank of the best one stores, which
 * ranks are left out and why, and what faster links and more memory would bring. */
void tnd_cluster_print(const struct tnd_cluster_report *report, struct tnd_text *out);
/** Like tnd_cluster_print, as one JSON object. */
void tnd_cluster_print_json(const struct tnd_cluster_report *report, struct tnd_text *out);
/** Prints one line: which ranks compute, and why. */
void tnd_cluster_print_choice(const struct tnd_cluster_report *report, struct tnd_text *out);

#endif
