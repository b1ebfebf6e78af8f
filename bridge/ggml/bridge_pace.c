/* SPDX-License-Identifier: MIT
 * Runs are grouped into blocks that are long enough to average over the system scheduler's time
 * slices. Each block is one time for the observer, which chooses the threads of the next block. */
#include "bridge/ggml/bridge_pace.h"

#include <string.h>

enum { LEAST_RUNS = 8 /* per block */ };
static const double LEAST_BLOCK_S = 0.02;
static const double LONG_BLOCK_S = 0.06; /* after this time a block ends with fewer runs, too */
static const double MOST_GAP_S = 0.02;   /* between runs; beyond, the host waits for its user */
/* Share of the time that trials may cost. A trial costs more than its own time: the host's OpenMP
 * destroys threads that a region does not use. */
static const double TRIALS = 0.005;
/* Initial estimates, relative to a team: with threads up to the number of cores, and with more; 0:
 * not possible. */
static const double GUESS[2][TND_WAYS] = {{1, 1.3, 1.5}, {1, 0.7, 0.7}};

static enum tnd_way first_way(const struct tnd_pace *pace)
{
    return pace->has_team && !pace->is_crowded ? TND_WAY_TEAM : TND_WAY_OWN;
}

/* Exchanges the observer's first candidate with the initial choice. Is its own inverse. */
static int swap(const struct tnd_pace *pace, int way)
{
    const int first = first_way(pace);
    return way == 0 ? first : way == first ? 0 : way;
}

void tnd_pace_init(struct tnd_pace *out, bool has_team, bool is_crowded)
{
    memset(out, 0, sizeof(*out));
    out->has_team = has_team;
    out->is_crowded = is_crowded;
    out->last_class = -1;
    (void)tandem_candidates_new(TRIALS, &out->arms, NULL);
    for (int i = 0; i < TND_PACE_CLASSES; i++) {
        out->classes[i].way = first_way(out);
    }
}

void tnd_pace_fini(struct tnd_pace *pace)
{
    tandem_candidates_free(pace->arms);
    pace->arms = NULL;
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

static void end_block(struct tnd_pace *pace, int class_of_tokens, double now_s)
{
    struct tnd_pace_class *of = &pace->classes[class_of_tokens];
    const uint64_t key = (uint64_t)class_of_tokens + 1;
    const int64_t amount = of->work < 1 ? 1 : of->work < 1e15 ? (int64_t)of->work : (int64_t)1e15;
    double guesses[TND_WAYS];
    for (int i = 0; i < TND_WAYS; i++) {
        const bool is_possible = swap(pace, i) != TND_WAY_TEAM || pace->has_team;
        guesses[i] = is_possible ? GUESS[pace->is_crowded][swap(pace, i)] : 0;
    }
    if (tandem_candidates_note(pace->arms, key, guesses, TND_WAYS, swap(pace, (int)of->way), amount,
                               of->seconds * 1e6, now_s, NULL) == TANDEM_OK) {
        of->way =
            (enum tnd_way)swap(pace, tandem_candidates_choose(pace->arms, key, amount, now_s));
    }
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
    end_block(pace, class_of_tokens, end_s);
    of->n_runs = 0;
    of->seconds = 0;
    of->work = 0;
}
