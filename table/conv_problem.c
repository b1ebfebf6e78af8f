/* SPDX-License-Identifier: MIT
 * Keys and problem strings of convolutions. */
#include "table/conv_problem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tnd_status.h"

#define PREFIX "conv:f32:"

/* Bounds under which all sizes derived from extents fit into 64 bits. */
enum { LARGEST_EXTENT = 1 << 30, MOST_THREADS = 65536 };

/* "3x3"; 40 characters hold three extents of any tensor. */
static void write_extents(char out[40], int n, const int64_t *extents)
{
    int at = 0;
    for (int i = 0; i < n && at < 40; i++) {
        at += snprintf(out + at, (size_t)(40 - at), "%s%" PRId64, i > 0 ? "x" : "", extents[i]);
    }
}

/* Parses extents ("3x3") and returns how many there are; 0: not a list of extents, or one is below
 * `least`. */
static int read_extents(const char *text, int64_t least, int64_t out[TANDEM_NET_MAX_WINDOW])
{
    for (int n = 0; n < TANDEM_NET_MAX_WINDOW; n++) {
        char *end;
        const bool is_number = text[text[0] == '-'] >= '0' && text[text[0] == '-'] <= '9';
        const long long value = is_number ? strtoll(text, &end, 10) : least - 1;
        if (!is_number || value < least || value > LARGEST_EXTENT) {
            return 0;
        }
        out[n] = value;
        if (*end == '\0') {
            return n + 1;
        }
        if (*end != 'x') {
            return 0;
        }
        text = end + 1;
    }
    return 0;
}

void tnd_conv_key(const struct tnd_conv_shape *shape, enum tnd_conv_method method, int threads,
                  struct tnd_conv_time *out)
{
    memset(out, 0, sizeof(*out));
    snprintf(out->method, sizeof(out->method), "%s", tnd_conv_method_name(method));
    out->channels = shape->channels;
    out->filters = shape->filters;
    out->groups = shape->groups;
    out->images = shape->images;
    write_extents(out->window, shape->n, shape->window);
    write_extents(out->stride, shape->n, shape->stride);
    write_extents(out->dilation, shape->n, shape->dilation);
    write_extents(out->padding, shape->n, shape->padding);
    write_extents(out->result, shape->n, shape->result);
    out->followed = shape->is_followed;
    out->threads = threads;
}

bool tnd_conv_shape_of(const struct tnd_conv_time *record, struct tnd_conv_shape *out)
{
    struct tnd_conv_shape shape = {.images = record->images,
                                   .channels = record->channels,
                                   .filters = record->filters,
                                   .groups = record->groups,
                                   .is_followed = record->followed != 0};
    shape.n = read_extents(record->window, 1, shape.window);
    if (shape.n == 0 || read_extents(record->stride, 1, shape.stride) != shape.n ||
        read_extents(record->dilation, 1, shape.dilation) != shape.n ||
        read_extents(record->padding, -LARGEST_EXTENT, shape.padding) != shape.n ||
        read_extents(record->result, 1, shape.result) != shape.n) {
        return false;
    }
    *out = shape;
    return true;
}

/* ---- problem strings ---- */

static bool is_all(int n, const int64_t *extents, int64_t value)
{
    bool is = true;
    for (int i = 0; i < n; i++) {
        is = is && extents[i] == value;
    }
    return is;
}

void tnd_conv_problem_print(const struct tnd_conv_shape *shape, int threads,
                            enum tnd_conv_method method, char *out, size_t n)
{
    struct tnd_conv_time key;
    struct {
        const char *name, *text;
        bool is_left_out;
    } extents[] = {{"s", key.stride, is_all(shape->n, shape->stride, 1)},
                   {"d", key.dilation, is_all(shape->n, shape->dilation, 1)},
                   {"p", key.padding, is_all(shape->n, shape->padding, 0)}};
    char text[TND_CONV_PROBLEM_MAX];
    int at;
    tnd_conv_key(shape, TND_CONV_DIRECT, 1, &key);
    at = snprintf(text, sizeof(text), PREFIX "w%s:c%" PRId64 ":f%" PRId64 ":r%s", key.window,
                  key.channels, key.filters, key.result);
    for (size_t i = 0; i < sizeof(extents) / sizeof(extents[0]); i++) {
        at += extents[i].is_left_out ? 0
                                     : snprintf(text + at, sizeof(text) - (size_t)at, ":%s%s",
                                                extents[i].name, extents[i].text);
    }
    if (shape->groups != 1) {
        at += snprintf(text + at, sizeof(text) - (size_t)at, ":g%" PRId64, shape->groups);
    }
    if (shape->images != 1) {
        at += snprintf(text + at, sizeof(text) - (size_t)at, ":i%" PRId64, shape->images);
    }
    at += snprintf(text + at, sizeof(text) - (size_t)at, "%s", shape->is_followed ? ":e" : "");
    if (threads > 0) {
        at += snprintf(text + at, sizeof(text) - (size_t)at, ":t%d", threads);
    }
    snprintf(out, n, "%s%s%s", text, method < TND_CONV_METHODS ? ":" : "",
             method < TND_CONV_METHODS ? tnd_conv_method_name(method) : "");
}

bool tnd_conv_problem_is(const char *text)
{
    return strncmp(text, "conv:", 5) == 0;
}

/* Parses one part, without its ':'. */
static bool read_part(const char *part, struct tnd_conv_shape *shape, int *threads)
{
    int64_t extents[TANDEM_NET_MAX_WINDOW];
    int64_t *const numbers[] = {&shape->channels, &shape->filters, &shape->groups, &shape->images};
    const struct {
        char name;
        int64_t *to;
        int64_t least;
    } lists[] = {{'w', shape->window, 1},
                 {'r', shape->result, 1},
                 {'s', shape->stride, 1},
                 {'d', shape->dilation, 1},
                 {'p', shape->padding, -LARGEST_EXTENT}};
    if (tnd_conv_method_from_name(part) != TND_CONV_METHODS) {
        return true;
    }
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        const int n =
            part[0] == lists[i].name ? read_extents(part + 1, lists[i].least, extents) : 0;
        if (n > 0 && (shape->n == 0 || shape->n == n) && (shape->n != 0 || i == 0)) {
            shape->n = n;
            memcpy(lists[i].to, extents, (size_t)n * sizeof(extents[0]));
            return true;
        }
    }
    const char *name = part[0] == '\0' ? NULL : strchr("cfgi", part[0]);
    if (name != NULL && read_extents(part + 1, 1, extents) == 1) {
        *numbers[name - "cfgi"] = extents[0];
        return true;
    }
    if (part[0] == 't' && read_extents(part + 1, 1, extents) == 1 && extents[0] <= MOST_THREADS) {
        *threads = (int)extents[0];
        return true;
    }
    shape->is_followed = shape->is_followed || strcmp(part, "e") == 0;
    return strcmp(part, "e") == 0;
}

static bool is_complete(const struct tnd_conv_shape *shape)
{
    return shape->n > 0 && shape->result[0] > 0 && shape->channels > 0 && shape->filters > 0 &&
           shape->channels % shape->groups == 0 && shape->filters % shape->groups == 0;
}

enum tandem_status tnd_conv_problem_parse(const char *text, struct tnd_conv_shape *out,
                                          int *out_threads, struct tandem_error *error)
{
    struct tnd_conv_shape shape = {.images = 1, .groups = 1};
    int threads = 0;
    const char *at = text + strlen(PREFIX);
    bool is_right = strncmp(text, PREFIX, strlen(PREFIX)) == 0;
    char part[64] = "";
    for (int i = 0; i < TANDEM_NET_MAX_WINDOW; i++) {
        shape.stride[i] = shape.dilation[i] = 1;
    }
    while (is_right && *at != '\0') {
        const size_t length = strcspn(at, ":");
        is_right = length > 0 && length < sizeof(part);
        if (is_right) {
            snprintf(part, sizeof(part), "%.*s", (int)length, at);
            is_right = read_part(part, &shape, &threads);
            at += length + (at[length] == ':');
        }
    }
    if (!is_right || !is_complete(&shape)) {
        return tnd_error_set(error, TANDEM_E_FORMAT, text, 0, 0,
                             "problem '%.120s': %s%.60s%s, as in "
                             "conv:f32:w3x3:c64:f64:r56x56:p1x1",
                             text, is_right ? "expected window, channels, filters and result" : "'",
                             is_right ? "" : part,
                             is_right ? " that fit together" : "' was not expected");
    }
    *out = shape;
    *out_threads = threads;
    return TANDEM_OK;
}
