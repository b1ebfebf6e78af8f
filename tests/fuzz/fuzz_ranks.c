/* SPDX-License-Identifier: MIT
 * Fuzzes what rank 0 tells: a rank that follows carries out orders made of the input, and ends with
 * a reason. Whatever both ranks exchange comes back as this rank sent it. */
#include <stdlib.h>
#include <string.h>

#include "llama/ranks.h"
#include "tests/fuzz/small_rank.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    ORDER_BYTES = sizeof(struct tnd_llama_order),
    ORDER_SIZE_AT = offsetof(struct tnd_llama_order, bytes),
    NEW_BYTES = sizeof(struct tnd_llama_new_session) + 2 * 2 * sizeof(double),
    MOST = 64
};
/* The seeds in corpus/ranks are laid out so: make them anew where these change. */
_Static_assert(ORDER_BYTES == 48 && NEW_BYTES == 112 && sizeof(struct tnd_llama_told_entry) == 24,
               "seeds of fuzz_ranks");

static struct {
    const uint8_t *data;
    size_t left;
} input;

static bool take(void *out, size_t n)
{
    const bool is_there = n <= input.left;
    if (is_there) {
        memcpy(out, input.data, n);
        input.data += n;
        input.left -= n;
    }
    return is_there;
}

/* Keeps a number below `limit`, so that inputs ask for little memory. */
static void bound(char *at, size_t limit)
{
    uint64_t number;
    memcpy(&number, at, sizeof(number));
    number = number < limit ? number : number % limit;
    memcpy(at, &number, sizeof(number));
}

static bool told(const struct tandem_message *message)
{
    if (!take(message->data, message->bytes)) {
        return false;
    }
    if (message->bytes == ORDER_BYTES) {
        bound((char *)message->data + ORDER_SIZE_AT, input.left + 1);
    }
    if (message->bytes == NEW_BYTES) {
        bound(message->data, MOST);
        bound((char *)message->data + sizeof(int64_t), MOST);
    }
    return true;
}

static bool exchange(void *self, const struct tandem_message *sends, int n_sends,
                     const struct tandem_message *receives, int n_receives, double limit_s,
                     int *out_rank, char *why, size_t why_bytes)
{
    (void)self, (void)limit_s, (void)why, (void)why_bytes;
    *out_rank = 0;
    if (small_rank_echoes(sends, n_sends, receives, n_receives)) {
        return true;
    }
    for (int i = 0; i < n_receives; i++) {
        if (!told(&receives[i])) {
            return false;
        }
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct tandem_transport transport = {.size = sizeof(transport),
                                               .rank = 1,
                                               .count = 2,
                                               .exchange = exchange,
                                               .close = small_rank_end};
    struct tandem_error error = {.text = ""};
    tandem_communicator *communicator = NULL;
    input.data = data;
    input.left = size;
    if (tandem_communicator_new(&transport, &communicator, &error) != TANDEM_OK) {
        abort();
    }
    if (tandem_session_follow(small_rank_model(128), small_runtime(), communicator, &error) !=
            TANDEM_OK &&
        error.text[0] == '\0') {
        __builtin_trap(); /* a failure without a reason */
    }
    tandem_communicator_close(communicator);
    return 0;
}
