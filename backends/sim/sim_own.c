/* SPDX-License-Identifier: MIT
 * The simulated device with memory of its own. Its works only see mirrors, which are its handles:
 * tensors are copied when they are submitted, with addresses inside of mirrors. Works and transfers
 * share one queue, and happen only when something after them is synced, so that code that reads
 * host memory too early, or forgets a transfer, finds garbage. */
#include <string.h>

#include "backends/sim/sim_common.h"
#include "backends/sim/sim_compute.h"
#include "base/alloc.h"
#include "base/tnd_status.h"
#include "ggml-like/tnd_tensor.h"

enum { GARBAGE = 0xff }; /* floats of such bytes are NaN */

struct mirror {
    struct mirror *next;
    size_t bytes;
    char *memory;
    bool is_weight;      /* prepared; else mapped */
    uint64_t arrives_ns; /* when everything streamed into it has arrived */
    uint64_t used_ns;    /* when all works that use it are over */
};

/* Copies of the tensors that a work uses. */
struct tensors {
    struct tandem_tensor node;
    struct tandem_tensor src[TANDEM_MAX_SRC];
};

enum entry_kind { ENTRY_WORK, ENTRY_UPLOAD, ENTRY_STREAM, ENTRY_DOWNLOAD };

struct entry {
    struct entry *next;
    enum entry_kind kind;
    uint64_t ticket;
    uint64_t n_submit; /* number of the work's submission, from 1 */
    uint64_t done_ns;
    struct tandem_work work;
    struct tensors tensors;
    char *from, *to; /* of transfers; uploads own `from` */
    size_t bytes;
};

struct sim_own {
    struct tnd_sim_common common; /* its lock guards everything below, too */
    struct mirror *mirrors;
    struct entry *first, *last; /* the queue */
    uint64_t n_tickets;
    uint64_t n_calls[TND_SIM_CALLS];
    double resident_bytes;
    struct tnd_sim_row row;
    bool is_broken;            /* downloads stop halfway */
    uint64_t done_ns;          /* end of what has happened so far */
    uint64_t streams_until_ns; /* end of streams, which run concurrently with works */
    enum tandem_status status; /* of what has happened and was not reported yet */
    struct tandem_error error;
};

static struct sim_own *own_of(tandem_backend *backend)
{
    return (struct sim_own *)backend;
}

/* Counts a call; makes it fail if the script says so. Called under the lock. */
static enum tandem_status enter(struct sim_own *self, enum tnd_sim_call call,
                                struct tandem_error *error)
{
    uint64_t n_all = ++self->common.statistics.calls;
    return tnd_sim_script_call_fault(&self->common.script, call, ++self->n_calls[call], n_all,
                                     error);
}

/* ---- mirrors ---- */

static struct mirror *find_mirror(const struct sim_own *self, const void *handle)
{
    struct mirror *mirror = self->mirrors;
    while (mirror != NULL && mirror != handle) {
        mirror = mirror->next;
    }
    return mirror;
}

/* Address of the place in memory; NULL if its handle is not a current one of this device. */
static char *find(const struct sim_own *self, struct tandem_place place, size_t bytes)
{
    const struct mirror *mirror = find_mirror(self, place.handle);
    bool is_inside =
        mirror != NULL && bytes <= mirror->bytes && place.offset <= mirror->bytes - bytes;
    return is_inside ? mirror->memory + place.offset : NULL;
}

static enum tandem_status refuse_unmapped(struct sim_own *self, const char *what, size_t bytes,
                                          struct tandem_error *error)
{
    self->common.statistics.unmapped_accesses++;
    return tnd_error_set(error, TANDEM_E_STATE, "sim", (int64_t)bytes, 0,
                         "backend sim: %s of %zu bytes lies outside of all mirrors", what, bytes);
}

static enum tandem_status add_mirror(struct sim_own *self, size_t bytes, bool is_weight,
                                     struct tandem_error *error)
{
    struct mirror *mirror = tnd_alloc(sizeof(*mirror));
    char *memory = tnd_alloc(bytes);
    if (mirror == NULL || memory == NULL) {
        tnd_free(mirror);
        tnd_free(memory);
        return tnd_error_set(error, TANDEM_E_DEVICE_MEMORY, "sim", (int64_t)bytes, 0,
                             "backend sim: no memory for a mirror of %zu bytes", bytes);
    }
    memset(memory, GARBAGE, bytes);
    *mirror = (struct mirror){self->mirrors, bytes, memory, is_weight, 0, 0};
    self->mirrors = mirror;
    self->common.statistics.mirrors += !is_weight;
    self->common.statistics.residents += is_weight;
    return TANDEM_OK;
}

static void remove_mirror(struct sim_own *self, struct mirror **place)
{
    struct mirror *mirror = *place;
    *place = mirror->next;
    self->resident_bytes -= mirror->is_weight ? (double)mirror->bytes : 0;
    self->common.statistics.mirrors -= !mirror->is_weight;
    self->common.statistics.residents -= mirror->is_weight;
    tnd_free(mirror->memory);
    tnd_free(mirror);
}

/* ---- the queue ---- */

/* The first failure, for sync to report. */
static void note_failure(struct sim_own *self, enum tandem_status status,
                         const struct tandem_error *error)
{
    if (status != TANDEM_OK && self->status == TANDEM_OK) {
        self->status = status;
        self->error = *error;
    }
}

static void work(struct sim_own *self, struct entry *entry)
{
    struct tandem_error error = {0};
    enum tandem_status status =
        tnd_sim_script_sync_fault(&self->common.script, entry->n_submit, &error);
    if (status == TANDEM_OK) {
        status = tnd_sim_compute(&entry->work, &self->row, &error);
    }
    if (status == TANDEM_OK && self->common.script.spoils_results) {
        tnd_sim_spoil(&entry->work);
    }
    self->common.statistics.computed += status == TANDEM_OK;
    note_failure(self, status, &error);
}

/* Makes everything up to `ticket` happen. */
static void happen(struct sim_own *self, uint64_t ticket)
{
    while (self->first != NULL && self->first->ticket <= ticket) {
        struct entry *entry = self->first;
        if (entry->kind == ENTRY_WORK) {
            work(self, entry);
        } else {
            bool is_half = self->is_broken && entry->kind == ENTRY_DOWNLOAD;
            memcpy(entry->to, entry->from, is_half ? entry->bytes / 2 : entry->bytes);
        }
        if (entry->kind == ENTRY_UPLOAD || entry->kind == ENTRY_STREAM) {
            tnd_free(entry->from);
        } else {
            self->common.statistics.in_flight--;
        }
        self->done_ns = entry->kind != ENTRY_STREAM ? entry->done_ns : self->done_ns;
        self->first = entry->next;
        tnd_free(entry);
    }
    self->last = self->first == NULL ? NULL : self->last;
}

static struct entry *new_entry(enum entry_kind kind)
{
    struct entry *entry = tnd_alloc(sizeof(*entry));
    if (entry != NULL) {
        entry->next = NULL;
        entry->kind = kind;
    }
    return entry;
}

static enum tandem_status out_of_memory(struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_DEVICE_MEMORY, "sim", 0, 0,
                         "backend sim: no memory for the queue");
}

static uint64_t append(struct sim_own *self, struct entry *entry, uint64_t done_ns)
{
    entry->ticket = ++self->n_tickets;
    entry->done_ns = done_ns;
    if (self->last == NULL) {
        self->first = entry;
    } else {
        self->last->next = entry;
    }
    self->last = entry;
    return entry->ticket;
}

static uint64_t enqueue(struct sim_own *self, struct entry *entry, double flops, double upload,
                        double download)
{
    uint64_t ns = tnd_sim_script_ns(&self->common.script, flops, upload, download);
    return append(self, entry, tnd_sim_occupy(&self->common, ns));
}

/* ---- streams: concurrent in time, but executed in the order of the queue ---- */

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* The i-th mirror of a work. */
enum { N_MIRRORS = TANDEM_MAX_SRC + 2 };
static struct mirror *mirror_of(const struct sim_own *self, const struct tandem_places *places,
                                int i)
{
    const void *handle = places == NULL        ? NULL
                         : i < TANDEM_MAX_SRC  ? places->src[i].handle
                         : i == TANDEM_MAX_SRC ? places->result.handle
                                               : places->workspace.handle;
    return handle != NULL ? find_mirror(self, handle) : NULL;
}

/* A work begins when everything streamed into its mirrors has arrived. */
static void await_streams(struct sim_own *self, const struct tandem_places *places)
{
    for (int i = 0; i < N_MIRRORS; i++) {
        const struct mirror *mirror = mirror_of(self, places, i);
        if (mirror != NULL) {
            self->common.busy_until_ns = later(self->common.busy_until_ns, mirror->arrives_ns);
        }
    }
}

static void note_use(const struct sim_own *self, const struct tandem_places *places,
                     uint64_t done_ns)
{
    for (int i = 0; i < N_MIRRORS; i++) {
        struct mirror *mirror = mirror_of(self, places, i);
        if (mirror != NULL) {
            mirror->used_ns = done_ns;
        }
    }
}

static void enqueue_stream(struct sim_own *self, struct entry *entry, struct mirror *mirror,
                           size_t bytes)
{
    const struct tnd_clock *clock = self->common.clock;
    uint64_t begin_ns = later(clock->now_ns(clock), later(self->streams_until_ns, mirror->used_ns));
    self->streams_until_ns =
        begin_ns + tnd_sim_script_ns(&self->common.script, 0, (double)bytes, 0);
    mirror->arrives_ns = self->streams_until_ns;
    append(self, entry, self->streams_until_ns);
    self->common.statistics.streams++;
}

/* ---- opening ---- */

enum tandem_status tnd_sim_own_open(const struct tandem_backend_api *api,
                                    const struct tnd_sim_script *script,
                                    tandem_backend **out_backend, struct tandem_error *error)
{
    struct sim_own *self = tnd_calloc(1, sizeof(*self));
    if (self == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "sim", (int64_t)sizeof(*self), 0,
                             "backend sim: no memory");
    }
    tnd_sim_common_init(&self->common, api, script);
    *out_backend = &self->common.base;
    return TANDEM_OK;
}

static void own_close(tandem_backend *backend)
{
    struct sim_own *self = own_of(backend);
    happen(self, UINT64_MAX);
    while (self->mirrors != NULL) {
        remove_mirror(self, &self->mirrors);
    }
    pthread_mutex_destroy(&self->common.lock);
    tnd_free(self->row.values);
    tnd_free(self);
}

static const char *own_describe(tandem_backend *backend)
{
    (void)backend;
    return "pretended device with memory of its own";
}

static enum tandem_status own_supports(tandem_backend *backend, const tandem_tensor *node,
                                       uint32_t task, struct tandem_error *error)
{
    (void)backend;
    if (node->op == TANDEM_OP_CUSTOM) {
        return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BACKEND, "sim", 0, 0,
                             "backend sim: callbacks of the program look at host memory");
    }
    return tnd_sim_compute_supports(node, task, error);
}

static size_t own_workspace(tandem_backend *backend, const tandem_tensor *node, uint32_t task)
{
    (void)backend;
    return tnd_sim_compute_workspace(node, task);
}

/* ---- works ---- */

/* Whether the task reads the i-th operand. */
static bool needs_operand(const struct tandem_work *work, int i)
{
    const tandem_tensor *node = work->node;
    if (work->task == TANDEM_TASK_DEQUANTIZE_W) {
        return i == 0;
    }
    return work->task != TANDEM_TASK_MUL_MAT_F32 || i == 1 || node->src[0]->type == TANDEM_TYPE_F32;
}

static enum tandem_status translate_tensor(struct sim_own *self, const tandem_tensor *tensor,
                                           struct tandem_place place, tandem_tensor *out,
                                           struct tandem_error *error)
{
    size_t bytes = tandem_tensor_bytes(tensor);
    *out = *tensor;
    out->data = find(self, place, bytes);
    if (out->data == NULL && bytes > 0) {
        return refuse_unmapped(self, "an operand", bytes, error);
    }
    return TANDEM_OK;
}

/* Copies the work with all addresses inside of mirrors; tensors that it does not use have none. */
static enum tandem_status translate(struct sim_own *self, const struct tandem_work *work,
                                    struct entry *entry, struct tandem_error *error)
{
    static const struct tandem_places nowhere;
    const struct tandem_places *places = work->places != NULL ? work->places : &nowhere;
    struct tandem_tensor *node = &entry->tensors.node;
    entry->work = *work;
    entry->work.places = NULL;
    entry->work.node = node;
    *node = *work->node;
    node->data = NULL;
    if (work->task != TANDEM_TASK_DEQUANTIZE_W) {
        TND_TRY(translate_tensor(self, work->node, places->result, node, error));
    }
    for (int i = 0; i < node->n_src; i++) {
        struct tandem_tensor *src = &entry->tensors.src[i];
        if (work->node->src[i] == NULL) {
            continue;
        }
        *src = *work->node->src[i];
        src->data = NULL;
        if (needs_operand(work, i)) {
            TND_TRY(translate_tensor(self, work->node->src[i], places->src[i], src, error));
        }
        node->src[i] = src;
    }
    if (work->workspace_bytes > 0) {
        entry->work.workspace = find(self, places->workspace, work->workspace_bytes);
        if (entry->work.workspace == NULL) {
            return refuse_unmapped(self, "a workspace", work->workspace_bytes, error);
        }
    }
    return TANDEM_OK;
}

static double flops_of(const struct tandem_work *work)
{
    const tandem_tensor *node = work->node;
    double flops = (double)tandem_tensor_elements(node);
    bool is_product = node->op == TANDEM_OP_MUL_MAT || node->op == TANDEM_OP_MUL_MAT_ID;
    return is_product ? flops * 2 * (double)node->src[0]->ne[0] : flops;
}

static enum tandem_status submit_locked(struct sim_own *self, const struct tandem_work *work,
                                        uint64_t *out_ticket, struct tandem_error *error)
{
    TND_TRY(enter(self, TND_SIM_CALL_SUBMIT, error));
    struct entry *entry = new_entry(ENTRY_WORK);
    if (entry == NULL) {
        return out_of_memory(error);
    }
    enum tandem_status status = translate(self, work, entry, error);
    if (status != TANDEM_OK) {
        tnd_free(entry);
        return status;
    }
    entry->n_submit = self->n_calls[TND_SIM_CALL_SUBMIT];
    await_streams(self, work->places);
    if ((double)self->common.statistics.submits + 1 == self->common.script.stall_at) {
        (void)tnd_sim_occupy(&self->common, (uint64_t)(self->common.script.stall_us * 1e3));
    }
    *out_ticket = enqueue(self, entry, flops_of(work), 0, 0);
    note_use(self, work->places, entry->done_ns);
    self->common.statistics.submits++;
    self->common.statistics.in_flight++;
    return TANDEM_OK;
}

static enum tandem_status own_submit(tandem_backend *backend, const struct tandem_work *work,
                                     uint64_t *out_ticket, struct tandem_error *error)
{
    struct sim_own *self = own_of(backend);
    pthread_mutex_lock(&self->common.lock);
    enum tandem_status status = submit_locked(self, work, out_ticket, error);
    pthread_mutex_unlock(&self->common.lock);
    return status;
}

static enum tandem_status own_sync(tandem_backend *backend, uint64_t ticket,
                                   struct tandem_error *error)
{
    struct sim_own *self = own_of(backend);
    pthread_mutex_lock(&self->common.lock);
    enum tandem_status status = enter(self, TND_SIM_CALL_SYNC, error);
    self->is_broken = status != TANDEM_OK;
    happen(self, ticket);
    self->is_broken = false;
    if (status == TANDEM_OK && self->status != TANDEM_OK) {
        status = self->status;
        if (error != NULL) {
            *error = self->error;
        }
    }
    self->status = TANDEM_OK;
    self->common.statistics.syncs++;
    const struct tnd_clock *clock = self->common.clock;
    uint64_t done_ns = self->done_ns;
    pthread_mutex_unlock(&self->common.lock);
    clock->wait_until_ns(clock, done_ns);
    return status;
}

/* What stands in the queue happens in its order, and later than by the clock: only the time
 * counts. */
static bool own_poll(tandem_backend *backend, uint64_t ticket, bool *out_is_over)
{
    struct sim_own *self = own_of(backend);
    pthread_mutex_lock(&self->common.lock);
    const uint64_t now_ns = self->common.clock->now_ns(self->common.clock);
    *out_is_over = self->done_ns <= now_ns;
    for (const struct entry *at = self->first; at != NULL && at->ticket <= ticket; at = at->next) {
        *out_is_over = *out_is_over && (at->kind == ENTRY_STREAM || at->done_ns <= now_ns);
    }
    pthread_mutex_unlock(&self->common.lock);
    return true;
}

/* ---- memory ---- */

static enum tandem_status map_locked(struct sim_own *self, size_t bytes, void **out_handle,
                                     struct tandem_error *error)
{
    TND_TRY(enter(self, TND_SIM_CALL_MAP, error));
    TND_TRY(add_mirror(self, bytes, false, error));
    self->common.statistics.maps++;
    *out_handle = self->mirrors;
    return TANDEM_OK;
}

static enum tandem_status own_map(tandem_backend *backend, size_t bytes, void **out_handle,
                                  struct tandem_error *error)
{
    struct sim_own *self = own_of(backend);
    pthread_mutex_lock(&self->common.lock);
    enum tandem_status status = map_locked(self, bytes, out_handle, error);
    pthread_mutex_unlock(&self->common.lock);
    return status;
}

static void own_give_back(tandem_backend *backend, void *handle)
{
    struct sim_own *self = own_of(backend);
    pthread_mutex_lock(&self->common.lock);
    happen(self, UINT64_MAX);
    struct mirror **place = &self->mirrors;
    while (*place != NULL && *place != handle) {
        place = &(*place)->next;
    }
    if (*place != NULL) {
        remove_mirror(self, place);
    } else {
        self->common.statistics.unmapped_accesses++;
    }
    pthread_mutex_unlock(&self->common.lock);
}

static enum tandem_status upload_locked(struct sim_own *self, enum entry_kind kind,
                                        struct tandem_place place, const void *from, size_t bytes,
                                        struct tandem_error *error)
{
    TND_TRY(enter(self, TND_SIM_CALL_UPLOAD, error));
    char *to = find(self, place, bytes);
    if (to == NULL) {
        return refuse_unmapped(self, "an upload", bytes, error);
    }
    struct entry *entry = new_entry(kind);
    char *copy = tnd_alloc(bytes);
    if (entry == NULL || copy == NULL) {
        tnd_free(entry);
        tnd_free(copy);
        return out_of_memory(error);
    }
    memcpy(copy, from, bytes);
    entry->from = copy;
    entry->to = to;
    entry->bytes = bytes;
    if (kind == ENTRY_STREAM) {
        enqueue_stream(self, entry, find_mirror(self, place.handle), bytes);
    } else {
        enqueue(self, entry, 0, (double)bytes, 0);
    }
    self->common.statistics.uploads++;
    self->common.statistics.upload_bytes += bytes;
    return TANDEM_OK;
}

static enum tandem_status own_upload(tandem_backend *backend, struct tandem_place to,
                                     const void *from, size_t bytes, struct tandem_error *error)
{
    struct sim_own *self = own_of(backend);
    pthread_mutex_lock(&self->common.lock);
    enum tandem_status status = upload_locked(self, ENTRY_UPLOAD, to, from, bytes, error);
    pthread_mutex_unlock(&self->common.lock);
    return status;
}

static enum tandem_status own_stream(tandem_backend *backend, struct tandem_place to,
                                     const void *from, size_t bytes, struct tandem_error *error)
{
    struct sim_own *self = own_of(backend);
    pthread_mutex_lock(&self->common.lock);
    enum tandem_status status = upload_locked(self, ENTRY_STREAM, to, from, bytes, error);
    pthread_mutex_unlock(&self->common.lock);
    return status;
}

static enum tandem_status download_locked(struct sim_own *self, struct tandem_place place, void *to,
                                          size_t bytes, uint64_t *out_ticket,
                                          struct tandem_error *error)
{
    TND_TRY(enter(self, TND_SIM_CALL_DOWNLOAD, error));
    char *from = find(self, place, bytes);
    if (from == NULL) {
        return refuse_unmapped(self, "a download", bytes, error);
    }
    struct entry *entry = new_entry(ENTRY_DOWNLOAD);
    if (entry == NULL) {
        return out_of_memory(error);
    }
    entry->from = from;
    entry->to = to;
    entry->bytes = bytes;
    *out_ticket = enqueue(self, entry, 0, 0, (double)bytes);
    self->common.statistics.downloads++;
    self->common.statistics.download_bytes += bytes;
    self->common.statistics.in_flight++;
    return TANDEM_OK;
}

static enum tandem_status own_download(tandem_backend *backend, struct tandem_place from, void *to,
                                       size_t bytes, uint64_t *out_ticket,
                                       struct tandem_error *error)
{
    struct sim_own *self = own_of(backend);
    pthread_mutex_lock(&self->common.lock);
    enum tandem_status status = download_locked(self, from, to, bytes, out_ticket, error);
    pthread_mutex_unlock(&self->common.lock);
    return status;
}

/* ---- weights ---- */

static enum tandem_status prepare_locked(struct sim_own *self, const tandem_tensor *weight,
                                         void **out_handle, struct tandem_error *error)
{
    size_t bytes = tandem_tensor_bytes(weight);
    TND_TRY(enter(self, TND_SIM_CALL_PREPARE, error));
    double budget = self->common.script.budget;
    if (budget > 0 && self->resident_bytes + (double)bytes > budget) {
        return tnd_error_set(error, TANDEM_E_DEVICE_MEMORY, weight->name, (int64_t)bytes,
                             (int64_t)(budget - self->resident_bytes),
                             "backend sim: a weight of %zu bytes, the budget has %.0f left", bytes,
                             budget - self->resident_bytes);
    }
    happen(self, UINT64_MAX); /* the queue uses the list of mirrors */
    TND_TRY(add_mirror(self, bytes, true, error));
    memcpy(self->mirrors->memory, weight->data, bytes);
    *out_handle = self->mirrors;
    tnd_sim_occupy(&self->common, tnd_sim_script_ns(&self->common.script, 0, (double)bytes, 0));
    self->resident_bytes += (double)bytes;
    self->common.statistics.weight_uploads++;
    return TANDEM_OK;
}

static enum tandem_status own_prepare(tandem_backend *backend, const tandem_tensor *weight,
                                      void **out_handle, struct tandem_error *error)
{
    struct sim_own *self = own_of(backend);
    pthread_mutex_lock(&self->common.lock);
    enum tandem_status status = prepare_locked(self, weight, out_handle, error);
    pthread_mutex_unlock(&self->common.lock);
    return status;
}

/* ---- vtable functions, once for each name ---- */

static uint64_t own_weight_budget(tandem_backend *backend)
{
    return (uint64_t)own_of(backend)->common.script.budget;
}

#define OWN_API(symbol, api_name, opens)                                                           \
    const struct tandem_backend_api symbol = {                                                     \
        .abi = TANDEM_ABI,                                                                         \
        .size = sizeof(struct tandem_backend_api),                                                 \
        .name = api_name,                                                                          \
        .kind = TANDEM_KIND_SIM,                                                                   \
        .open = opens,                                                                             \
        .close = own_close,                                                                        \
        .describe = own_describe,                                                                  \
        .supports = own_supports,                                                                  \
        .workspace = own_workspace,                                                                \
        .submit = own_submit,                                                                      \
        .sync = own_sync,                                                                          \
        .prepare = own_prepare,                                                                    \
        .forget = own_give_back,                                                                   \
        .memory = TANDEM_MEMORY_OWN,                                                               \
        .map = own_map,                                                                            \
        .unmap = own_give_back,                                                                    \
        .upload = own_upload,                                                                      \
        .download = own_download,                                                                  \
        .stream = own_stream,                                                                      \
        .weight_budget = own_weight_budget,                                                        \
        .poll = own_poll,                                                                          \
    }

static enum tandem_status open_named(const struct tandem_backend_api *api,
                                     const struct tandem_backend_options *options,
                                     tandem_backend **out_backend, struct tandem_error *error)
{
    struct tnd_sim_script script;
    TND_TRY(tnd_sim_script_read(options->settings, &script, error));
    return tnd_sim_own_open(api, &script, out_backend, error);
}

static enum tandem_status open_sim(const struct tandem_backend_options *options,
                                   tandem_backend **out_backend, struct tandem_error *error)
{
    return open_named(&tnd_backend_sim_own, options, out_backend, error);
}

static enum tandem_status open_first(const struct tandem_backend_options *options,
                                     tandem_backend **out_backend, struct tandem_error *error)
{
    return open_named(&tnd_sim_own_api, options, out_backend, error);
}

static enum tandem_status open_second(const struct tandem_backend_options *options,
                                      tandem_backend **out_backend, struct tandem_error *error)
{
    return open_named(&tnd_sim_own2_api, options, out_backend, error);
}

OWN_API(tnd_backend_sim_own, "sim", open_sim);
OWN_API(tnd_sim_own_api, "simown", open_first);
OWN_API(tnd_sim_own2_api, "simown2", open_second);
