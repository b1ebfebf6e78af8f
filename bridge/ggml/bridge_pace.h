/* SPDX-License-Identifier: MIT
 * On which threads a computation runs, learned while it runs: beside another busy program, or with
 * more threads than cores in the host, the fastest way is another one than in a calm machine. The
 * runtime's observer judges (tandem_candidates_note); all ways give the same bits. */
#ifndef TND_BRIDGE_PACE_H
#define TND_BRIDGE_PACE_H

#include "tandem/runtime.h"

enum tnd_way {
    TND_WAY_TEAM,  /* all threads of the host's OpenMP */
    TND_WAY_OWN,   /* threads of ours, which sleep in between; the host has one */
    TND_WAY_ALONE, /* the calling thread, for the host's nodes, too */
    TND_WAYS
};
enum { TND_PACE_CLASSES = 7 /* of tokens: 1, 2, 4, .. 64 and more */ };

struct tnd_pace_class {
    enum tnd_way way; /* now */
    int n_runs;       /* of the block in progress, and its sums */
    double seconds;
    double work;
};
struct tnd_pace {
    bool has_team;   /* else TND_WAY_TEAM is never chosen */
    bool is_crowded; /* the host has more threads than there are cores */
    tandem_candidates *arms;
    struct tnd_pace_class classes[TND_PACE_CLASSES];
    int last_class; /* -1: what follows has no run before it */
    double last_end_s;
};

/** For a number of threads of the host. Without memory the first way stays. */
void tnd_pace_init(struct tnd_pace *out, bool has_team, bool is_crowded);
void tnd_pace_fini(struct tnd_pace *pace);
int tnd_pace_class_of(int64_t n_tokens);
enum tnd_way tnd_pace_way(const struct tnd_pace *pace, int class_of_tokens);
/** A run in the way that tnd_pace_way said, `work` units of the same kind each time. What the host
 *  did since the run before belongs to it: that, too, gains or loses by the way. */
void tnd_pace_note(struct tnd_pace *pace, int class_of_tokens, double begin_s, double end_s,
                   double work);
/** What came since the last run is none of its kind: packing, planning, another computation. */
void tnd_pace_pause(struct tnd_pace *pace);

#endif
