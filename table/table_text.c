/* SPDX-License-Identifier: MIT
 * Parser of the text table, version 1 (docs/table-format.md). Every number is an integer, separated
 * by blanks; line ends are only blanks. The writer is table_text_write.c. */
#include "table/table_cells.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_status.h"
#include "table/records.h"
#include "table/table_text.h"

struct scanner {
    const char *bytes;
    size_t n;
    size_t at;    /* after the last token */
    size_t token; /* its beginning */
    const char *name;
    struct tandem_error *error;
};

struct header {
    int64_t n_shapes, num_m, n_profiles;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

void tnd_table_place(const char *bytes, size_t at, int *out_line, int *out_column)
{
    int line = 1;
    size_t start = 0;
    for (size_t i = 0; i < at; i++) {
        if (bytes[i] == '\n') {
            line++;
            start = i + 1;
        }
    }
    *out_line = line;
    *out_column = (int)(at - start) + 1;
}

/* Returns `status` with "FILE:LINE:COLUMN: expected WHAT, found TOKEN" for the last token. */
static enum tandem_status refuse(const struct scanner *scan, enum tandem_status status,
                                 const char *expected)
{
    int line;
    int column;
    tnd_table_place(scan->bytes, scan->token, &line, &column);
    int length = (int)(scan->at - scan->token);
    char found[40] = "the end of the file";
    if (length > 0) {
        int shown = length > 24 ? 24 : length;
        snprintf(found, sizeof(found), "'%.*s'%s", shown, scan->bytes + scan->token,
                 length > shown ? "..." : "");
    }
    for (char *c = found; *c != '\0'; c++) {
        if ((unsigned char)*c < 0x20 || (unsigned char)*c > 0x7e) {
            *c = '?';
        }
    }
    return tnd_error_set(scan->error, status, scan->name, (int64_t)scan->token, (int64_t)scan->n,
                         "%.120s:%d:%d: expected %s, found %s", scan->name, line, column, expected,
                         found);
}

/* Moves to the next token; TRUNCATED when there is none. */
static enum tandem_status next_token(struct scanner *scan, const char *expected)
{
    while (scan->at < scan->n && is_blank(scan->bytes[scan->at])) {
        scan->at++;
    }
    scan->token = scan->at;
    while (scan->at < scan->n && !is_blank(scan->bytes[scan->at])) {
        scan->at++;
    }
    return scan->at > scan->token ? TANDEM_OK : refuse(scan, TANDEM_E_TRUNCATED, expected);
}

static enum tandem_status read_word(struct scanner *scan, const char *expected, char *out, size_t n)
{
    TND_TRY(next_token(scan, expected));
    size_t length = scan->at - scan->token;
    if (length >= n) {
        return refuse(scan, TANDEM_E_FORMAT, expected);
    }
    for (size_t i = scan->token; i < scan->at; i++) {
        if ((unsigned char)scan->bytes[i] <= 0x20 || (unsigned char)scan->bytes[i] >= 0x7f) {
            return refuse(scan, TANDEM_E_FORMAT, expected);
        }
    }
    memcpy(out, scan->bytes + scan->token, length);
    out[length] = '\0';
    return TANDEM_OK;
}

static enum tandem_status read_number(struct scanner *scan, const char *expected, int64_t low,
                                      int64_t high, int64_t *out)
{
    TND_TRY(next_token(scan, expected));
    int64_t value = 0;
    const char *digits = scan->bytes + scan->token;
    size_t length = scan->at - scan->token;
    /* No leading zeros: no number then begins with "0" but 0 itself; see read_text's last check. */
    bool valid = length <= 18 && (length == 1 || digits[0] != '0');
    for (size_t i = 0; i < length && valid; i++) {
        valid = digits[i] >= '0' && digits[i] <= '9';
        value = valid ? value * 10 + (digits[i] - '0') : value;
    }
    if (!valid || value < low || value > high) {
        return refuse(scan, TANDEM_E_FORMAT, expected);
    }
    *out = value;
    return TANDEM_OK;
}

static enum tandem_status read_header(struct scanner *scan, struct tandem_table *out,
                                      enum tandem_type *out_type, struct header *header)
{
    int64_t version;
    int64_t kind;
    TND_TRY(read_number(scan, "a table version", 0, INT64_MAX, &version));
    if (version != 1) {
        return refuse(scan, TANDEM_E_TABLE_VERSION, "version 1 of the text format");
    }
    out->version = 1;
    TND_TRY(read_word(scan, "a model name", out->model, sizeof(out->model)));
    TND_TRY(read_word(scan, "a weight type", out->type_text, sizeof(out->type_text)));
    if (!tandem_type_from_name(out->type_text, out_type)) {
        return refuse(scan, TANDEM_E_FORMAT, "a weight type such as Q4_0");
    }
    TND_TRY(read_number(scan, "a backend number from 0 to 5", 0, TND_TEXT_KINDS - 1, &kind));
    out->gpu_kind = (uint8_t)kind;
    TND_TRY(read_word(scan, "the name of the GPU backend", out->gpu_name, sizeof(out->gpu_name)));
    TND_TRY(read_number(scan, "a number of shapes from 1 to 4096", 1, 4096, &header->n_shapes));
    TND_TRY(read_number(scan, "a step of M from 1 on", 1, TND_TABLE_MAX_EXTENT, &out->m_step));
    TND_TRY(read_number(scan, "a number of M from 1 to 4096", 1, TND_TABLE_MAX_SAMPLES,
                        &header->num_m));
    TND_TRY(read_number(scan, "a number of profiles from 1 to 64", 1, TND_TABLE_MAX_PROFILES,
                        &header->n_profiles));
    /* Each number takes at least a digit and a blank: counts that do not fit into the file are
     * refused here. */
    int64_t numbers = 9 * header->n_profiles +
                      header->n_shapes * (2 + header->num_m * (1 + 3 * header->n_profiles));
    if (2 * numbers > (int64_t)(scan->n - scan->at) + 1) {
        return tnd_error_set(scan->error, TANDEM_E_TRUNCATED, scan->name,
                             (int64_t)(scan->n - scan->at), 2 * numbers,
                             "%.120s: the first line promises %" PRId64
                             " more numbers, the file has only %zu bytes left",
                             scan->name, numbers, scan->n - scan->at);
    }
    return TANDEM_OK;
}

static enum tandem_status read_profile(struct scanner *scan, enum tandem_type type,
                                       struct tandem_table *out)
{
    struct tnd_table_profile profile;
    memset(&profile, 0, sizeof(profile));
    for (int s = 0; s < TANDEM_STAGES; s++) {
        struct tnd_table_stage *stage = &profile.stage[s];
        int64_t kind;
        int64_t parallel;
        int64_t wait;
        TND_TRY(read_number(scan, "a backend number from 0 to 5", 0, TND_TEXT_KINDS - 1, &kind));
        bool known = kind != TANDEM_KIND_NONE || s != TANDEM_STAGE_COMPUTE;
        if (!known) {
            return refuse(scan, TANDEM_E_FORMAT, "a backend for the COMPUTE stage, 1 to 5");
        }
        /* A missing stage has no flags. */
        int64_t high = kind == TANDEM_KIND_NONE ? 0 : 1;
        const char *flag = high == 0 ? "0, since the stage does not exist" : "0 or 1";
        TND_TRY(read_number(scan, flag, 0, high, &parallel));
        TND_TRY(read_number(scan, flag, 0, high, &wait));
        snprintf(stage->backend, sizeof(stage->backend), "%s", tnd_table_text_kind((int)kind));
        stage->kind = (uint8_t)kind;
        stage->parallel = parallel != 0;
        stage->wait = wait != 0;
    }
    tnd_table_text_name(type, &profile);
    char base[32];
    snprintf(base, sizeof(base), "%s", profile.name);
    for (unsigned number = 2; tnd_table_profile(out, profile.name) != NULL; number++) {
        snprintf(profile.name, sizeof(profile.name), "%.26s#%u", base, number % 100);
    }
    out->profiles[out->n_profiles++] = profile;
    return TANDEM_OK;
}

/* ---- numbers ---- */

/* times[((shape * num_m + i_m) * n_profiles + profile) * 3 + stage] */
static int64_t time_index(const struct header *header, int64_t shape, int64_t i_m, int64_t profile,
                          int stage)
{
    return ((shape * header->num_m + i_m) * header->n_profiles + profile) * TANDEM_STAGES + stage;
}

static enum tandem_status read_shape(struct scanner *scan, const struct header *header,
                                     int64_t shape, int64_t *m_list, int64_t *times,
                                     struct tandem_table *out)
{
    int64_t *extent = out->shapes[shape];
    TND_TRY(read_number(scan, "N, the rows of the weights", 1, TND_TABLE_MAX_EXTENT, &extent[0]));
    TND_TRY(
        read_number(scan, "K, the columns of the weights", 1, TND_TABLE_MAX_EXTENT, &extent[1]));
    for (int64_t i = 0; i < shape; i++) {
        if (out->shapes[i][0] == extent[0] && out->shapes[i][1] == extent[1]) {
            return refuse(scan, TANDEM_E_FORMAT, "a shape that was not listed before");
        }
    }
    out->n_shapes = (int)shape + 1;
    for (int64_t i = 0; i < header->num_m; i++) {
        int64_t low = shape > 0 ? m_list[i] : i > 0 ? m_list[i - 1] + 1 : 1;
        int64_t high = shape > 0 ? m_list[i] : TND_TABLE_MAX_EXTENT;
        const char *expected =
            shape > 0 ? "the same M as in the first shape" : "M, larger than before";
        TND_TRY(read_number(scan, expected, low, high, &m_list[i]));
        for (int64_t p = 0; p < header->n_profiles; p++) {
            for (int s = 0; s < TANDEM_STAGES; s++) {
                bool exists = out->profiles[p].stage[s].kind != TANDEM_KIND_NONE;
                TND_TRY(read_number(
                    scan, exists ? "whole microseconds" : "0, since the stage does not exist", 0,
                    exists ? (int64_t)TND_TABLE_MAX_US : 0,
                    &times[time_index(header, shape, i, p, s)]));
            }
        }
    }
    return TANDEM_OK;
}

static bool same_times(const struct header *header, const int64_t *times, int64_t p, int64_t q,
                       int s)
{
    for (int64_t shape = 0; shape < header->n_shapes; shape++) {
        for (int64_t i = 0; i < header->num_m; i++) {
            if (times[time_index(header, shape, i, p, s)] !=
                times[time_index(header, shape, i, q, s)]) {
                return false;
            }
        }
    }
    return true;
}

/* Two profiles may share a stage, which is then one curve. If the file has different times for it,
 * the later profile's stage becomes a stage of its own: "cpu#2". */
static void tell_stages_apart(const struct header *header, const int64_t *times,
                              struct tandem_table *out)
{
    for (int p = 1; p < out->n_profiles; p++) {
        for (int s = 0; s < TANDEM_STAGES; s++) {
            struct tnd_table_stage *stage = &out->profiles[p].stage[s];
            char base[16];
            memcpy(base, stage->backend, sizeof(base));
            unsigned number = 1;
            for (int q = 0; q < p; q++) {
                const struct tnd_table_stage *other = &out->profiles[q].stage[s];
                if (strcmp(other->backend, stage->backend) == 0 && other->task == stage->task &&
                    other->parallel == stage->parallel && !same_times(header, times, p, q, s)) {
                    snprintf(stage->backend, sizeof(stage->backend), "%.11s#%u", base,
                             ++number % 100);
                    q = -1; /* the new name may be taken, too: start again */
                }
            }
        }
    }
}

static enum tandem_status add_cells(const struct header *header, enum tandem_type type,
                                    const int64_t *m_list, const int64_t *times,
                                    struct tandem_table *out)
{
    for (int64_t shape = 0; shape < header->n_shapes; shape++) {
        for (int p = 0; p < out->n_profiles; p++) {
            for (int s = 0; s < TANDEM_STAGES; s++) {
                const struct tnd_table_stage *stage = &out->profiles[p].stage[s];
                struct tnd_curve_key key;
                tnd_stage_key(stage, s, type, out->shapes[shape][0], out->shapes[shape][1], 1,
                              &key);
                for (int64_t i = 0; i < header->num_m && stage->backend[0] != '\0'; i++) {
                    double us = (double)times[time_index(header, shape, i, p, s)];
                    struct tnd_sample sample = {.m = m_list[i], .median_us = us};
                    TND_TRY(tnd_cell_append(out, TND_RECORD_CURVES, &key, &sample));
                }
            }
        }
    }
    return tnd_record_sort(out, TND_RECORD_CURVES);
}

static enum tandem_status read_end(struct scanner *scan)
{
    /* A file truncated within its last number would be another table. Only a final "0" is complete
     * for certain, since no other number begins with 0. */
    bool is_zero = scan->at - scan->token == 1 && scan->bytes[scan->token] == '0';
    if (scan->at == scan->n && !is_zero) {
        return refuse(scan, TANDEM_E_TRUNCATED, "a line end behind the last number");
    }
    while (scan->at < scan->n && is_blank(scan->bytes[scan->at])) {
        scan->at++;
    }
    if (scan->at < scan->n) {
        (void)next_token(scan, "the end of the file");
        return refuse(scan, TANDEM_E_FORMAT, "the end of the file");
    }
    return TANDEM_OK;
}

enum tandem_status tnd_table_read_text(const char *bytes, size_t n, const char *name,
                                       struct tandem_table *out, struct tandem_error *error)
{
    struct scanner scan = {bytes, n, 0, 0, name, error};
    struct header header;
    enum tandem_type type;
    TND_TRY(read_header(&scan, out, &type, &header));
    for (int64_t p = 0; p < header.n_profiles; p++) {
        TND_TRY(read_profile(&scan, type, out));
    }
    /* The counts fit into the file's size (read_header), so these products are small. */
    size_t n_times = (size_t)(header.n_shapes * header.num_m * header.n_profiles * TANDEM_STAGES);
    int64_t *times = tnd_alloc(n_times * sizeof(*times));
    int64_t *m_list = tnd_alloc((size_t)header.num_m * sizeof(*m_list));
    out->shapes = tnd_alloc((size_t)header.n_shapes * sizeof(*out->shapes));
    enum tandem_status status = TANDEM_OK;
    if (times == NULL || m_list == NULL || out->shapes == NULL) {
        status = tnd_error_set(error, TANDEM_E_MEMORY, name, 0, 0, "%.120s: out of memory", name);
    }
    for (int64_t shape = 0; shape < header.n_shapes && status == TANDEM_OK; shape++) {
        status = read_shape(&scan, &header, shape, m_list, times, out);
    }
    if (status == TANDEM_OK) {
        status = read_end(&scan);
    }
    if (status == TANDEM_OK) {
        tell_stages_apart(&header, times, out);
        status = add_cells(&header, type, m_list, times, out);
        if (status != TANDEM_OK) {
            tnd_error_set(error, status, name, out->n_curves, TND_TABLE_MAX_CURVES, "%.120s: %s",
                          name, tandem_status_text(status));
        }
    }
    tnd_free(times);
    tnd_free(m_list);
    return status;
}
