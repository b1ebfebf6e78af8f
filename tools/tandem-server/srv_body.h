/* SPDX-License-Identifier: MIT
 * The untrusted JSON body of a request: checked before cJSON parses it; members are read with their
 * ranges. The first fault is kept, later ones are dropped. */
#ifndef TANDEM_SERVER_SRV_BODY_H
#define TANDEM_SERVER_SRV_BODY_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct srv_body {
    cJSON *root;     /* an object */
    char fault[200]; /* "" without a fault */
    bool is_large;   /* the body is too large */
};

enum {
    SRV_BODY_DEPTH = 32,
    SRV_BODY_VALUES = 1 << 18 /* cJSON takes 64 bytes per value */
};

/** Parses an object of at most `n` bytes. False: `fault` has the reason. Call tnd_srv_body_free in
 * any case. */
bool tnd_srv_body_read(struct srv_body *body, const char *bytes, size_t n);
void tnd_srv_body_free(struct srv_body *body);
/** Sets the fault, unless there is one. Returns false. */
bool tnd_srv_body_fault(struct srv_body *body, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Members: if absent or null, `out` is unchanged. False after a fault. */
bool tnd_srv_body_number(struct srv_body *body, const char *name, double low, double high,
                         double *out);
bool tnd_srv_body_integer(struct srv_body *body, const char *name, int64_t low, int64_t high,
                          int64_t *out);
bool tnd_srv_body_flag(struct srv_body *body, const char *name, bool *out);
/** A string, borrowed from the body; NULL: absent or null. */
bool tnd_srv_body_string(struct srv_body *body, const char *name, const char **out);
/** A member of any type but null; NULL: absent. */
const cJSON *tnd_srv_body_member(const struct srv_body *body, const char *name);

#endif
