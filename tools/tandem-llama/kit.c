/* SPDX-License-Identifier: MIT
 * Opening the objects of run and chat. */
#include "tools/tandem-llama/kit.h"
#include "tools/terminal.h"
#include "tools/say.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { EMBED_CONTEXT = 4096 }; /* for decoders, whose cache is allocated at the start */

enum tandem_status tnd_kit_open_tokenizer(struct tnd_kit *kit, const char *checkpoint,
                                          struct tandem_error *error)
{
    if (kit->options.tokenizer != NULL) {
        return tandem_tokenizer_open(kit->options.tokenizer,
                                     tandem_model_hparams(kit->model)->vocabulary, &kit->tokenizer,
                                     error);
    }
    enum tandem_status status = tandem_tokenizer_from_source(kit->source, &kit->tokenizer, error);
    if (status == TANDEM_E_FORMAT && tnd_cli_is_folder(checkpoint)) {
        status = tandem_tokenizer_open(checkpoint, tandem_model_hparams(kit->model)->vocabulary,
                                       &kit->tokenizer, error);
    }
    if (status == TANDEM_E_FORMAT || status == TANDEM_E_NOT_FOUND) {
        const size_t n = strlen(error->text);
        snprintf(error->text + n, sizeof(error->text) - n, "; -t FILE names a tokenizer");
    }
    return status;
}

static enum tandem_status open_session(struct tnd_kit *kit, struct tandem_error *error)
{
    const bool is_long = kit->options.has_embeddings && kit->options.context == 0 &&
                         !tandem_model_hparams(kit->model)->is_encoder;
    struct tandem_session_options options = {
        .size = sizeof(options),
        .context = is_long ? EMBED_CONTEXT : kit->options.context,
        .has_embeddings = kit->options.has_embeddings,
        .pooling = kit->options.pooling,
        .is_unfused = kit->options.is_unfused,
        .micro_batches = (int)kit->options.micro_batches,
        .adjust = kit->options.times != NULL ? tnd_op_times_predict : NULL,
        .adjust_user = kit->options.times};
    CLI_TRY(tnd_cache_option_read(kit->options.cache_type, kit->model, &options, error));
    CLI_TRY(tnd_ranks_session_new(kit->model, kit->runtime, &options, &kit->options.ranks,
                                  &kit->session, error));
    CLI_TRY(tnd_draft_option_open(kit->options.draft, kit->session, kit->runtime, 1, 0, &kit->draft,
                                  error));
    if (options.communicator == NULL) {
        tnd_cli_place(kit->session, kit->runtime);
    }
    const double begin = tnd_cli_seconds();
    tnd_pack_option_begin(kit->options.runtime.pack_cache, kit->options.runtime.settings,
                          kit->session, kit->runtime);
    kit->prepare_seconds = tnd_cli_seconds() - begin;
    return TANDEM_OK;
}

static enum tandem_status open_sampler(struct tnd_kit *kit, struct tandem_error *error)
{
    const struct tnd_kit_options *o = &kit->options;
    const struct tandem_sampler_options options = {.size = sizeof(options),
                                                   .vocabulary =
                                                       tandem_model_hparams(kit->model)->vocabulary,
                                                   .temperature = (float)o->temperature,
                                                   .top_k = o->top_k,
                                                   .top_p = (float)o->top_p,
                                                   .min_p = (float)o->min_p,
                                                   .repeat_penalty = (float)o->repeat_penalty,
                                                   .seed = (uint64_t)o->seed,
                                                   .any_bytes = o->any_bytes};
    return tandem_sampler_new(&options, &kit->sampler, error);
}

enum tandem_status tnd_kit_open(struct tnd_kit *kit, const char *checkpoint,
                                struct tandem_error *error)
{
    const struct tnd_kit_options *o = &kit->options;
    const char *path = tnd_ranks_model_path(&o->ranks, checkpoint, o->type != NULL, error);
    if (path == NULL) {
        return error->status;
    }
    if (o->tokenizer != NULL) {
        kit->options.tokenizer = tnd_ranks_tokenizer_path(&o->ranks, o->tokenizer, error);
        if (kit->options.tokenizer == NULL) {
            return error->status;
        }
    }
    const double begin = tnd_cli_seconds();
    CLI_TRY(tnd_cli_open_source(path, o->type, &kit->source, error));
    CLI_TRY(tandem_model_new(kit->source, &kit->model, error));
    kit->load_seconds = tnd_cli_seconds() - begin;
    CLI_TRY(tnd_kit_open_tokenizer(kit, path, error));
    CLI_TRY(tnd_cli_open_runtime(&o->runtime, &kit->runtime, error));
    CLI_TRY(open_session(kit, error));
    CLI_TRY(open_sampler(kit, error));
    if (o->print_plan) {
        tandem_session_print_plans(kit->session, tnd_cli_write, stderr);
    }
    return TANDEM_OK;
}

void tnd_kit_close(struct tnd_kit *kit)
{
    tandem_sampler_free(kit->sampler);
    tandem_session_free(kit->session);
    tnd_draft_option_close(&kit->draft);
    tandem_runtime_close(kit->runtime);
    tandem_tokenizer_close(kit->tokenizer);
    tandem_model_free(kit->model);
    tandem_source_close(kit->source);
}

bool tnd_kit_say_table(const tandem_runtime *runtime)
{
    struct tandem_runtime_info info = TANDEM_RUNTIME_INFO_INIT;
    struct tandem_error error = {0};
    if (tandem_runtime_table_status(runtime, &error) == TANDEM_OK) {
        tandem_runtime_describe(runtime, &info);
        tnd_say("timing table: %s\n", info.table);
        return true;
    }
    return false;
}

/* Peak resident memory in bytes; 0 when unknown. */
static double resident_bytes(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (double)usage.ru_maxrss * 1024.0 : 0.0;
}

/* Resident MiB of the mappings that ask for huge pages, and how much of it is in huge pages. False
 * if the system has no such list (only Linux does). In the list, a mapping's flags come last. */
static bool find_huge_pages(double *out_resident, double *out_huge)
{
    FILE *maps = fopen("/proc/self/smaps", "r");
    char line[512];
    double resident = 0.0;
    double huge = 0.0;
    *out_resident = 0.0;
    *out_huge = 0.0;
    while (maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
        if (strncmp(line, "Rss:", 4) == 0) {
            resident = strtod(line + 4, NULL) / 1024.0;
        } else if (strncmp(line, "AnonHugePages:", 14) == 0) {
            huge = strtod(line + 14, NULL) / 1024.0;
        } else if (strncmp(line, "VmFlags:", 8) == 0 && strstr(line, " hg") != NULL) {
            *out_resident += resident;
            *out_huge += huge;
        }
    }
    if (maps != NULL) {
        fclose(maps);
    }
    return *out_resident > 0.0;
}

static void print_memory(const struct tnd_kit *kit)
{
    const double mib = 1048576.0;
    const double cache = (double)tandem_session_cache_bytes(kit->session);
    const double graphs = (double)tandem_session_graph_bytes(kit->session);
    struct tandem_runtime_info info = TANDEM_RUNTIME_INFO_INIT;
    tandem_runtime_describe(kit->runtime, &info);
    const double copies = (double)info.prepared_bytes;
    struct tandem_source_tensor tensor;
    double weights = 0.0;
    for (int i = 0; tandem_source_tensor_at(kit->source, i, &tensor); i++) {
        weights += (double)tensor.bytes;
    }
    fprintf(stderr,
            "memory: weights %.1f MiB, keys and values %.1f MiB, graphs %.1f MiB: planned %.1f "
            "MiB, resident at most %.1f MiB\n",
            weights / mib, cache / mib, graphs / mib, (weights + cache + graphs + copies) / mib,
            resident_bytes() / mib);
    if (copies > 0.0) {
        fprintf(stderr, "        of the planned, copies of weights packed by backends: %.1f MiB\n",
                copies / mib);
    }
    tnd_cache_option_print(kit->session);
    double asking;
    double huge;
    if (find_huge_pages(&asking, &huge)) {
        fprintf(stderr,
                "        in huge pages, of packed copies and planned buffers: %.1f of %.1f "
                "MiB\n",
                huge, asking);
    }
}

static void print_devices(const struct tnd_kit *kit)
{
    char line[512];
    for (int i = 0; tandem_runtime_report(kit->runtime, i, line, sizeof(line)); i++) {
        fprintf(stderr, "device: %s\n", line);
    }
}

static void print_experts(const struct tnd_kit *kit)
{
    struct tandem_hot_experts hot;
    const double mib = 1024.0 * 1024.0;
    if (tandem_session_hot_experts(kit->session, &hot)) {
        fprintf(stderr,
                "experts: %lld hot of %lld, in copies of %.1f MiB; the last batch read %.1f MiB of "
                "cold ones; changed %lld times at %lld looks\n",
                (long long)hot.n_hot, (long long)hot.n_experts, (double)hot.hot_bytes / mib,
                (double)hot.cold_bytes_last / mib, (long long)hot.n_moves, (long long)hot.n_looks);
    }
}

static void print_micro_batches(const struct tnd_kit *kit)
{
    struct tandem_micro_batches micro;
    if (tandem_session_micro_batches(kit->session, &micro)) {
        fprintf(
            stderr,
            "micro-batches: layers in %d places; %lld of %lld batches cut, the last one %s %d\n",
            micro.n_places, (long long)micro.n_split, (long long)micro.n_batches,
            micro.n_last > 1 ? "into" : "whole:", micro.n_last);
    }
}

void tnd_kit_print_stats(const struct tnd_kit *kit)
{
    struct tandem_runtime_info info = TANDEM_RUNTIME_INFO_INIT;
    const struct tandem_hparams *h = tandem_model_hparams(kit->model);
    tandem_runtime_describe(kit->runtime, &info);
    fprintf(stderr,
            "model: %s, %s, %lld layers, dim %lld; loaded in %.1f ms, weights "
            "ready in %.1f ms\n",
            tandem_source_format(kit->source), h->architecture, (long long)h->layers,
            (long long)h->dim, 1e3 * kit->load_seconds, 1e3 * kit->prepare_seconds);
    fprintf(stderr, "machine: %s, %s, %s\nthreads: %d\ntable: %s\n", info.cpu, info.isa,
            info.topology, info.n_threads, info.table[0] != '\0' ? info.table : "none");
    print_memory(kit);
    print_devices(kit);
    print_experts(kit);
    print_micro_batches(kit);
    tnd_draft_option_print(kit->session);
}

void tnd_kit_print_speed(const char *what, int64_t n, double seconds)
{
    if (n > 0 && seconds > 0.0) {
        tnd_say("%s: %lld tokens in %.3f s, %.1f tokens/s\n", what, (long long)n, seconds,
                (double)n / seconds);
    }
}

void tnd_kit_print_text(const char *text, size_t n)
{
    const unsigned char first = n > 0 ? (unsigned char)text[0] : 0;
    const bool is_space = first == ' ' || (first >= '\t' && first <= '\r');
    if (n == 1 && (first < 0x20 || first == 0x7f) && !is_space) {
        return;
    }
    tnd_terminal_pass_text();
    fwrite(text, 1, n, stdout);
    fflush(stdout);
}
