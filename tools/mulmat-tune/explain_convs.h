/* SPDX-License-Identifier: MIT
 * mulmat-tune explain for convolutions: a single one, or those of a net. */
#ifndef MULMAT_TUNE_EXPLAIN_CONVS_H
#define MULMAT_TUNE_EXPLAIN_CONVS_H

#include "table/tnd_table.h"
#include "tools/mulmat-tune/net_convs.h"

struct explain_convs_request {
    const char *problem; /* conv:..; NULL: those of `net` */
    const struct net_option *net;
    const struct tandem_table *table; /* NULL: none */
    const char *table_name;
    int threads; /* for a problem without a thread count */
    bool json;
};

/** Prints to stdout. Errors: FORMAT (the problem), those of lowering and of reading the model. */
enum tandem_status explain_convs(const struct explain_convs_request *request,
                                 struct tandem_error *error);

#endif
