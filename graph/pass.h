/* SPDX-License-Identifier: MIT
 * Passes: each makes a net smaller or cheaper and keeps its results. They run in the order of enum
 * tnd_pass_id, again and again until none of them changes anything.
 *
 * Those of TND_PASSES_EXACT keep every bit of every result (not the payload of a NaN). The others
 * keep results in exact arithmetic and round otherwise: each says within which bound. */
#ifndef TND_PASS_H
#define TND_PASS_H

#include "graph/net.h"

enum tnd_pass_id {
    TND_PASS_QUANTISE,
    TND_PASS_FOLD,
    TND_PASS_DEAD,
    TND_PASS_EQUAL,
    TND_PASS_WIDEN,
    TND_PASS_STRENGTH,
    TND_PASS_CLAMP,
    TND_PASS_RECOGNISE,
    TND_PASS_LAYOUT,
    TND_PASS_AFFINE,
    TND_N_PASSES
};

#define TND_PASS_BIT(id) (1U << (id))
#define TND_PASSES_ALL   ((1U << TND_N_PASSES) - 1)
#define TND_PASSES_EXACT                                                                           \
    (TND_PASSES_ALL & ~TND_PASS_BIT(TND_PASS_QUANTISE) & ~TND_PASS_BIT(TND_PASS_WIDEN) &           \
     ~TND_PASS_BIT(TND_PASS_RECOGNISE) & ~TND_PASS_BIT(TND_PASS_AFFINE))

struct tnd_rewrite;

struct tnd_pass {
    const char *name;
    const char *what; /* one line, for people */
    /** What stands for the result of `node` in the net that is being built; `in` are its operands
     *  there. TANDEM_NET_NONE: the node stays; TND_REWRITE_DROP: nobody needs it. */
    int (*rule)(struct tnd_rewrite *rewrite, const struct tnd_net_node *node, const int *in);
    bool merges_constants; /* equal ones become one */
};

/** By enum tnd_pass_id. */
extern const struct tnd_pass tnd_passes[TND_N_PASSES];

/** "fold,equal" as a set of TND_PASS_BIT; NULL: all; "none": none. False when a name is no pass. */
bool tnd_passes_read(const char *text, unsigned *out);

/** Is told of the net before and after each pass. `fired`: how often the pass changed something;
 *  -1: it did not run yet. */
struct tnd_pass_dump {
    void (*dump)(void *context, const struct tnd_net *net, const struct tnd_pass *pass, int round,
                 int fired);
    void *context;
};

/** Runs passes (a set of TND_PASS_BIT) over a net, in place: values, views and known values have
 *  other numbers and addresses afterwards; inputs and outputs stay in their order. `dump` may be
 *  NULL. Errors: MEMORY, or what the net failed with before; the net is as it was before the pass
 *  that failed. */
enum tandem_status tnd_net_optimize(struct tnd_net *net, unsigned passes,
                                    const struct tnd_pass_dump *dump, struct tandem_error *error);

/** Verifies what every net keeps to: operands stand before, types and shapes fit the operations,
 *  views are inside of their values, outputs are no views. Errors: ARGUMENT, with what is wrong. */
enum tandem_status tnd_net_check(const struct tnd_net *net, struct tandem_error *error);

#endif
