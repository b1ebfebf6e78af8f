/* SPDX-License-Identifier: MIT
 * What batches of a session take: the one place that drafts, micro-batches and servers ask. Plans
 * predict it, measured batches correct it, each by its standard error. */
#ifndef TND_LLAMA_BATCH_TIMES_H
#define TND_LLAMA_BATCH_TIMES_H

#include <stdbool.h>
#include <stdint.h>

enum {
    TND_BATCH_RING = 7,    /* newest times of a size that are judged */
    TND_BATCH_EXACT = 64,  /* up to here each number of tokens is a size, then */
    TND_BATCH_SIZES = 100, /* four sizes for each doubling */
    TND_BATCH_POWERS = 10  /* predicted: 1, 2, 4 ... 512 tokens */
};

/** Times of batches of one size. The first use may prepare something, so the second use replaces
 *  its time by the shorter of both. */
struct tnd_batch_time {
    float us[TND_BATCH_RING];
    int64_t n, age; /* batches; number of the last one among all of the session */
};

/** [0] of prompts, [1] of steps: one token for each text, and drafts, all with logits. */
struct tnd_batch_times {
    struct tnd_batch_time sizes[2][TND_BATCH_SIZES];
    double predicted_us[TND_BATCH_POWERS]; /* 0: not known */
    int64_t n;                             /* batches */
    bool is_predicted;                     /* by the table that the runtime had */
};

/** Microseconds; 0: nothing is known. */
struct tnd_batch_expected {
    double us, error_us;
};

/** A batch took so long; `age`: its number. */
void tnd_batch_time_note(struct tnd_batch_time *time, double us, int64_t age);
/** The median. After the first use alone its time is an upper bound, with an error as large. */
struct tnd_batch_expected tnd_batch_time_judge(const struct tnd_batch_time *time);

/** A batch of m tokens took so long. */
void tnd_batch_times_note(struct tnd_batch_times *times, int64_t m, bool is_step, double us);
/** What a batch of m tokens takes: measured, the nearest sizes that were, and predictions, each
 *  with the weight that its error and age give it. */
struct tnd_batch_expected tnd_batch_times_expect(const struct tnd_batch_times *times, int64_t m,
                                                 bool is_step);

#endif
