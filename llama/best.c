/* SPDX-License-Identifier: MIT
 * Choosing a token from logits that are divided among ranks. A sampler keeps the likeliest tokens
 * of the vocabulary. They are among the likeliest tokens of the ranks: always for greedy sampling
 * and top-k, and for top-p and min-p if the messages prove it. Otherwise, and if the sampler cuts
 * nothing off, rank 0 gets all logits. Rank 0 sends penalty and mask with the batch, and each rank
 * applies them to its own logits. Settings, order and weights are those of tandem/sample.h, so the
 * choice is the same as with one rank. */
#include "llama/best.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "llama/llama_error.h"
#include "llama/phases.h"
#include "llama/sampler.h"
#include "llama/session.h"

enum {
    MOST = 256, /* largest top-k; above it, all logits are sent */
    CUT = 128,  /* tokens that each rank sends for top-p and min-p */
    WORD = 32
};

/* Header of a column's request, followed by recent tokens and mask. */
struct told_column {
    struct tandem_sample_settings settings;
    int64_t k, n_recent;
    float penalty;
    int32_t mask; /* one of the following */
};
enum { NO_MASK, SAME_MASK, NEW_MASK };

/* Header of a column's candidates, followed by {k} of them. */
struct told_firsts {
    int64_t n, is_all;
    uint64_t sum;
};

static enum tandem_status no_memory(struct tandem_error *error)
{
    return tnd_llama_fail(error, TANDEM_E_MEMORY, "cluster", 0, 0,
                          "llama: no memory to choose among ranks");
}

/* Makes sure that there is memory for n units; contents are lost. */
static bool reserve(void *io_memory, size_t *io_bytes, size_t n, size_t unit)
{
    void **memory = io_memory;
    if (n * unit > *io_bytes) {
        free(*memory);
        *memory = malloc(n * unit);
        *io_bytes = *memory != NULL ? n * unit : 0;
    }
    return *memory != NULL || n == 0;
}

static size_t words_of(int64_t vocabulary)
{
    return (size_t)(vocabulary + WORD - 1) / WORD;
}

/* Bytes of a rank's message about a column. */
static size_t firsts_bytes(int64_t k)
{
    return k > 0 ? sizeof(struct told_firsts) + (size_t)k * sizeof(struct tandem_sample_first) : 0;
}

static size_t message_bytes(const struct tnd_llama_best *best)
{
    size_t bytes = 0;
    for (int64_t i = 0; i < best->n; i++) {
        bytes += firsts_bytes(best->columns[i].k);
    }
    return bytes;
}

/* ---- requests ---- */

/* Number of candidates that each rank sends; 0: all logits. */
static int64_t k_of(const struct tandem_sample_settings *settings)
{
    if (settings->scale == 0) {
        return 1;
    }
    if (settings->k > 0) {
        return settings->k <= MOST ? (int64_t)settings->k : 0;
    }
    return settings->share > 0 || settings->least > 1 ? CUT : 0;
}

/* Top-p needs the sum of all weights. */
static bool needs_sum(const struct tnd_llama_best_column *column)
{
    return column->k > 0 && column->settings.scale != 0 && column->settings.k == 0 &&
           column->settings.share > 0;
}

/* Whether the candidates may turn out to be insufficient: a mask without any token is ignored, and
 * top-p may need more tokens than are sent. */
static bool may_miss(const struct tnd_llama_best_column *column)
{
    return column->mask != NULL || (column->settings.scale != 0 && column->settings.k == 0);
}

static void append(struct tnd_llama_best *best, const void *bytes, size_t n)
{
    if (n > 0) {
        memcpy(best->told + best->n_told, bytes, n);
    }
    best->n_told += n;
}

static void pack_mask(const bool *mask, int64_t vocabulary, uint32_t *out)
{
    memset(out, 0, words_of(vocabulary) * sizeof(out[0]));
    for (int64_t i = 0; i < vocabulary; i++) {
        out[i / WORD] |= (uint32_t)mask[i] << i % WORD;
    }
}

/* `packed`: space for two masks, the previous one first. */
static void tell_column(struct tnd_llama_best *best, const struct tnd_sampler_request *request,
                        int64_t k, int64_t vocabulary, bool *io_has_mask, uint32_t *packed)
{
    const size_t words = words_of(vocabulary), bytes = words * sizeof(packed[0]);
    struct told_column told = {.settings = request->settings,
                               .k = k,
                               .n_recent = request->n_recent,
                               .penalty = request->penalty};
    if (request->mask != NULL) {
        pack_mask(request->mask, vocabulary, packed + words);
        const bool is_same = *io_has_mask && memcmp(packed, packed + words, bytes) == 0;
        told.mask = is_same ? SAME_MASK : NEW_MASK;
        memcpy(packed, packed + words, bytes);
        *io_has_mask = true;
    }
    append(best, &told, sizeof(told));
    append(best, request->recent, (size_t)told.n_recent * sizeof(request->recent[0]));
    append(best, packed, told.mask == NEW_MASK ? bytes : 0);
}

/* The sampler request of the i-th text; `k` is 0 if all its logits are wanted. */
static struct tnd_sampler_request request_of(const struct tandem_session *session,
                                             const struct tandem_batch_entry *entry, int64_t *out_k)
{
    const int64_t vocabulary = session->model->hparams.vocabulary;
    const size_t count = (size_t)session->model->shard->count;
    struct tnd_sampler_request request = {.settings = {.scale = 0}};
    tandem_sampler *sampler = session->sequences[entry->sequence].sampler;
    *out_k = 0;
    if (sampler != NULL && tnd_sampler_request(sampler, vocabulary, &request)) {
        const int64_t k = k_of(&request.settings);
        const bool is_less = count * firsts_bytes(k) < (size_t)vocabulary * sizeof(float) &&
                             request.n_recent <= vocabulary / WORD;
        *out_k = is_less ? k : 0;
    }
    return *out_k > 0 ? request : (struct tnd_sampler_request){.settings = {.scale = 0}};
}

/* Number of texts that want a result; 0: all want logits. `out_told`: upper bound of the request's
 * size in bytes. */
static int64_t count_columns(const struct tandem_session *session,
                             const struct tandem_batch_entry *entries, int64_t n_entries,
                             size_t *out_told)
{
    const size_t mask = words_of(session->model->hparams.vocabulary) * sizeof(uint32_t);
    int64_t n = 0, n_chosen = 0;
    *out_told = 0;
    for (int64_t i = 0; i < n_entries; i++) {
        int64_t k = 0;
        if (entries[i].wants_logits) {
            const struct tnd_sampler_request request = request_of(session, &entries[i], &k);
            *out_told += sizeof(struct told_column) +
                         (size_t)request.n_recent * sizeof(request.recent[0]) +
                         (request.mask != NULL ? mask : 0);
            n_chosen += k > 0;
            n++;
        }
    }
    return n_chosen > 0 ? n : 0;
}

/* Whether the logits of a batch are divided by rows among several ranks. */
static bool is_divided(const struct tandem_session *session,
                       const struct tandem_batch_entry *entries, int64_t n_entries)
{
    const struct tnd_llama_shard *shard = session->model->shard;
    int64_t m = 0;
    for (int64_t i = 0; i < n_entries; i++) {
        m += entries[i].n;
    }
    return tnd_llama_by_rows(session->model) && shard->count > 1 &&
           tnd_llama_part_for(session, m) == session->model;
}

enum tandem_status tnd_llama_best_ask(struct tandem_session *session,
                                      const struct tandem_batch_entry *entries, int64_t n_entries,
                                      struct tandem_error *error)
{
    struct tnd_llama_best *best = &session->best;
    const int64_t vocabulary = session->model->hparams.vocabulary;
    const size_t words = words_of(vocabulary);
    size_t most = 0;
    if (session->leads == NULL) {
        return TANDEM_OK;
    }
    best->n = 0;
    best->n_told = 0;
    const int64_t n = is_divided(session, entries, n_entries)
                          ? count_columns(session, entries, n_entries, &most)
                          : 0;
    if (n == 0) {
        return TANDEM_OK;
    }
    uint32_t *packed = calloc(2 * words, sizeof(packed[0]));
    if (packed == NULL || !reserve(&best->told, &best->told_bytes, most, 1)) {
        free(packed);
        return no_memory(error);
    }
    bool has_mask = best->mask != NULL;
    if (has_mask) {
        memcpy(packed, best->mask, words * sizeof(packed[0]));
    }
    for (int64_t i = 0; i < n_entries; i++) {
        if (entries[i].wants_logits) {
            int64_t k;
            const struct tnd_sampler_request request = request_of(session, &entries[i], &k);
            tell_column(best, &request, k, vocabulary, &has_mask, packed);
        }
    }
    free(packed);
    return tnd_llama_best_take(session, best->told, best->n_told, n, error);
}

/* ---- receiving requests ---- */

static enum tandem_status wrong(size_t n, int64_t n_columns, struct tandem_error *error)
{
    return tnd_llama_fail(error, TANDEM_E_FORMAT, "cluster", (int64_t)n, n_columns,
                          "llama: rank 0 tells %lld choices in %zu bytes, which they do not fill",
                          (long long)n_columns, n);
}

/* Reads a column at *io_at; `io_mask`: mask of the previous column. Returns whether it is valid. */
static bool read_column(const char *told, size_t n, int64_t vocabulary, size_t *io_at,
                        const uint32_t **io_mask, struct tnd_llama_best_column *out)
{
    struct told_column one;
    if (n - *io_at < sizeof(one)) {
        return false;
    }
    memcpy(&one, told + *io_at, sizeof(one));
    *io_at += sizeof(one);
    const int64_t left = (int64_t)((n - *io_at) / sizeof(int32_t));
    const int64_t words = one.mask == NEW_MASK ? (int64_t)words_of(vocabulary) : 0;
    if (one.k < 0 || one.k > MOST || one.n_recent < 0 || one.n_recent > left ||
        words > left - one.n_recent || one.mask < NO_MASK || one.mask > NEW_MASK ||
        (one.mask == SAME_MASK && *io_mask == NULL)) {
        return false;
    }
    const void *numbers = told + *io_at; /* aligned: only whole integers come before */
    *io_mask = words > 0 ? (const uint32_t *)numbers + one.n_recent : *io_mask;
    *out = (struct tnd_llama_best_column){.settings = one.settings,
                                          .k = one.k,
                                          .penalty = one.penalty,
                                          .recent = numbers,
                                          .n_recent = one.n_recent,
                                          .mask = one.mask != NO_MASK ? *io_mask : NULL};
    *io_at += (size_t)(one.n_recent + words) * sizeof(int32_t);
    return true;
}

/* Allocates memory for the columns that were read. */
static bool reserve_node(struct tnd_llama_best *best)
{
    const struct tnd_llama_shard *shard = best->shard;
    const size_t count = (size_t)shard->count, n = (size_t)best->n;
    const size_t own = shard->logit_bytes[shard->rank] / sizeof(float);
    const size_t told = count * MOST, bytes = message_bytes(best);
    return reserve(&best->memory.row, &best->memory.n_row, own + 1, sizeof(float)) &&
           reserve(&best->memory.sample, &best->memory.n_sample,
                   tandem_sample_memory((int64_t)(own > told ? own : told)), 1) &&
           reserve(&best->memory.mine, &best->memory.n_mine, bytes, 1) &&
           reserve(&best->memory.all, &best->memory.n_all, count * bytes, 1) &&
           reserve(&best->memory.largest, &best->memory.n_largest, (count + 1) * n,
                   sizeof(float)) &&
           reserve(&best->memory.bytes, &best->memory.n_bytes, count, sizeof(size_t)) &&
           reserve(&best->memory.parts, &best->memory.n_parts, count,
                   sizeof(best->memory.parts[0])) &&
           reserve(&best->memory.firsts, &best->memory.n_firsts, told,
                   sizeof(best->memory.firsts[0]));
}

/* Keeps the last mask for the next batch, and the one before it, because columns may point to
 * it. */
static bool keep_mask(struct tnd_llama_best *best, const uint32_t *mask, size_t words)
{
    if (mask == NULL || mask == best->mask) {
        return true;
    }
    uint32_t *copy = malloc(words * sizeof(copy[0]));
    if (copy == NULL) {
        return false;
    }
    memcpy(copy, mask, words * sizeof(copy[0]));
    free(best->mask_before);
    best->mask_before = best->mask;
    best->mask = copy;
    return true;
}

enum tandem_status tnd_llama_best_take(struct tandem_session *session, const void *told, size_t n,
                                       int64_t n_columns, struct tandem_error *error)
{
    struct tnd_llama_best *best = &session->best;
    const int64_t vocabulary = session->model->hparams.vocabulary;
    const uint32_t *mask = best->mask;
    size_t at = 0;
    best->shard = session->model->shard;
    best->n = 0;
    if (n == 0) {
        return TANDEM_OK;
    }
    if (best->columns == NULL) {
        best->columns = calloc((size_t)session->n_sequences, sizeof(best->columns[0]));
    }
    if (best->columns == NULL) {
        return no_memory(error);
    }
    if (!tnd_llama_by_rows(session->model) || n_columns > session->n_sequences) {
        return wrong(n, n_columns, error);
    }
    bool is_right = true, is_chosen = false;
    for (int64_t i = 0; i < n_columns && is_right; i++) {
        is_right = read_column(told, n, vocabulary, &at, &mask, &best->columns[i]);
        is_chosen = is_chosen || best->columns[i].k > 0;
    }
    if (!is_right || !is_chosen || at != n) {
        return wrong(n, n_columns, error);
    }
    best->n = n_columns;
    if (!reserve_node(best) || !keep_mask(best, mask, words_of(vocabulary))) {
        best->n = 0;
        return no_memory(error);
    }
    return TANDEM_OK;
}

void tnd_llama_best_forget(struct tnd_llama_best *best)
{
    best->n = 0;
    free(best->mask);
    best->mask = NULL;
}

void tnd_llama_best_fini(struct tnd_llama_best *best)
{
    free(best->columns);
    free(best->told);
    free(best->mask);
    free(best->mask_before);
    free(best->memory.row);
    free(best->memory.sample);
    free(best->memory.mine);
    free(best->memory.all);
    free(best->memory.largest);
    free(best->memory.bytes);
    free(best->memory.parts);
    free(best->memory.firsts);
    *best = (struct tnd_llama_best){.n = 0};
}

/* ---- the node ---- */

/* This rank's logits after the penalty; masked tokens cannot be chosen. */
static const float *change(const struct tnd_llama_best *best,
                           const struct tnd_llama_best_column *column, const float *logits)
{
    const struct tnd_llama_range own = best->shard->vocabulary;
    const int64_t n = own.end - own.begin;
    float *row = best->memory.row;
    if (n == 0 || (column->n_recent == 0 && column->mask == NULL)) {
        return logits;
    }
    memcpy(row, logits, (size_t)n * sizeof(row[0]));
    for (int64_t i = 0; i < column->n_recent; i++) {
        const int64_t token = column->recent[i] - own.begin;
        if (token >= 0 && token < n) {
            row[token] = tnd_sampler_weaken(logits[token], column->penalty);
        }
    }
    for (int64_t i = 0; i < n && column->mask != NULL; i++) {
        const int64_t token = own.begin + i;
        const bool may = (column->mask[token / WORD] >> token % WORD & 1) != 0;
        row[i] = may ? row[i] : -INFINITY;
    }
    return row;
}

/* Column m of logits {own, M}. */
static const float *column_of(const struct tnd_llama_best *best, const tandem_tensor *logits,
                              int64_t m)
{
    const struct tnd_llama_range own = best->shard->vocabulary;
    return (const float *)tandem_tensor_data(logits) + m * (own.end - own.begin);
}

/* Fills the message with the likeliest tokens of each column; finds the largest logits. */
static void find_firsts(const struct tnd_llama_best *best, const tandem_tensor *logits)
{
    const struct tnd_llama_range own = best->shard->vocabulary;
    struct tandem_sample_first *firsts = best->memory.firsts;
    char *out = best->memory.mine;
    for (int64_t m = 0; m < best->n; m++) {
        const struct tnd_llama_best_column *column = &best->columns[m];
        struct told_firsts head = {0, 1, 0};
        bool is_all = true;
        best->memory.largest[m] = -INFINITY;
        if (column->k == 0) {
            continue;
        }
        memset(firsts, 0, (size_t)column->k * sizeof(firsts[0]));
        head.n = tandem_sample_first(change(best, column, column_of(best, logits, m)),
                                     own.end - own.begin, column->k, best->memory.sample, firsts,
                                     &is_all);
        head.is_all = is_all;
        for (int64_t i = 0; i < head.n; i++) {
            best->memory.largest[m] = fmaxf(best->memory.largest[m], firsts[i].logit);
            firsts[i].index += (int32_t)own.begin;
        }
        memcpy(out, &head, sizeof(head));
        memcpy(out + sizeof(head), firsts, (size_t)column->k * sizeof(firsts[0]));
        out += firsts_bytes(column->k);
    }
}

/* Adds the sum of weights to the columns that need it, once the largest logit of all ranks is
 * known. */
static enum tandem_status add_sums(const struct tnd_llama_best *best, const tandem_tensor *logits)
{
    const struct tnd_llama_range own = best->shard->vocabulary;
    const size_t count = (size_t)best->shard->count, n = (size_t)best->n;
    float *all = best->memory.largest + n;
    bool is_needed = false;
    for (int64_t m = 0; m < best->n; m++) {
        is_needed = is_needed || needs_sum(&best->columns[m]);
    }
    if (!is_needed) {
        return TANDEM_OK;
    }
    for (size_t r = 0; r < count; r++) {
        best->memory.bytes[r] = n * sizeof(all[0]);
    }
    LLAMA_TRY(tandem_communicator_all_gather(best->shard->communicator, best->memory.largest,
                                             best->memory.bytes, all, NULL));
    char *out = best->memory.mine;
    for (int64_t m = 0; m < best->n; m++) {
        const struct tnd_llama_best_column *column = &best->columns[m];
        float largest = -INFINITY;
        for (size_t r = 0; r < count; r++) {
            largest = fmaxf(largest, all[r * n + (size_t)m]);
        }
        if (needs_sum(column)) {
            const uint64_t sum = tandem_sample_sum(&column->settings, largest,
                                                   change(best, column, column_of(best, logits, m)),
                                                   own.end - own.begin);
            memcpy(out + offsetof(struct told_firsts, sum), &sum, sizeof(sum));
        }
        out += firsts_bytes(column->k);
    }
    return TANDEM_OK;
}

/* Reads rank r's candidates for a column. Returns whether they are valid: tokens of its own part of
 * the vocabulary, which begins at `begin`, in order. */
static bool read_firsts(const struct tnd_llama_best *best, int r, int64_t begin, const char *from,
                        int64_t k, struct tandem_sample_part *out)
{
    struct tandem_sample_first *firsts = best->memory.firsts + (size_t)r * MOST;
    const int64_t end = begin + (int64_t)(best->shard->logit_bytes[r] / sizeof(float));
    struct told_firsts head;
    memcpy(&head, from, sizeof(head));
    if (head.n < 0 || head.n > k) {
        return false;
    }
    memcpy(firsts, from + sizeof(head), (size_t)head.n * sizeof(firsts[0]));
    for (int64_t i = 0; i < head.n; i++) {
        if (firsts[i].index < begin || firsts[i].index >= end) {
            return false;
        }
        begin = firsts[i].index + 1;
    }
    *out = (struct tandem_sample_part){firsts, head.n, head.is_all != 0, head.sum};
    return true;
}

/* On rank 0: chooses a token from the candidates at offset `at` of all messages, if they suffice.
 * Errors: RANK. */
static enum tandem_status choose_column(const struct tnd_llama_best *best, size_t message,
                                        size_t at, struct tnd_llama_best_column *column)
{
    const struct tnd_llama_shard *shard = best->shard;
    struct tandem_error why = {.text = ""};
    int64_t begin = 0;
    for (int r = 0; r < shard->count; r++) {
        if (!read_firsts(best, r, begin, best->memory.all + (size_t)r * message + at, column->k,
                         &best->memory.parts[r])) {
            (void)tnd_llama_fail(&why, TANDEM_E_RANK, "cluster", r, column->k,
                                 "cluster: rank %d on %s tells likeliest tokens that are not its "
                                 "own, in order, or more than %lld of them",
                                 r, tandem_communicator_host(shard->communicator, r),
                                 (long long)column->k);
            tandem_communicator_fail(shard->communicator, &why);
            return why.status;
        }
        begin += (int64_t)(shard->logit_bytes[r] / sizeof(float));
    }
    column->is_chosen = tandem_sample_parts(&column->settings, best->memory.parts, shard->count,
                                            best->memory.sample, &column->choice) &&
                        (column->choice.weight > 0 || column->mask == NULL);
    if (column->is_chosen || may_miss(column)) {
        return TANDEM_OK;
    }
    (void)tnd_llama_fail(&why, TANDEM_E_RANK, "cluster", 0, column->k,
                         "cluster: ranks tell less than %lld likeliest tokens of those they have",
                         (long long)column->k);
    tandem_communicator_fail(shard->communicator, &why);
    return why.status;
}

/* If candidates may not suffice, rank 0 tells the others which columns are chosen. */
static enum tandem_status agree(const struct tnd_llama_best *best)
{
    uint8_t *verdicts = best->memory.sample; /* {n}: the buffer is larger than that */
    bool is_open = false;
    for (int64_t m = 0; m < best->n; m++) {
        const struct tnd_llama_best_column *column = &best->columns[m];
        is_open = is_open || (column->k > 0 && may_miss(column));
        verdicts[m] = column->is_chosen;
    }
    if (!is_open) {
        return TANDEM_OK;
    }
    LLAMA_TRY(
        tandem_communicator_broadcast(best->shard->communicator, verdicts, (size_t)best->n, NULL));
    for (int64_t m = 0; m < best->n; m++) {
        best->columns[m].is_chosen = verdicts[m] != 0;
    }
    return TANDEM_OK;
}

/* Sets `is_chosen` of all columns, the same on all ranks. */
static enum tandem_status choose(const struct tnd_llama_best *best)
{
    const struct tnd_llama_shard *shard = best->shard;
    const size_t message = message_bytes(best);
    size_t at = 0;
    for (int r = 0; r < shard->count; r++) {
        best->memory.bytes[r] = message;
    }
    LLAMA_TRY(tandem_communicator_gather(shard->communicator, best->memory.mine, best->memory.bytes,
                                         best->memory.all, NULL));
    for (int64_t m = 0; m < best->n; m++) {
        struct tnd_llama_best_column *column = &best->columns[m];
        column->is_chosen = column->k > 0;
        if (column->k > 0 && shard->rank == 0) {
            LLAMA_TRY(choose_column(best, message, at, column));
        }
        at += firsts_bytes(column->k);
    }
    return agree(best);
}

/* Gathers all logits of column m. */
static enum tandem_status gather_column(const struct tnd_llama_shard *shard,
                                        const tandem_tensor *node, int64_t m)
{
    const size_t own = shard->logit_bytes[shard->rank] / sizeof(float);
    const float *mine = tandem_tensor_data(tandem_tensor_src(node, 0));
    float *all = tandem_tensor_data(node);
    return tandem_communicator_gather(shard->communicator, mine + (own > 0 ? (size_t)m * own : 0),
                                      shard->logit_bytes, all + m * tandem_tensor_ne(node)[0],
                                      NULL);
}

static enum tandem_status gather_node(void *user, const tandem_tensor *node, int64_t begin,
                                      int64_t end)
{
    LLAMA_ASSERT(begin == 0 && end == 1);
    (void)begin;
    (void)end;
    for (int64_t m = 0; m < tandem_tensor_ne(node)[1]; m++) {
        LLAMA_TRY(gather_column(user, node, m));
    }
    return TANDEM_OK;
}

static enum tandem_status choose_node(void *user, const tandem_tensor *node, int64_t begin,
                                      int64_t end)
{
    struct tnd_llama_best *best = user;
    const tandem_tensor *logits = tandem_tensor_src(node, 0);
    LLAMA_ASSERT(begin == 0 && end == 1 && tandem_tensor_ne(node)[1] == best->n);
    (void)begin;
    (void)end;
    find_firsts(best, logits);
    LLAMA_TRY(add_sums(best, logits));
    LLAMA_TRY(choose(best));
    for (int64_t m = 0; m < best->n; m++) {
        if (!best->columns[m].is_chosen) {
            LLAMA_TRY(gather_column(best->shard, node, m));
        }
    }
    return TANDEM_OK;
}

tandem_tensor *tnd_llama_gather_logits(const tandem_model *model, tandem_context *context,
                                       struct tnd_llama_best *best, tandem_tensor *y)
{
    const int64_t n = model->hparams.vocabulary;
    return !tnd_llama_by_rows(model) ? y
           : best != NULL
               ? tnd_llama_rank_node(context, y, n, choose_node, best, "choices of all ranks")
               : tnd_llama_rank_node(context, y, n, gather_node, model->shard,
                                     "logits of all ranks");
}
