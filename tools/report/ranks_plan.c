/* SPDX-License-Identifier: MIT
 * Ranks send the prices of shares, not their tables: prices are small, and take the rank's devices
 * into account. Rank 0 has the links in its table, and sends its decision to all. */
#include "tools/report/ranks_plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cgroup.h"
#include "base/tnd_status.h"
#include "llama/model.h"
#include "runtime/tnd_runtime.h"
#include "tools/report/fit_weights.h"

/* Message from each rank. */
struct told {
    int64_t status;
    char why[160];
    char end[TND_CLUSTER_NAME]; /* as `bench --links` names it */
    struct tnd_cluster_rank rank;
    struct tnd_cluster_model model;
};

struct making {
    tandem_communicator *communicator;
    const struct tnd_ranks_request *request;
    tandem_table *table; /* the table of this rank */
    struct tnd_fit_weights weights;
    struct told *told; /* {n} */
    struct tnd_ranks_plan *out;
};

/* ---- this rank ---- */

static int count_beside(const tandem_communicator *communicator)
{
    const char *own =
        tandem_communicator_host(communicator, tandem_communicator_rank(communicator));
    int n = 0;
    for (int i = 0; i < tandem_communicator_count(communicator); i++) {
        n += strcmp(tandem_communicator_host(communicator, i), own) == 0;
    }
    return n;
}

static int most_threads(const tandem_table *table)
{
    int most = 1;
    for (int i = 0; i < table->n_curves; i++) {
        most = table->curves[i].key.threads > most ? table->curves[i].key.threads : most;
    }
    return most;
}

static enum tandem_status price(struct making *m, struct told *told, struct tandem_error *error)
{
    const struct tnd_ranks_request *request = m->request;
    const struct tandem_hparams *hparams = tandem_model_hparams(request->model);
    const int n_beside = count_beside(m->communicator);
    const bool is_cut = request->context > 0 && request->context < hparams->context;
    struct tnd_fingerprint fingerprint;
    struct tnd_cluster_shape shape;
    struct tnd_runtime_parts parts;
    TND_TRY(tnd_fit_weights_list(request->model->source, &m->weights, error));
    tnd_cluster_shape_of(hparams, m->weights.list, m->weights.n, &shape);
    m->out->undivided = shape.undivided;
    told->model.is_whole = shape.is_whole; /* also known without times */
    TND_TRY(tnd_runtime_copy_table(request->runtime, &m->table, error));
    if (m->table == NULL) {
        return tnd_error_set(error, TANDEM_E_NOT_FOUND, "cluster", 0, 0,
                             "it has no timing table; mulmat-tune bench makes one");
    }
    tnd_fingerprint_read(&fingerprint);
    snprintf(told->end, sizeof(told->end), "%.47s %016llx",
             tandem_communicator_host(m->communicator, tandem_communicator_rank(m->communicator)),
             (unsigned long long)tnd_fingerprint_hash(&fingerprint));
    tnd_runtime_parts(request->runtime, &parts);
    struct tnd_fit_options options = {
        .table = m->table,
        .registry = parts.registry,
        .error_bound = parts.error_bound,
        .n_threads = tnd_planner_limit(parts.planner, tandem_runtime_threads(request->runtime)),
        .n_used = m->weights.n_used,
        .prompt_tokens = request->prompt_tokens,
        .n_texts = request->n_texts,
        .context = is_cut ? request->context : hparams->context,
        .cache_type = request->cache_type};
    uint8_t slots[TND_MAX_SLOTS];
    tnd_runtime_fit_devices(&parts, &options, slots);
    while (options.n_devices > 0 && options.memory[options.n_devices] <= 0) {
        options.n_devices--; /* the size of its memory is unknown */
    }
    const int most = most_threads(m->table);
    const int together = n_beside * options.n_threads;
    told->rank.memory = (int64_t)(tnd_memory_available("/proc", "/sys/fs/cgroup") / n_beside);
    return tnd_cluster_price(m->weights.list, m->weights.n, &shape, &options, n_beside,
                             together < most ? together : most, &told->rank, &told->model, error);
}

static bool is_sane(const struct told *told)
{
    /* The prices are a structure of doubles only. */
    const double *prices = (const double *)(const void *)told->rank.prices;
    bool is_good = told->rank.memory >= 0 && told->rank.device_memory >= 0 &&
                   told->rank.beside >= 1 && told->rank.beside <= 1000;
    const size_t bytes = sizeof(told->rank.prices);
    for (size_t i = 0; i < bytes / sizeof(prices[0]); i++) {
        is_good = is_good && prices[i] >= 0 && prices[i] < 1e15;
    }
    return is_good;
}

/* ---- rank 0 ---- */

static bool find_links(const tandem_table *table, const char *transport, const char *const *ends,
                       struct tnd_cluster *cluster)
{
    const double beside = tnd_cluster_beside_of(table); /* stored by rank 0 for all ranks */
    cluster->has_sum = tnd_cluster_sum_of(table, transport, ends[0], cluster->n, &cluster->sum);
    for (int i = 0; i < cluster->n; i++) {
        cluster->ranks[i].beside = fmax(cluster->ranks[i].beside, beside);
    }
    return tnd_cluster_links_of(table, transport, ends, cluster->n, cluster->links);
}

/* `bench --links` writes to the table of the machine without devices. */
static bool links_of_cpu(const char *transport, const char *const *ends,
                         struct tnd_cluster *cluster)
{
    char path[4096];
    tandem_table *table = NULL;
    const bool is_there = tandem_table_default_path(path, sizeof(path), NULL) == TANDEM_OK &&
                          tandem_table_load(path, &table, NULL) == TANDEM_OK &&
                          find_links(table, transport, ends, cluster);
    tandem_table_free(table);
    return is_there;
}

/* Makes the plan; there is none without prices or links. */
static void decide(struct making *m)
{
    struct tnd_ranks_plan *out = m->out;
    struct tnd_cluster *cluster = &out->cluster;
    const char *transport = tandem_communicator_name(m->communicator);
    const char *ends[TND_CLUSTER_MOST];
    for (int i = 0; i < cluster->n; i++) {
        struct told *told = &m->told[i];
        told->why[sizeof(told->why) - 1] = told->end[sizeof(told->end) - 1] = '\0';
        told->rank.device[sizeof(told->rank.device) - 1] = '\0';
        ends[i] = told->end;
        cluster->ranks[i] = told->rank;
        snprintf(cluster->ranks[i].name, sizeof(cluster->ranks[i].name), "rank %d on %.60s", i,
                 tandem_communicator_host(m->communicator, i));
        if (out->why_not[0] == '\0' && (told->status != TANDEM_OK || !is_sane(told))) {
            snprintf(out->why_not, sizeof(out->why_not), "rank %d on %.40s: %.120s", i,
                     tandem_communicator_host(m->communicator, i),
                     told->why[0] != '\0' ? told->why : "its prices make no sense");
        }
    }
    if (out->why_not[0] != '\0') {
        return;
    }
    cluster->model = m->told[0].model;
    cluster->model.undivided = out->undivided;
    if (!find_links(m->table, transport, ends, cluster) &&
        !links_of_cpu(transport, ends, cluster)) {
        snprintf(out->why_not, sizeof(out->why_not),
                 "the table of rank 0 has no links by %.60s; mpirun -np %d mulmat-tune bench "
                 "--links measures them",
                 transport, cluster->n);
        return;
    }
    out->best = tnd_cluster_best(cluster, m->request->count, m->request->leader, out->plans);
}

/* ---- all of it ---- */

struct verdict {
    int64_t best;
    char why_not[240];
};

static enum tandem_status tell(struct making *m, struct tandem_error *error)
{
    struct tnd_ranks_plan *out = m->out;
    struct tnd_cluster *cluster = &out->cluster;
    const size_t n = (size_t)cluster->n;
    struct verdict verdict = {.best = out->best};
    memcpy(verdict.why_not, out->why_not, sizeof(verdict.why_not));
    TND_TRY(tandem_communicator_broadcast(m->communicator, &verdict, sizeof(verdict), error));
    TND_TRY(tandem_communicator_broadcast(m->communicator, cluster->ranks,
                                          n * sizeof(cluster->ranks[0]), error));
    TND_TRY(tandem_communicator_broadcast(m->communicator, cluster->links,
                                          n * n * sizeof(cluster->links[0]), error));
    TND_TRY(tandem_communicator_broadcast(m->communicator, out->plans, n * sizeof(out->plans[0]),
                                          error));
    cluster->model = m->told[0].model;
    cluster->model.undivided = out->undivided;
    out->best = (int)verdict.best;
    memcpy(out->why_not, verdict.why_not, sizeof(out->why_not));
    out->why_not[sizeof(out->why_not) - 1] = '\0';
    return TANDEM_OK;
}

static enum tandem_status make(struct making *m, struct tandem_error *error)
{
    struct tnd_cluster *cluster = &m->out->cluster;
    const int rank = tandem_communicator_rank(m->communicator);
    const size_t n = (size_t)cluster->n;
    struct tandem_error own = {.text = ""};
    size_t bytes[TND_CLUSTER_MOST];
    m->told = tnd_calloc(n, sizeof(m->told[0]));
    cluster->ranks = tnd_calloc(n, sizeof(cluster->ranks[0]));
    cluster->links = tnd_calloc(n * n, sizeof(cluster->links[0]));
    m->out->plans = tnd_calloc(n, sizeof(m->out->plans[0]));
    if (m->told == NULL || cluster->ranks == NULL || cluster->links == NULL ||
        m->out->plans == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "cluster", cluster->n, 0,
                             "cluster: no memory for a plan of %d ranks", cluster->n);
    }
    struct told *mine = &m->told[rank];
    mine->status = price(m, mine, &own);
    snprintf(mine->why, sizeof(mine->why), "%s", own.text);
    mine->model.undivided = NULL; /* pointers are meaningless in other processes */
    for (size_t i = 0; i < n; i++) {
        bytes[i] = sizeof(*mine);
    }
    TND_TRY(tandem_communicator_all_gather(m->communicator, mine, bytes, m->told, error));
    if (rank == 0) {
        decide(m);
    }
    return tell(m, error);
}

enum tandem_status tnd_ranks_plan_new(tandem_communicator *communicator,
                                      const struct tnd_ranks_request *request,
                                      struct tnd_ranks_plan *out, struct tandem_error *error)
{
    struct tnd_ranks_plan plan = {
        .cluster = {.n = tandem_communicator_count(communicator), .refused = request->refused},
        .best = -1};
    struct making m = {.communicator = communicator, .request = request, .out = &plan};
    enum tandem_status status = TANDEM_OK;
    if (plan.cluster.n > TND_CLUSTER_MOST) {
        snprintf(plan.why_not, sizeof(plan.why_not), "plans are made for %d ranks at most",
                 TND_CLUSTER_MOST);
    } else {
        status = make(&m, error);
    }
    tandem_table_free(m.table);
    tnd_fit_weights_fini(&m.weights);
    tnd_free(m.told);
    if (status != TANDEM_OK) {
        tnd_ranks_plan_fini(&plan);
        return status;
    }
    if (plan.why_not[0] != '\0') {
        tnd_free(plan.plans);
        plan.plans = NULL;
        plan.best = -1;
    }
    *out = plan;
    return TANDEM_OK;
}

void tnd_ranks_plan_fini(struct tnd_ranks_plan *plan)
{
    tnd_free(plan->cluster.ranks);
    tnd_free(plan->cluster.links);
    tnd_free(plan->plans);
    memset(plan, 0, sizeof(*plan));
}
