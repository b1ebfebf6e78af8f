/* SPDX-License-Identifier: MIT
 * Shared by the passes: the rewriting of one net to another, and pattern matching for rules. */
#ifndef TND_PASS_INTERNAL_H
#define TND_PASS_INTERNAL_H

#include "graph/pass.h"

#define TND_REWRITE_DROP (-2)

/** Rewrites a net node by node. Rules are first called on the unchanged net: `to` is then its
 * part before the node, and cannot be extended. If no rule would change anything, the net is not
 * copied. */
struct tnd_rewrite {
    const struct tnd_pass *pass;
    struct tnd_net *from;
    struct tnd_net *to;
    int *map;         /* by non-view value of `from`: its value of `to`, perhaps a view */
    int *readers;     /* by non-view value of `from`: number of operands and outputs that read it */
    bool *is_needed;  /* by non-view value of `from`: an output depends on it */
    uint64_t *hashes; /* of the nodes of `to` (pass "equal") */
    uint64_t *hashed; /* of constants, by value of `from` below n_hashed */
    int n_hashed;
    int fired;
};

/** Runs one pass on the net, which is tidy (tnd_rewrite_tidy) before and after; *fired: number of
 * changes. Errors: MEMORY. */
enum tandem_status tnd_rewrite_run(struct tnd_net *net, const struct tnd_pass *pass, int *fired,
                                   struct tandem_error *error);
/** Gives views the form in which passes know them, and nodes what a view is all of in its place. */
void tnd_rewrite_tidy(struct tnd_net *net);
/** Removes unused values and their arrays. Errors: MEMORY. */
enum tandem_status tnd_rewrite_pack(struct tnd_net *net, struct tandem_error *error);

/** Whether a value of `to`, or its base, has only one reader. */
bool tnd_rewrite_is_private(const struct tnd_rewrite *rewrite, int value);

/** Whether a value of this shape, offset and strides can replace a result: no output is the result,
 * and every view of the result can be a view of the value. */
bool tnd_rewrite_can_replace(const struct tnd_rewrite *rewrite, int result,
                             const struct tnd_net_value *new);

int tnd_pass_quantise(struct tnd_rewrite *rewrite, const struct tnd_net_node *node, const int *in);
int tnd_pass_fold(struct tnd_rewrite *rewrite, const struct tnd_net_node *node, const int *in);
int tnd_pass_dead(struct tnd_rewrite *rewrite, const struct tnd_net_node *node, const int *in);
int tnd_pass_equal(struct tnd_rewrite *rewrite, const struct tnd_net_node *node, const int *in);
int tnd_pass_widen(struct tnd_rewrite *rewrite, const struct tnd_net_node *node, const int *in);
int tnd_pass_strength(struct tnd_rewrite *rewrite, const struct tnd_net_node *node, const int *in);
int tnd_pass_clamp(struct tnd_rewrite *rewrite, const struct tnd_net_node *node, const int *in);
int tnd_pass_recognise(struct tnd_rewrite *rewrite, const struct tnd_net_node *node, const int *in);
int tnd_pass_layout(struct tnd_rewrite *rewrite, const struct tnd_net_node *node, const int *in);
int tnd_pass_affine(struct tnd_rewrite *rewrite, const struct tnd_net_node *node, const int *in);

/** A rule of the pass "strength": a cast to 8 bits after views, or one that restores bytes
 * (pass_bytes.c). */
int tnd_rule_to_byte(struct tnd_rewrite *rewrite, const struct tnd_net_node *cast, const int *in);
/** Likewise: a product of values that were bytes in another order. */
int tnd_rule_of_bytes(struct tnd_rewrite *rewrite, const struct tnd_net_node *node, const int *in);

/* ---- values that are moved (pass_moved.c) ---- */

/** The base from which constant values come through views, copies and padding with 0; the value's
 * own base if there are more values than weights need. */
int tnd_moved_from(const struct tnd_net *net, int value);
/** Applies to `other`, a base of the shape of `from`, what turned `from` into `value`. */
int tnd_moved_like(struct tnd_net *net, int value, int from, int other);
/** For each element of `value`, 1 + the index of its element of `from`, or 0 for padding; int32.
 * The caller frees it. NULL: out of memory, or more values than weights need. */
struct tnd_array *tnd_moved_places(const struct tnd_net *net, int value, int from);

/* ---- what rules look for (pass_match.c) ---- */

/** The node that computes a value, or the base of which it is a reshape; NULL: another operation or
 * kind (-1: any). */
const struct tnd_net_node *tnd_match(const struct tnd_net *net, int value, enum tnd_net_op op,
                                     int kind);
/** Whether a value has all elements of its base in order, perhaps in another shape. */
bool tnd_match_whole(const struct tnd_net *net, int value);
/** Whether a value is a constant, or an input with whose values the net is specialised. */
bool tnd_match_constant(const struct tnd_net *net, int value);
/** Whether all elements are known and equal; returns the element as a number and as an integer. */
bool tnd_match_uniform(const struct tnd_net *net, int value, double *number, int64_t *integer);
/** Whether two values are the same view of the same value. */
bool tnd_match_same(const struct tnd_net *net, int a, int b);
/** A constant of one number, as a view of a shape. */
int tnd_pass_number(struct tnd_net *net, enum tandem_dtype type, double number,
                    const struct tnd_dims *shape);
bool tnd_is_float(enum tandem_dtype type);
/** Whether the type is int8 or uint8. */
bool tnd_is_byte(enum tandem_dtype type);

#endif
