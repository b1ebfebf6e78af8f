/* SPDX-License-Identifier: MIT
 * Parsing llama-bench's output. Members as written by llama.cpp, tools/llama-bench (ggml 0.25.3,
 * commit 0c1e570); older versions lack `repack` and `n_cpu_moe`. */
#include "tools/report/llama_bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tnd_status.h"
#include "table/json_read.h"
#include "table/records.h"

#ifdef TND_HAVE_CJSON

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof(*values), compare);
    return n % 2 != 0 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]);
}

/* Reads a text, truncated to fit; `instead` replaces an empty or missing one. */
static enum tandem_status read_name(const struct tnd_json_reader *r, const cJSON *root,
                                    const char *key, const char *instead, char *out, size_t n)
{
    char text[1024] = "";
    TND_TRY(tnd_json_string(r, root, key, instead == NULL, text, sizeof(text)));
    size_t length = strlen(text);
    for (length = length < n ? length : n - 1;
         length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80;) {
        length--;
    }
    snprintf(out, n, "%.*s", (int)length, text[0] != '\0' ? text : "");
    if (out[0] == '\0') {
        snprintf(out, n, "%s", instead != NULL ? instead : "?");
    }
    return TANDEM_OK;
}

static enum tandem_status read_count(const struct tnd_json_reader *r, const cJSON *root,
                                     const char *key, bool required, int64_t high, uint32_t *out)
{
    int64_t value = 0;
    TND_TRY(tnd_json_int(r, root, key, required, 0, high, &value));
    *out = (uint32_t)value;
    return TANDEM_OK;
}

/* A flag is true, false, 0 or 1, depending on the version. A missing one leaves `out` as it is. */
static enum tandem_status read_flag(const struct tnd_json_reader *r, const cJSON *root,
                                    const char *key, bool *out)
{
    int64_t value = *out;
    if (cJSON_IsNumber(tnd_json_get(root, key))) {
        TND_TRY(tnd_json_int(r, root, key, false, 0, 1, &value));
        *out = value != 0;
        return TANDEM_OK;
    }
    return tnd_json_get(root, key) != NULL ? tnd_json_bool(r, root, key, out) : TANDEM_OK;
}

static enum tandem_status read_runs(const struct tnd_json_reader *r, const cJSON *root,
                                    struct tnd_program_time *out)
{
    const cJSON *list = NULL;
    const cJSON *item;
    static const double us = 1e-3;
    double runs[TND_LLAMA_BENCH_RUNS];
    int n = 0;
    TND_TRY(tnd_json_array(r, root, "samples_ns", &list));
    cJSON_ArrayForEach(item, list)
    {
        if (n == TND_LLAMA_BENCH_RUNS || !cJSON_IsNumber(item) ||
            !(item->valuedouble >= 1 && item->valuedouble <= 1e15)) {
            return tnd_json_wrong(r, "samples_ns", "at most 1000 times from 1 to 1e15", item);
        }
        runs[n++] = us * item->valuedouble;
    }
    if (n == 0) {
        return tnd_json_wrong(r, "samples_ns", "at least one time", list);
    }
    out->count = (uint32_t)n;
    out->median_us = median(runs, n);
    for (int i = 0; i < n; i++) {
        runs[i] = fabs(runs[i] - out->median_us);
    }
    out->spread_us = median(runs, n);
    return TANDEM_OK;
}

static enum tandem_status read_version(const struct tnd_json_reader *r, const cJSON *root,
                                       struct tnd_program_time *out)
{
    char commit[16];
    int64_t number = 0;
    TND_TRY(read_name(r, root, "build_commit", "unknown", commit, sizeof(commit)));
    TND_TRY(tnd_json_int(r, root, "build_number", false, 0, INT32_MAX, &number));
    snprintf(out->version, sizeof(out->version), "%d (%s)", (int)number, commit);
    return TANDEM_OK;
}

static enum tandem_status read_test(const struct tnd_json_reader *r, const cJSON *root,
                                    struct tnd_program_time *out)
{
    const int64_t most = INT64_C(1) << 53;
    int64_t threads = 0;
    uint32_t depth = 0;
    TND_TRY(read_version(r, root, out));
    TND_TRY(read_name(r, root, "backends", NULL, out->backends, sizeof(out->backends)));
    TND_TRY(read_name(r, root, "gpu_info", "none", out->device, sizeof(out->device)));
    TND_TRY(read_name(r, root, "type_k", NULL, out->cache, sizeof(out->cache)));
    TND_TRY(tnd_json_int(r, root, "model_size", true, 1, most, &out->bytes));
    TND_TRY(tnd_json_int(r, root, "model_n_params", true, 1, most, &out->weights));
    TND_TRY(tnd_json_int(r, root, "n_threads", true, 1, 65536, &threads));
    TND_TRY(tnd_json_int(r, root, "n_ubatch", true, 1, 1 << 30, &out->ubatch));
    TND_TRY(read_count(r, root, "n_prompt", true, 1 << 30, &out->prompt));
    TND_TRY(read_count(r, root, "n_gen", true, 1 << 30, &out->generated));
    TND_TRY(read_count(r, root, "n_depth", false, 1 << 30, &depth));
    TND_TRY(read_count(r, root, "n_gpu_layers", true, 1 << 30, &out->layers));
    TND_TRY(read_count(r, root, "n_cpu_moe", false, 1 << 30, &out->expert_layers));
    TND_TRY(read_flag(r, root, "no_op_offload", &out->no_op_offload));
    TND_TRY(read_flag(r, root, "repack", &out->repack));
    out->threads = (int32_t)threads;
    if ((out->prompt > 0) == (out->generated > 0) || depth > 0) {
        return tnd_json_wrong(r, "n_prompt", "a prompt or generation alone, without a text before",
                              tnd_json_get(root, "n_prompt"));
    }
    return read_runs(r, root, out);
}

enum tandem_status tnd_llama_bench_read(const char *line, size_t n, int64_t when,
                                        struct tnd_program_time *out, struct tandem_error *error)
{
    struct tnd_program_time one;
    memset(&one, 0, sizeof(one));
    one.when = when;
    one.repack = true; /* the default in versions without the member */
    snprintf(one.program, sizeof(one.program), "llama.cpp");
    if (n > TND_LLAMA_BENCH_LINE) {
        return tnd_error_set(error, TANDEM_E_LIMIT, "llama-bench", (int64_t)n, TND_LLAMA_BENCH_LINE,
                             "llama-bench: a line of more than %d bytes", TND_LLAMA_BENCH_LINE);
    }
    cJSON *root = NULL;
    TND_TRY(tnd_json_parse(line, n, "llama-bench", &root, error));
    const struct tnd_json_reader reader = {"llama-bench", error, ""};
    const enum tandem_status status = read_test(&reader, root, &one);
    cJSON_Delete(root);
    if (status == TANDEM_OK) {
        *out = one;
    }
    return status;
}

#else

enum tandem_status tnd_llama_bench_read(const char *line, size_t n, int64_t when,
                                        struct tnd_program_time *out, struct tandem_error *error)
{
    (void)line;
    (void)n;
    (void)when;
    (void)out;
    return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BUILD, "llama-bench", 0, 0,
                         "llama-bench: this build was made without cJSON, expected one with it");
}

#endif
