/* SPDX-License-Identifier: MIT
 * Checked reading of JSON through cJSON, for table_json.c: checks bounds before the parser runs;
 * members must have the expected kind and range, else a message names their path. Only in builds
 * with cJSON. */
#ifndef TND_JSON_READ_H
#define TND_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/tnd_status.h"

#ifdef TND_HAVE_CJSON

#include <cjson/cJSON.h>

struct tnd_json_reader {
    const char *name; /* of the file */
    struct tandem_error *error;
    char path[96]; /* of the object being read, "curves[3].samples[0]." */
};

/** Parses an object of at most 16 levels and 3,000,000 values; only blanks may surround it. The
 * caller deletes it. Errors: FORMAT, TRUNCATED, LIMIT. */
enum tandem_status tnd_json_parse(const char *bytes, size_t n, const char *name, cJSON **out_root,
                                  struct tandem_error *error);

/** Returns FORMAT with "NAME: PATH KEY: expected ..., found <item>". */
enum tandem_status tnd_json_wrong(const struct tnd_json_reader *r, const char *key,
                                  const char *expected, const cJSON *item);

/** Adds the path to a failure to store a valid value (memory or a limit); OK stays OK. */
enum tandem_status tnd_json_refused(const struct tnd_json_reader *r, enum tandem_status status);

/* Members of `object`. A missing one that is not required leaves `out` as it is. */

const cJSON *tnd_json_get(const cJSON *object, const char *key);
/** UTF-8 without control characters, at most n - 1 bytes; a required one is not empty. */
enum tandem_status tnd_json_string(const struct tnd_json_reader *r, const cJSON *object,
                                   const char *key, bool required, char *out, size_t n);
enum tandem_status tnd_json_int(const struct tnd_json_reader *r, const cJSON *object,
                                const char *key, bool required, int64_t low, int64_t high,
                                int64_t *out);
/** A time in microseconds. */
enum tandem_status tnd_json_time(const struct tnd_json_reader *r, const cJSON *object,
                                 const char *key, bool required, double *out);
/** A required number from `low` to `high`, called `expected` in the message. */
enum tandem_status tnd_json_real(const struct tnd_json_reader *r, const cJSON *object,
                                 const char *key, double low, double high, const char *expected,
                                 double *out);
/** False when it is missing. */
enum tandem_status tnd_json_bool(const struct tnd_json_reader *r, const cJSON *object,
                                 const char *key, bool *out);
enum tandem_status tnd_json_array(const struct tnd_json_reader *r, const cJSON *object,
                                  const char *key, const cJSON **out);
/** A string that is one of `n` names, as its index. */
enum tandem_status tnd_json_name(const struct tnd_json_reader *r, const cJSON *object,
                                 const char *key, const char *const *names, int n,
                                 const char *expected, uint8_t *out);

#endif
#endif
