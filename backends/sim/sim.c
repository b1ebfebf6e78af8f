/* SPDX-License-Identifier: MIT
 * The simulated asynchronous device: an in-order queue whose works end at scripted times. Results
 * are computed as late as a real device might deliver them, inside sync, so that a schedule that
 * reads too early or overwrites operands too soon is detected. */
#include "backends/sim/sim.h"

#include <pthread.h>
#include <string.h>

#include "backends/sim/sim_common.h"
#include "backends/sim/sim_compute.h"
#include "base/alloc.h"
#include "base/tnd_status.h"
#include "ggml-like/tnd_tensor.h"

extern const struct tandem_backend_api tnd_backend_sim;

enum { QUEUE_SLOTS = 256 };

enum entry_state { ENTRY_FREE, ENTRY_QUEUED, ENTRY_COMPUTED };

struct entry {
    enum entry_state state;
    uint64_t ticket; /* number of the submission, from 1 */
    uint64_t done_ns;
    struct tandem_work work;
    enum tandem_status status; /* of the computation */
    struct tandem_error error; /* if status is a failure */
};

struct sim {
    struct tnd_sim_common common; /* its lock guards everything below, too */
    uint64_t n_submits;           /* attempts */
    struct entry queue[QUEUE_SLOTS];
    struct tnd_sim_row row;
    const tandem_tensor *dequantized; /* node whose dequantised F32 weights are on the device */
    const void **resident;            /* addresses of the weights on the device */
    size_t n_resident, resident_capacity;
};

/* ---- opening ---- */

static enum tandem_status sim_open(const struct tandem_backend_options *options,
                                   tandem_backend **out_backend, struct tandem_error *error)
{
    struct tnd_sim_script script;
    TND_TRY(tnd_sim_script_read(options->settings, &script, error));
    if (script.is_own) {
        return tnd_sim_own_open(&tnd_backend_sim_own, &script, out_backend, error);
    }
    struct sim *self = tnd_calloc(1, sizeof(*self));
    if (self == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "sim", (int64_t)sizeof(*self), 0,
                             "backend sim: no memory");
    }
    tnd_sim_common_init(&self->common, &tnd_backend_sim, &script);
    *out_backend = &self->common.base;
    return TANDEM_OK;
}

/* Drops work in flight. */
static void sim_close(tandem_backend *backend)
{
    struct sim *self = (struct sim *)backend;
    pthread_mutex_destroy(&self->common.lock);
    tnd_free(self->row.values);
    tnd_free(self->resident);
    tnd_free(self);
}

static const char *sim_describe(tandem_backend *backend)
{
    (void)backend;
    return "pretended device";
}

static enum tandem_status sim_supports(tandem_backend *backend, const tandem_tensor *node,
                                       uint32_t task, struct tandem_error *error)
{
    (void)backend;
    return tnd_sim_compute_supports(node, task, error);
}

static size_t sim_workspace(tandem_backend *backend, const tandem_tensor *node, uint32_t task)
{
    (void)backend;
    return tnd_sim_compute_workspace(node, task);
}

/* ---- weights on the device ---- */

static bool is_resident(const struct sim *self, const void *data)
{
    for (size_t i = 0; i < self->n_resident; i++) {
        if (self->resident[i] == data) {
            return true;
        }
    }
    return false;
}

/* Bytes to transfer for a weight; 0 if it is on the device already. If there is no memory to record
 * it, it is transferred each time. */
static size_t upload_weight(struct sim *self, const tandem_tensor *weight)
{
    if (is_resident(self, weight->data)) {
        return 0;
    }
    if (self->n_resident == self->resident_capacity) {
        size_t capacity = self->resident_capacity == 0 ? 64 : 2 * self->resident_capacity;
        void *larger = tnd_realloc(self->resident, self->resident_capacity * sizeof(void *),
                                   capacity * sizeof(void *));
        if (larger != NULL) {
            self->resident = larger;
            self->resident_capacity = capacity;
        }
    }
    if (self->n_resident < self->resident_capacity) {
        self->resident[self->n_resident++] = weight->data;
    }
    size_t bytes = tandem_tensor_bytes(weight);
    self->common.statistics.weight_uploads++;
    self->common.statistics.upload_bytes += bytes;
    return bytes;
}

/* ---- time ---- */

/* Products with weights, which are transferred once. */
static bool is_product(const tandem_tensor *node)
{
    return node->op == TANDEM_OP_MUL_MAT || node->op == TANDEM_OP_MUL_MAT_ID;
}

static size_t upload_bytes(struct sim *self, const struct tandem_work *work)
{
    const tandem_tensor *node = work->node;
    size_t bytes = 0;
    for (int i = 0; i < node->n_src; i++) {
        const tandem_tensor *src = node->src[i];
        if (src == NULL || (i == 0 && is_product(node)) || work->task == TANDEM_TASK_DEQUANTIZE_W) {
            continue;
        }
        bytes += tandem_tensor_bytes(src);
    }
    self->common.statistics.upload_bytes += bytes;
    if (!is_product(node)) {
        return bytes;
    }
    const tandem_tensor *w = node->src[0];
    if (work->task == TANDEM_TASK_MUL_MAT_F32 && w->type != TANDEM_TYPE_F32) {
        /* Weights dequantised on the device before, or dequantised on the host and transferred for
         * this product only. */
        size_t rows = (size_t)(work->row_end - work->row_begin);
        size_t moved = self->dequantized == node ? 0 : rows * (size_t)w->ne[0] * sizeof(float);
        self->common.statistics.upload_bytes += moved;
        return bytes + moved;
    }
    if (w->op != TANDEM_OP_NONE) {
        size_t moved = tandem_tensor_bytes(w);
        self->common.statistics.upload_bytes += moved;
        return bytes + moved;
    }
    return bytes + upload_weight(self, w);
}

/* Time at which the work will end. */
static uint64_t schedule(struct sim *self, const struct tandem_work *work)
{
    const tandem_tensor *node = work->node;
    double flops = (double)tandem_tensor_elements(node);
    double download = (double)tandem_tensor_bytes(node);
    double upload = (double)upload_bytes(self, work);
    if (node->op == TANDEM_OP_MUL_MAT_ID) {
        flops *= 2 * (double)node->src[0]->ne[0];
    } else if (node->op == TANDEM_OP_MUL_MAT) {
        double rows = (double)(work->row_end - work->row_begin);
        double share = node->ne[0] > 0 ? rows / (double)node->ne[0] : 0;
        double k = (double)node->src[0]->ne[0];
        flops *= share * 2 * k;
        download *= share;
        if (work->task == TANDEM_TASK_DEQUANTIZE_W) {
            flops = rows * k;
            download = 0;
        }
    }
    self->dequantized = work->task == TANDEM_TASK_DEQUANTIZE_W ? node : NULL;
    self->common.statistics.download_bytes += (uint64_t)download;
    return tnd_sim_occupy(&self->common,
                          tnd_sim_script_ns(&self->common.script, flops, upload, download));
}

/* ---- the queue ---- */

/* Computes everything up to `ticket`, in the order of the queue. */
static void compute_until(struct sim *self, uint64_t ticket)
{
    for (;;) {
        struct entry *oldest = NULL;
        for (int i = 0; i < QUEUE_SLOTS; i++) {
            struct entry *entry = &self->queue[i];
            if (entry->state == ENTRY_QUEUED && entry->ticket <= ticket &&
                (oldest == NULL || entry->ticket < oldest->ticket)) {
                oldest = entry;
            }
        }
        if (oldest == NULL) {
            return;
        }
        oldest->status = tnd_sim_compute(&oldest->work, &self->row, &oldest->error);
        if (oldest->status == TANDEM_OK && self->common.script.spoils_results) {
            tnd_sim_spoil(&oldest->work);
        }
        oldest->state = ENTRY_COMPUTED;
        self->common.statistics.computed++;
    }
}

static struct entry *find_entry(struct sim *self, bool is_free, uint64_t ticket)
{
    for (int i = 0; i < QUEUE_SLOTS; i++) {
        struct entry *entry = &self->queue[i];
        if (is_free ? entry->state == ENTRY_FREE
                    : entry->state != ENTRY_FREE && entry->ticket == ticket) {
            return entry;
        }
    }
    return NULL;
}

/* Adds the work to the queue. Called under the lock. */
static enum tandem_status enqueue(struct sim *self, const struct tandem_work *work,
                                  struct entry **out, struct tandem_error *error)
{
    uint64_t n = ++self->n_submits;
    TND_TRY(tnd_sim_script_submit_fault(&self->common.script, n, error));
    struct entry *entry = find_entry(self, true, 0);
    if (entry == NULL) {
        return tnd_error_set(error, TANDEM_E_DEVICE_MEMORY, "sim", QUEUE_SLOTS, QUEUE_SLOTS,
                             "backend sim: %d works are in flight, the queue takes no more",
                             QUEUE_SLOTS);
    }
    entry->state = ENTRY_QUEUED;
    entry->ticket = n;
    entry->work = *work;
    entry->status = TANDEM_OK;
    entry->done_ns = schedule(self, work);
    self->common.statistics.submits++;
    self->common.statistics.in_flight++;
    *out = entry;
    return TANDEM_OK;
}

static enum tandem_status sim_submit(tandem_backend *backend, const struct tandem_work *work,
                                     uint64_t *out_ticket, struct tandem_error *error)
{
    struct sim *self = (struct sim *)backend;
    pthread_mutex_lock(&self->common.lock);
    struct entry *entry = NULL;
    enum tandem_status status = enqueue(self, work, &entry, error);
    uint64_t done_ns = 0;
    if (status == TANDEM_OK) {
        *out_ticket = entry->ticket;
        done_ns = entry->done_ns;
        if (self->common.script.submit_waits) {
            compute_until(self, entry->ticket);
        }
    }
    const struct tnd_clock *clock = self->common.clock;
    pthread_mutex_unlock(&self->common.lock);
    if (status == TANDEM_OK && self->common.script.submit_waits) {
        clock->wait_until_ns(clock, done_ns);
    }
    return status;
}

static enum tandem_status sim_sync(tandem_backend *backend, uint64_t ticket,
                                   struct tandem_error *error)
{
    struct sim *self = (struct sim *)backend;
    pthread_mutex_lock(&self->common.lock);
    struct entry *entry = find_entry(self, false, ticket);
    if (entry == NULL) {
        pthread_mutex_unlock(&self->common.lock);
        return tnd_error_set(error, TANDEM_E_STATE, "sim", (int64_t)ticket, 0,
                             "backend sim: ticket %llu is not in flight",
                             (unsigned long long)ticket);
    }
    enum tandem_status status = tnd_sim_script_sync_fault(&self->common.script, ticket, error);
    if (status == TANDEM_OK) {
        compute_until(self, ticket);
        status = entry->status;
        if (status != TANDEM_OK && error != NULL) {
            *error = entry->error;
        }
    }
    uint64_t done_ns = entry->done_ns;
    entry->state = ENTRY_FREE;
    self->common.statistics.syncs++;
    self->common.statistics.in_flight--;
    const struct tnd_clock *clock = self->common.clock;
    pthread_mutex_unlock(&self->common.lock);
    clock->wait_until_ns(clock, done_ns);
    return status;
}

static enum tandem_status sim_prepare(tandem_backend *backend, const tandem_tensor *weight,
                                      void **out_handle, struct tandem_error *error)
{
    (void)error;
    struct sim *self = (struct sim *)backend;
    pthread_mutex_lock(&self->common.lock);
    size_t bytes = upload_weight(self, weight);
    if (bytes > 0) {
        tnd_sim_occupy(&self->common, tnd_sim_script_ns(&self->common.script, 0, (double)bytes, 0));
    }
    pthread_mutex_unlock(&self->common.lock);
    *out_handle = weight->data; /* the address identifies the weight here */
    return TANDEM_OK;
}

static void sim_forget(tandem_backend *backend, void *handle)
{
    struct sim *self = (struct sim *)backend;
    pthread_mutex_lock(&self->common.lock);
    for (size_t i = 0; i < self->n_resident; i++) {
        if (self->resident[i] == handle) {
            self->resident[i] = self->resident[--self->n_resident];
            break;
        }
    }
    pthread_mutex_unlock(&self->common.lock);
}

const struct tandem_backend_api tnd_backend_sim = {
    .abi = TANDEM_ABI,
    .size = sizeof(struct tandem_backend_api),
    .name = "sim",
    .kind = TANDEM_KIND_SIM,
    .open = sim_open,
    .close = sim_close,
    .describe = sim_describe,
    .supports = sim_supports,
    .workspace = sim_workspace,
    .submit = sim_submit,
    .sync = sim_sync,
    .prepare = sim_prepare,
    .forget = sim_forget,
};
