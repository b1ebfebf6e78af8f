/* SPDX-License-Identifier: MIT
 * Chooses the threads that compute, from times of earlier runs: beside another busy program, or if
 * the host has more threads than there are cores, the fastest choice differs from that on an idle
 * machine. The runtime's observer decides (tandem_candidates_note); all choices give the same
 * bits. */
#ifndef TND_BRIDGE_PACE_H
#define TND_BRIDGE_PACE_H

#include "tandem/runtime.h"

enum tnd_way {
    TND_WAY_TEAM,  /* all threads of the host's OpenMP */
    TND_WAY_OWN,   /* our own threads, which sleep in between; the host has one */
    TND_WAY_ALONE, /* only the calling thread, for the host's nodes, too */
    TND_WAYS
};
enum { TND_PACE_CLASSES = 7 /* of tokens: 1, 2, 4, .. 64 and more */ };

struct tnd_pace_class {
    enum tnd_way way; /* current choice */
    int n_runs;       /* of the block in progress, with its sums */
    double seconds;
    double work;
};
struct tnd_pace {
    bool has_team;   /* else TND_WAY_TEAM is never chosen */
    bool is_crowded; /* the host has more threads than there are cores */
    tandem_candidates *arms;
    struct tnd_pace_class classes[TND_PACE_CLASSES];
    int last_class; /* class of the last run; -1: the next run has no previous one */
    double last_end_s;
};

/** For a number of threads of the host. If memory is short, the initial choice stays. */
void tnd_pace_init(struct tnd_pace *out, bool has_team, bool is_crowded);
void tnd_pace_fini(struct tnd_pace *pace);
int tnd_pace_class_of(int64_t n_tokens);
enum tnd_way tnd_pace_way(const struct tnd_pace *pace, int class_of_tokens);
/** Records a run with the threads that tnd_pace_way returned; `work` in the same unit each time.
 * The host's time since the previous run counts as part of it, because the choice affects it,
 * too. */
void tnd_pace_note(struct tnd_pace *pace, int class_of_tokens, double begin_s, double end_s,
                   double work);
/** The time since the last run does not count: packing, planning, another computation. */
void tnd_pace_pause(struct tnd_pace *pace);

#endif
