/* SPDX-License-Identifier: MIT
 * The chooser of a runtime: methods of convolutions by its table. With TANDEM_TUNE it measures them
 * on first use. */
#ifndef TND_CHOOSE_CONVS_H
#define TND_CHOOSE_CONVS_H

#include "ggml-like/conv_method.h"
#include "tandem/runtime.h"

/** Chooses for `runtime`, which must outlive it. */
struct tandem_chooser tnd_runtime_make_chooser(tandem_runtime *runtime);

#endif
