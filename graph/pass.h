/* SPDX-License-Identifier: MIT
 * Passes: each makes a net smaller or cheaper and keeps its results. They run in the order of enum
 * tnd_pass_id, repeatedly until none changes anything.
 *
 * Those of TND_PASSES_EXACT keep every bit of every result (not the payload of a NaN). The others
 * keep results in exact arithmetic but round differently: each states its bound. */
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
    const char *what; /* one line of help */
    /** Returns the replacement of the result of `node` in the net being built, in which `in` are
     * its operands. TANDEM_NET_NONE: keeps the node; TND_REWRITE_DROP: drops it, as nothing reads
     * it. */
    int (*rule)(struct tnd_rewrite *rewrite, const struct tnd_net_node *node, const int *in);
    bool merges_constants; /* merges equal constants */
};

/** By enum tnd_pass_id. */
extern const struct tnd_pass tnd_passes[TND_N_PASSES];

/** Parses "fold,equal" to a set of TND_PASS_BIT; NULL: all; "none": none. False: an unknown
 * name. */
bool tnd_passes_read(const char *text, unsigned *out);

/** Called with the net before and after each pass. `fired`: how many changes the pass made; -1: it
 * has not run yet. */
struct tnd_pass_dump {
    void (*dump)(void *context, const struct tnd_net *net, const struct tnd_pass *pass, int round,
                 int fired);
    void *context;
};

/** Runs passes (a set of TND_PASS_BIT) on a net, in place: values, views and known values get other
 * numbers and addresses; inputs and outputs keep their order. `dump` may be NULL. Errors: MEMORY,
 * or the net's earlier error; the net is then as before the pass that failed. */
enum tandem_status tnd_net_optimize(struct tnd_net *net, unsigned passes,
                                    const struct tnd_pass_dump *dump, struct tandem_error *error);

/** Verifies a net's invariants: operands precede nodes, types and shapes fit the operations, views
 * stay within their bases, outputs are not views. Errors: ARGUMENT, with the violation. */
enum tandem_status tnd_net_check(const struct tnd_net *net, struct tandem_error *error);

#endif
