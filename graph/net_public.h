/* SPDX-License-Identifier: MIT
 * What stands behind the public handles of nets (tandem/nets.h). */
#ifndef TND_NET_PUBLIC_H
#define TND_NET_PUBLIC_H

#include "graph/lower.h"
#include "graph/net.h"
#include "tandem/nets.h"

struct tandem_net {
    struct tnd_net *net; /* NULL: lowered */
    bool is_kept;        /* lowering frees none of its constants: it can be run as it is, too */
    struct tnd_arena arena;
    TND_VECTOR_OF(const char *, outputs);     /* names */
    TND_VECTOR_OF(struct tnd_array *, known); /* values that inputs were specialised with */
};

/** What stands behind a lowered net, borrowed. */
struct tnd_lowered *tnd_lowered_of(const tandem_lowered *lowered);
/** The net that was lowered, borrowed; without the constants that the graph does not read, but for
 *  a kept one. */
const struct tnd_net *tnd_lowered_net(const tandem_lowered *lowered);

/** Extents as a shape; false: too many, a negative one, or NULL where there are some. */
bool tnd_dims_from(int n_dims, const int64_t *dims, struct tnd_dims *out);
/** Describes a value; `data` is NULL. */
struct tandem_net_array tnd_net_array_of(const struct tnd_net *net, int value);
/** Adds the name of the next output. */
bool tnd_net_name_output(tandem_net *net, const char *name);
/** Keeps an array as long as the net; frees it without memory for that. */
bool tnd_net_keep(tandem_net *net, struct tnd_array *array);

#endif
