/* SPDX-License-Identifier: MIT
 * A pull parser for JSON, without a tree: memory does not grow with a hostile file. For headers of
 * model files. RFC 8259; numbers are integers or doubles. */
#ifndef TND_JSON_PULL_H
#define TND_JSON_PULL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/tnd_status.h"

#define TND_JSON_MAX_DEPTH 32

struct tnd_json {
    const char *begin;
    const char *at;
    const char *end;
    const char *name; /* of the file, for messages */
};

/** The next byte that is not white space, not consumed; 0 at the end. */
char tnd_json_peek(struct tnd_json *json);
/** Parses a string, decodes it to UTF-8 and terminates it; at most `capacity` - 1 bytes. A zero
 * character is refused unless `out` is NULL (skips the string). Errors: FORMAT, LIMIT. */
enum tandem_status tnd_json_pull_string(struct tnd_json *json, char *out, size_t capacity,
                                        struct tandem_error *error);
/** Parses a number. `out_is_integer`: it is an integer below 2^63, stored in `out_integer`. */
enum tandem_status tnd_json_number(struct tnd_json *json, double *out_number, int64_t *out_integer,
                                   bool *out_is_integer, struct tandem_error *error);
/** Parses a non-negative integer. Errors: FORMAT. */
enum tandem_status tnd_json_count(struct tnd_json *json, int64_t *out, struct tandem_error *error);
/** Parses true or false. Errors: FORMAT. */
enum tandem_status tnd_json_pull_bool(struct tnd_json *json, bool *out, struct tandem_error *error);
/** Skips a value of any kind. Errors: FORMAT. */
enum tandem_status tnd_json_skip(struct tnd_json *json, struct tandem_error *error);

/** Iterates over an object or list, brackets included. Set `json` and `error`, all else zero; parse
 * one value between two steps:
 *
 *      struct tnd_json_walk walk = {.json = json, .error = error};
 *      while (tnd_json_next_member(&walk, key, sizeof(key))) {
 *          TND_TRY(tnd_json_skip(json, error));
 *      }
 *      return walk.status; // OK at the end, else what failed */
struct tnd_json_walk {
    struct tnd_json *json;
    struct tandem_error *error;
    int64_t n;       /* values reached so far */
    int64_t i;       /* index of the current value */
    const char *key; /* as in the file, after its quote */
    enum tandem_status status;
};

/** Steps to the next value of an object and copies its key, of less than `capacity` bytes (`key`
 * NULL: skips it). False at the end and after errors in walk->status: FORMAT, LIMIT. */
bool tnd_json_next_member(struct tnd_json_walk *walk, char *key, size_t capacity);
/** Steps to the next value of a list, likewise. */
bool tnd_json_next_item(struct tnd_json_walk *walk);

/** Checks that only white space is left. Errors: FORMAT. */
enum tandem_status tnd_json_end(struct tnd_json *json, struct tandem_error *error);

#endif
