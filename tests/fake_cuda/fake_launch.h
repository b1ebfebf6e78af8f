/* SPDX-License-Identifier: MIT
 * Modules of the stand-in for libcuda, and launches. */
#ifndef TND_FAKE_LAUNCH_H
#define TND_FAKE_LAUNCH_H

#include "tests/fake_cuda/fake_item.h"
#include "tests/fake_cuda/fake_state.h"

struct tnd_fake_module;

/** From what NVRTC's stand-in calls a cubin. */
int tnd_fake_module_load(const void *image, struct tnd_fake_module **out);
void tnd_fake_module_free(struct tnd_fake_module *module);
/** NULL: there is none of this name. Lives with the module. */
struct tnd_fake_function *tnd_fake_module_find(struct tnd_fake_module *module, const char *name);
unsigned tnd_fake_function_local_bytes(const struct tnd_fake_function *function);
/** Copies the arguments and puts the launch into the stream. */
int tnd_fake_launch_push(struct tnd_fake_function *function, const unsigned n_groups[3],
                         const unsigned local_size[3], unsigned local_bytes,
                         struct tnd_fake_stream *stream, void **arguments);

#endif
