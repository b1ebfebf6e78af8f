/* SPDX-License-Identifier: MIT
 * The structures behind the public handles of nets (tandem/nets.h). */
#ifndef TND_NET_PUBLIC_H
#define TND_NET_PUBLIC_H

#include "graph/lower.h"
#include "graph/net.h"
#include "tandem/nets.h"

struct tandem_net {
    struct tnd_net *net; /* NULL: lowered */
    bool is_kept;        /* lowering frees none of its constants, so that it can still be run */
    struct tnd_arena arena;
    TND_VECTOR_OF(const char *, outputs);     /* names */
    TND_VECTOR_OF(struct tnd_array *, known); /* values with which inputs were specialised */
};

/** The internal lowered net, borrowed. */
struct tnd_lowered *tnd_lowered_of(const tandem_lowered *lowered);
/** The net that was lowered, borrowed; unless `is_kept`, without constants that the graph does not
 * read. */
const struct tnd_net *tnd_lowered_net(const tandem_lowered *lowered);

/** Converts extents to a shape; false: too many, a negative one, or NULL for n_dims > 0. */
bool tnd_dims_from(int n_dims, const int64_t *dims, struct tnd_dims *out);
/** Describes a value; `data` is NULL. */
struct tandem_net_array tnd_net_array_of(const struct tnd_net *net, int value);
/** Adds the name of the next output. */
bool tnd_net_name_output(tandem_net *net, const char *name);
/** Gives an array to the net; out of memory: frees it. */
bool tnd_net_keep(tandem_net *net, struct tnd_array *array);

#endif
