/* SPDX-License-Identifier: MIT
 * Stubs: backends that only report what they can run and how, as recorded in a table. */
#include "tools/report/stub_backends.h"

#include <string.h>

#include "backends/task.h"
#include "base/alloc.h"
#include "base/tnd_status.h"
#include "ggml-like/tnd_tensor.h"
#include "ggml-like/work.h"
#include "tune/profiles.h"

struct stub {
    tandem_backend base;
    struct tandem_backend_api api;
    char name[sizeof(((struct tnd_transfer *)0)->backend)];
};

static bool is_device(enum tandem_backend_kind kind)
{
    return tnd_kind_is_device(kind) || kind == TANDEM_KIND_SIM;
}

/* ---- the functions of a backend ---- */

static enum tandem_status refuse(const tandem_backend *backend, const char *why,
                                 struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BACKEND, backend->api->name, 0, 0,
                         "backend %s: %s", backend->api->name, why);
}

static enum tandem_status no_open(const struct tandem_backend_options *options,
                                  tandem_backend **out_backend, struct tandem_error *error)
{
    (void)options;
    (void)out_backend;
    return tnd_error_set(error, TANDEM_E_UNSUPPORTED_MACHINE, "", 0, 0,
                         "the backend stands for one of another machine");
}

static void close_stub(tandem_backend *backend)
{
    tnd_free(backend);
}

/* What backends of this kind can run; a table has only products. */
static enum tandem_status supports(tandem_backend *backend, const tandem_tensor *node,
                                   uint32_t task, struct tandem_error *error)
{
    enum tandem_backend_kind kind = (enum tandem_backend_kind)backend->api->kind;
    bool is_product = node->op == TANDEM_OP_MUL_MAT_ID ||
                      (node->op == TANDEM_OP_MUL_MAT && tnd_mul_mat_is_plain(node));
    if (tnd_task_is(task, TND_TASK_WHOLE)) {
        const struct tnd_work *work = tnd_work_of(node);
        bool takes = kind == TANDEM_KIND_CPU || (is_device(kind) && node->op != TANDEM_OP_CUSTOM &&
                                                 (work == NULL || work->source != NULL));
        return takes || is_product ? TANDEM_OK
                                   : refuse(backend, "takes products of matrices alone", error);
    }
    if (!is_product) {
        return refuse(backend, "the task is part of a product of two dense matrices", error);
    }
    const tandem_tensor *weight = node->src[0];
    bool is_whole_constant =
        (weight->root->flags & TND_TENSOR_CONSTANT) != 0 && weight->root == weight;
    if (tnd_task_is(task, TND_TASK_USES_PACKED) && !is_whole_constant) {
        return refuse(backend, "packs constant weights alone", error);
    }
    return TANDEM_OK;
}

/* For weights as F32, or activations in 8-bit blocks. */
static size_t workspace(tandem_backend *backend, const tandem_tensor *node, uint32_t task)
{
    (void)backend;
    if (tnd_task_is(task, TND_TASK_LEAVES_W | TND_TASK_USES_LEFT_W)) {
        const tandem_tensor *w = node->src[0];
        bool is_float = w->type == TANDEM_TYPE_F32;
        return is_float ? 0 : (size_t)w->ne[0] * (size_t)w->ne[1] * sizeof(float);
    }
    if (tnd_task_is(task, TND_TASK_LEAVES_X | TND_TASK_USES_LEFT_X)) {
        const tandem_tensor *x = node->src[1];
        return tandem_type_row_bytes(TANDEM_TYPE_Q8_0, x->ne[0]) * (size_t)x->ne[1];
    }
    return 0;
}

static enum tandem_status no_run(tandem_backend *backend, const struct tandem_work *work,
                                 struct tandem_worker *worker)
{
    (void)work;
    return refuse(backend, "stands for one of another machine", worker->error);
}

static enum tandem_status no_submit(tandem_backend *backend, const struct tandem_work *work,
                                    uint64_t *out_ticket, struct tandem_error *error)
{
    (void)work;
    (void)out_ticket;
    return refuse(backend, "stands for one of another machine", error);
}

static enum tandem_status no_sync(tandem_backend *backend, uint64_t ticket,
                                  struct tandem_error *error)
{
    (void)ticket;
    return refuse(backend, "stands for one of another machine", error);
}

/* The room above tracks mirrors; a stub allocates nothing for them. */
static enum tandem_status map(tandem_backend *backend, size_t bytes, void **out_handle,
                              struct tandem_error *error)
{
    *out_handle = backend;
    (void)bytes;
    (void)error;
    return TANDEM_OK;
}

static void unmap(tandem_backend *backend, void *handle)
{
    (void)backend;
    (void)handle;
}

static enum tandem_status no_upload(tandem_backend *backend, struct tandem_place to,
                                    const void *from, size_t bytes, struct tandem_error *error)
{
    (void)to;
    (void)from;
    (void)bytes;
    return refuse(backend, "stands for one of another machine", error);
}

static enum tandem_status no_download(tandem_backend *backend, struct tandem_place from, void *to,
                                      size_t bytes, uint64_t *out_ticket,
                                      struct tandem_error *error)
{
    (void)out_ticket;
    return no_upload(backend, from, to, bytes, error);
}

/* ---- the contents of a table ---- */

struct known {
    const char *name;
    enum tandem_backend_kind kind;
};

struct known_list {
    int n;
    struct known known[TND_MAX_SLOTS]; /* more would have no slot */
    bool is_full;
};

static void note(struct known_list *list, const char *name, enum tandem_backend_kind kind)
{
    for (int i = 0; i < list->n; i++) {
        if (strcmp(list->known[i].name, name) == 0) {
            return;
        }
    }
    if (list->n == TND_MAX_SLOTS) {
        list->is_full = true;
        return;
    }
    list->known[list->n++] = (struct known){name, kind};
}

static void note_stages(struct known_list *list, const struct tnd_table_profile *profile)
{
    for (int s = 0; s < TANDEM_STAGES; s++) {
        const struct tnd_table_stage *stage = &profile->stage[s];
        if (stage->backend[0] != '\0') {
            note(list, stage->backend, (enum tandem_backend_kind)stage->kind);
        }
    }
}

static enum tandem_status open_one(const struct tandem_table *table, const struct known *known,
                                   tandem_backend **out_backend, struct tandem_error *error)
{
    struct stub *stub = tnd_calloc(1, sizeof(*stub));
    if (stub == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, known->name, 0, 0,
                             "simulation: out of memory for backend %s", known->name);
    }
    strncpy(stub->name, known->name, sizeof(stub->name) - 1);
    struct tandem_backend_api *api = &stub->api;
    *api = (struct tandem_backend_api){
        .abi = TANDEM_ABI,
        .size = sizeof(*api),
        .name = stub->name,
        .kind = known->kind,
        .open = no_open,
        .close = close_stub,
        .supports = supports,
        .workspace = workspace,
        .run = is_device(known->kind) ? NULL : no_run,
        .submit = no_submit,
        .sync = no_sync,
        .map = map,
        .unmap = unmap,
        .upload = no_upload,
        .download = no_download,
    };
    bool moves = tnd_table_transfer(table, known->name, TND_UPLOAD) != NULL ||
                 tnd_table_transfer(table, known->name, TND_DOWNLOAD) != NULL;
    api->memory = is_device(known->kind) && moves ? TANDEM_MEMORY_OWN : TANDEM_MEMORY_HOST;
    stub->base.api = api;
    *out_backend = &stub->base;
    return TANDEM_OK;
}

enum tandem_status tnd_stub_backends_open(const struct tandem_table *table, int n_threads_max,
                                          struct tnd_registry **out_registry,
                                          struct tandem_error *error)
{
    struct known_list list = {.n = 0};
    tandem_backend *backends[TND_MAX_SLOTS];
    int n = 0;
    note(&list, "cpu", TANDEM_KIND_CPU);
    for (int p = 0; p < table->n_profiles; p++) {
        note_stages(&list, &table->profiles[p]);
    }
    enum tandem_status status = TANDEM_OK;
    if (list.is_full) {
        return tnd_error_set(error, TANDEM_E_LIMIT, "", list.n, TND_MAX_SLOTS - 1,
                             "simulation: the table has more than %d backends", TND_MAX_SLOTS - 1);
    }
    while (n < list.n && status == TANDEM_OK) {
        status = open_one(table, &list.known[n], &backends[n], error);
        n += status == TANDEM_OK;
    }
    if (status == TANDEM_OK) {
        status = tnd_registry_hold(backends, n, n_threads_max, out_registry, error);
    }
    for (int i = 0; i < n && status != TANDEM_OK; i++) {
        close_stub(backends[i]);
    }
    return status;
}

int tnd_stub_candidates(const struct tnd_registry *registry, const struct tandem_table *table,
                        const tandem_tensor *node, enum tandem_type type, double error_bound,
                        struct tnd_candidate *out)
{
    int n = 0;
    int n_all = tnd_candidates_of_table(table, type, error_bound, out);
    for (int i = 0; i < n_all; i++) {
        struct tnd_candidate candidate = out[i];
        if (!tnd_profile_resolve(&candidate.profile, registry, candidate.node.stage, NULL, 0) ||
            !tnd_node_is_supported(registry, &candidate.node, node)) {
            continue;
        }
        memcpy(candidate.node.profile, candidate.profile.name, sizeof(candidate.node.profile));
        candidate.node.n_threads = 1;
        out[n++] = candidate;
    }
    return n;
}
