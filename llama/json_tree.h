/* SPDX-License-Identifier: MIT
 * JSON as a tree, parsed from untrusted text (RFC 8259) with bounded depth and size. */
#ifndef TND_LLAMA_JSON_TREE_H
#define TND_LLAMA_JSON_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tnd_json_kind {
    TND_JSON_NULL,
    TND_JSON_FALSE,
    TND_JSON_TRUE,
    TND_JSON_NUMBER,
    TND_JSON_STRING,
    TND_JSON_ARRAY,
    TND_JSON_OBJECT
};

struct tnd_json_value {
    enum tnd_json_kind kind;
    const char *name; /* of a member, decoded; terminated */
    size_t name_n;
    const char *text; /* of a string: decoded; of a number: as written; terminated */
    size_t n;
    double number;
    int32_t n_children;
    struct tnd_json_value *first, *next; /* child, sibling */
    int32_t mark;                        /* for the user; initially 0 */
};

struct tnd_json_tree {
    struct tnd_json_value *values; /* the first one is the root */
    char *strings;
    const char *fault; /* NULL: none */
    size_t fault_at;   /* byte */
};

/** False after an error. Call tnd_json_tree_free in any case. */
bool tnd_json_tree_read(struct tnd_json_tree *tree, const char *text, size_t n);
void tnd_json_tree_free(struct tnd_json_tree *tree);
/** A member by name, the first of several; NULL: there is none, or the value is not an object. */
struct tnd_json_value *tnd_json_member(const struct tnd_json_value *object, const char *name);
/** Whether two values are equal; the order of members does not count. */
bool tnd_json_equal(const struct tnd_json_value *a, const struct tnd_json_value *b);

#endif
