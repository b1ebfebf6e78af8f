/* SPDX-License-Identifier: MIT
 * Writer of the text table, version 1, and what it shares with the parser. The format holds one
 * weight type on one thread, so only that part of a table is written. */
#include "table/table_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backends/task.h"
#include "base/alloc.h"
#include "base/emit.h"
#include "table/curve_line.h"
#include "table/product_moves.h"
#include "table/table_cells.h"

/* ---- names in the format ---- */

const char *tnd_table_text_kind(int kind)
{
    static const char *const names[TND_TEXT_KINDS] = {"",           "cpu",      "cuda",
                                                      "accelerate", "openblas", "clblast"};
    return kind >= 0 && kind < TND_TEXT_KINDS ? names[kind] : "";
}

/* Names of library profiles that their backends do not determine: they differ from others in their
 * flags, or in which stage decodes the weights. Each triple is backend, parallel, wait. */
static const struct {
    const char *name;
    uint8_t stages[TANDEM_STAGES][3];
} names_by_flags[] = {
    {"cpu+openblas-panels", {{1, 1, 0}, {4, 1, 0}, {0, 0, 0}}},
    {"opencl+openblas", {{5, 0, 1}, {4, 0, 1}, {0, 0, 0}}},
};

static const char *name_by_flags(const struct tnd_table_profile *profile)
{
    for (size_t i = 0; i < sizeof(names_by_flags) / sizeof(names_by_flags[0]); i++) {
        bool is_same = true;
        for (int s = 0; s < TANDEM_STAGES; s++) {
            const struct tnd_table_stage *stage = &profile->stage[s];
            const uint8_t *want = names_by_flags[i].stages[s];
            is_same = is_same && stage->kind == want[0] && stage->parallel == want[1] &&
                      stage->wait == want[2];
        }
        if (is_same) {
            return names_by_flags[i].name;
        }
    }
    return NULL;
}

/* Profiles of version 1 have neither names nor tasks: both follow from the backends, since the
 * original program had only these profiles. */
void tnd_table_text_name(enum tandem_type type, struct tnd_table_profile *profile)
{
    struct tnd_table_stage *init = &profile->stage[TANDEM_STAGE_INIT];
    struct tnd_table_stage *compute = &profile->stage[TANDEM_STAGE_COMPUTE];
    struct tnd_table_stage *finalize = &profile->stage[TANDEM_STAGE_FINALIZE];
    const char *first = tnd_table_text_kind(init->kind);
    const char *second = tnd_table_text_kind(compute->kind);
    finalize->task = finalize->kind != TANDEM_KIND_NONE ? TANDEM_TASK_FINALIZE : TANDEM_TASK_NONE;
    if (init->kind == TANDEM_KIND_NONE) {
        compute->task = TANDEM_TASK_NODE;
        snprintf(profile->name, sizeof(profile->name), "%s", second);
        return;
    }
    bool on_cpu = init->kind == TANDEM_KIND_CPU && compute->kind == TANDEM_KIND_CPU;
    bool quantized = on_cpu && tandem_type_is_quantized(type);
    init->task = quantized ? TANDEM_TASK_QUANTIZE_X : TANDEM_TASK_DEQUANTIZE_W;
    compute->task = quantized ? TANDEM_TASK_MUL_MAT_Q : TANDEM_TASK_MUL_MAT_F32;
    /* For F32 and I32 weights the library has no such profiles. */
    bool has_them = type != TANDEM_TYPE_F32 && type != TANDEM_TYPE_I32;
    const char *known = has_them ? name_by_flags(profile) : NULL;
    if (known != NULL) {
        snprintf(profile->name, sizeof(profile->name), "%s", known);
    } else if (compute->kind == TANDEM_KIND_CUDA) { /* the original program used cuBLAS */
        snprintf(profile->name, sizeof(profile->name), "%s+cublas", first);
    } else if (init->kind != compute->kind) {
        snprintf(profile->name, sizeof(profile->name), "%s+%s", first, second);
    } else if (init->kind == TANDEM_KIND_CLBLAST) {
        /* CLBlast cannot dequantise: the original program used OpenCL for it, under the same
         * number. */
        snprintf(profile->name, sizeof(profile->name), "opencl+clblast");
    } else {
        snprintf(profile->name, sizeof(profile->name), "%s", second);
    }
}

/* ---- choosing what fits ---- */

struct selection {
    const struct tandem_table *table;
    enum tandem_type type;
    int n_profiles;
    const struct tnd_table_profile *profiles[TND_TABLE_MAX_PROFILES]; /* one row of the file each */
    /* the profile whose times the row gets: its own, or "cpu-packed" or "cpu-amx" if that is faster
     * in total */
    const struct tnd_table_profile *times_of[TND_TABLE_MAX_PROFILES];
    int n_shapes;
    int64_t (*shapes)[2];
    int n_m;
    int64_t *m;
};

static const struct tnd_curve *curve_of(const struct selection *chosen, const int64_t shape[2],
                                        const struct tnd_table_profile *profile, int which)
{
    struct tnd_curve_key key;
    tnd_stage_key(&profile->stage[which], which, chosen->type, shape[0], shape[1], 1, &key);
    return tnd_table_find(chosen->table, &key);
}

static bool is_measured(const struct selection *chosen, const int64_t shape[2],
                        const struct tnd_table_profile *profile)
{
    for (int s = 0; s < TANDEM_STAGES; s++) {
        const struct tnd_table_stage *stage = &profile->stage[s];
        if (stage->backend[0] != '\0' && !tnd_task_is(stage->task, TND_TASK_FETCHES) &&
            curve_of(chosen, shape, profile, s) == NULL) {
            return false;
        }
    }
    return true;
}

static bool fits_format(const struct tnd_table_profile *profile)
{
    for (int s = 0; s < TANDEM_STAGES; s++) {
        const struct tnd_table_stage *stage = &profile->stage[s];
        bool exists = stage->backend[0] != '\0';
        if (stage->kind >= TND_TEXT_KINDS || stage->own_threads || exists != (stage->kind != 0) ||
            tnd_task_is(stage->task, TND_TASK_STREAMS_W)) { /* as if it did not stream */
            return false;
        }
    }
    return profile->stage[TANDEM_STAGE_COMPUTE].backend[0] != '\0';
}

static bool uses_packed(const struct tnd_table_profile *profile)
{
    bool uses = false;
    for (int s = 0; s < TANDEM_STAGES; s++) {
        uses = uses || tnd_task_is(profile->stage[s].task, TND_TASK_USES_PACKED);
    }
    return uses;
}

/* Whether `packed` differs from `profile` only in its tasks, which the format lacks: "cpu-packed"
 * would be read as a second "cpu". */
static bool is_packed_form(const struct tnd_table_profile *packed,
                           const struct tnd_table_profile *profile)
{
    bool is = uses_packed(packed) && !uses_packed(profile);
    for (int s = 0; s < TANDEM_STAGES; s++) {
        const struct tnd_table_stage *a = &packed->stage[s];
        const struct tnd_table_stage *b = &profile->stage[s];
        is = is && a->kind == b->kind && a->parallel == b->parallel && a->wait == b->wait &&
             strcmp(a->backend, b->backend) == 0;
    }
    return is;
}

static bool is_listed(const struct selection *chosen, const int64_t shape[2])
{
    for (int i = 0; i < chosen->n_shapes; i++) {
        if (chosen->shapes[i][0] == shape[0] && chosen->shapes[i][1] == shape[1]) {
            return true;
        }
    }
    return false;
}

static void choose_shape(struct selection *chosen, const int64_t shape[2])
{
    if (chosen->n_shapes == 4096 || is_listed(chosen, shape)) {
        return;
    }
    bool useful = false;
    for (int p = 0; p < chosen->table->n_profiles && !useful; p++) {
        const struct tnd_table_profile *profile = &chosen->table->profiles[p];
        useful =
            fits_format(profile) && !uses_packed(profile) && is_measured(chosen, shape, profile);
    }
    if (useful) {
        chosen->shapes[chosen->n_shapes][0] = shape[0];
        chosen->shapes[chosen->n_shapes][1] = shape[1];
        chosen->n_shapes++;
    }
}

/* The format has no other operation. */
static bool is_product(const struct tnd_curve_key *key)
{
    return strcmp(key->op, "mul_mat") == 0;
}

/* Chooses the shapes in the order of the file that the table came from, then the others in sorted
 * order. */
static void choose_shapes(struct selection *chosen)
{
    const struct tandem_table *table = chosen->table;
    for (int i = 0; i < table->n_shapes; i++) {
        choose_shape(chosen, table->shapes[i]);
    }
    for (int i = 0; i < table->n_curves; i++) {
        const struct tnd_curve_key *key = &table->curves[i].key;
        if (key->type == chosen->type && is_product(key)) {
            const int64_t shape[2] = {key->n, key->k};
            choose_shape(chosen, shape);
        }
    }
}

static bool is_measured_everywhere(const struct selection *chosen,
                                   const struct tnd_table_profile *profile)
{
    bool everywhere = fits_format(profile);
    for (int i = 0; i < chosen->n_shapes && everywhere; i++) {
        everywhere = is_measured(chosen, chosen->shapes[i], profile);
    }
    return everywhere;
}

/* Gives each profile a row. */
static void choose_profiles(struct selection *chosen)
{
    const struct tandem_table *table = chosen->table;
    for (int p = 0; p < table->n_profiles; p++) {
        const struct tnd_table_profile *profile = &table->profiles[p];
        if (!uses_packed(profile) && is_measured_everywhere(chosen, profile)) {
            chosen->profiles[chosen->n_profiles++] = profile;
        }
    }
}

static const struct tnd_sample *sample_at(const struct tnd_curve *curve, int64_t m)
{
    int low = 0;
    int high = curve->n_samples;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (curve->samples[middle].m < m) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < curve->n_samples && curve->samples[low].m == m ? &curve->samples[low] : NULL;
}

static bool everywhere_at(const struct selection *chosen, int64_t m)
{
    for (int i = 0; i < chosen->n_shapes; i++) {
        for (int p = 0; p < chosen->n_profiles; p++) {
            for (int s = 0; s < TANDEM_STAGES; s++) {
                const struct tnd_curve *curve =
                    curve_of(chosen, chosen->shapes[i], chosen->profiles[p], s);
                if (curve != NULL && sample_at(curve, m) == NULL) {
                    return false;
                }
            }
        }
    }
    return true;
}

/* Chooses the M of the first curve that all other curves have, too. */
static enum tandem_status choose_m(struct selection *chosen)
{
    const struct tnd_curve *curve =
        curve_of(chosen, chosen->shapes[0], chosen->profiles[0], TANDEM_STAGE_COMPUTE);
    chosen->m = tnd_alloc((size_t)curve->n_samples * sizeof(*chosen->m));
    if (chosen->m == NULL) {
        return TANDEM_E_MEMORY;
    }
    for (int i = 0; i < curve->n_samples; i++) {
        if (everywhere_at(chosen, curve->samples[i].m)) {
            chosen->m[chosen->n_m++] = curve->samples[i].m;
        }
    }
    return TANDEM_OK;
}

static bool has_type(const struct tandem_table *table, enum tandem_type type)
{
    for (int i = 0; i < table->n_curves; i++) {
        if (table->curves[i].key.type == type && is_product(&table->curves[i].key)) {
            return true;
        }
    }
    return false;
}

/* The type that the text header named, if it is there, so that reading and writing keeps it. */
static enum tandem_type first_type(const struct tandem_table *table)
{
    enum tandem_type type;
    if (tandem_type_from_name(table->type_text, &type) && has_type(table, type)) {
        return type;
    }
    for (int i = 0; i < table->n_curves; i++) {
        if (is_product(&table->curves[i].key)) {
            return table->curves[i].key.type;
        }
    }
    return TANDEM_TYPE_NUMBERS;
}

/* ---- printing ---- */

/* Prints a word of the header: never empty, no blanks. */
static void print_word(struct tnd_text *text, const char *word, const char *otherwise)
{
    tnd_text_add_char(text, ' ');
    for (const char *c = word[0] != '\0' ? word : otherwise; *c != '\0'; c++) {
        bool printable = (unsigned char)*c > 0x20 && (unsigned char)*c < 0x7f;
        tnd_text_add_char(text, printable ? *c : '_');
    }
}

static void print_upper(struct tnd_text *text, const char *word, const char *otherwise)
{
    tnd_text_add_char(text, ' ');
    for (const char *c = word[0] != '\0' ? word : otherwise; *c != '\0'; c++) {
        tnd_text_add_char(text, *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c);
    }
}

/* Greatest common step of all M; the file's own step as long as it divides them. */
static int64_t step_of(const struct selection *chosen)
{
    int64_t step = chosen->table->m_step;
    for (int i = 0; i < chosen->n_m; i++) {
        int64_t rest = chosen->m[i];
        while (rest != 0) {
            int64_t next = step % rest;
            step = rest;
            rest = next;
        }
    }
    return step;
}

/* The stage as the file has it. A device that leaves its result in its own memory has a FINALIZE
 * even if the profile does not. */
static const struct tnd_table_stage *
stage_in_text(const struct selection *chosen, const struct tnd_table_profile *profile, int which)
{
    struct tnd_product_moves moves;
    bool fetches = which == TANDEM_STAGE_FINALIZE &&
                   tnd_product_moves(chosen->table, profile, 1, 1, 1, &moves) &&
                   moves.device != NULL;
    return &profile->stage[fetches ? TANDEM_STAGE_COMPUTE : which];
}

static void print_header(struct tnd_text *text, const struct selection *chosen)
{
    const struct tandem_table *table = chosen->table;
    enum tandem_type named;
    tnd_text_add(text, "1");
    print_word(text, table->model, "custom");
    if (tandem_type_from_name(table->type_text, &named) && named == chosen->type) {
        print_word(text, table->type_text, "");
    } else {
        print_upper(text, tandem_type_name(chosen->type), "");
    }
    int kind = table->gpu_kind < TND_TEXT_KINDS ? table->gpu_kind : 0;
    for (int p = 0; p < chosen->n_profiles && kind == 0 && table->gpu_name[0] == '\0'; p++) {
        int compute = chosen->profiles[p]->stage[TANDEM_STAGE_COMPUTE].kind;
        kind = compute > TANDEM_KIND_CPU ? compute : 0;
    }
    tnd_text_printf(text, " %d", kind);
    if (table->gpu_name[0] != '\0') {
        print_word(text, table->gpu_name, "");
    } else {
        print_upper(text, tnd_table_text_kind(kind), "NONE");
    }
    tnd_text_printf(text, " %d %" PRId64 " %d %d\n", chosen->n_shapes, step_of(chosen), chosen->n_m,
                    chosen->n_profiles);
    for (int p = 0; p < chosen->n_profiles; p++) {
        for (int s = 0; s < TANDEM_STAGES; s++) {
            const struct tnd_table_stage *stage = stage_in_text(chosen, chosen->profiles[p], s);
            tnd_text_printf(text, "%s%d %d %d", s == 0 ? "" : " ", stage->kind, stage->parallel,
                            stage->wait);
        }
        tnd_text_add_char(text, '\n');
    }
}

static double move_us(const struct tandem_table *table, const struct tnd_product_move *move)
{
    const struct tnd_curve *curve =
        move->backend != NULL ? tnd_table_transfer(table, move->backend, move->direction) : NULL;
    return curve != NULL && move->bytes > 0 ? tnd_transfer_line(curve, move->bytes) : 0;
}

/* Time of a stage's transfers at M, 0 where they are part of its time: operands count for COMPUTE;
 * fetching the result is FINALIZE. */
static double moves_us(const struct selection *chosen, const struct tnd_table_profile *profile,
                       const int64_t shape[2], int64_t m, int which)
{
    struct tnd_product_moves moves;
    const struct tandem_table *table = chosen->table;
    if (which == TANDEM_STAGE_INIT ||
        !tnd_product_moves(table, profile, shape[0], shape[1], m, &moves)) {
        return 0;
    }
    if (which == TANDEM_STAGE_FINALIZE) {
        return move_us(table, &moves.y);
    }
    return move_us(table, &moves.inside[0]) + move_us(table, &moves.inside[1]) +
           move_us(table, &moves.x);
}

/* Times of a profile at M; false when one of its stages was not measured there. Fetching the result
 * from a device has no curve of its own. */
static bool times_at(const struct selection *chosen, const struct tnd_table_profile *profile,
                     const int64_t shape[2], int64_t m, double out_us[TANDEM_STAGES])
{
    for (int s = 0; s < TANDEM_STAGES; s++) {
        const struct tnd_curve *curve = curve_of(chosen, shape, profile, s);
        const struct tnd_sample *sample = curve != NULL ? sample_at(curve, m) : NULL;
        if (curve != NULL && sample == NULL) {
            return false;
        }
        out_us[s] =
            (sample != NULL ? sample->median_us : 0.0) + moves_us(chosen, profile, shape, m, s);
    }
    return true;
}

static void print_row(struct tnd_text *text, const struct selection *chosen, const int64_t shape[2],
                      int64_t m)
{
    static const char *const formats[TANDEM_STAGES] = {" %8.0f", " %8.0f", " %.0f"};
    tnd_text_printf(text, "%3" PRId64, m);
    for (int p = 0; p < chosen->n_profiles; p++) {
        double us[TANDEM_STAGES] = {0};
        (void)times_at(chosen, chosen->times_of[p], shape, m, us);
        for (int s = 0; s < TANDEM_STAGES; s++) {
            tnd_text_printf(text, formats[s], round(us[s]));
        }
    }
    tnd_text_add_char(text, '\n');
}

/* Total time of all written cells; infinite if one is missing. */
static double all_us(const struct selection *chosen, const struct tnd_table_profile *profile)
{
    double sum_us = 0;
    for (int i = 0; i < chosen->n_shapes; i++) {
        for (int j = 0; j < chosen->n_m; j++) {
            double us[TANDEM_STAGES] = {0};
            if (!is_measured(chosen, chosen->shapes[i], profile) ||
                !times_at(chosen, profile, chosen->shapes[i], chosen->m[j], us)) {
                return INFINITY;
            }
            sum_us += us[0] + us[1] + us[2];
        }
    }
    return sum_us;
}

static bool shares_row(const struct selection *chosen, const struct tnd_table_profile *packed,
                       int row)
{
    return fits_format(packed) && is_packed_form(packed, chosen->profiles[row]);
}

/* A row has the times of one profile: profiles with packed weights share a row with the one that
 * looks the same, and the fastest in total fills it for all shapes and M. */
static void choose_times(struct selection *chosen)
{
    const struct tandem_table *table = chosen->table;
    for (int row = 0; row < chosen->n_profiles; row++) {
        double least_us = all_us(chosen, chosen->profiles[row]);
        chosen->times_of[row] = chosen->profiles[row];
        for (int p = 0; p < table->n_profiles; p++) {
            const struct tnd_table_profile *packed = &table->profiles[p];
            const double us = shares_row(chosen, packed, row) ? all_us(chosen, packed) : INFINITY;
            if (us < least_us) {
                least_us = us;
                chosen->times_of[row] = packed;
            }
        }
    }
}

static void print_all(struct tnd_text *text, const struct selection *chosen)
{
    print_header(text, chosen);
    for (int i = 0; i < chosen->n_shapes; i++) {
        tnd_text_printf(text, "%" PRId64 " %" PRId64 "\n", chosen->shapes[i][0],
                        chosen->shapes[i][1]);
        for (int j = 0; j < chosen->n_m; j++) {
            print_row(text, chosen, chosen->shapes[i], chosen->m[j]);
        }
    }
}

/* Selects what is written, which needs memory; `out` is freed by free_selection. */
static enum tandem_status select_all(const struct tandem_table *table, enum tandem_type type,
                                     struct selection *out)
{
    *out = (struct selection){.table = table};
    out->type = type == TANDEM_TYPE_NUMBERS ? first_type(table) : type;
    out->shapes =
        tnd_alloc(((size_t)table->n_shapes + (size_t)table->n_curves) * sizeof(*out->shapes));
    if (out->shapes == NULL) {
        return TANDEM_E_MEMORY;
    }
    choose_shapes(out);
    choose_profiles(out);
    return out->n_shapes > 0 && out->n_profiles > 0 ? choose_m(out) : TANDEM_OK;
}

static void free_selection(struct selection *chosen)
{
    tnd_free(chosen->m);
    tnd_free(chosen->shapes);
}

bool tnd_table_text_shares(const struct tandem_table *table, struct tnd_text *out_names)
{
    struct selection chosen;
    bool shares = false;
    if (select_all(table, TANDEM_TYPE_NUMBERS, &chosen) == TANDEM_OK && chosen.n_m > 0) {
        for (int p = 0; p < chosen.n_profiles && !shares; p++) {
            const struct tnd_table_profile *measured[TND_TABLE_MAX_PROFILES];
            int n = 0;
            for (int i = 0; i < table->n_profiles; i++) {
                if (shares_row(&chosen, &table->profiles[i], p) &&
                    isfinite(all_us(&chosen, &table->profiles[i]))) {
                    measured[n++] = &table->profiles[i];
                }
            }
            shares = n > 0;
            tnd_text_add(out_names, shares ? chosen.profiles[p]->name : "");
            for (int i = 0; i < n; i++) {
                tnd_text_printf(out_names, "%s%s", i + 1 < n ? ", " : " and ", measured[i]->name);
            }
        }
    }
    free_selection(&chosen);
    return shares;
}

enum tandem_status tnd_table_write_text(const struct tandem_table *table, enum tandem_type type,
                                        tandem_write_fn write, void *user,
                                        struct tandem_error *error)
{
    struct selection chosen;
    enum tandem_status status = select_all(table, type, &chosen);
    if (status != TANDEM_OK) {
        tnd_error_set(error, status, "table", 0, 0, "text table: out of memory");
    } else if (chosen.n_m == 0) {
        status =
            tnd_error_set(error, TANDEM_E_TABLE, "table", chosen.n_shapes, 1,
                          "the text format wants times on one thread at the same M for all shapes, "
                          "and no profile that it knows has them for %s; JSON holds everything",
                          tandem_type_name(chosen.type));
    } else {
        struct tnd_text text = TND_TEXT_INIT;
        choose_times(&chosen);
        print_all(&text, &chosen);
        status = tnd_emit_end(&text, write, user, "text table", error);
    }
    free_selection(&chosen);
    return status;
}
