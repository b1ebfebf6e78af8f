/* SPDX-License-Identifier: MIT
 * Two touches of a byte, one of them a write and not both atomic, are a race when nothing orders
 * them: they are of different groups, or of two items of a group between the same barriers. Warps
 * order nothing, as on GPUs since Volta. */
#include "tests/fake_cuda/fake_check.h"

enum { ITEMS = 1024 };

/* Whether a touch by `id` at `epoch` stands unordered to one by `who`. */
static bool is_unordered(uint32_t id, uint16_t epoch, const struct tnd_fake_toucher *who)
{
    const uint32_t number = id - 1;
    if (id == 0 || (number / ITEMS == who->group && number % ITEMS == who->item)) {
        return false;
    }
    return number / ITEMS != who->group || epoch == who->epoch;
}

const char *tnd_fake_touch(const struct tnd_fake_range *range, const char *at, size_t bytes,
                           unsigned what, const struct tnd_fake_toucher *who)
{
    const size_t first = (size_t)(at - range->begin);
    const uint32_t id = 1 + who->group * ITEMS + who->item;
    const bool is_atomic = (what & TND_FAKE_ATOMIC) != 0;
    const bool is_write = (what & TND_FAKE_WRITE) != 0;
    const char *wrong = NULL;
    for (size_t i = first; i < first + bytes; i++) {
        struct tnd_fake_touch *touch = &range->touches[i];
        if (touch->launch != who->launch) {
            *touch = (struct tnd_fake_touch){.launch = who->launch};
        }
        if ((!is_write || is_atomic) && range->written != NULL && range->written[i] == 0) {
            wrong = "reads what nobody has written";
        }
        if (!(is_atomic && touch->is_atomic) &&
            is_unordered(touch->writer, touch->write_epoch, who)) {
            wrong = is_write ? "two work items write the same place"
                             : "reads what another work item writes meanwhile";
        }
        if (is_write) {
            const bool is_many = touch->are_many && touch->read_epoch == who->epoch;
            if (is_many || is_unordered(touch->reader, touch->read_epoch, who)) {
                wrong = "writes what another work item reads meanwhile";
            }
            touch->writer = id;
            touch->write_epoch = who->epoch;
            touch->is_atomic = is_atomic;
            if (range->written != NULL) {
                range->written[i] = 1;
            }
        } else {
            touch->are_many =
                touch->reader != 0 && touch->reader != id &&
                (touch->read_epoch == who->epoch || (touch->reader - 1) / ITEMS != who->group);
            touch->reader = id;
            touch->read_epoch = who->epoch;
        }
    }
    return wrong;
}
