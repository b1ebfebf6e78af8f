/* SPDX-License-Identifier: MIT
 * Running another program for what it prints, with bounds on its time and its output. */
#ifndef TND_RUN_PROGRAM_H
#define TND_RUN_PROGRAM_H

#include <stdbool.h>

#include "base/text.h"
#include "tandem/status.h"

enum { TND_RUN_OUTPUT = 4 << 20, TND_RUN_SAID = 400 };

struct tnd_run_result {
    struct tnd_text out;     /* standard output, at most TND_RUN_OUTPUT bytes */
    char said[TND_RUN_SAID]; /* the end of standard error, printable characters alone */
    int code;                /* exit status; -1: killed */
    bool is_late, is_long;   /* why it was killed: its time, its output */
};

/** Runs argv[0] (a path) with an empty standard input, as the leader of a process group of its own,
 *  for at most `seconds`; then the group is killed. `out` is ended with tnd_run_fini. POSIX only.
 *  Errors: FILE (it cannot be started), MEMORY. */
enum tandem_status tnd_run_program(char *const argv[], double seconds, struct tnd_run_result *out,
                                   struct tandem_error *error);
void tnd_run_fini(struct tnd_run_result *result);

#endif
