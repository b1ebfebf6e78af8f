/* SPDX-License-Identifier: MIT
 * Bodies of requests. */
#include "tools/tandem-server/srv_body.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tools/tandem-server/srv_text.h"

bool tnd_srv_body_fault(struct srv_body *body, const char *format, ...)
{
    va_list arguments;
    if (body->fault[0] == '\0') {
        va_start(arguments, format);
        (void)vsnprintf(body->fault, sizeof(body->fault), format, arguments);
        va_end(arguments);
    }
    return false;
}

/* Whether the bytes at `at` are an escaped NUL character, which would end a C string. */
static bool is_zero_escape(const char *bytes, size_t n, size_t at)
{
    return n - at >= 6 && memcmp(bytes + at, "\\u0000", 6) == 0;
}

/* Checks for valid UTF-8 without NUL, a nesting depth that a recursive parser can handle, and a
 * number of values that does not take much more memory than the text. */
static bool check(struct srv_body *body, const char *bytes, size_t n)
{
    bool is_string = false;
    int depth = 0;
    size_t n_values = 0;
    for (size_t i = 0; i < n;) {
        const size_t length = tnd_srv_utf8_length(bytes + i, n - i);
        const char byte = bytes[i];
        if (length == 0 || byte == '\0') {
            return tnd_srv_body_fault(body, "byte %zu of the body is not UTF-8 text", i);
        }
        if (is_string && byte == '\\') {
            if (is_zero_escape(bytes, n, i)) {
                return tnd_srv_body_fault(body, "byte %zu: \\u0000 is not allowed", i);
            }
            i += n - i > 1 ? 1 + tnd_srv_utf8_length(bytes + i + 1, n - i - 1) : 1;
            continue;
        }
        is_string = byte == '"' ? !is_string : is_string;
        depth += !is_string && (byte == '{' || byte == '[');
        depth -= !is_string && (byte == '}' || byte == ']');
        n_values += !is_string && (byte == '{' || byte == '[' || byte == ',');
        if (n_values > SRV_BODY_VALUES) {
            body->is_large = true;
            return tnd_srv_body_fault(body, "the body has more than %d values", SRV_BODY_VALUES);
        }
        if (depth > SRV_BODY_DEPTH) {
            return tnd_srv_body_fault(body, "more than %d objects and arrays within each other",
                                      SRV_BODY_DEPTH);
        }
        i += length;
    }
    return true;
}

bool tnd_srv_body_read(struct srv_body *body, const char *bytes, size_t n)
{
    const char *end = NULL;
    *body = (struct srv_body){0};
    if (!check(body, bytes, n)) {
        return false;
    }
    body->root = cJSON_ParseWithLengthOpts(bytes, n, &end, false);
    if (body->root == NULL) {
        return tnd_srv_body_fault(body, "the body is no JSON: a fault near byte %zu",
                                  end != NULL ? (size_t)(end - bytes) : 0);
    }
    while (end < bytes + n && strchr(" \t\r\n", *end) != NULL) {
        end++;
    }
    if (end != bytes + n) {
        return tnd_srv_body_fault(body, "byte %zu: more text behind the JSON",
                                  (size_t)(end - bytes));
    }
    return cJSON_IsObject(body->root) || tnd_srv_body_fault(body, "the body must be an object");
}

void tnd_srv_body_free(struct srv_body *body)
{
    cJSON_Delete(body->root);
    body->root = NULL;
}

const cJSON *tnd_srv_body_member(const struct srv_body *body, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(body->root, name);
    return item == NULL || cJSON_IsNull(item) ? NULL : item;
}

bool tnd_srv_body_number(struct srv_body *body, const char *name, double low, double high,
                         double *out)
{
    const cJSON *item = tnd_srv_body_member(body, name);
    if (item == NULL) {
        return true;
    }
    const double value = cJSON_IsNumber(item) ? item->valuedouble : (double)NAN;
    if (!(value >= low && value <= high)) {
        return tnd_srv_body_fault(body, "'%s' must be a number from %g to %g", name, low, high);
    }
    *out = value;
    return true;
}

bool tnd_srv_body_integer(struct srv_body *body, const char *name, int64_t low, int64_t high,
                          int64_t *out)
{
    const cJSON *item = tnd_srv_body_member(body, name);
    if (item == NULL) {
        return true;
    }
    const double value = cJSON_IsNumber(item) ? item->valuedouble : (double)NAN;
    /* doubles are exact integers up to 2^53 */
    if (!(value >= (double)low && value <= (double)high && fabs(value) <= 0x1p53) ||
        value != floor(value)) {
        return tnd_srv_body_fault(body, "'%s' must be a whole number from %lld to %lld", name,
                                  (long long)low, (long long)high);
    }
    *out = (int64_t)value;
    return true;
}

bool tnd_srv_body_flag(struct srv_body *body, const char *name, bool *out)
{
    const cJSON *item = tnd_srv_body_member(body, name);
    if (item != NULL && !cJSON_IsBool(item)) {
        return tnd_srv_body_fault(body, "'%s' must be true or false", name);
    }
    *out = item != NULL ? cJSON_IsTrue(item) != 0 : *out;
    return true;
}

bool tnd_srv_body_string(struct srv_body *body, const char *name, const char **out)
{
    const cJSON *item = tnd_srv_body_member(body, name);
    if (item != NULL && !cJSON_IsString(item)) {
        return tnd_srv_body_fault(body, "'%s' must be a string", name);
    }
    *out = item != NULL ? item->valuestring : NULL;
    return true;
}
