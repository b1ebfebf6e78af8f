/* SPDX-License-Identifier: MIT
 * JSON Schema (2020-12, with names of earlier drafts) as expressions. Each schema object becomes a
 * rule, so that references may be recursive. Generated text is always valid, but not every valid
 * text can be generated: members are in the order of `properties`, members that are not listed need
 * `additionalProperties`, numbers have at most 16 digits. Unsupported keywords are refused by name.
 * `oneOf` is treated as `anyOf`. */
#ifndef TND_LLAMA_GRAMMAR_SCHEMA_H
#define TND_LLAMA_GRAMMAR_SCHEMA_H

#include "llama/grammar.h"
#include "llama/json_tree.h"

enum { TND_SCHEMA_MOST_PARTS = 32, TND_SCHEMA_DEPTH = 48 };

/** Kinds of values, as bits. */
enum {
    TND_IS_NULL = 1,
    TND_IS_BOOL = 2,
    TND_IS_INTEGER = 4,
    TND_IS_FRACTION = 8, /* any number, together with INTEGER */
    TND_IS_STRING = 16,
    TND_IS_ARRAY = 32,
    TND_IS_OBJECT = 64,
    TND_IS_ANY = 127
};

struct tnd_schema {
    struct tnd_tree *tree;
    struct tnd_json_value *root;
    struct tnd_json_value *values; /* of the whole document */
    int depth;
};

/** Schema objects that apply to the same value: of allOf, of references with siblings, of a
 * branch. */
struct tnd_schema_view {
    const struct tnd_json_value *parts[TND_SCHEMA_MOST_PARTS];
    int n;
};

int32_t tnd_schema_refuse(struct tnd_schema *s, const char *keyword, const char *why);
/** A keyword's value; NULL: there is none. Fails if parts have different ones. */
const struct tnd_json_value *
tnd_schema_find(struct tnd_schema *s, const struct tnd_schema_view *view, const char *keyword);
/** A keyword's value as a non-negative integer; `other` if it is missing. */
int64_t tnd_schema_count(struct tnd_schema *s, const struct tnd_schema_view *view,
                         const char *keyword, int64_t other);
/** A call of a predefined rule by name, such as "json-string". */
int32_t tnd_schema_json(struct tnd_schema *s, const char *name);
/** A call of the rule of a schema, which is an object or true. */
int32_t tnd_schema_value(struct tnd_schema *s, const struct tnd_json_value *schema);
/** A value as JSON text. */
int32_t tnd_schema_literal(struct tnd_schema *s, const struct tnd_json_value *value);

/** Expressions of each kind of value. */
int32_t tnd_schema_string(struct tnd_schema *s, const struct tnd_schema_view *view);
int32_t tnd_schema_number(struct tnd_schema *s, const struct tnd_schema_view *view,
                          bool is_integer);
int32_t tnd_schema_array(struct tnd_schema *s, const struct tnd_schema_view *view);
int32_t tnd_schema_object(struct tnd_schema *s, const struct tnd_schema_view *view);

#endif
