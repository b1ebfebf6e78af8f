/* SPDX-License-Identifier: MIT
 * Modules of the stand-in for libcuda, and launches. */
#ifndef TND_FAKE_LAUNCH_H
#define TND_FAKE_LAUNCH_H

#include "tests/fake_cuda/fake_item.h"
#include "tests/fake_cuda/fake_state.h"

enum { TND_FAKE_MAX_ARGUMENTS = 64 };
struct tnd_fake_module;

/** From what NVRTC's stand-in calls a cubin, or PTX of a pack. */
int tnd_fake_module_load(const void *image, struct tnd_fake_module **out);
/** What NVRTC's stand-in makes of the program that PTX of a pack was made from, freed with free. */
int tnd_fake_ptx_image(const char *ptx, char **out_image);
void tnd_fake_module_free(struct tnd_fake_module *module);
/** NULL: there is none of this name. Lives with the module. */
struct tnd_fake_function *tnd_fake_module_find(struct tnd_fake_module *module, const char *name);
unsigned tnd_fake_function_local_bytes(const struct tnd_fake_function *function);
/** Copies the arguments and puts the launch into the stream. */
int tnd_fake_launch_push(struct tnd_fake_function *function, const unsigned n_groups[3],
                         const unsigned local_size[3], unsigned local_bytes,
                         struct tnd_fake_stream *stream, void **arguments);
/** What a launch takes of `arguments`, by value, and pointers to it. */
struct tnd_fake_values {
    uint64_t values[TND_FAKE_MAX_ARGUMENTS];
    void *arguments[TND_FAKE_MAX_ARGUMENTS];
};
void tnd_fake_values_take(const struct tnd_fake_function *function, void **arguments,
                          struct tnd_fake_values *out);

#endif
