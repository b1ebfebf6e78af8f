/* SPDX-License-Identifier: MIT
 * Running another program for its output, with limits on time and output. */
#ifndef TND_RUN_PROGRAM_H
#define TND_RUN_PROGRAM_H

#include <stdbool.h>

#include "base/text.h"
#include "tandem/status.h"

enum { TND_RUN_OUTPUT = 4 << 20, TND_RUN_SAID = 400 };

struct tnd_run_result {
    struct tnd_text out;     /* standard output, at most TND_RUN_OUTPUT bytes */
    char said[TND_RUN_SAID]; /* the end of standard error, printable characters only */
    int code;                /* exit status; -1: killed */
    bool is_late, is_long;   /* why it was killed: time or output limit */
};

/** Runs argv[0] (a path) with empty standard input, as the leader of a new process group, for at
 * most `seconds`; then kills the group. End `out` with tnd_run_fini. POSIX only. Errors: FILE (it
 * cannot be started), MEMORY. */
enum tandem_status tnd_run_program(char *const argv[], double seconds, struct tnd_run_result *out,
                                   struct tandem_error *error);
void tnd_run_fini(struct tnd_run_result *result);

#endif
