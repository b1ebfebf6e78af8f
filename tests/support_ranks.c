/* SPDX-License-Identifier: MIT
 * Messages between threads: a sender leaves a pointer in the box of its pair, the receiver copies
 * from it. What is posted waits, as a copy, behind the box. */
#include "tests/support_ranks.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct posted {
    struct posted *next;
    size_t bytes;
    char data[];
};

struct box {
    const void *data; /* NULL: empty */
    size_t bytes;
    struct posted *posted; /* they come first: who posts has nothing in the box */
};

static struct {
    pthread_mutex_t mutex; /* of all that follows */
    pthread_cond_t changed, waits;
    struct box boxes[TND_RANKS_MOST][TND_RANKS_MOST]; /* from, to */
    bool has_left[TND_RANKS_MOST];
    int n_waiting; /* since the last change */
    unsigned n_changes;
    double now_s;
    bool has_no_posts;
    int forged;        /* rank; -1: none */
    int dying, n_left; /* rank, and exchanges that it begins still; dying -1: none */
    int damaged;       /* rank; -1: none */
    size_t damaged_bytes, damaged_at;
    char forgery[64];
    size_t forged_at, n_forged;
} all = {.mutex = PTHREAD_MUTEX_INITIALIZER,
         .changed = PTHREAD_COND_INITIALIZER,
         .waits = PTHREAD_COND_INITIALIZER,
         .forged = -1,
         .dying = -1,
         .damaged = -1};

struct rank {
    pthread_t thread, opener;
    int rank, count;
    tnd_rank_fn fn;
    void *user;
    struct tnd_rank_result result;
};

/* How far an exchange has come with its messages. */
enum progress { WAITS, POSTED, DONE };

static bool may_go(const struct tandem_message *messages, const enum progress *progress, int i)
{
    for (int j = 0; j < i; j++) {
        if (messages[j].rank == messages[i].rank && progress[j] != DONE) {
            return false; /* in the order in which they were sent */
        }
    }
    return true;
}

static bool move_send(const struct tandem_message *message, struct box *box,
                      enum progress *progress)
{
    if (*progress == WAITS && box->data == NULL) {
        box->data = message->data;
        box->bytes = message->bytes;
        *progress = POSTED;
        return true;
    }
    if (*progress == POSTED && box->data != message->data) {
        *progress = DONE;
        return true;
    }
    return false;
}

static bool move_receive(const struct tandem_message *message, struct box *box,
                         enum progress *progress)
{
    struct posted *first = box->posted;
    if (*progress != DONE && first != NULL && first->bytes == message->bytes) {
        memcpy(message->data, first->data, first->bytes);
        box->posted = first->next;
        free(first);
        *progress = DONE;
        return true;
    }
    if (*progress == DONE || first != NULL || box->data == NULL || box->bytes != message->bytes) {
        return false;
    }
    memcpy(message->data, box->data, box->bytes);
    box->data = NULL;
    *progress = DONE;
    return true;
}

/* Nobody waits until it has looked again. Under the lock. */
static void tell_change(void)
{
    all.n_changes++;
    all.n_waiting = 0;
    pthread_cond_broadcast(&all.changed);
}

/* One look at all messages. Returns whether something moved. */
static bool move(const struct rank *self, const struct tandem_message *sends, int n_sends,
                 enum progress *sent, const struct tandem_message *receives, int n_receives,
                 enum progress *received, int *out_missing)
{
    bool has_moved = false;
    *out_missing = -1;
    for (int i = 0; i < n_sends; i++) {
        struct box *box = &all.boxes[self->rank][sends[i].rank];
        has_moved |= may_go(sends, sent, i) && move_send(&sends[i], box, &sent[i]);
        *out_missing = *out_missing < 0 && sent[i] != DONE ? sends[i].rank : *out_missing;
    }
    for (int i = 0; i < n_receives; i++) {
        struct box *box = &all.boxes[receives[i].rank][self->rank];
        has_moved |= may_go(receives, received, i) && move_receive(&receives[i], box, &received[i]);
        *out_missing = *out_missing < 0 && received[i] != DONE ? receives[i].rank : *out_missing;
    }
    return has_moved;
}

static void forge(const struct rank *self, const struct tandem_message *sends, int n_sends)
{
    if (all.forged == self->rank && n_sends > 0) {
        memcpy((char *)sends[0].data + all.forged_at, all.forgery, all.n_forged);
        all.forged = -1;
    }
}

static bool must_die(const struct rank *self)
{
    return all.dying == self->rank && all.n_left-- <= 0;
}

static void damage(const struct rank *self, const struct tandem_message *receives, int n)
{
    for (int i = 0; i < n && all.damaged == self->rank; i++) {
        if (receives[i].bytes == all.damaged_bytes) {
            ((char *)receives[i].data)[all.damaged_at] ^= 0x20;
            all.damaged = -1;
        }
    }
}

static bool exchange(void *user, const struct tandem_message *sends, int n_sends,
                     const struct tandem_message *receives, int n_receives, double limit_s,
                     int *out_rank, char *why, size_t why_bytes)
{
    const struct rank *self = user;
    enum progress sent[2 * TND_RANKS_MOST] = {WAITS}, received[2 * TND_RANKS_MOST] = {WAITS};
    bool is_done = false;
    if (!pthread_equal(self->opener, pthread_self())) { /* MPI_THREAD_FUNNELED allows no other */
        snprintf(why, why_bytes, "a call by another thread than the one that opened it");
        *out_rank = self->rank;
        return false;
    }
    pthread_mutex_lock(&all.mutex);
    const double begin_s = all.now_s;
    const bool is_dead = must_die(self);
    forge(self, sends, n_sends);
    while (!is_dead) {
        if (move(self, sends, n_sends, sent, receives, n_receives, received, out_rank)) {
            tell_change();
            continue;
        }
        is_done = *out_rank < 0;
        if (is_done) {
            break;
        }
        if (limit_s > 0 && all.now_s - begin_s > limit_s) {
            snprintf(why, why_bytes, "no answer within %.1f s", limit_s);
            break;
        }
        if (all.has_left[*out_rank]) {
            snprintf(why, why_bytes, "it has left");
            break;
        }
        const unsigned seen = all.n_changes;
        all.n_waiting++;
        pthread_cond_broadcast(&all.waits);
        while (all.n_changes == seen) {
            pthread_cond_wait(&all.changed, &all.mutex);
        }
    }
    if (is_dead) {
        snprintf(why, why_bytes, "this rank dies");
        *out_rank = self->rank;
    }
    damage(self, receives, is_done ? n_receives : 0);
    for (int i = 0; i < n_sends && !is_done; i++) { /* nobody reads what is gone */
        all.boxes[self->rank][sends[i].rank].data = NULL;
    }
    pthread_mutex_unlock(&all.mutex);
    return is_done;
}

static bool post(void *user, const struct tandem_message *send, double limit_s, int *out_rank,
                 char *why, size_t why_bytes)
{
    const struct rank *self = user;
    struct posted *posted = malloc(sizeof(*posted) + send->bytes);
    (void)limit_s;
    *out_rank = -1;
    if (posted == NULL) {
        snprintf(why, why_bytes, "no memory");
        return false;
    }
    posted->next = NULL;
    posted->bytes = send->bytes;
    memcpy(posted->data, send->data, send->bytes);
    pthread_mutex_lock(&all.mutex);
    struct posted **at = &all.boxes[self->rank][send->rank].posted;
    while (*at != NULL) {
        at = &(*at)->next;
    }
    *at = posted;
    tell_change();
    pthread_mutex_unlock(&all.mutex);
    return true;
}

static void leave(void *user, bool has_failed)
{
    const struct rank *self = user;
    (void)has_failed;
    pthread_mutex_lock(&all.mutex);
    all.has_left[self->rank] = true;
    tell_change();
    pthread_mutex_unlock(&all.mutex);
}

static void *run(void *user)
{
    struct rank *self = user;
    self->opener = pthread_self();
    const struct tandem_transport transport = {.size = sizeof(transport),
                                               .self = self,
                                               .rank = self->rank,
                                               .count = self->count,
                                               .exchange = exchange,
                                               .close = leave,
                                               .name = "threads",
                                               .post = all.has_no_posts ? NULL : post};
    tandem_communicator *communicator = NULL;
    struct tnd_rank_result *result = &self->result;
    result->status = tandem_communicator_new(&transport, &communicator, &result->error);
    if (result->status == TANDEM_OK) {
        result->status = self->fn(communicator, self->user, &result->error);
    }
    tandem_communicator_close(communicator);
    return NULL;
}

/* What nobody has received. */
static void drop_posts(void)
{
    for (int i = 0; i < TND_RANKS_MOST * TND_RANKS_MOST; i++) {
        struct box *box = &all.boxes[i / TND_RANKS_MOST][i % TND_RANKS_MOST];
        while (box->posted != NULL) {
            struct posted *next = box->posted->next;
            free(box->posted);
            box->posted = next;
        }
    }
}

void tnd_ranks_run(int count, tnd_rank_fn fn, void *user, struct tnd_rank_result *out)
{
    struct rank ranks[TND_RANKS_MOST];
    memset(all.boxes, 0, sizeof(all.boxes));
    memset(all.has_left, 0, sizeof(all.has_left));
    for (int i = 0; i < count; i++) {
        ranks[i] = (struct rank){.rank = i, .count = count, .fn = fn, .user = user};
    }
    for (int i = 0; i < count; i++) {
        if (pthread_create(&ranks[i].thread, NULL, run, &ranks[i]) != 0) {
            ranks[i].result.status = TANDEM_E_THREAD;
            ranks[i].count = 0;
            leave(&ranks[i], true);
        }
    }
    for (int i = 0; i < count; i++) {
        if (ranks[i].count > 0) {
            pthread_join(ranks[i].thread, NULL);
        }
        out[i] = ranks[i].result;
    }
    drop_posts();
    all.dying = all.damaged = -1;
}

void tnd_ranks_let_die(int rank, int after)
{
    pthread_mutex_lock(&all.mutex);
    all.dying = rank;
    all.n_left = after;
    pthread_mutex_unlock(&all.mutex);
}

void tnd_ranks_damage(int rank, size_t bytes, size_t at)
{
    pthread_mutex_lock(&all.mutex);
    all.damaged = rank;
    all.damaged_bytes = bytes;
    all.damaged_at = at;
    pthread_mutex_unlock(&all.mutex);
}

void tnd_ranks_set_posts(bool has_posts)
{
    all.has_no_posts = !has_posts;
}

void tnd_ranks_advance(double seconds)
{
    pthread_mutex_lock(&all.mutex);
    all.now_s += seconds;
    tell_change();
    pthread_mutex_unlock(&all.mutex);
}

void tnd_ranks_await_waiting(int n)
{
    pthread_mutex_lock(&all.mutex);
    while (all.n_waiting < n) {
        pthread_cond_wait(&all.waits, &all.mutex);
    }
    pthread_mutex_unlock(&all.mutex);
}

void tnd_ranks_forge_hello(int rank, const void *bytes, size_t offset, size_t n)
{
    pthread_mutex_lock(&all.mutex);
    memcpy(all.forgery, bytes, n < sizeof(all.forgery) ? n : sizeof(all.forgery));
    all.forged = rank;
    all.forged_at = offset;
    all.n_forged = n;
    pthread_mutex_unlock(&all.mutex);
}
