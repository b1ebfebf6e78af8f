/* SPDX-License-Identifier: MIT
 * A replay for people, for programs, and for trace viewers. */
#ifndef TND_REPLAY_PRINT_H
#define TND_REPLAY_PRINT_H

#include "base/text.h"
#include "tools/report/replay.h"

/** What was replayed. */
struct tnd_replay_subject {
    const struct tandem_graph *graph;
    const struct tnd_items *items; /* of the steps */
    int64_t m;                     /* tokens of the graph */
    int threads;                   /* at most */
};

/** Appends a summary: makespan, lanes, critical path, the plan by shape. */
void tnd_replay_text(const struct tnd_replay *replay, const struct tnd_replay_subject *subject,
                     struct tnd_text *out);
/** Appends the same as a JSON object; `indent` stands before each line but the first. */
void tnd_replay_json(const struct tnd_replay *replay, const struct tnd_replay_subject *subject,
                     const char *indent, struct tnd_text *out);
/** Appends the events of one replay in the Trace Event Format, separated by commas; `process`
 *  tells replays apart. Text that is there already is continued. */
void tnd_replay_trace(const struct tnd_replay *replay, const struct tnd_replay_subject *subject,
                      int process, struct tnd_text *out);

#endif
