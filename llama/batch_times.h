/* SPDX-License-Identifier: MIT
 * Times of a session's batches: the single source for drafts, micro-batches and servers. Plans
 * predict them and measured batches correct the predictions, each weighted by its standard
 * error. */
#ifndef TND_LLAMA_BATCH_TIMES_H
#define TND_LLAMA_BATCH_TIMES_H

#include <stdbool.h>
#include <stdint.h>

enum {
    TND_BATCH_RING = 7,    /* newest times of a size class that are evaluated */
    TND_BATCH_EXACT = 64,  /* up to here every number of tokens is a size class; above, */
    TND_BATCH_SIZES = 100, /* four classes for each doubling */
    TND_BATCH_POWERS = 10  /* predicted numbers of tokens: 1, 2, 4 ... 512 */
};

/** Times of batches of one size class. The first batch may include preparation, so the second one
 * replaces its time by the shorter of the two. */
struct tnd_batch_time {
    float us[TND_BATCH_RING];
    int64_t n, age; /* number of batches; the session's batch number of the last one */
};

/** [0] prompts; [1] steps: one token per text, plus drafts, all with logits. */
struct tnd_batch_times {
    struct tnd_batch_time sizes[2][TND_BATCH_SIZES];
    double predicted_us[TND_BATCH_POWERS]; /* 0: unknown */
    int64_t n;                             /* batches */
    bool is_predicted;                     /* by the runtime's table */
};

/** Expected time, in microseconds; 0: unknown. */
struct tnd_batch_expected {
    double us, error_us;
};

/** Records the time of a batch; `age`: its number. */
void tnd_batch_time_note(struct tnd_batch_time *time, double us, int64_t age);
/** The median. After a single batch, its time is an upper bound, with an error of the same size. */
struct tnd_batch_expected tnd_batch_time_judge(const struct tnd_batch_time *time);

/** Records the time of a batch of m tokens. */
void tnd_batch_times_note(struct tnd_batch_times *times, int64_t m, bool is_step, double us);
/** Expected time of a batch of m tokens, from measured times of its size and of the nearest
 * measured sizes and from predictions, each weighted by error and age. */
struct tnd_batch_expected tnd_batch_times_expect(const struct tnd_batch_times *times, int64_t m,
                                                 bool is_step);

#endif
