/* SPDX-License-Identifier: MIT
 * Measured times of convolutions, between the timing table and the lowering of nets, which knows no
 * tables. */
#ifndef TND_CONV_BOOK_H
#define TND_CONV_BOOK_H

#include "graph/lower.h"
#include "table/tnd_table.h"
#include "tandem/runtime.h"

struct tnd_conv_book {
    tandem_table *table; /* NULL: nothing is known */
    int threads;
    bool for_device; /* the runtime's forced profile is one of a device */
};

/** What the table of a runtime knows, for its number of threads. `runtime` NULL: nothing. Errors:
 *  MEMORY. */
enum tandem_status tnd_conv_book_open(tandem_runtime *runtime, struct tnd_conv_book *out,
                                      struct tandem_error *error);
void tnd_conv_book_close(struct tnd_conv_book *book);
/** How nets are lowered for the runtime: by these times, which are the CPU's, or for its device. */
struct tnd_lower_options tnd_conv_book_options(struct tnd_conv_book *book);
/** A tnd_conv_times_fn; `user` is a struct tnd_conv_book. */
void tnd_conv_book_times(void *user, const struct tnd_conv_shape *shape,
                         double us[TND_CONV_METHODS]);
/** The key of a record; its times are 0. */
void tnd_conv_book_key(const struct tnd_conv_shape *shape, enum tnd_conv_method method, int threads,
                       struct tnd_conv_time *out);
/** "3x3 64 -> 128 channels" and so on, one line. */
void tnd_conv_book_text(const struct tnd_conv_shape *shape, char *out, size_t bytes);
/** Prints each convolution of a lowered net: its method, the times of all methods, and why. */
void tnd_conv_book_explain(const struct tnd_lowered *lowered);

#endif
