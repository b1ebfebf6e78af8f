/* SPDX-License-Identifier: MIT
 * Joining and leaving the ranks of an MPI launcher. */
#include "tools/report/ranks_cli.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/environment.h"
#include "cluster/among.h"
#include "formats/partial.h"
#include "llama/shard.h"
#include "tools/report/ranks_file.h"
#include "tools/report/ranks_plan.h"
#include "base/tnd_status.h"
#include "tools/args.h"
#include "tools/say.h"
#include "tune/policy.h"

/* The communicator of this process; MPI can be initialised only once. */
static tandem_communicator *joined;
static bool has_session;
static struct tnd_ranks_file *model_file; /* NULL: there is none */
static bool model_needs_all;              /* the copy is complete */
static int kept_stdout = -1;              /* of a rank above 0, which may become the leader */
static enum tnd_say_level kept_level;

/* Which ranks compute: decided once, for all sessions. */
static struct {
    bool is_made;
    tandem_communicator *among; /* owned; NULL: all ranks, or only one */
    bool is_alone;
    int leader; /* index among all ranks */
    enum tandem_division division;
    double *shares;       /* of the computing ranks; NULL: equal */
    double *layer_shares; /* in mixed plans; NULL: equal to `shares` */
    int64_t prompt_batch; /* 0: the session's default */
    bool has_whole_experts;
    int in_flight; /* 0: the session's default */
    bool is_idle[TND_CLUSTER_MOST];
} who;

static int say_fault(const struct tandem_error *error)
{
    fprintf(stderr, "%s: %s\n", args_program, error->text);
    return 1;
}

static enum tandem_status fault(struct tandem_error *error, enum tandem_status status,
                                const char *text)
{
    error->status = status;
    snprintf(error->text, sizeof(error->text), "%s", text);
    return status;
}

bool tnd_ranks_begin(void)
{
    struct tandem_error error = {.text = ""};
    if (tandem_communicator_launched() < 2) {
        return true;
    }
    if (tandem_communicator_open(&joined, &error) != TANDEM_OK) {
        (void)say_fault(&error);
        return false;
    }
    if (tandem_communicator_rank(joined) > 0) { /* only rank 0 prints, except errors */
        kept_stdout = dup(STDOUT_FILENO);
        kept_level = tnd_say_level;
        tnd_say_level = TND_SAY_QUIET;
        if (freopen("/dev/null", "w", stdout) == NULL) {
            return false;
        }
    }
    return true;
}

/* After a failure on all ranks: rank 0 reports it and ends the others. */
static void leave_to_first(void)
{
    char end;
    tandem_communicator_set_limit(joined, 10);
    (void)tandem_communicator_receive(joined, 0, &end, sizeof(end), NULL);
    exit(tnd_ranks_end(1));
}

/* After a failure of all ranks. (Failures of the communicator are reported by each rank.) */
static void leave_if_known(void)
{
    if (tandem_communicator_rank(joined) > 0 && tandem_communicator_error(joined) == NULL) {
        leave_to_first();
    }
}

/* Opens the file that all ranks call `path`; NULL after a failure. */
static struct tnd_ranks_file *open_file(const struct tnd_ranks_options *ranks, const char *path,
                                        bool needs_all, struct tandem_error *error)
{
    struct tnd_ranks_file *file = NULL;
    if (ranks->limit_s > 0) {
        tandem_communicator_set_limit(joined, ranks->limit_s);
    }
    if (tnd_ranks_file_open(joined, path, ranks->cache, needs_all, &file, error) != TANDEM_OK) {
        leave_if_known();
        return NULL;
    }
    tnd_source_takes_parts = tnd_source_takes_parts || tnd_ranks_file_is_copy(file);
    return file;
}

const char *tnd_ranks_model_path(const struct tnd_ranks_options *ranks, const char *path,
                                 bool is_converted, struct tandem_error *error)
{
    if (joined == NULL || path == NULL || has_session) { /* the others open no more files */
        return path;
    }
    /* a file that is read instead of mapped is read completely, before there is a plan */
    model_needs_all = is_converted || tnd_environment(TND_ENVIRONMENT_MAP) != NULL;
    model_file = open_file(ranks, path, model_needs_all, error);
    return model_file != NULL ? tnd_ranks_file_path(model_file) : NULL;
}

const char *tnd_ranks_tokenizer_path(const struct tnd_ranks_options *ranks, const char *path,
                                     struct tandem_error *error)
{
    static char kept[PATH_MAX];
    if (joined == NULL || path == NULL || has_session) {
        return path;
    }
    struct tnd_ranks_file *file = open_file(ranks, path, false, error);
    if (file == NULL) {
        return NULL;
    }
    snprintf(kept, sizeof(kept), "%s", tnd_ranks_file_path(file));
    tnd_ranks_file_close(file);
    return kept;
}

/* Parses "2,1,1" for `count` ranks. */
static enum tandem_status read_shares(const char *option, const char *text, int count, double *out,
                                      struct tandem_error *error)
{
    const char *at = text;
    for (int i = 0; i < count; i++) {
        char *end;
        out[i] = strtod(at, &end);
        const bool is_last = i == count - 1;
        if (end == at || *end != (is_last ? '\0' : ',')) {
            snprintf(error->text, sizeof(error->text),
                     "%s '%.100s': expected %d numbers with ',' between them, one a rank", option,
                     text, count);
            return error->status = TANDEM_E_ARGUMENT;
        }
        at = end + 1;
    }
    return TANDEM_OK;
}

enum tandem_status tnd_ranks_refused(const char *divide, const char *experts, unsigned *out_refused,
                                     struct tandem_error *error)
{
    const bool are_whole = experts != NULL && strcmp(experts, "whole") == 0;
    *out_refused = 0;
    for (unsigned d = 0; d < TND_CLUSTER_DIVISIONS && divide != NULL; d++) {
        if (strcmp(divide, tnd_cluster_division_name((enum tnd_cluster_division)d)) == 0) {
            *out_refused = (1U << TND_CLUSTER_DIVISIONS) - 1 - (1U << d);
        }
    }
    if (divide != NULL && *out_refused == 0) {
        snprintf(error->text, sizeof(error->text),
                 "--divide '%.100s': expected rows, layers or mixed", divide);
        return error->status = TANDEM_E_ARGUMENT;
    }
    if (experts != NULL && !are_whole && strcmp(experts, "rows") != 0) {
        snprintf(error->text, sizeof(error->text), "--experts '%.100s': expected rows or whole",
                 experts);
        return error->status = TANDEM_E_ARGUMENT;
    }
    *out_refused |= experts == NULL ? 0U
                    : are_whole     ? (unsigned)TND_CLUSTER_NO_EXPERT_ROWS
                                    : (unsigned)TND_CLUSTER_NO_WHOLE_EXPERTS;
    return TANDEM_OK;
}

static enum tandem_division division_of(enum tnd_cluster_division division)
{
    static const enum tandem_division divisions[TND_CLUSTER_DIVISIONS] = {
        TANDEM_DIVIDE_ROWS, TANDEM_DIVIDE_LAYERS, TANDEM_DIVIDE_MIXED};
    return divisions[division];
}

/* Without a plan: divides as the options say, or by rows. */
static void divide_as_told(unsigned refused)
{
    who.division = division_of((refused >> TND_CLUSTER_ROWS & 1) == 0     ? TND_CLUSTER_ROWS
                               : (refused >> TND_CLUSTER_LAYERS & 1) == 0 ? TND_CLUSTER_LAYERS
                                                                          : TND_CLUSTER_MIXED);
    who.has_whole_experts = (refused & TND_CLUSTER_NO_EXPERT_ROWS) != 0;
}

/* ---- which ranks compute ---- */

static tandem_communicator *computing(void)
{
    return who.is_alone ? NULL : who.among != NULL ? who.among : joined;
}

/* Waits for the end without computing. */
static void idle(void)
{
    struct tandem_error error = {.text = ""};
    char end;
    tandem_communicator_set_limit(joined, -tandem_communicator_limit(joined));
    const enum tandem_status status =
        tandem_communicator_receive(joined, who.leader, &end, sizeof(end), &error);
    exit(tnd_ranks_end(status == TANDEM_OK ? 0 : say_fault(&error)));
}

/* Prints the peak resident memory of each computing rank; collective among them. */
static void say_memory(void)
{
    tandem_communicator *ranks = computing();
    const int n = tandem_communicator_count(ranks);
    size_t bytes[TND_CLUSTER_MOST];
    double all[TND_CLUSTER_MOST];
    struct rusage usage;
    const double own = getrusage(RUSAGE_SELF, &usage) == 0 ? (double)usage.ru_maxrss / 1024 : 0;
    for (int i = 0; i < n && i < TND_CLUSTER_MOST; i++) {
        bytes[i] = sizeof(own);
    }
    if (ranks == NULL || n > TND_CLUSTER_MOST ||
        tandem_communicator_all_gather(ranks, &own, bytes, all, NULL) != TANDEM_OK ||
        tandem_communicator_rank(ranks) > 0) {
        return;
    }
    tnd_say("resident at most:");
    for (int i = 0; i < n; i++) {
        tnd_say("%s %.1f MiB on %s", i > 0 ? "," : "", all[i], tandem_communicator_host(ranks, i));
    }
    tnd_say("\n");
}

/* Follows the leader's orders until it ends, then exits. */
static void follow(const tandem_model *model, tandem_runtime *runtime)
{
    struct tandem_error error = {.text = ""};
    const enum tandem_status status = tandem_session_follow(model, runtime, computing(), &error);
    const int code = status == TANDEM_OK ? 0 : say_fault(&error);
    if (code == 0) {
        say_memory();
    }
    exit(tnd_ranks_end(code));
}

/* Makes this rank the one that prints from now on. */
static enum tandem_status take_over(struct tandem_error *error)
{
    fflush(stdout);
    if (dup2(kept_stdout, STDOUT_FILENO) < 0) {
        return fault(error, TANDEM_E_FILE, "standard output of the rank that leads is closed");
    }
    tnd_say_level = kept_level;
    return TANDEM_OK;
}

static enum tandem_status use_plan(const struct tnd_ranks_plan *plan,
                                   const struct tnd_ranks_options *ranks,
                                   struct tandem_error *error)
{
    const struct tnd_cluster_plan *best = &plan->plans[plan->best];
    const int rank = tandem_communicator_rank(joined);
    for (int i = 0; i < plan->cluster.n; i++) {
        who.is_idle[i] = true;
    }
    who.shares = calloc(2 * (size_t)best->n, sizeof(who.shares[0]));
    if (who.shares == NULL) {
        return fault(error, TANDEM_E_MEMORY, "no memory for shares of ranks");
    }
    for (int i = 0; i < best->n; i++) {
        who.is_idle[best->ranks[i]] = false;
        who.shares[i] = best->shares[i];
        who.shares[best->n + i] = best->layers[i];
    }
    if (best->division == TND_CLUSTER_MIXED) {
        who.layer_shares = who.shares + best->n;
        who.prompt_batch = tnd_cluster_prompt_batch(&plan->cluster, best);
    }
    who.leader = best->ranks[0];
    who.division = division_of(best->division);
    who.has_whole_experts = best->has_whole_experts;
    who.in_flight = ranks->n_texts > 1 ? best->in_flight : 0;
    who.is_alone = best->n == 1;
    if (!who.is_idle[rank] && !who.is_alone) {
        TND_TRY(tnd_communicator_among(joined, best->ranks, best->n, &who.among, error));
    }
    return who.leader == rank && rank > 0 ? take_over(error) : TANDEM_OK;
}

static void say_plan(const struct tnd_ranks_plan *plan, const double *count)
{
    const struct tnd_cluster_report report = {&plan->cluster, count, -1, plan->plans, plan->best};
    const int n = tandem_communicator_count(joined);
    struct tnd_text text = TND_TEXT_INIT;
    if (plan->best >= 0) {
        tnd_cluster_print_choice(&report, &text);
    } else if (who.is_alone) {
        tnd_text_printf(&text, "1 of %d ranks: the model %s\n", n, plan->undivided);
    } else {
        tnd_text_printf(&text, "%d ranks, equal shares %s: %s\n", n,
                        who.division == TANDEM_DIVIDE_ROWS     ? "by rows"
                        : who.division == TANDEM_DIVIDE_LAYERS ? "by layers"
                                                               : "mixed",
                        plan->why_not[0] != '\0' ? plan->why_not
                                                 : "the model does not fit by any plan");
    }
    tnd_say("%s", text.failed || text.bytes == NULL ? "" : text.bytes);
    tnd_text_fini(&text);
}

static enum tandem_status make_plan(const tandem_model *model, tandem_runtime *runtime,
                                    const struct tandem_session_options *options,
                                    const struct tnd_ranks_options *ranks, unsigned refused,
                                    struct tandem_error *error)
{
    static const double count[TND_FIT_PHASES] = {1, TND_FIT_ANSWER_TOKENS};
    const struct tnd_ranks_request request = {.model = model,
                                              .runtime = runtime,
                                              .context = options->context,
                                              .cache_type = options->cache_type,
                                              .n_texts = ranks->n_texts,
                                              .leader = ranks->leads_here ? 0 : -1,
                                              .refused = refused,
                                              .count = count};
    struct tnd_ranks_plan plan;
    divide_as_told(refused);
    TND_TRY(tnd_ranks_plan_new(joined, &request, &plan, error));
    enum tandem_status status = TANDEM_OK;
    if (plan.best >= 0) {
        status = use_plan(&plan, ranks, error);
    } else if (plan.undivided != NULL &&
               (who.division != TANDEM_DIVIDE_LAYERS || plan.cluster.model.is_whole)) {
        who.is_alone = true;
        for (int i = 1; i < plan.cluster.n && i < TND_CLUSTER_MOST; i++) {
            who.is_idle[i] = true;
        }
    }
    if (status == TANDEM_OK && tandem_communicator_rank(joined) == 0) {
        say_plan(&plan, count);
    }
    tnd_ranks_plan_fini(&plan);
    return status;
}

/* Divides as the options say, or as planned. */
static enum tandem_status decide(const tandem_model *model, tandem_runtime *runtime,
                                 const struct tandem_session_options *options,
                                 const struct tnd_ranks_options *ranks, unsigned refused,
                                 struct tandem_error *error)
{
    const int count = tandem_communicator_count(joined);
    who.is_made = true;
    if (ranks->limit_s > 0) {
        tandem_communicator_set_limit(joined, ranks->limit_s);
    }
    if (ranks->shares == NULL && ranks->layers != NULL) {
        return fault(error, TANDEM_E_ARGUMENT, "--layer-shares: expected --shares beside it");
    }
    if (ranks->shares == NULL) {
        return make_plan(model, runtime, options, ranks, refused, error);
    }
    divide_as_told(refused);
    who.shares = calloc(2 * (size_t)count, sizeof(who.shares[0]));
    if (who.shares == NULL) {
        return fault(error, TANDEM_E_MEMORY, "no memory for shares of ranks");
    }
    if (ranks->layers != NULL) {
        who.layer_shares = who.shares + count;
        TND_TRY(read_shares("--layer-shares", ranks->layers, count, who.layer_shares, error));
    }
    return read_shares("--shares", ranks->shares, count, who.shares, error);
}

static void fill_options(const struct tnd_ranks_options *ranks,
                         struct tandem_session_options *options)
{
    options->communicator = computing();
    options->shares = who.is_alone ? NULL : who.shares;
    options->division = who.division;
    options->layer_shares = who.is_alone ? NULL : who.layer_shares;
    options->prompt_batch = who.prompt_batch;
    options->has_whole_experts = who.has_whole_experts;
    options->batches_in_flight = ranks->in_flight > 0 ? (int)ranks->in_flight : who.in_flight;
}

/* ---- what a rank needs of the model file ---- */

struct wish {
    const struct tnd_file *file;
    struct tnd_spans spans;
};

/* Skips bytes outside of the file: they were computed from it. */
static void wish_for(void *user, const void *data, size_t bytes, size_t stride, int64_t times)
{
    struct wish *wish = user;
    const uintptr_t begin = (uintptr_t)wish->file->data, at = (uintptr_t)data;
    for (int64_t i = 0; i < times && at >= begin && at - begin < wish->file->bytes; i++) {
        const uint64_t offset = at - begin + (uint64_t)i * stride;
        tnd_spans_add(&wish->spans, offset, offset + bytes);
    }
}

static enum tandem_status find_wish(const tandem_model *model,
                                    const struct tandem_session_options *options, struct wish *wish)
{
    const int rank = tandem_communicator_rank(joined);
    if (who.is_alone && rank == who.leader) {
        tnd_spans_add(&wish->spans, 0, wish->file->bytes);
    } else if (!who.is_idle[rank] && !who.is_alone) {
        TND_TRY(tnd_llama_shard_reads(model, options, wish_for, wish, NULL));
    }
    tnd_spans_tidy(&wish->spans);
    return wish->spans.failed ? TANDEM_E_MEMORY : TANDEM_OK;
}

/* Fetches the bytes that this rank needs to its copy. If the model cannot be divided like this, it
 * wants none, and starting the session returns the error. */
static enum tandem_status fetch(const tandem_model *model,
                                const struct tandem_session_options *options,
                                struct tandem_error *error)
{
    if (model_file == NULL) {
        return TANDEM_OK;
    }
    const tandem_source *source = tandem_model_source(model);
    const bool is_partial =
        tnd_ranks_file_is_copy(model_file) && !model_needs_all && source->partial != NULL;
    struct wish wish = {.file = &source->file};
    if (is_partial && find_wish(model, options, &wish) != TANDEM_OK) {
        wish.spans.n = 0;
    }
    enum tandem_status status = tnd_ranks_file_fetch(model_file, &wish.spans, error);
    if (status == TANDEM_OK && is_partial) {
        status = tnd_source_see_parts(source, tnd_ranks_file_path(model_file), error);
    } else if (status != TANDEM_OK) {
        leave_if_known();
    }
    tnd_spans_fini(&wish.spans);
    return status;
}

static void say_ranks(void)
{
    const tandem_communicator *ranks = computing();
    const int count = tandem_communicator_count(ranks);
    tnd_say("%d ranks (%s):", count, tandem_communicator_name(ranks));
    for (int i = 0; i < count; i++) {
        tnd_say(" %s", tandem_communicator_host(ranks, i));
    }
    tnd_say("\n");
}

enum tandem_status tnd_ranks_session_new(const tandem_model *model, tandem_runtime *runtime,
                                         struct tandem_session_options *options,
                                         const struct tnd_ranks_options *ranks,
                                         tandem_session **out_session, struct tandem_error *error)
{
    const int rank = tandem_communicator_rank(joined);
    unsigned refused = 0;
    TND_TRY(tnd_ranks_refused(ranks->divide, ranks->experts, &refused, error));
    if (joined == NULL) {
        if (ranks->shares != NULL || ranks->layers != NULL || ranks->divide != NULL) {
            tnd_say("%s: note: without mpirun there is one rank, and nothing to divide\n",
                    args_program);
        }
        return tandem_session_new(model, runtime, options, out_session, error);
    }
    const bool is_first = !who.is_made;
    if (is_first) {
        TND_TRY(decide(model, runtime, options, ranks, refused, error));
        struct tandem_session_options planned = *options;
        fill_options(ranks, &planned);
        TND_TRY(fetch(model, &planned, error));
    }
    if (who.is_idle[rank]) {
        idle();
    }
    if (rank != who.leader) {
        follow(model, runtime);
    }
    fill_options(ranks, options);
    if (is_first && !who.is_alone) {
        say_ranks();
    }
    has_session = true;
    return tandem_session_new(model, runtime, options, out_session, error);
}

tandem_communicator *tnd_ranks_joined(void)
{
    return joined;
}

/* Releases all other ranks. */
static void dismiss(void)
{
    const char end = 0;
    if (computing() != NULL) {
        (void)tandem_session_dismiss(computing(), NULL);
        say_memory();
    }
    for (int i = 0; i < tandem_communicator_count(joined) && i < TND_CLUSTER_MOST; i++) {
        if (who.is_idle[i]) {
            (void)tandem_communicator_send(joined, i, &end, sizeof(end), NULL);
        }
    }
}

int tnd_ranks_end(int code)
{
    const struct tandem_error why = {.status = TANDEM_E_STATE, .text = "the command has failed"};
    if (joined == NULL) {
        return code;
    }
    fflush(NULL);
    if (code != 0) {
        tandem_communicator_fail(joined, &why);
    } else if (has_session) {
        dismiss();
    }
    tnd_ranks_file_close(model_file);
    model_file = NULL;
    tandem_communicator_close(who.among);
    tandem_communicator_close(joined);
    free(who.shares);
    joined = NULL;
    return code;
}
