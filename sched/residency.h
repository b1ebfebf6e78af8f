/* SPDX-License-Identifier: MIT
 * Where the newest bytes are while a plan is unfolded: in host memory or in the mirrors of devices
 * with memory of their own. Determines the transfers before work runs. Pure arithmetic over
 * addresses; moves nothing itself.
 *
 * Memory is divided into regions: a planned result, an output, a leaf, the workspace of a node.
 * Views and cpy lie in the region of their root; leaves and outputs whose bytes overlap are one
 * region. For each side (0: the host; 1..: devices) one span of a region may be stale there. The
 * side that wrote last, the owner, is never stale: a side that writes only a part of a region is
 * brought up to date first. So the owner has the newest value of every byte, and a new token only
 * costs its own rows. */
#ifndef TND_RESIDENCY_H
#define TND_RESIDENCY_H

#include "backends/registry.h"
#include "ggml-like/tnd_tensor.h"
#include "sched/items.h"
#include "sched/mirrors.h"

/** A larger debt of a lazy state is downloaded at the end of a run; several tokens of a KV cache
 * fit. */
#define TND_DEBT_BYTES ((size_t)64 << 10)

/** Whether a debt of this size may stay on a device, after the host was behind for n_owed runs. */
static inline bool tnd_may_owe(const struct tandem_tensor *root, size_t bytes, int n_owed)
{
    return (root->flags & TND_TENSOR_LAZY) != 0 && bytes <= TND_DEBT_BYTES &&
           n_owed + 1 < TANDEM_STATE_DEBT;
}

enum tnd_space {
    TND_SPACE_MEMORY,        /* begin is an address */
    TND_SPACE_INTERMEDIATES, /* begin is an offset into the buffer of the run */
    TND_SPACE_WORKSPACE
};

struct tnd_extent {
    uint8_t space;  /* enum tnd_space */
    int32_t region; /* of memory: index in the residency */
    size_t begin;
    size_t bytes;
};

enum tnd_region_kind {
    TND_REGION_RESULT,  /* computed by this graph */
    TND_REGION_INPUT,   /* a leaf; the program may change it between two runs */
    TND_REGION_STATE,   /* stays valid on devices from run to run; a lazy one may be newest there */
    TND_REGION_CONSTANT /* prepared, never moved by steps */
};

struct tnd_region {
    struct tnd_extent extent;
    const struct tandem_tensor *root; /* the first one of those in the region */
    uint8_t kind;                     /* enum tnd_region_kind */
    uint8_t owner;                    /* side on which no byte is stale */
    int32_t writer;                   /* index of the node that wrote last; -1: none yet */
    uint32_t sides;                   /* bit a side: work there accesses it */
};

/** A region on one side. */
struct tnd_copy {
    struct tnd_span stale;     /* bytes that are not valid there */
    struct tnd_mirror *mirror; /* held for this run; NULL: none */
    struct tnd_span debt;      /* bytes whose newest values only this side had at the start */
    int n_owed;                /* computations since the host was up to date */
};

/* A leaf or output that nodes of the graph access. */
struct tnd_leaf {
    const struct tandem_tensor *root;
    int32_t region;
    bool is_written;
};

struct tnd_residency {
    int n_sides;                        /* the host included */
    uint8_t slot_of[TND_MAX_SLOTS + 1]; /* backend of a side; [0]: 0 */
    uint8_t side_of[TND_MAX_SLOTS];     /* of a backend; 0: it works in host memory */
    struct tnd_region *regions;         /* of nodes by index, then of leaves, then the workspace of
                                         * the current node */
    struct tnd_copy *copies;            /* n_sides a region */
    int n_nodes, n_regions;             /* n_regions: without the workspace */
    struct tnd_leaf *leaves;            /* by address, after joining */
    int n_leaves, n_touched;
    int32_t *touched;            /* regions that a node accesses: its result's, its operands' */
    int32_t *first_touched;      /* by node: index into `touched` */
    struct tnd_mirrors *mirrors; /* NULL: none */
    void *memory;                /* of all arrays */
    size_t memory_bytes;
};

/** Starts with everything on the host, apart from states that `mirrors` (or NULL) holds, for the
 *  devices in `own_slots` and those with states. `items` (or NULL) may make more tensors than the
 *  nodes of the graph. Memory of *io_residency (NULL: none yet) is reused. Errors: MEMORY,
 *  OVERFLOW, BUSY (a device keeps bytes of a leaf for another tensor). */
enum tandem_status tnd_residency_renew(const struct tandem_graph *graph,
                                       const struct tnd_items *items, uint32_t own_slots,
                                       struct tnd_mirrors *mirrors,
                                       struct tnd_residency **io_residency,
                                       struct tandem_error *error);
/** Resets to the start, for a plan that is only priced: every device has all states. No mirror may
 *  be held. */
void tnd_residency_restart(struct tnd_residency *residency);
/** Releases the mirrors that are held. After a success states are valid as recorded here; after a
 *  failure none of their bytes is. */
void tnd_residency_release(struct tnd_residency *residency, bool is_success);
void tnd_residency_free(struct tnd_residency *residency);

struct tnd_move {
    bool is_download;
    uint8_t slot;
    int32_t writer; /* index of the node that wrote the bytes; -1 */
    struct tnd_extent extent;
};
enum { TND_MAX_MOVES = 2 * (TANDEM_MAX_SRC + 2) };

/** The transfers, in order, that the task of a node needs before it runs on the backend in `slot`;
 *  then records what it writes. Returns the number of transfers. */
int tnd_residency_work(struct tnd_residency *residency, const struct tandem_tensor *node,
                       uint32_t task, int slot, size_t workspace_offset, size_t workspace_bytes,
                       struct tnd_move moves[TND_MAX_MOVES]);
/** The download of a node's result, recorded as done. False when the host has it already, or when
 *  it is not a result that only this graph makes. */
bool tnd_residency_fetch_result(struct tnd_residency *residency, const struct tandem_tensor *node,
                                struct tnd_move *out);
/** Must come before the stages of the next node. */
void tnd_residency_begin_node(struct tnd_residency *residency);
/** The next download at the end of a run: outputs, and what was written into leaves, except debts
 *  of lazy states that may stay on devices. `cursor` begins at 0. */
bool tnd_residency_next_output(struct tnd_residency *residency, int *cursor, struct tnd_move *out);

/** Region of the i-th operand of a node of the graph; -1: of its result. */
struct tnd_region *tnd_residency_region(const struct tnd_residency *residency,
                                        const struct tandem_tensor *node, int i);
/** Whether no byte of the tensor, the i-th operand of a node (-1: its result), is stale on the side
 * of a slot. */
bool tnd_residency_is_valid(const struct tnd_residency *residency, const struct tandem_tensor *node,
                            int i, int slot);
/** The copy of a region on a side. */
struct tnd_copy *tnd_residency_copy(const struct tnd_residency *residency,
                                    const struct tnd_region *region, int side);
/** Bytes of a tensor, relative to the start of its region. */
struct tnd_span tnd_residency_span(const struct tnd_region *region,
                                   const struct tandem_tensor *tensor);

#endif
