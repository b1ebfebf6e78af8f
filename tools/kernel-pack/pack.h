/* SPDX-License-Identifier: MIT
 * kernel-pack: reads OpenCL C sources, writes C. Runs on the build machine, without the library. */
#ifndef TND_PACK_H
#define TND_PACK_H

#include <stdbool.h>
#include <stddef.h>

enum { PACK_MAX_ARGS = 64, PACK_MAX_NAME = 64, PACK_MAX_KERNELS = 512, PACK_MAX_FILES = 128 };

/** Text that grows; exits when out of memory. */
struct pack_text {
    char *bytes; /* terminated; NULL while empty */
    size_t n;
    size_t capacity;
};
void pack_add(struct pack_text *text, const char *bytes, size_t n);
void pack_printf(struct pack_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Prints "file:line: message" and exits. */
void pack_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4), noreturn));

enum pack_arg_kind { PACK_RANGE, PACK_LOCAL, PACK_SCALAR };

/** An argument of the C function; a range stands for two arguments of the kernel. */
struct pack_arg {
    enum pack_arg_kind kind;
    char name[PACK_MAX_NAME];
    const char *c_type; /* of a scalar. Static */
};

struct pack_kernel {
    char name[PACK_MAX_NAME];
    const char *file; /* borrowed */
    int line;
    int source;
    int n_args;
    struct pack_arg args[PACK_MAX_ARGS];
};

struct pack_source {
    const char *path;
    char name[PACK_MAX_NAME]; /* file name without folder and .cl */
    struct pack_text text;    /* with includes expanded and comments blanked */
};

struct pack {
    int n_sources;
    struct pack_source sources[PACK_MAX_FILES];
    int n_kernels;
    struct pack_kernel kernels[PACK_MAX_KERNELS];
};

/** Reads a .cl file with its includes, and finds its kernels. */
void pack_read_source(struct pack *pack, const char *path);

/** The two files that are written. */
void pack_write_header(const struct pack *pack, struct pack_text *out);
void pack_write_source(const struct pack *pack, struct pack_text *out);

#endif
