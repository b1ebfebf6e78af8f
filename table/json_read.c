/* SPDX-License-Identifier: MIT
 * cJSON behind checks. cJSON accepts control characters, any nesting and the locale's decimal
 * point; files may not depend on any of them. */
#include "table/json_read.h"

#ifdef TND_HAVE_CJSON

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/emit.h"
#include "table/table_cells.h"

#define MAX_DEPTH  16
#define MAX_VALUES 3000000 /* cJSON takes 64 bytes for each */

/* ---- before parsing ---- */

static enum tandem_status refuse_at(const char *bytes, size_t n, size_t at, const char *name,
                                    enum tandem_status status, const char *what,
                                    struct tandem_error *error)
{
    int line;
    int column;
    tnd_table_place(bytes, at, &line, &column);
    return tnd_error_set(error, status, name, (int64_t)at, (int64_t)n, "%.120s:%d:%d: %s", name,
                         line, column, what);
}

static enum tandem_status scan(const char *bytes, size_t n, const char *name,
                               struct tandem_error *error)
{
    int depth = 0;
    size_t values = 1;
    bool in_string = false;
    bool closed = false;
    for (size_t at = 0; at < n; at++) {
        unsigned char c = (unsigned char)bytes[at];
        bool blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
        if (c < 0x20 && (in_string || !blank)) {
            return refuse_at(bytes, n, at, name, TANDEM_E_FORMAT, "control character in JSON",
                             error);
        }
        if (in_string) {
            at += c == '\\';
            in_string = c != '"';
            continue;
        }
        if (closed && !blank) {
            return refuse_at(bytes, n, at, name, TANDEM_E_FORMAT,
                             "expected the end of the file behind the JSON object", error);
        }
        in_string = c == '"';
        depth += (c == '{' || c == '[') - (c == '}' || c == ']');
        values += c == ',' || c == '{' || c == '[';
        closed = closed || (depth <= 0 && !blank);
        if (depth > MAX_DEPTH || values > MAX_VALUES) {
            return refuse_at(bytes, n, at, name, TANDEM_E_LIMIT,
                             depth > MAX_DEPTH ? "JSON is nested more than 16 deep"
                                               : "more than 3000000 JSON values",
                             error);
        }
    }
    if (!closed) {
        return refuse_at(bytes, n, n, name, TANDEM_E_TRUNCATED,
                         "the file ends before its JSON object does", error);
    }
    return TANDEM_OK;
}

/* cJSON parses numbers by the locale, so this thread gets the C locale meanwhile. */
static cJSON *parse(const char *bytes, size_t n, const char **out_end)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (plain == (locale_t)0) {
        return NULL;
    }
    locale_t before = uselocale(plain);
    errno = 0; /* so that ENOMEM is noticed afterwards: cJSON does not say why it fails */
    cJSON *root = cJSON_ParseWithLengthOpts(bytes, n, out_end, 0);
    const int reason = errno;
    uselocale(before);
    freelocale(plain);
    errno = reason;
    return root;
}

enum tandem_status tnd_json_parse(const char *bytes, size_t n, const char *name, cJSON **out_root,
                                  struct tandem_error *error)
{
    TND_TRY(scan(bytes, n, name, error));
    const char *end = NULL;
    cJSON *root = parse(bytes, n, &end);
    if (root == NULL && errno == ENOMEM) {
        return tnd_error_set(error, TANDEM_E_MEMORY, name, (int64_t)n, 0,
                             "%.120s: no memory for its values", name);
    }
    if (root == NULL) {
        size_t at = end != NULL && end >= bytes && end <= bytes + n ? (size_t)(end - bytes) : 0;
        return refuse_at(bytes, n, at, name, TANDEM_E_FORMAT, "this is no valid JSON", error);
    }
    *out_root = root;
    return TANDEM_OK;
}

/* ---- members ---- */

static const char *kind_of(const cJSON *item)
{
    return item == NULL           ? "nothing"
           : cJSON_IsNull(item)   ? "null"
           : cJSON_IsBool(item)   ? "a boolean"
           : cJSON_IsNumber(item) ? "a number"
           : cJSON_IsString(item) ? "a string"
           : cJSON_IsArray(item)  ? "an array"
                                  : "an object";
}

enum tandem_status tnd_json_wrong(const struct tnd_json_reader *r, const char *key,
                                  const char *expected, const cJSON *item)
{
    char found[64];
    snprintf(found, sizeof(found), "%s", kind_of(item));
    if (cJSON_IsNumber(item)) {
        snprintf(found, sizeof(found), "%.17g", item->valuedouble);
    } else if (cJSON_IsString(item)) {
        snprintf(found, sizeof(found), "'%.40s'", item->valuestring);
    }
    return tnd_error_set(r->error, TANDEM_E_FORMAT, r->name, 0, 0,
                         "%.100s: %s%s: expected %s, found %s", r->name, r->path, key, expected,
                         found);
}

enum tandem_status tnd_json_refused(const struct tnd_json_reader *r, enum tandem_status status)
{
    return status == TANDEM_OK ? TANDEM_OK
                               : tnd_error_set(r->error, status, r->name, 0, 0, "%.100s: %s %s",
                                               r->name, r->path, tandem_status_text(status));
}

const cJSON *tnd_json_get(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

enum tandem_status tnd_json_string(const struct tnd_json_reader *r, const cJSON *object,
                                   const char *key, bool required, char *out, size_t n)
{
    const cJSON *item = tnd_json_get(object, key);
    if (item == NULL && !required) {
        return TANDEM_OK;
    }
    if (!cJSON_IsString(item) || strlen(item->valuestring) >= n) {
        char expected[48];
        snprintf(expected, sizeof(expected), "a string of at most %zu bytes", n - 1);
        return tnd_json_wrong(r, key, expected, item);
    }
    for (const char *c = item->valuestring; *c != '\0'; c += tnd_emit_utf8_length(c)) {
        if (tnd_emit_utf8_length(c) == 0 || (unsigned char)*c < 0x20) {
            return tnd_json_wrong(r, key, "UTF-8 without control characters", NULL);
        }
    }
    if (required && item->valuestring[0] == '\0') {
        return tnd_json_wrong(r, key, "a string that is not empty", item);
    }
    memcpy(out, item->valuestring, strlen(item->valuestring) + 1);
    return TANDEM_OK;
}

enum tandem_status tnd_json_int(const struct tnd_json_reader *r, const cJSON *object,
                                const char *key, bool required, int64_t low, int64_t high,
                                int64_t *out)
{
    const cJSON *item = tnd_json_get(object, key);
    if (item == NULL && !required) {
        return TANDEM_OK;
    }
    double value = cJSON_IsNumber(item) ? item->valuedouble : NAN;
    if (!(value >= (double)low && value <= (double)high) || value != floor(value)) {
        char expected[80];
        snprintf(expected, sizeof(expected), "a whole number from %" PRId64 " to %" PRId64, low,
                 high);
        return tnd_json_wrong(r, key, expected, item);
    }
    *out = (int64_t)value;
    return TANDEM_OK;
}

enum tandem_status tnd_json_real(const struct tnd_json_reader *r, const cJSON *object,
                                 const char *key, double low, double high, const char *expected,
                                 double *out)
{
    const cJSON *item = tnd_json_get(object, key);
    double value = cJSON_IsNumber(item) ? item->valuedouble : NAN;
    if (!(value >= low && value <= high)) {
        return tnd_json_wrong(r, key, expected, item);
    }
    *out = value;
    return TANDEM_OK;
}

enum tandem_status tnd_json_time(const struct tnd_json_reader *r, const cJSON *object,
                                 const char *key, bool required, double *out)
{
    if (tnd_json_get(object, key) == NULL && !required) {
        return TANDEM_OK;
    }
    return tnd_json_real(r, object, key, 0.0, TND_TABLE_MAX_US, "microseconds from 0 to 1e12", out);
}

enum tandem_status tnd_json_bool(const struct tnd_json_reader *r, const cJSON *object,
                                 const char *key, bool *out)
{
    const cJSON *item = tnd_json_get(object, key);
    if (item != NULL && !cJSON_IsBool(item)) {
        return tnd_json_wrong(r, key, "true or false", item);
    }
    *out = cJSON_IsTrue(item);
    return TANDEM_OK;
}

enum tandem_status tnd_json_array(const struct tnd_json_reader *r, const cJSON *object,
                                  const char *key, const cJSON **out)
{
    const cJSON *item = tnd_json_get(object, key);
    if (!cJSON_IsArray(item)) {
        return tnd_json_wrong(r, key, "an array", item);
    }
    *out = item;
    return TANDEM_OK;
}

/* Reads a string that is one of `n` names, as its index. */
enum tandem_status tnd_json_name(const struct tnd_json_reader *r, const cJSON *object,
                                 const char *key, const char *const *names, int n,
                                 const char *expected, uint8_t *out)
{
    const cJSON *item = tnd_json_get(object, key);
    for (int i = 0; i < n && cJSON_IsString(item); i++) {
        if (strcmp(names[i], item->valuestring) == 0) {
            *out = (uint8_t)i;
            return TANDEM_OK;
        }
    }
    return tnd_json_wrong(r, key, expected, item);
}

#endif
