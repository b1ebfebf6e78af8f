/* SPDX-License-Identifier: MIT
 * Validation of indices, which may be values that other operations compute, so that only the
 * kernels can check them. Kernels never read outside of an operand, whatever the index, and record
 * the first index that is out of range; the next sync reads the record and fails with ARGUMENT. It
 * is not read if that cannot happen: indices in host memory are checked when the work is submitted,
 * those of top_k are always in range, and integer tables in host memory (such as renumbered
 * experts) are checked as a whole. */
#include "backends/gpu/gpu_indices.h"

#include "backends/gpu/gpu_memory_state.h"
#include "backends/gpu/gpu_ops_parts.h"
#include "backends/gpu/gpu_transfer.h"

/* As in fault.clh; `op` is 0 if there is no fault. */
struct fault {
    int32_t op, at, index, count, used;
};

static const struct {
    enum tandem_op op;
    int least;
} faulty[] = {
    [1] = {TANDEM_OP_MUL_MAT_ID, -1}, [2] = {TANDEM_OP_GATHER, 0}, [3] = {TANDEM_OP_GET_ROWS, 0}};

static enum tandem_status clear_fault(struct tnd_gpu_device *device, struct tandem_error *error)
{
    static const struct fault none;
    struct tnd_gpu_range to = {device->ops->fault, 0};
    return tnd_gpu_write(device, to, &none, sizeof(none), error);
}

enum tandem_status tnd_gpu_indices_fault(struct tnd_gpu_device *device,
                                         struct tnd_gpu_range *out_range,
                                         struct tandem_error *error)
{
    struct tnd_gpu_ops *ops = device->ops;
    if (ops->fault == NULL) {
        TND_TRY(tnd_gpu_make_buffer(device, sizeof(struct fault), &ops->fault, error));
    }
    if (!ops->is_cleared) {
        TND_TRY(clear_fault(device, error));
        ops->is_cleared = true;
    }
    *out_range = (struct tnd_gpu_range){ops->fault, 0};
    return TANDEM_OK;
}

/* Reports index `at` of a node with `used` indices per token; 0: all are one row. */
static enum tandem_status tell(enum tandem_op op, const char *name, const struct fault *fault,
                               int64_t least, struct tandem_error *error)
{
    if (op == TANDEM_OP_GET_ROWS) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, name, fault->index, fault->count,
                             "get_rows: index %d is %d, expected 0 to %d", (int)fault->at,
                             (int)fault->index, (int)fault->count - 1);
    }
    return tnd_error_set(error, TANDEM_E_ARGUMENT, name, fault->index, fault->count,
                         "%s: index %d of token %d is %d, expected %d to %d", tandem_op_name(op),
                         (int)(fault->at % fault->used), (int)(fault->at / fault->used),
                         (int)fault->index, (int)least, (int)fault->count - 1);
}

enum tandem_status tnd_gpu_indices_check(struct tnd_gpu_device *device, struct tandem_error *error)
{
    struct tnd_gpu_ops *ops = device->ops;
    struct fault fault;
    if (!atomic_exchange_explicit(&ops->is_unchecked, false, memory_order_acq_rel)) {
        return TANDEM_OK;
    }
    TND_TRY(device->driver->read(device->context, TND_GPU_QUEUE_WORK, NULL, ops->fault, 0, &fault,
                                 sizeof(fault), NULL, error));
    if (fault.op < 1 || (size_t)fault.op >= sizeof(faulty) / sizeof(faulty[0])) {
        return TANDEM_OK;
    }
    TND_TRY(clear_fault(device, error));
    return tell(faulty[fault.op].op, device->name, &fault, faulty[fault.op].least, error);
}

/* Whether the host has the current values of a tensor. */
static bool is_on_host(const tandem_tensor *tensor)
{
    return ((tensor->flags | tensor->root->flags) & (TND_TENSOR_PENDING | TND_TENSOR_STATE)) == 0;
}

static int32_t value_at(const tandem_tensor *tensor, int64_t i)
{
    const char *row = (const char *)tensor->data + (size_t)(i / tensor->ne[0]) * tensor->nb[1];
    return ((const int32_t *)(const void *)row)[i % tensor->ne[0]];
}

/* Index of the first value of a matrix outside of least .. count - 1; -1: none. */
static int64_t find_outside(const tandem_tensor *tensor, int64_t least, int64_t count)
{
    const int64_t n = tandem_tensor_elements(tensor);
    int64_t i = 0;
    while (i < n && value_at(tensor, i) >= least && value_at(tensor, i) < count) {
        i++;
    }
    return i < n ? i : -1;
}

enum tandem_status tnd_gpu_indices_look(struct tnd_gpu_device *device, const tandem_tensor *node,
                                        const tandem_tensor *ids, int64_t least, int64_t count,
                                        struct tandem_error *error)
{
    const tandem_tensor *root = ids->root;
    if (root->op == TANDEM_OP_TOP_K && root->src[0]->ne[0] <= count) {
        return TANDEM_OK;
    }
    if (root->op == TANDEM_OP_GET_ROWS && is_on_host(root->src[0]) &&
        find_outside(root->src[0], least, count) < 0) {
        return TANDEM_OK;
    }
    if (!is_on_host(ids)) {
        atomic_store_explicit(&device->ops->is_unchecked, true, memory_order_release);
        return TANDEM_OK;
    }
    const int64_t i = find_outside(ids, least, count);
    if (i < 0) {
        return TANDEM_OK;
    }
    const struct fault fault = {0, (int32_t)i, value_at(ids, i), (int32_t)count,
                                (int32_t)ids->ne[0]};
    return tell(node->op, node->name, &fault, least, error);
}
