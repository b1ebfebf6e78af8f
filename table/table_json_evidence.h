/* SPDX-License-Identifier: MIT
 * The part of the JSON reader for checks, slow-downs and states of the machine. Only in builds with
 * cJSON. */
#ifndef TND_TABLE_JSON_EVIDENCE_H
#define TND_TABLE_JSON_EVIDENCE_H

#include "table/json_read.h"
#include "table/tnd_table.h"

#ifdef TND_HAVE_CJSON

/** Reads "checks", "slowdowns" and "sweeps" of the file's object, each where it is there. */
enum tandem_status tnd_table_read_evidence(struct tnd_json_reader *r, const cJSON *root,
                                           struct tandem_table *out);

#endif
#endif
