/* SPDX-License-Identifier: MIT
 * A list of machines and of the links between them, for planning: a JSON file written by hand
 * (format: docs/cluster.md). */
#ifndef TND_MACHINES_FILE_H
#define TND_MACHINES_FILE_H

#include "tune/cluster.h"

enum { TND_MACHINES_PATH = 1024, TND_MACHINES_BYTES = 1 << 20 };

struct tnd_machine {
    char name[TND_CLUSTER_NAME];
    char table[TND_MACHINES_PATH]; /* path as written in the file */
    int64_t memory;                /* bytes; 0: unknown */
    int64_t threads;               /* 0: the most in its table */
    int64_t device_memory;         /* bytes of the first device of its table; 0: not used */
};

struct tnd_machines {
    int n;
    struct tnd_machine *list;
    struct tnd_cluster_link *links; /* {n, n}, as in struct tnd_cluster */
    bool is_medium;
};

/** Parses a list. `name` is used in messages. End `out` with tnd_machines_fini. Input is untrusted.
 * Errors: FORMAT (not JSON, an unknown key, a value out of range, a missing or duplicate machine,
 * two machines without a link), LIMIT (machines), MEMORY. */
enum tandem_status tnd_machines_read(const char *text, size_t n, const char *name,
                                     struct tnd_machines *out, struct tandem_error *error);
/** A zeroed one is allowed. */
void tnd_machines_fini(struct tnd_machines *machines);

#endif
