/* SPDX-License-Identifier: MIT
 * Records as JSON objects: members in the order of the facts' `place`. */
#include "table/record_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/emit.h"
#include "base/tnd_assert.h"
#include "table/table_cells.h"

const char *const tnd_stage_names[TANDEM_STAGES] = {"init", "compute", "finalize"};
const char *const tnd_task_names[TANDEM_TASK_COUNT] = {
#define NAME(name, text, columns, what) text,
    TANDEM_TASK_LIST(NAME)
#undef NAME
};

static const char *const *names_of(enum tnd_fact_kind kind)
{
    static const char *const directions[TND_DIRECTIONS] = {"upload", "download"};
    TND_ASSERT(tnd_fact_form(kind) == TND_FORM_CHOICE);
    return kind == TND_FACT_STAGE  ? tnd_stage_names
           : kind == TND_FACT_TASK ? tnd_task_names
                                   : directions;
}

static struct tnd_reference_time pair_of(const struct tnd_fact *fact, const void *record)
{
    struct tnd_reference_time pair;
    memcpy(&pair, (const char *)record + fact->offset, sizeof(pair));
    return pair;
}

/* ---- writing ---- */

static void print_pair(struct tnd_text *out, struct tnd_reference_time pair)
{
    tnd_text_add(out, "{\"fastest_us\": ");
    tnd_text_add_double(out, pair.fastest_us);
    tnd_text_add(out, ", \"mean_us\": ");
    tnd_text_add_double(out, pair.mean_us);
    tnd_text_add_char(out, '}');
}

static void print_value(struct tnd_text *out, const struct tnd_fact *fact, const void *record)
{
    switch (tnd_fact_form(fact->kind)) {
    case TND_FORM_TEXT:
        tnd_emit_json_string(out, tnd_fact_text(fact, record));
        break;
    case TND_FORM_TYPE:
        tnd_text_printf(out, "\"%s\"",
                        tandem_type_name((enum tandem_type)tnd_fact_whole(fact, record)));
        break;
    case TND_FORM_WHOLE:
        tnd_text_printf(out, "%" PRId64, tnd_fact_whole(fact, record));
        break;
    case TND_FORM_REAL:
        tnd_text_add_double(out, tnd_fact_real(fact, record));
        break;
    case TND_FORM_FLAG:
        tnd_text_add(out, tnd_fact_whole(fact, record) != 0 ? "true" : "false");
        break;
    case TND_FORM_CHOICE:
        tnd_text_printf(out, "\"%s\"", names_of(fact->kind)[tnd_fact_whole(fact, record)]);
        break;
    case TND_FORM_PAIR:
        print_pair(out, pair_of(fact, record));
        break;
    }
}

/* Appends the members, without the braces. */
static void print_facts(struct tnd_text *out, const struct tnd_record_kind *kind, const char *over,
                        const void *record)
{
    const struct tnd_fact *facts[TND_MAX_FACTS];
    const char *before = "";
    int n = tnd_facts_in_files(kind, facts);
    for (int i = 0; i < n; i++) {
        if (!tnd_fact_is_left_out(facts[i], record)) {
            tnd_text_printf(out, "%s\"%s\": ", before, tnd_fact_name(facts[i], over));
            print_value(out, facts[i], record);
            before = ", ";
        }
    }
}

static void print_samples(struct tnd_text *out, const char *over, const struct tnd_vector *samples)
{
    tnd_text_add(out, ", \"samples\": [");
    for (int i = 0; i < samples->n; i++) {
        tnd_text_add(out, i > 0 ? ",\n      {" : "\n      {");
        print_facts(out, &tnd_sample_kind, over, (const struct tnd_sample *)samples->items + i);
        tnd_text_add_char(out, '}');
    }
    tnd_text_add_char(out, ']');
}

void tnd_record_print_json(struct tnd_text *out, const struct tandem_table *table,
                           enum tnd_record which)
{
    const struct tnd_record_kind *kind = &tnd_record_kinds[which];
    int n = tnd_record_list_const(table, which)->n;
    if (n == 0 && which != TND_RECORD_CURVES) {
        return;
    }
    tnd_text_printf(out, ",\n  \"%s\": [", kind->name);
    for (int i = 0; i < n; i++) {
        const char *record = tnd_record_at(table, which, i);
        tnd_text_add(out, i > 0 ? ",\n    {" : "\n    {");
        print_facts(out, kind, NULL, record);
        if (kind->samples != 0) {
            print_samples(out, kind->over, (const struct tnd_vector *)(record + kind->samples));
        }
        tnd_text_add_char(out, '}');
    }
    tnd_text_add_char(out, ']');
}

/* ---- reading ---- */

#ifdef TND_HAVE_CJSON

enum tandem_status tnd_json_task(const struct tnd_json_reader *r, const cJSON *object, uint8_t *out)
{
    uint8_t task = TANDEM_TASK_NONE;
    TND_TRY(tnd_json_name(r, object, "task", tnd_task_names, TANDEM_TASK_COUNT,
                          "the name of a task", &task));
    if (task == TANDEM_TASK_NONE) {
        return tnd_json_wrong(r, "task", "a task that exists", tnd_json_get(object, "task"));
    }
    *out = task;
    return TANDEM_OK;
}

static enum tandem_status read_type(const struct tnd_json_reader *r, const cJSON *object,
                                    const struct tnd_fact *fact, void *record)
{
    char name[16] = "";
    enum tandem_type type;
    TND_TRY(tnd_json_string(r, object, fact->name, true, name, sizeof(name)));
    if (!tandem_type_from_name(name, &type)) {
        return tnd_json_wrong(r, fact->name, "a weight type such as q4_0",
                              tnd_json_get(object, fact->name));
    }
    tnd_fact_set_whole(fact, record, (int64_t)type);
    return TANDEM_OK;
}

static enum tandem_status read_choice(const struct tnd_json_reader *r, const cJSON *object,
                                      const struct tnd_fact *fact, void *record)
{
    uint8_t value = 0;
    if (fact->kind == TND_FACT_TASK) {
        TND_TRY(tnd_json_task(r, object, &value));
    } else {
        int n = fact->kind == TND_FACT_STAGE ? (int)TANDEM_STAGES : (int)TND_DIRECTIONS;
        const char *expected =
            fact->kind == TND_FACT_STAGE ? "init, compute or finalize" : "upload or download";
        TND_TRY(tnd_json_name(r, object, fact->name, names_of(fact->kind), n, expected, &value));
    }
    tnd_fact_set_whole(fact, record, value);
    return TANDEM_OK;
}

static enum tandem_status read_whole(const struct tnd_json_reader *r, const cJSON *object,
                                     const struct tnd_fact *fact, const char *name, void *record)
{
    double low;
    double high;
    int64_t value = 0;
    tnd_fact_range(fact->kind, &low, &high);
    TND_TRY(tnd_json_int(r, object, name, !tnd_fact_is_optional(fact), (int64_t)low, (int64_t)high,
                         &value));
    tnd_fact_set_whole(fact, record, value);
    return TANDEM_OK;
}

static enum tandem_status read_real(const struct tnd_json_reader *r, const cJSON *object,
                                    const struct tnd_fact *fact, void *record)
{
    double low;
    double high;
    double value = 0;
    const char *expected = fact->kind == TND_FACT_ERROR    ? "an error from 0 to 1e12"
                           : fact->kind == TND_FACT_FACTOR ? "a factor from 1 to 1000"
                           : fact->kind == TND_FACT_RATE   ? "a rate from 0 to 1e12"
                           : fact->kind == TND_FACT_JOULES ? "joules from 0 to 1e9"
                                                           : "microseconds from 0 to 1e12";
    tnd_fact_range(fact->kind, &low, &high);
    if (!tnd_fact_is_optional(fact) || tnd_json_get(object, fact->name) != NULL) {
        TND_TRY(tnd_json_real(r, object, fact->name, low, high, expected, &value));
    }
    memcpy((char *)record + fact->offset, &value, sizeof(value));
    return TANDEM_OK;
}

static enum tandem_status read_pair(const struct tnd_json_reader *r, const cJSON *object,
                                    const struct tnd_fact *fact, void *record)
{
    const cJSON *times = tnd_json_get(object, fact->name);
    struct tnd_reference_time pair;
    if (!cJSON_IsObject(times)) {
        return tnd_json_wrong(r, fact->name, "an object", times);
    }
    TND_TRY(tnd_json_time(r, times, "fastest_us", true, &pair.fastest_us));
    TND_TRY(tnd_json_time(r, times, "mean_us", true, &pair.mean_us));
    memcpy((char *)record + fact->offset, &pair, sizeof(pair));
    return TANDEM_OK;
}

static enum tandem_status read_flag(const struct tnd_json_reader *r, const cJSON *object,
                                    const struct tnd_fact *fact, void *record)
{
    bool value = false;
    TND_TRY(tnd_json_bool(r, object, fact->name, &value));
    tnd_fact_set_whole(fact, record, value);
    return TANDEM_OK;
}

static enum tandem_status read_fact(const struct tnd_json_reader *r, const cJSON *object,
                                    const struct tnd_fact *fact, const char *over, void *record)
{
    switch (tnd_fact_form(fact->kind)) {
    case TND_FORM_TEXT:
        return tnd_json_string(r, object, fact->name, !tnd_fact_is_optional(fact),
                               (char *)record + fact->offset, fact->bytes);
    case TND_FORM_TYPE:
        return read_type(r, object, fact, record);
    case TND_FORM_WHOLE:
        return read_whole(r, object, fact, tnd_fact_name(fact, over), record);
    case TND_FORM_REAL:
        return read_real(r, object, fact, record);
    case TND_FORM_FLAG:
        return read_flag(r, object, fact, record);
    case TND_FORM_CHOICE:
        return read_choice(r, object, fact, record);
    default:
        return read_pair(r, object, fact, record);
    }
}

/* `record` is all zero. */
static enum tandem_status read_facts(const struct tnd_json_reader *r, const cJSON *object,
                                     const struct tnd_record_kind *kind, const char *over,
                                     void *record)
{
    const struct tnd_fact *facts[TND_MAX_FACTS];
    int n = tnd_facts_in_files(kind, facts);
    for (int i = 0; i < n; i++) {
        TND_TRY(read_fact(r, object, facts[i], over, record));
    }
    return TANDEM_OK;
}

/* A record of any kind. */
union record {
#define MEMBER(kind, list, type, ...) struct type list;
    TND_RECORD_LIST(MEMBER)
#undef MEMBER
};

static enum tandem_status read_samples(struct tnd_json_reader *r, const cJSON *object, int index,
                                       struct tandem_table *out, enum tnd_record which,
                                       const union record *record)
{
    const struct tnd_record_kind *kind = &tnd_record_kinds[which];
    const cJSON *list = NULL;
    const cJSON *item;
    int i = 0;
    TND_TRY(tnd_json_array(r, object, "samples", &list));
    cJSON_ArrayForEach(item, list)
    {
        struct tnd_sample sample = {0};
        snprintf(r->path, sizeof(r->path), "%s[%d].samples[%d].", kind->name, index, i++);
        TND_TRY(read_facts(r, item, &tnd_sample_kind, kind->over, &sample));
        TND_TRY(tnd_json_refused(r, tnd_cell_append(out, which, record, &sample)));
    }
    return TANDEM_OK;
}

enum tandem_status tnd_record_read_json(struct tnd_json_reader *r, const cJSON *root,
                                        struct tandem_table *out, enum tnd_record which)
{
    const struct tnd_record_kind *kind = &tnd_record_kinds[which];
    const cJSON *list = NULL;
    const cJSON *object;
    int index = 0;
    if (which != TND_RECORD_CURVES && tnd_json_get(root, kind->name) == NULL) {
        return TANDEM_OK; /* files of versions that did not have this list */
    }
    TND_TRY(tnd_json_array(r, root, kind->name, &list));
    cJSON_ArrayForEach(object, list)
    {
        union record record;
        memset(&record, 0, sizeof(record));
        snprintf(r->path, sizeof(r->path), "%s[%d].", kind->name, index);
        TND_TRY(read_facts(r, object, kind, NULL, &record));
        if (kind->samples != 0) {
            TND_TRY(read_samples(r, object, index, out, which, &record));
        } else {
            TND_TRY(tnd_json_refused(r, tnd_record_append(out, which, &record)));
        }
        index++;
    }
    snprintf(r->path, sizeof(r->path), "%s", kind->name);
    TND_TRY(tnd_json_refused(r, tnd_record_sort(out, which)));
    r->path[0] = '\0';
    return TANDEM_OK;
}

#endif
