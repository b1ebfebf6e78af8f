/* SPDX-License-Identifier: MIT
 * The report of mulmat-tune test --oracle. */
#ifndef MULMAT_TUNE_ORACLE_REPORT_H
#define MULMAT_TUNE_ORACLE_REPORT_H

#include "tools/report/oracle.h"

/** Prints cells and regret to stdout, as text or as one JSON object. Errors: MEMORY, FILE. */
enum tandem_status oracle_report(const struct tnd_oracle_cell *cells, int n,
                                 const struct tnd_regret *regret, bool json,
                                 struct tandem_error *error);

#endif
