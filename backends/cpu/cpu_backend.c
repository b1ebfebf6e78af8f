/* SPDX-License-Identifier: MIT
 * The CPU backend: which driver computes which operation. Matrix products are in matmul*.c,
 * everything else in cpu_*.c; the kernels that they call are chosen by CPU features. */
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "backends/cpu/ops/cpu_ops.h"
#include "backends/cpu/matmul/matmul.h"
#include "backends/cpu/packing/packed_numa.h"
#include "backends/cpu/packing/packed_weights.h"
#include "backends/cpu/cpu_profiles.h"
#include "backends/cpu/cpu_tuner.h"
#include "backends/settings.h"
#include "base/alloc.h"
#include "base/cgroup.h"
#include "base/cpu.h"
#include "base/tnd_status.h"

struct cpu_backend {
    tandem_backend base;
    const struct tnd_cpu_kernels *kernels; /* points to `own` */
    struct tnd_cpu_kernels own;            /* of this machine, with a table's kernel numbers */
    struct tnd_packed_weights *packed;     /* NULL: packed copies are turned off */
    enum tnd_numa_policy numa;             /* as set */
    int (*log)(void *user, int level, const char *text); /* NULL: silent */
    void *log_user;
    atomic_bool has_told_refusal; /* of a memory policy; logged once */
    char description[192];
};

enum tandem_status tnd_cpu_nothing(const struct tnd_cpu_kernels *kernels,
                                   const struct tandem_tensor *node, struct tandem_worker *worker)
{
    (void)kernels;
    (void)node;
    (void)worker;
    return TANDEM_OK;
}

enum tandem_status tnd_cpu_node_run(const struct tnd_cpu_kernels *kernels,
                                    const struct tandem_tensor *node, struct tandem_worker *worker)
{
#define FAMILY(family) [TND_OP_##family] = tnd_cpu_##family,
    static tnd_cpu_op_fn *const families[] = {TANDEM_OP_FAMILIES(FAMILY)};
#undef FAMILY
    return families[tnd_op_traits(node->op)->family](kernels, node, worker);
}

static bool is_product(const struct tandem_tensor *node)
{
    return tnd_op_traits(node->op)->cost == TND_COST_PRODUCT;
}

static double available_memory(void)
{
    return tnd_memory_available("/proc", "/sys/fs/cgroup");
}

/* "packed=off" or "packed=MiB": limit for all packed copies of weights; default: half of the main
 * memory, as long as a quarter of the available memory stays free. "numa=": where copies lie on a
 * machine with several NUMA nodes (base/numa.h). "rows=auto" (default), "rows=keep" or
 * "rows=release": what happens to the original rows that were packed. "pack-cache=DIR": directory
 * that keeps packed copies of mapped model files for later processes. "packed-file=write": keeps
 * them beside the model file, where they are always looked for. */
static bool cpu_setting(int i, struct tandem_backend_setting *out)
{
    static const struct tandem_backend_setting settings[] = {
        {"packed", "off or packed=MiB",
         "memory for packed copies of weights; at most half of the RAM by default"},
        {"rows", "auto, keep or rows=release",
         "whether rows are given back to the file once they are packed; auto: if it is mapped"},
        {"pack-cache", "DIR", "keep packed copies of model files there for later processes"},
        {"packed-file", "write", "keep the packed copy of a model beside it, as MODEL.packed"},
        {"numa", "auto, off, first-touch, interleave or numa=mirror",
         "where packed copies lie on a machine of several NUMA nodes; off: as if it had one"},
    };
    bool exists = i >= 0 && (size_t)i < sizeof(settings) / sizeof(settings[0]);
    *out = exists ? settings[i] : *out;
    return exists;
}

static enum tandem_status read_numa(const struct tnd_setting *setting, enum tnd_numa_policy *out,
                                    struct tandem_error *error)
{
    for (int i = 0; i < TND_NUMA_POLICIES; i++) {
        if (tnd_setting_value_is(setting, tnd_numa_policy_name((enum tnd_numa_policy)i))) {
            *out = (enum tnd_numa_policy)i;
            return TANDEM_OK;
        }
    }
    return tnd_setting_refuse_by(setting, &tnd_backend_cpu, "cpu", error);
}

static enum tandem_status read_rows(const struct tnd_setting *setting, enum tnd_packed_rows *out,
                                    struct tandem_error *error)
{
    static const char *const names[] = {"auto", "keep", "release"}; /* enum tnd_packed_rows */
    for (int i = 0; i < 3; i++) {
        if (tnd_setting_value_is(setting, names[i])) {
            *out = (enum tnd_packed_rows)i;
            return TANDEM_OK;
        }
    }
    return tnd_setting_refuse_by(setting, &tnd_backend_cpu, "cpu", error);
}

static enum tandem_status read_packed(const struct tnd_setting *setting,
                                      struct tnd_packed_options *out, struct tandem_error *error)
{
    double mib = 0;
    if (!tnd_setting_value_is(setting, "off")) {
        TND_TRY(tnd_setting_number(setting, "cpu", &mib, error));
    }
    mib = mib < 1e9 ? mib : 1e9;
    out->limit_bytes = (size_t)(mib * 1048576.0);
    out->available = NULL; /* an explicit limit takes other uses of memory into account */
    return TANDEM_OK;
}

/* Parsed settings. */
struct wanted {
    struct tnd_packed_options packing;
    enum tnd_numa_policy numa;
    char cache[PATH_MAX];
};

static enum tandem_status read_settings(const char *text, struct wanted *out,
                                        struct tandem_error *error)
{
    struct tnd_setting setting;
    while (tnd_settings_next(&text, &setting)) {
        if (tnd_setting_is(&setting, "rows")) {
            TND_TRY(read_rows(&setting, &out->packing.rows, error));
        } else if (tnd_setting_is(&setting, "numa")) {
            TND_TRY(read_numa(&setting, &out->numa, error));
        } else if (tnd_setting_is(&setting, "packed")) {
            TND_TRY(read_packed(&setting, &out->packing, error));
        } else if (tnd_setting_is(&setting, "packed-file") &&
                   tnd_setting_value_is(&setting, "write")) {
            out->packing.writes_beside = true;
        } else if (tnd_setting_is(&setting, "pack-cache") && setting.value_n > 0 &&
                   setting.value_n < sizeof(out->cache)) {
            memcpy(out->cache, setting.value, setting.value_n);
            out->cache[setting.value_n] = '\0';
            out->packing.cache = out->cache;
        } else {
            return tnd_setting_refuse_by(&setting, &tnd_backend_cpu, "cpu", error);
        }
    }
    return TANDEM_OK;
}

static void tell_cache(void *user, bool is_warning, const char *text)
{
    const struct cpu_backend *self = user;
    if (self->log != NULL) {
        self->log(self->log_user, is_warning ? TANDEM_LOG_WARN : TANDEM_LOG_INFO, text);
    }
}

static enum tandem_status cpu_open(const struct tandem_backend_options *options,
                                   tandem_backend **out_backend, struct tandem_error *error)
{
    struct wanted wanted = {.packing = {.limit_bytes = (size_t)(tnd_cpu_ram_bytes() / 2),
                                        .available = available_memory,
                                        .isa = tnd_cpu_kernels()->isa_q},
                            .numa = TND_NUMA_AUTO};
    TND_TRY(read_settings(options != NULL ? options->settings : NULL, &wanted, error));
    struct cpu_backend *self = tnd_calloc(1, sizeof(*self));
    if (self == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "cpu", sizeof(*self), 0,
                             "cpu: no memory for the backend");
    }
    if (wanted.packing.limit_bytes > 0) {
        enum tandem_status status = tnd_packed_weights_new(&wanted.packing, &self->packed, error);
        if (status != TANDEM_OK) {
            tnd_free(self);
            return status;
        }
        tnd_packed_weights_set_note(self->packed, tell_cache, self);
    }
    self->base.api = &tnd_backend_cpu;
    self->numa = wanted.numa;
    self->log = options != NULL ? options->log : NULL;
    self->log_user = options != NULL ? options->log_user : NULL;
    self->own = *tnd_cpu_kernels();
    self->kernels = &self->own;
    snprintf(self->description, sizeof(self->description), "%s, %s",
             tnd_cpu_isa_name(tnd_cpu_used(tnd_cpu_features())), tnd_cpu_model());
    if (tnd_cpu_unknown_level() != NULL && options != NULL && options->log != NULL) {
        char text[160];
        snprintf(text, sizeof(text), "TANDEM_CPU=%s is no instruction set and is ignored",
                 tnd_cpu_unknown_level());
        options->log(options->log_user, TANDEM_LOG_WARN, text);
    }
    *out_backend = &self->base;
    return TANDEM_OK;
}

struct tnd_tuning *tnd_cpu_tuning(tandem_backend *cpu)
{
    return &((struct cpu_backend *)cpu)->own.tuning;
}

static void cpu_close(tandem_backend *backend)
{
    tnd_packed_weights_free(((struct cpu_backend *)backend)->packed);
    tnd_free(backend);
}

static const char *cpu_describe(tandem_backend *backend)
{
    return ((struct cpu_backend *)backend)->description;
}

static enum tandem_status cpu_supports(tandem_backend *backend, const tandem_tensor *node,
                                       uint32_t task, struct tandem_error *error)
{
    const struct cpu_backend *self = (const struct cpu_backend *)backend;
    if (is_product(node)) {
        if (task == TANDEM_TASK_MUL_MAT_PACKED && self->packed == NULL) {
            return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BACKEND, node->name, task, 0,
                                 "cpu mul_mat: packed weights are switched off");
        }
        return tnd_cpu_mul_mat_supports(self->kernels, node, task, error);
    }
    if (task != TANDEM_TASK_NODE || tnd_op_traits(node->op)->family == TND_OP_nothing) {
        return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BACKEND, node->name, task, 0,
                             "cpu: %s has no task %s", tandem_op_name(node->op),
                             tandem_task_name((enum tandem_task)task));
    }
    return TANDEM_OK;
}

static size_t cpu_workspace(tandem_backend *backend, const tandem_tensor *node, uint32_t task)
{
    (void)backend;
    if (node->op == TANDEM_OP_ATTENTION) {
        return tnd_cpu_attention_workspace(node);
    }
    return is_product(node) ? tnd_cpu_mul_mat_workspace(node, task) : 0;
}

size_t tnd_cpu_node_scratch(const struct tandem_tensor *node)
{
    switch (node->op) {
    case TANDEM_OP_ROPE:
        return tnd_cpu_rope_scratch(node);
    case TANDEM_OP_ATTENTION:
        return tnd_cpu_attention_scratch(node);
    case TANDEM_OP_CONV_INT8:
        return tnd_cpu_conv_int8_scratch(node);
    case TANDEM_OP_PRODUCT_INT8:
        return tnd_cpu_product_int8_scratch(node);
    case TANDEM_OP_RECURRENT:
        return tnd_cpu_recurrent_scratch(node);
    case TANDEM_OP_SAMPLE:
        return tnd_cpu_sample_scratch(node);
    default:
        return 0;
    }
}

static size_t cpu_scratch(tandem_backend *backend, const tandem_tensor *node, uint32_t task)
{
    (void)backend;
    return is_product(node) ? tnd_cpu_mul_mat_scratch(node, task) : tnd_cpu_node_scratch(node);
}

static enum tandem_status cpu_run(tandem_backend *backend, const struct tandem_work *work,
                                  struct tandem_worker *worker)
{
    const struct cpu_backend *self = (const struct cpu_backend *)backend;
    if (is_product(work->node)) {
        struct tandem_work mine = *work;
        struct tnd_packed_weight copy;
        const struct tnd_packed_weight *packed = work->prepared;
        if (packed != NULL && packed->n_copies > 1 && worker->node > 0) {
            copy = tnd_packed_copy(packed, worker->node);
            mine.prepared = &copy;
            work = &mine;
        }
        TND_TRY(tnd_cpu_mul_mat_run(self->kernels, work, worker));
        return packed != NULL ? tnd_packed_weight_check(packed, worker->error) : TANDEM_OK;
    }
    TND_TRY(cpu_supports(backend, work->node, work->task, worker->error));
    if (work->n_nodes > 1) {
        tnd_cpu_fused(self->kernels, work, worker);
        return TANDEM_OK;
    }
    if (work->node->op == TANDEM_OP_ATTENTION) {
        return tnd_cpu_attention_split(self->kernels, work, worker);
    }
    return tnd_cpu_node_run(self->kernels, work->node, worker);
}

/* Logs once that a memory policy was refused; copies then lie where they are first touched. */
static void tell_refusal(struct cpu_backend *self)
{
    int refusal = tnd_packed_weights_refusal(self->packed);
    if (refusal == 0 || self->log == NULL || atomic_exchange(&self->has_told_refusal, true)) {
        return;
    }
    char reason[64];
    char text[192];
    snprintf(text, sizeof(text),
             "numa=interleave: the system refuses mbind (%s); weights lie where they are touched "
             "first",
             strerror_r(refusal, reason, sizeof(reason)));
    self->log(self->log_user, TANDEM_LOG_WARN, text);
}

static enum tandem_status cpu_prepare(tandem_backend *backend, const tandem_tensor *weight,
                                      void **out_handle, struct tandem_error *error)
{
    struct cpu_backend *self = (struct cpu_backend *)backend;
    TND_TRY(tnd_cpu_can_pack(self->kernels, weight, error));
    struct tnd_packed_weight *packed = NULL;
    if (self->packed != NULL) {
        TND_TRY(tnd_packed_weights_add(self->packed, weight, &packed, error));
        tell_refusal(self);
    }
    *out_handle = packed;
    return TANDEM_OK;
}

static void cpu_forget(tandem_backend *backend, void *handle)
{
    tnd_packed_weights_remove(((struct cpu_backend *)backend)->packed, handle);
}

enum tnd_numa_policy tnd_cpu_numa_asked(const tandem_backend *cpu)
{
    return ((const struct cpu_backend *)cpu)->numa;
}

void tnd_cpu_numa_set(tandem_backend *cpu, const struct tnd_packed_numa *numa)
{
    struct cpu_backend *self = (struct cpu_backend *)cpu;
    if (self->packed != NULL) {
        tnd_packed_weights_set_numa(self->packed, numa);
    }
}

static void cpu_finish(tandem_backend *backend, void *handle, int64_t row, int64_t n_rows, int node)
{
    const struct cpu_backend *self = (const struct cpu_backend *)backend;
    const struct tnd_packed_weight copy = tnd_packed_copy(handle, node);
    tnd_packed_weight_finish(&self->kernels->q, &copy, row, n_rows);
}

static enum tandem_status cpu_keep(tandem_backend *backend, struct tandem_error *error)
{
    struct cpu_backend *self = (struct cpu_backend *)backend;
    return self->packed != NULL ? tnd_packed_weights_keep(self->packed, error) : TANDEM_OK;
}

static size_t cpu_prepared_bytes(tandem_backend *backend)
{
    struct cpu_backend *self = (struct cpu_backend *)backend;
    return self->packed != NULL ? tnd_packed_weights_bytes(self->packed) : 0;
}

static bool cpu_is_same_work(tandem_backend *backend, const tandem_tensor *a,
                             const tandem_tensor *b, uint32_t task)
{
    (void)backend;
    return tnd_cpu_mul_mat_is_same_x(a, b, task);
}

static bool cpu_fuses(tandem_backend *backend, const tandem_tensor *const *nodes, int n_nodes)
{
    (void)backend;
    return tnd_cpu_fuses(nodes, n_nodes);
}

const struct tandem_backend_api tnd_backend_cpu = {
    .abi = TANDEM_ABI,
    .size = sizeof(struct tandem_backend_api),
    .name = "cpu",
    .kind = TANDEM_KIND_CPU,
    .open = cpu_open,
    .close = cpu_close,
    .describe = cpu_describe,
    .supports = cpu_supports,
    .workspace = cpu_workspace,
    .scratch = cpu_scratch,
    .run = cpu_run,
    .prepare = cpu_prepare,
    .forget = cpu_forget,
    .prepared_bytes = cpu_prepared_bytes,
    .is_same_work = cpu_is_same_work,
    .fuses = cpu_fuses,
    .profile = tnd_cpu_profile,
    .setting = cpu_setting,
    .finish = cpu_finish,
    .keep = cpu_keep,
};
