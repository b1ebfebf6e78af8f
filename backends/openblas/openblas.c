/* SPDX-License-Identifier: MIT
 * The OpenBLAS backend: F32 matrix products with sgemm. Y (M x N) = X (M x K) * W^T (K x N); W is
 * the node's own weights if they are F32, else the ones that another backend has dequantised into
 * the workspace.
 *
 * Our threads compute column panels of Y; a panel is one call of sgemm on one thread. The bits of
 * sgemm depend on a call's shape, so the borders of panels depend only on the node, and a single
 * thread uses panels, too: results do not depend on the number of our threads. OpenBLAS's own
 * threads get the whole product in one call, whose bits may depend on their number. */
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "backends/openblas/openblas_library.h"
#include "backends/settings.h"
#include "base/alloc.h"
#include "base/checked.h"
#include "ggml-like/tnd_tensor.h"
#include "tandem/backend.h"

extern const struct tandem_backend_api tnd_backend_openblas;
static const char name[] = "openblas";

struct openblas {
    tandem_backend base;
    const struct tnd_openblas *library;
    int64_t n_cpus; /* of the machine, even if this process may use fewer */
};

/* ---- profiles and settings ---- */

static bool openblas_setting(int i, struct tandem_backend_setting *out)
{
    static const struct tandem_backend_setting settings[] = {
        {"path", "FILE", "the library to load"},
        {"environment", "keep", "OPENBLAS_* variables stay as they are while it is loaded"},
    };
    bool exists = i >= 0 && (size_t)i < sizeof(settings) / sizeof(settings[0]);
    *out = exists ? settings[i] : *out;
    return exists;
}

/* INIT dequantises weights to F32 on all CPU threads, COMPUTE is sgemm. Profiles differ in the
 * threads of sgemm: a single one (the others sleep), OpenBLAS's own pool, or our pool over column
 * panels. */
static bool openblas_profile(int i, enum tandem_type type, struct tandem_backend_profile *out)
{
    static const struct {
        const char *name, *what;
        bool parallel, own_threads;
    } rows[] = {
        {"cpu+openblas", "weights to F32 on the CPU, then sgemm of OpenBLAS on one thread", false,
         false},
        {"cpu+openblas-threads", "weights to F32 on the CPU, then sgemm on OpenBLAS's own threads",
         false, true},
        {"cpu+openblas-panels",
         "weights to F32 on the CPU, then sgemm over column panels on our threads", true, false},
    };
    if (i < 0 || (size_t)i >= sizeof(rows) / sizeof(rows[0])) {
        return false;
    }
    *out = (struct tandem_backend_profile){.name = rows[i].name, .what = rows[i].what};
    if (type == TANDEM_TYPE_I32) {
        return true;
    }
    if (type != TANDEM_TYPE_F32) {
        out->init = (struct tandem_profile_stage){
            .task = TANDEM_TASK_DEQUANTIZE_W, .place = TANDEM_ON_CPU, .parallel = true};
    }
    out->compute = (struct tandem_profile_stage){
        .task = TANDEM_TASK_MUL_MAT_F32,
        .parallel = rows[i].parallel,
        .wait = !rows[i].parallel, /* our workers are idle while OpenBLAS works */
        .own_threads = rows[i].own_threads,
    };
    return true;
}

/* ---- opening ---- */

struct settings {
    char path[256];
    bool keep_environment;
};

static enum tandem_status read_settings(const char *text, struct settings *out,
                                        struct tandem_error *error)
{
    struct tnd_setting setting;
    while (tnd_settings_next(&text, &setting)) {
        if (tnd_setting_is(&setting, "path") && setting.value_n > 0 &&
            setting.value_n < sizeof(out->path)) {
            memcpy(out->path, setting.value, setting.value_n);
            out->path[setting.value_n] = '\0';
        } else if (tnd_setting_is(&setting, "environment") &&
                   tnd_setting_value_is(&setting, "keep")) {
            out->keep_environment = true;
        } else {
            return tnd_setting_refuse_by(&setting, &tnd_backend_openblas, name, error);
        }
    }
    return TANDEM_OK;
}

static enum tandem_status openblas_open(const struct tandem_backend_options *options,
                                        tandem_backend **out_backend, struct tandem_error *error)
{
    struct settings settings = {"", false};
    TND_TRY(read_settings(options->settings, &settings, error));
    struct openblas *self = tnd_calloc(1, sizeof(*self));
    if (self == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, name, (int64_t)sizeof(*self), 0,
                             "backend openblas: no memory");
    }
    struct tnd_openblas_load load = {settings.path[0] != '\0' ? settings.path : NULL,
                                     settings.keep_environment};
    enum tandem_status status = tnd_openblas_acquire(&load, &self->library, error);
    if (status != TANDEM_OK) {
        tnd_free(self);
        return status;
    }
    if (self->library->may_spin && options->log != NULL) {
        options->log(options->log_user, TANDEM_LOG_WARN,
                     "openblas: its idle threads may poll and take cores from ours; set "
                     "OPENBLAS_THREAD_TIMEOUT=4 (OpenMP build: OMP_WAIT_POLICY=passive)");
    }
    long n_cpus = sysconf(_SC_NPROCESSORS_CONF);
    self->n_cpus = n_cpus > 0 ? n_cpus : 1;
    self->base.api = &tnd_backend_openblas;
    *out_backend = &self->base;
    return TANDEM_OK;
}

static void openblas_close(tandem_backend *backend)
{
    tnd_openblas_release();
    tnd_free(backend);
}

static const char *openblas_describe(tandem_backend *backend)
{
    return ((struct openblas *)backend)->library->text;
}

static bool openblas_identity(tandem_backend *backend, int i, struct tandem_backend_fact *out)
{
    *out = (struct tandem_backend_fact){"library", openblas_describe(backend)};
    return i == 0;
}

/* ---- what can be run ---- */

static enum tandem_status refuse(struct tandem_error *error, const char *why)
{
    return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BACKEND, name, 0, 0, "backend openblas: %s",
                         why);
}

static enum tandem_status openblas_supports(tandem_backend *backend, const tandem_tensor *node,
                                            uint32_t task, struct tandem_error *error)
{
    (void)backend;
    if (task != TANDEM_TASK_MUL_MAT_F32) {
        return refuse(error, "runs the task mul_mat_f32 only");
    }
    if (!tnd_mul_mat_is_plain(node)) {
        return refuse(error,
                      "multiplies two dense matrices whose first is a leaf, and nothing else");
    }
    const tandem_tensor *w = node->src[0]; /* {K, N} */
    if (w->type == TANDEM_TYPE_I32 || node->src[1]->type != TANDEM_TYPE_F32) {
        return refuse(error, "multiplies F32 activations with weights that become F32");
    }
    size_t bytes = 0;
    if (w->ne[0] > INT_MAX || w->ne[1] > INT_MAX || node->ne[1] > INT_MAX ||
        !tnd_mul_size((size_t)w->ne[0], (size_t)w->ne[1], &bytes) ||
        !tnd_mul_size(bytes, sizeof(float), &bytes)) {
        return refuse(error, "counts rows and columns in 32 bits, the matrices are larger");
    }
    return TANDEM_OK;
}

static size_t openblas_workspace(tandem_backend *backend, const tandem_tensor *node, uint32_t task)
{
    if (openblas_supports(backend, node, task, NULL) != TANDEM_OK ||
        node->src[0]->type == TANDEM_TYPE_F32) {
        return 0;
    }
    return (size_t)node->src[0]->ne[0] * (size_t)node->src[0]->ne[1] * sizeof(float);
}

/* ---- running ---- */

/* A product whose rows of W are computed in several calls. */
struct product {
    const struct tnd_openblas *library;
    const float *w; /* {K, N} */
    const float *x; /* {K, M} */
    float *y;       /* {N, M} */
    int n, k, m;
};

/* Computes columns begin .. end-1 of Y. */
static void multiply(const struct product *p, int64_t begin, int64_t end)
{
    p->library->functions.sgemm(TND_CBLAS_ROW_MAJOR, TND_CBLAS_NO_TRANS, TND_CBLAS_TRANS, p->m,
                                (int)(end - begin), p->k, 1.0F, p->x, p->k, p->w + begin * p->k,
                                p->k, 0.0F, p->y + begin, p->n);
}

/* Columns per panel: about four panels per CPU, but not so narrow that packing X again for each
 * panel costs more than a few percent (measured: 64 columns cost 28 % at M = 512, 512 columns 3 %;
 * at M = 128 nothing). With few tokens panels are narrow: below about 10^6 multiplications sgemm
 * packs nothing and is 4 times faster at M = 1. */
static int64_t panel_columns(const struct openblas *self, const struct product *p)
{
    if (p->m <= 4) {
        return 64;
    }
    int64_t most = p->m >= 256 ? 512 : 256;
    int64_t least = p->m >= 64 ? 128 : 64;
    int64_t columns = (p->n / (4 * self->n_cpus) + 63) / 64 * 64;
    return columns > most ? most : columns < least ? least : columns;
}

static void run_panels(const struct openblas *self, const struct product *p,
                       const struct tandem_work *work, struct tandem_worker *worker)
{
    int64_t columns = panel_columns(self, p);
    int64_t first = work->row_begin / columns; /* panels are counted from column 0 */
    int64_t last = (work->row_end - 1) / columns;
    bool inside = false;
    int64_t begin = 0;
    int64_t end = 0;
    while (worker->next(worker, last - first + 1, 1, &begin, &end)) {
        if (!inside) {
            tnd_openblas_enter(self->library, 1);
            inside = true;
        }
        for (int64_t i = first + begin; i < first + end; i++) {
            int64_t row = i * columns;
            multiply(p, row > work->row_begin ? row : work->row_begin,
                     row + columns < work->row_end ? row + columns : work->row_end);
        }
    }
    if (inside) {
        tnd_openblas_leave(self->library, 1);
    }
}

static void clear_columns(const struct product *p, const struct tandem_work *work)
{
    for (int i = 0; i < p->m; i++) {
        memset(p->y + (int64_t)i * p->n + work->row_begin, 0,
               (size_t)(work->row_end - work->row_begin) * sizeof(float));
    }
}

static enum tandem_status openblas_run(tandem_backend *backend, const struct tandem_work *work,
                                       struct tandem_worker *worker)
{
    const struct openblas *self = (const struct openblas *)backend;
    const tandem_tensor *node = work->node;
    const tandem_tensor *w = node->src[0];
    bool has_own_weights = w->type == TANDEM_TYPE_F32;
    struct product p = {
        self->library,      has_own_weights ? w->data : work->workspace,
        node->src[1]->data, node->data,
        (int)node->ne[0],   (int)w->ne[0],
        (int)node->ne[1],
    };
    if (work->row_begin >= work->row_end || p.m == 0) {
        return TANDEM_OK;
    }
    if (p.k == 0) {
        if (worker->index == 0) {
            clear_columns(&p, work);
        }
        return TANDEM_OK;
    }
    int own_threads = worker->own_threads < self->library->max_threads ? worker->own_threads
                                                                       : self->library->max_threads;
    if (worker->count > 1 || own_threads <= 1) {
        run_panels(self, &p, work, worker);
        return TANDEM_OK;
    }
    tnd_openblas_enter(self->library, own_threads);
    multiply(&p, work->row_begin, work->row_end);
    tnd_openblas_leave(self->library, own_threads);
    return TANDEM_OK;
}

const struct tandem_backend_api tnd_backend_openblas = {
    .abi = TANDEM_ABI,
    .size = sizeof(struct tandem_backend_api),
    .name = name,
    .kind = TANDEM_KIND_OPENBLAS,
    .open = openblas_open,
    .close = openblas_close,
    .describe = openblas_describe,
    .supports = openblas_supports,
    .workspace = openblas_workspace,
    .run = openblas_run,
    .identity = openblas_identity,
    .profile = openblas_profile,
    .setting = openblas_setting,
};
