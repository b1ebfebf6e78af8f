/* SPDX-License-Identifier: MIT
 * Positions of commands are kept in a ring: what is older than it is taken for over. */
#include "tests/fake_cuda/fake_order.h"

#include <pthread.h>

enum { N_PLACES = 1 << 16 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all below */
static struct place {
    uint64_t position;
    int stream;
} places[N_PLACES];
static uint32_t n_commands;

void tnd_fake_join(struct tnd_fake_clock *to, const struct tnd_fake_clock *from)
{
    for (int i = 0; i < TND_FAKE_MAX_STREAMS; i++) {
        to->seen[i] = from->seen[i] > to->seen[i] ? from->seen[i] : to->seen[i];
    }
}

uint32_t tnd_fake_command_number(int stream, uint64_t position)
{
    pthread_mutex_lock(&lock);
    const uint32_t number = ++n_commands;
    places[number % N_PLACES] = (struct place){position, stream};
    pthread_mutex_unlock(&lock);
    return number;
}

/* Under the lock. */
static bool is_before(uint32_t number, const struct tnd_fake_command *command)
{
    const struct place *place = &places[number % N_PLACES];
    return number == 0 || n_commands - number >= N_PLACES || number == command->number ||
           command->before.seen[place->stream] >= place->position;
}

const char *tnd_fake_follow(struct tnd_fake_order *orders, size_t n, bool is_write, bool is_copy,
                            const struct tnd_fake_command *command)
{
    const char *wrong = NULL;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < n; i++) {
        struct tnd_fake_order *order = &orders[i];
        if (!is_before(order->kernel_wrote, command) || !is_before(order->copy_wrote, command)) {
            wrong = "touches what a command of another stream writes, for which it does not wait";
        }
        if (is_write &&
            (!is_before(order->kernel_read, command) || !is_before(order->copy_read, command))) {
            wrong = "writes what a command of another stream reads, for which it does not wait";
        }
        *(is_copy ? (is_write ? &order->copy_wrote : &order->copy_read)
                  : (is_write ? &order->kernel_wrote : &order->kernel_read)) = command->number;
    }
    pthread_mutex_unlock(&lock);
    return wrong;
}
