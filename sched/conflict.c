/* SPDX-License-Identifier: MIT
 * Memory that nodes access. Intermediate results are compared by their offsets in the graph's
 * shared buffer, everything else by its address. */
#include "sched/conflict.h"

struct range {
    bool is_planned;
    uintptr_t begin, end;
};

static struct range range_of(const struct tandem_tensor *tensor)
{
    const struct tandem_tensor *root = tensor->root;
    struct range range;
    range.is_planned = root->plan_offset >= 0;
    range.begin = range.is_planned ? (uintptr_t)root->plan_offset : (uintptr_t)root->data;
    range.end = range.begin + tandem_tensor_bytes(root);
    return range;
}

static bool overlap(const struct range *a, const struct range *b)
{
    return a->is_planned == b->is_planned && a->begin < b->end && b->begin < a->end;
}

static bool reads(const struct tandem_tensor *reader, const struct range *written)
{
    for (int i = 0; i < reader->n_src; i++) {
        struct range read = range_of(reader->src[i]);
        if (overlap(&read, written)) {
            return true;
        }
    }
    return false;
}

bool tnd_nodes_conflict(const struct tandem_tensor *a, const struct tandem_tensor *b)
{
    if (a == b) {
        return true;
    }
    struct range written_a = range_of(a);
    struct range written_b = range_of(b);
    return overlap(&written_a, &written_b) || reads(a, &written_b) || reads(b, &written_a);
}

bool tnd_tensors_overlap(const struct tandem_tensor *a, const struct tandem_tensor *b)
{
    struct range range_a = range_of(a);
    struct range range_b = range_of(b);
    return overlap(&range_a, &range_b);
}
