/* SPDX-License-Identifier: MIT
 * Output of a replay: text, JSON, and a trace for viewers. */
#ifndef TND_REPLAY_PRINT_H
#define TND_REPLAY_PRINT_H

#include "base/text.h"
#include "tools/report/replay.h"

/** What was replayed. */
struct tnd_replay_subject {
    const struct tandem_graph *graph;
    const struct tnd_items *items; /* of the steps */
    int64_t m;                     /* tokens of the graph */
    int threads;                   /* maximum */
};

/** Appends a summary: makespan, lanes, critical path, the plan by shape. */
void tnd_replay_text(const struct tnd_replay *replay, const struct tnd_replay_subject *subject,
                     struct tnd_text *out);
/** Like tnd_replay_text, as a JSON object; each line but the first begins with `indent`. */
void tnd_replay_json(const struct tnd_replay *replay, const struct tnd_replay_subject *subject,
                     const char *indent, struct tnd_text *out);
/** Appends the events of one replay in the Trace Event Format, separated by commas; `process`
 * distinguishes replays. Continues the events already in `out`. */
void tnd_replay_trace(const struct tnd_replay *replay, const struct tnd_replay_subject *subject,
                      int process, struct tnd_text *out);

#endif
