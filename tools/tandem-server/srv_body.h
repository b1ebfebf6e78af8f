/* SPDX-License-Identifier: MIT
 * The JSON body of a request, which nobody trusts: checked before cJSON sees it, members read with
 * their ranges. The first fault is kept, later ones are not told. */
#ifndef TANDEM_SERVER_SRV_BODY_H
#define TANDEM_SERVER_SRV_BODY_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct srv_body {
    cJSON *root;     /* an object */
    char fault[200]; /* "" as long as all is well */
    bool is_large;   /* the fault is its size */
};

enum {
    SRV_BODY_DEPTH = 32,
    SRV_BODY_VALUES = 1 << 18 /* cJSON takes 64 bytes for each */
};

/** Reads an object of at most `n` bytes. False: `fault` says why. tnd_srv_body_free in any case. */
bool tnd_srv_body_read(struct srv_body *body, const char *bytes, size_t n);
void tnd_srv_body_free(struct srv_body *body);
/** Notes a fault, unless there is one. Returns false. */
bool tnd_srv_body_fault(struct srv_body *body, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Members: absent and null leave `out` as it is. False after a fault. */
bool tnd_srv_body_number(struct srv_body *body, const char *name, double low, double high,
                         double *out);
bool tnd_srv_body_integer(struct srv_body *body, const char *name, int64_t low, int64_t high,
                          int64_t *out);
bool tnd_srv_body_flag(struct srv_body *body, const char *name, bool *out);
/** Borrowed from the body; NULL: absent or null. */
bool tnd_srv_body_string(struct srv_body *body, const char *name, const char **out);
/** A member of any type but null; NULL: there is none. */
const cJSON *tnd_srv_body_member(const struct srv_body *body, const char *name);

#endif
