/* SPDX-License-Identifier: MIT
 * What drift.c and drift_table.c share. */
#ifndef TND_DRIFT_INTERNAL_H
#define TND_DRIFT_INTERNAL_H

#include "tune/drift.h"

struct tnd_drift_cases {
    int n;
    struct tnd_drift_case list[TND_DRIFT_MAX_CASES]; /* oldest first; of one cell the last counts */
};

const struct tnd_drift_cases *tnd_drift_cases(const struct tnd_drift *drift);

#endif
