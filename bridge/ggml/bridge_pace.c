/* SPDX-License-Identifier: MIT
 * Runs are added up to blocks, long enough to meet the slices of the system's scheduler. The way
 * with the least seconds a unit of work is used. The others are tried for a block when the time
 * since then makes the expected loss small. */
#include "bridge/ggml/bridge_pace.h"

#include <string.h>

enum { LEAST_RUNS = 8 /* of a block */ };
static const double LEAST_BLOCK_S = 0.02;
static const double LONG_BLOCK_S = 0.06; /* ends with less runs, too */
static const double MOST_GAP_S = 0.02;   /* between runs; beyond, the host waits for somebody */
static const double NEWEST = 0.3;        /* weight of a block beside those before */
static const double CLEARLY = 0.95;      /* of the pace in use is a better one */
/* Of the time may be lost by trying a way for the first time, again, and by trying the one that is
 * fastest in a calm machine: other programs come and go. A trial costs more than its own time:
 * the host's OpenMP ends threads that a region leaves out. */
static const double FIRST_TRIALS = 0.006;
static const double TRIALS = 0.003;
static const double TRIALS_OF_FIRST = 0.02;
/* Guesses as multiples of the pace of a team, calm and crowded. */
static const double GUESS[2][TND_WAYS] = {{1, 1.3, 1.5}, {1, 0.7, 0.7}};

static enum tnd_way first_way(const struct tnd_pace *pace)
{
    return pace->has_team && !pace->is_crowded ? TND_WAY_TEAM : TND_WAY_OWN;
}

void tnd_pace_init(struct tnd_pace *out, bool has_team, bool is_crowded)
{
    memset(out, 0, sizeof(*out));
    out->has_team = has_team;
    out->is_crowded = is_crowded;
    out->last_class = -1;
    for (int i = 0; i < TND_PACE_CLASSES; i++) {
        out->classes[i].way = first_way(out);
    }
}

int tnd_pace_class_of(int64_t n_tokens)
{
    int i = 0;
    while (i < TND_PACE_CLASSES - 1 && n_tokens >= (int64_t)2 << i) {
        i++;
    }
    return i;
}

enum tnd_way tnd_pace_way(const struct tnd_pace *pace, int class_of_tokens)
{
    return pace->classes[class_of_tokens].way;
}

void tnd_pace_pause(struct tnd_pace *pace)
{
    pace->last_class = -1;
}

static bool is_possible(const struct tnd_pace *pace, int way)
{
    return way != TND_WAY_TEAM || pace->has_team;
}

static void learn(const struct tnd_pace *pace, struct tnd_pace_class *of)
{
    enum tnd_way way = of->way;
    double now = of->seconds / of->work;
    of->pace[way] = of->was_tried[way] ? of->pace[way] + NEWEST * (now - of->pace[way]) : now;
    of->was_tried[way] = true;
    for (int i = 0; i < TND_WAYS; i++) {
        of->since[i] = i == (int)way ? 0 : of->since[i] + of->seconds;
        if (of->pace[i] == 0) {
            of->pace[i] = now * GUESS[pace->is_crowded][i] / GUESS[pace->is_crowded][way];
        }
    }
}

/* Of those that were tried; it takes a clear one to leave the way in use. */
static int best_way(const struct tnd_pace *pace, const struct tnd_pace_class *of)
{
    int best = of->way;
    double least = of->pace[best] * CLEARLY;
    for (int i = 0; i < TND_WAYS; i++) {
        if (is_possible(pace, i) && of->pace[i] < least) {
            best = i;
            least = of->pace[i];
        }
    }
    return best;
}

/* Seconds that a block in another way costs more than one in the best way. */
static double loss_of(const struct tnd_pace_class *of, int way, int best)
{
    double ratio = of->pace[way] / of->pace[best];
    double run_s = of->seconds / of->n_runs;
    double most = LONG_BLOCK_S + ratio * run_s;
    double loss = (ratio - 1) * (of->seconds > LEAST_BLOCK_S ? of->seconds : LEAST_BLOCK_S);
    return loss < most ? loss : most;
}

static double share_of_trials(const struct tnd_pace *pace, const struct tnd_pace_class *of, int way)
{
    if (way == (int)first_way(pace)) {
        return TRIALS_OF_FIRST;
    }
    return of->was_tried[way] ? TRIALS : FIRST_TRIALS;
}

static int choose(const struct tnd_pace *pace, const struct tnd_pace_class *of)
{
    int best = best_way(pace, of);
    for (int i = 0; i < TND_WAYS; i++) {
        if (i != best && is_possible(pace, i) && of->since[i] > 0 &&
            of->since[i] * share_of_trials(pace, of, i) >= loss_of(of, i, best)) {
            return i;
        }
    }
    return best;
}

void tnd_pace_note(struct tnd_pace *pace, int class_of_tokens, double begin_s, double end_s,
                   double work)
{
    struct tnd_pace_class *of = &pace->classes[class_of_tokens];
    double gap_s = begin_s - pace->last_end_s;
    bool follows = pace->last_class == class_of_tokens && gap_s > 0 && gap_s < MOST_GAP_S;
    pace->last_class = class_of_tokens;
    pace->last_end_s = end_s;
    of->n_runs++;
    of->seconds += end_s - begin_s + (follows ? gap_s : 0);
    of->work += work;
    if (of->seconds < LEAST_BLOCK_S || (of->n_runs < LEAST_RUNS && of->seconds < LONG_BLOCK_S)) {
        return;
    }
    learn(pace, of);
    of->way = (enum tnd_way)choose(pace, of);
    of->n_runs = 0;
    of->seconds = 0;
    of->work = 0;
}
