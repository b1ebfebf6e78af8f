/* SPDX-License-Identifier: MIT
 * Parser of the JSON table, version 2: its members (docs/table-format.md). They are checked in
 * json_read.c. Unknown members are ignored. */
#include "table/table_cells.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/tnd_status.h"

#ifndef TND_HAVE_CJSON

enum tandem_status tnd_table_read_json(const char *bytes, size_t n, const char *name,
                                       struct tandem_table *out, struct tandem_error *error)
{
    (void)bytes;
    (void)n;
    (void)out;
    return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BUILD, name, 0, 0,
                         "%.120s: JSON tables need cJSON, which this build has not", name);
}

#else

#include <math.h>

#include "base/alloc.h"
#include "base/tnd_assert.h"
#include "table/fingerprint_fields.h"
#include "table/json_read.h"
#include "table/record_json.h"

/* ---- parts of the file ---- */

static enum tandem_status read_shapes(struct tnd_json_reader *r, const cJSON *header,
                                      struct tandem_table *out)
{
    const cJSON *list = NULL;
    TND_TRY(tnd_json_array(r, header, "shapes", &list));
    int n = cJSON_GetArraySize(list);
    if (n > 4096) {
        return tnd_json_wrong(r, "shapes", "at most 4096 shapes", list);
    }
    out->shapes = tnd_alloc((size_t)n * sizeof(*out->shapes));
    if (out->shapes == NULL) {
        return tnd_error_set(r->error, TANDEM_E_MEMORY, r->name, n, 0, "%.120s: out of memory",
                             r->name);
    }
    const cJSON *shape;
    cJSON_ArrayForEach(shape, list)
    {
        bool valid = cJSON_IsArray(shape) && cJSON_GetArraySize(shape) == 2;
        for (int i = 0; i < 2 && valid; i++) {
            const cJSON *extent = cJSON_GetArrayItem(shape, i);
            double value = cJSON_IsNumber(extent) ? extent->valuedouble : NAN;
            valid = value >= 1 && value <= TND_TABLE_MAX_EXTENT && value == floor(value);
            out->shapes[out->n_shapes][i] = valid ? (int64_t)value : 0;
        }
        if (!valid) {
            return tnd_json_wrong(r, "shapes", "pairs [N, K] of whole numbers", shape);
        }
        out->n_shapes++;
    }
    return TANDEM_OK;
}

static enum tandem_status read_text_header(struct tnd_json_reader *r, const cJSON *root,
                                           struct tandem_table *out)
{
    const cJSON *header = tnd_json_get(root, "text_header");
    if (header == NULL) {
        return TANDEM_OK;
    }
    if (!cJSON_IsObject(header)) {
        return tnd_json_wrong(r, "text_header", "an object", header);
    }
    snprintf(r->path, sizeof(r->path), "text_header.");
    int64_t kind = 0;
    TND_TRY(tnd_json_string(r, header, "type", false, out->type_text, sizeof(out->type_text)));
    TND_TRY(tnd_json_string(r, header, "gpu_name", false, out->gpu_name, sizeof(out->gpu_name)));
    TND_TRY(tnd_json_int(r, header, "gpu_kind", false, 0, UINT8_MAX, &kind));
    TND_TRY(tnd_json_int(r, header, "m_step", false, 0, TND_TABLE_MAX_EXTENT, &out->m_step));
    out->gpu_kind = (uint8_t)kind;
    TND_TRY(read_shapes(r, header, out));
    r->path[0] = '\0';
    return TANDEM_OK;
}

static bool parse_hex(const char *text, uint64_t *out)
{
    uint64_t value = 0;
    for (int i = 0; i < 16; i++) {
        const char *digits = "0123456789abcdef";
        const char *digit = text[i] != '\0' ? strchr(digits, text[i]) : NULL;
        if (digit == NULL) {
            return false;
        }
        value = value << 4 | (uint64_t)(digit - digits);
    }
    *out = value;
    return text[16] == '\0';
}

static enum tandem_status read_field(const struct tnd_json_reader *r, const cJSON *object,
                                     const struct tnd_fingerprint_field *field,
                                     struct tnd_fingerprint *out)
{
    char *at = (char *)out + field->offset;
    if (field->kind == TND_FIELD_TEXT) {
        char text[sizeof(out->cpu_model)] = "";
        TND_ASSERT(field->bytes <= sizeof(text));
        TND_TRY(tnd_json_string(r, object, field->name, false, text, field->bytes));
        (void)tnd_fingerprint_set_string(out, field, text);
        return TANDEM_OK;
    }
    if (field->kind == TND_FIELD_HASH) {
        char hex[24] = "0000000000000000";
        uint64_t value;
        TND_TRY(tnd_json_string(r, object, field->name, false, hex, sizeof(hex)));
        if (!parse_hex(hex, &value)) {
            return tnd_json_wrong(r, field->name, "16 hexadecimal digits",
                                  tnd_json_get(object, field->name));
        }
        memcpy(at, &value, sizeof(value));
        return TANDEM_OK;
    }
    int64_t value = 0;
    int64_t high = field->kind == TND_FIELD_COUNT ? INT32_MAX : (int64_t)1 << 53;
    TND_TRY(tnd_json_int(r, object, field->name, false, 0, high, &value));
    int32_t count = (int32_t)(field->kind == TND_FIELD_COUNT ? value : 0);
    uint64_t bytes = (uint64_t)value;
    memcpy(at, field->kind == TND_FIELD_COUNT ? (void *)&count : (void *)&bytes, field->bytes);
    return TANDEM_OK;
}

/* Missing in files of one device, whose identity is in fields. */
static enum tandem_status read_identities(struct tnd_json_reader *r, const cJSON *object,
                                          struct tnd_fingerprint *out)
{
    const cJSON *list = NULL;
    const cJSON *item;
    int index = 0;
    if (tnd_json_get(object, "identities") == NULL) {
        return TANDEM_OK;
    }
    TND_TRY(tnd_json_array(r, object, "identities", &list));
    cJSON_ArrayForEach(item, list)
    {
        struct tnd_identity one;
        snprintf(r->path, sizeof(r->path), "fingerprint.identities[%d].", index++);
        TND_TRY(tnd_json_string(r, item, "backend", true, one.backend, sizeof(one.backend)));
        TND_TRY(tnd_json_string(r, item, "key", true, one.key, sizeof(one.key)));
        TND_TRY(tnd_json_string(r, item, "value", true, one.value, sizeof(one.value)));
        if (!tnd_fingerprint_set_identity(out, one.backend, one.key, one.value)) {
            return tnd_json_refused(r, TANDEM_E_LIMIT);
        }
    }
    return TANDEM_OK;
}

static enum tandem_status read_fingerprint(struct tnd_json_reader *r, const cJSON *root,
                                           struct tandem_table *out)
{
    const cJSON *object = tnd_json_get(root, "fingerprint");
    if (object == NULL) {
        return TANDEM_OK;
    }
    if (!cJSON_IsObject(object)) {
        return tnd_json_wrong(r, "fingerprint", "an object", object);
    }
    snprintf(r->path, sizeof(r->path), "fingerprint.");
    for (int i = 0; i < tnd_fingerprint_field_count(); i++) {
        const struct tnd_fingerprint_field *field = &tnd_fingerprint_fields[i];
        TND_TRY(read_field(r, object, field, &out->fingerprint));
    }
    out->has_fingerprint = true;
    TND_TRY(read_identities(r, object, &out->fingerprint));
    r->path[0] = '\0';
    return TANDEM_OK;
}

static enum tandem_status read_stage(struct tnd_json_reader *r, const cJSON *stages, int which,
                                     int index, struct tnd_table_stage *out)
{
    const cJSON *object = tnd_json_get(stages, tnd_stage_names[which]);
    if (object == NULL) {
        return TANDEM_OK;
    }
    snprintf(r->path, sizeof(r->path), "profiles[%d].stages.%s.", index, tnd_stage_names[which]);
    if (!cJSON_IsObject(object)) {
        return tnd_json_wrong(r, "", "an object", object);
    }
    int64_t kind = 0;
    TND_TRY(tnd_json_string(r, object, "backend", true, out->backend, sizeof(out->backend)));
    TND_TRY(tnd_json_int(r, object, "kind", false, 0, UINT8_MAX, &kind));
    TND_TRY(tnd_json_task(r, object, &out->task));
    TND_TRY(tnd_json_bool(r, object, "parallel", &out->parallel));
    TND_TRY(tnd_json_bool(r, object, "wait", &out->wait));
    TND_TRY(tnd_json_bool(r, object, "own_threads", &out->own_threads));
    out->kind = (uint8_t)kind;
    return TANDEM_OK;
}

static enum tandem_status read_profiles(struct tnd_json_reader *r, const cJSON *root,
                                        struct tandem_table *out)
{
    const cJSON *list = NULL;
    TND_TRY(tnd_json_array(r, root, "profiles", &list));
    const cJSON *object;
    int index = 0;
    cJSON_ArrayForEach(object, list)
    {
        struct tnd_table_profile profile;
        memset(&profile, 0, sizeof(profile));
        snprintf(r->path, sizeof(r->path), "profiles[%d].", index);
        TND_TRY(tnd_json_string(r, object, "name", true, profile.name, sizeof(profile.name)));
        if (tnd_table_profile(out, profile.name) != NULL) {
            return tnd_json_wrong(r, "name", "a name that no profile before has",
                                  tnd_json_get(object, "name"));
        }
        if (out->n_profiles >= TND_TABLE_MAX_PROFILES) {
            return tnd_json_wrong(r, "name", "at most 64 profiles", tnd_json_get(object, "name"));
        }
        const cJSON *stages = tnd_json_get(object, "stages");
        if (!cJSON_IsObject(stages)) {
            return tnd_json_wrong(r, "stages", "an object", stages);
        }
        for (int s = 0; s < TANDEM_STAGES; s++) {
            TND_TRY(read_stage(r, stages, s, index, &profile.stage[s]));
        }
        out->profiles[out->n_profiles++] = profile;
        index++;
    }
    r->path[0] = '\0';
    return TANDEM_OK;
}

/* Lists of a version between two releases. They were part of checksum_later, which is not checked
 * if there is one. */
static bool has_retired(const cJSON *root)
{
    return tnd_json_get(root, "launches") != NULL; /* families of kernel_times replace it */
}

/* `found` is the checksum of the contents. */
static enum tandem_status check_sum(struct tnd_json_reader *r, const cJSON *root, const char *key,
                                    uint64_t found)
{
    char text[24] = "";
    TND_TRY(tnd_json_string(r, root, key, false, text, sizeof(text)));
    if (tnd_json_get(root, key) == NULL) {
        return TANDEM_OK; /* written by hand or by another program */
    }
    uint64_t written;
    if (!parse_hex(text, &written)) {
        return tnd_json_wrong(r, key, "16 hexadecimal digits", tnd_json_get(root, key));
    }
    if (written != found) {
        return tnd_error_set(r->error, TANDEM_E_FORMAT, r->name, (int64_t)found, (int64_t)written,
                             "%.100s: %s: the contents give %016" PRIx64
                             ", the file says %016" PRIx64
                             "; it is damaged, or was edited with its checksum left in",
                             r->name, key, found, written);
    }
    return TANDEM_OK;
}

static enum tandem_status read_root(struct tnd_json_reader *r, const cJSON *root,
                                    struct tandem_table *out)
{
    int64_t version = 0;
    int64_t from = 2;
    TND_TRY(tnd_json_int(r, root, "version", true, 0, INT32_MAX, &version));
    if (version != 2) {
        return tnd_error_set(r->error, TANDEM_E_TABLE_VERSION, r->name, version, 2,
                             "%.100s: JSON table of version %" PRId64 ", this library knows 2",
                             r->name, version);
    }
    TND_TRY(tnd_json_int(r, root, "from_version", false, 1, 2, &from));
    out->version = (int)from;
    TND_TRY(tnd_json_string(r, root, "model", false, out->model, sizeof(out->model)));
    TND_TRY(read_text_header(r, root, out));
    TND_TRY(read_fingerprint(r, root, out));
    TND_TRY(read_profiles(r, root, out));
    for (int kind = 0; kind < TND_RECORD_KINDS; kind++) {
        TND_TRY(tnd_record_read_json(r, root, out, (enum tnd_record)kind));
    }
    out->has_retired = has_retired(root);
    if (!out->has_retired) {
        TND_TRY(check_sum(r, root, "checksum_later", tnd_table_checksum_later(out)));
    }
    return check_sum(r, root, "checksum", tnd_table_checksum(out));
}

enum tandem_status tnd_table_read_json(const char *bytes, size_t n, const char *name,
                                       struct tandem_table *out, struct tandem_error *error)
{
    cJSON *root = NULL;
    TND_TRY(tnd_json_parse(bytes, n, name, &root, error));
    struct tnd_json_reader r = {name, error, ""};
    enum tandem_status status = read_root(&r, root, out);
    cJSON_Delete(root);
    return status;
}

#endif
