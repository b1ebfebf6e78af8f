/* SPDX-License-Identifier: MIT
 * Records in JSON, by their facts: one writer and one reader for all kinds. */
#ifndef TND_RECORD_JSON_H
#define TND_RECORD_JSON_H

#include "base/text.h"
#include "table/json_read.h"
#include "table/records.h"

/* Names of stages and tasks in files. */
extern const char *const tnd_stage_names[TANDEM_STAGES];
extern const char *const tnd_task_names[TANDEM_TASK_COUNT];

/** Appends a kind's list with its name and brackets, one record or sample a line. An empty list is
 * left out, except that of curves. */
void tnd_record_print_json(struct tnd_text *out, const struct tandem_table *table,
                           enum tnd_record kind);

#ifdef TND_HAVE_CJSON

/** Reads the list of a kind from the file's object; only that of curves is required. Errors: FORMAT
 * with the path, LIMIT, MEMORY. */
enum tandem_status tnd_record_read_json(struct tnd_json_reader *r, const cJSON *root,
                                        struct tandem_table *out, enum tnd_record kind);
/** Reads the name of a task. */
enum tandem_status tnd_json_task(const struct tnd_json_reader *r, const cJSON *object,
                                 uint8_t *out);

#endif
#endif
