/* SPDX-License-Identifier: MIT
 * Shared by the passes: the walk that builds one net from another, and what rules look for. */
#ifndef TND_PASS_INTERNAL_H
#define TND_PASS_INTERNAL_H

#include "graph/pass.h"

#define TND_REWRITE_DROP (-2)

/** One net becomes another, node by node. A pass is first asked about the net as it is: `to` is the
 *  part of it in front of the node, in which nothing can be built. Where nothing would change, the
 *  net stays and is not copied. */
struct tnd_rewrite {
    const struct tnd_pass *pass;
    struct tnd_net *from;
    struct tnd_net *to;
    int *map;         /* by value of `from` that is no view: the value of `to`, perhaps a view */
    int *readers;     /* by value of `from` that is no view: operands and outputs that are it */
    bool *is_needed;  /* by value of `from` that is no view: an output depends on it */
    uint64_t *hashes; /* of the nodes of `to` (pass "equal") */
    uint64_t *hashed; /* of constants, by value of `from` below n_hashed */
    int n_hashed;
    int fired;
};

/** Runs one pass over the net, which is tidy (tnd_rewrite_tidy) before and after; *fired: how often
 *  it changed something. Errors: MEMORY. */
enum tandem_status tnd_rewrite_run(struct tnd_net *net, const struct tnd_pass *pass, int *fired,
                                   struct tandem_error *error);
/** Gives views the form in which passes know them, and nodes what a view is all of in its place. */
void tnd_rewrite_tidy(struct tnd_net *net);
/** Leaves out values that nothing needs, with their arrays. Errors: MEMORY. */
enum tandem_status tnd_rewrite_pack(struct tnd_net *net, struct tandem_error *error);

/** Whether a value of `to`, or what it is a view of, has one reader alone. */
bool tnd_rewrite_is_private(const struct tnd_rewrite *rewrite, int value);

/** Whether a value of this shape, offset and strides can take the place of a result: no output is
 *  the result, and what is read of it can be read of the value as a view. */
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

/** A rule of the pass "strength": a cast to 8 bits behind views, or one that gives bytes back
 *  (pass_bytes.c). */
int tnd_rule_to_byte(struct tnd_rewrite *rewrite, const struct tnd_net_node *cast, const int *in);
/** Likewise: a product of values that were bytes in another order. */
int tnd_rule_of_bytes(struct tnd_rewrite *rewrite, const struct tnd_net_node *node, const int *in);

/* ---- values that are moved (pass_moved.c) ---- */

/** The base that constant values come from: views, copies and padding by 0 lie between. The value's
 *  own when those are more than weights need. */
int tnd_moved_from(const struct tnd_net *net, int value);
/** Makes of `other`, a base of the shape of `from`, what was made of `from` to get `value`. */
int tnd_moved_like(struct tnd_net *net, int value, int from, int other);
/** For each number of `value` 1 + the index in `from` that it comes from, or 0 for padding; int32.
 *  The caller frees it. NULL: no memory, or more values than weights need. */
struct tnd_array *tnd_moved_places(const struct tnd_net *net, int value, int from);

/* ---- what rules look for (pass_match.c) ---- */

/** The node that makes a value which is no view, or is read as a whole in another shape; NULL when
 *  it is of another operation or kind (-1: any). */
const struct tnd_net_node *tnd_match(const struct tnd_net *net, int value, enum tnd_net_op op,
                                     int kind);
/** Whether a value is all of its base in the base's order, perhaps in another shape. */
bool tnd_match_whole(const struct tnd_net *net, int value);
/** Whether a value is known and will stay so: a constant, or an input that the net is made for. */
bool tnd_match_constant(const struct tnd_net *net, int value);
/** Whether all its values are known and the same; which, as a number and as an integer. */
bool tnd_match_uniform(const struct tnd_net *net, int value, double *number, int64_t *integer);
/** Whether two values are the same view of the same value. */
bool tnd_match_same(const struct tnd_net *net, int a, int b);
/** A constant of one number, as a view of a shape. */
int tnd_pass_number(struct tnd_net *net, enum tandem_dtype type, double number,
                    const struct tnd_dims *shape);
bool tnd_is_float(enum tandem_dtype type);
/** Whether it is int8 or uint8. */
bool tnd_is_byte(enum tandem_dtype type);

#endif
