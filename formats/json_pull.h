/* SPDX-License-Identifier: MIT
 * Reading JSON from left to right without building a tree: memory does not grow with what a hostile
 * file contains. For headers of model files. RFC 8259; numbers as integers or doubles. */
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

/** The next byte that is no blank, not taken; 0 at the end. */
char tnd_json_peek(struct tnd_json *json);
/** Takes a string, decoded to UTF-8 and terminated, of less than `capacity` bytes; a zero character
 *  is refused unless the string is passed over (`out` NULL). Errors: FORMAT, LIMIT. */
enum tandem_status tnd_json_pull_string(struct tnd_json *json, char *out, size_t capacity,
                                        struct tandem_error *error);
/** Takes a number. `out_is_integer`: it is a whole one below 2^63, which `out_integer` gets. */
enum tandem_status tnd_json_number(struct tnd_json *json, double *out_number, int64_t *out_integer,
                                   bool *out_is_integer, struct tandem_error *error);
/** Takes a whole number that is not negative. Errors: FORMAT. */
enum tandem_status tnd_json_count(struct tnd_json *json, int64_t *out, struct tandem_error *error);
/** Takes true or false. Errors: FORMAT. */
enum tandem_status tnd_json_pull_bool(struct tnd_json *json, bool *out, struct tandem_error *error);
/** Passes over a value of any kind. Errors: FORMAT. */
enum tandem_status tnd_json_skip(struct tnd_json *json, struct tandem_error *error);

/** A walk through an object or a list, with their brackets. It begins with the file and the error
 *  set and all else zero; what is between two steps takes one value:
 *
 *      struct tnd_json_walk walk = {.json = json, .error = error};
 *      while (tnd_json_next_member(&walk, key, sizeof(key))) {
 *          TND_TRY(tnd_json_skip(json, error));
 *      }
 *      return walk.status; // OK at the end, else what failed */
struct tnd_json_walk {
    struct tnd_json *json;
    struct tandem_error *error;
    int64_t n;       /* values that were reached */
    int64_t i;       /* the one at hand, from 0 */
    const char *key; /* as the file spells it, behind its quote */
    enum tandem_status status;
};

/** Steps to the next value of an object, with its key, of less than `capacity` bytes; `key` NULL:
 *  passed over. False: there is none. Errors, in walk->status: FORMAT, LIMIT. */
bool tnd_json_next_member(struct tnd_json_walk *walk, char *key, size_t capacity);
/** Steps to the next value of a list, likewise. */
bool tnd_json_next_item(struct tnd_json_walk *walk);

/** Nothing but blanks is left. Errors: FORMAT. */
enum tandem_status tnd_json_end(struct tnd_json *json, struct tandem_error *error);

#endif
