/* SPDX-License-Identifier: MIT
 * Codes of programs: which steps kernels run, and which values go through memory. */
#include "base/tnd_assert.h"
#include "ggml-like/fuse_program.h"

/* ---- which code an operation has ---- */

int tnd_strip_function_of(int kind)
{
    switch (kind) {
#define CASE(name, expression)                                                                     \
    case TANDEM_UNARY_##name:                                                                      \
        return TND_STRIP_##name;
        TND_CODE_FUNCTION_LIST(CASE)
#undef CASE
    default:
        return -1;
    }
}

bool tnd_code_ends_sums(enum tnd_code_op op)
{
    switch (op) {
#define CASE(name, expression) case TND_CODE_##name:
        TND_CODE_ENDING_LIST(CASE)
#undef CASE
    case TND_CODE_HARD_SWISH:
        return true;
    default:
        return false;
    }
}

static int unary_code(int kind)
{
    switch (kind) {
#define CASE(name, expression)                                                                     \
    case TANDEM_UNARY_##name:                                                                      \
        return TND_CODE_##name;
        TND_CODE_UNARY_LIST(CASE)
#undef CASE
    default:
        return -1;
    }
}

/* By kind: the code if the accumulator holds the first operand, and if it holds the second. */
struct binary_code {
    bool is_there;
    uint8_t first, second;
};

static const struct binary_code binary_codes[] = {
    [TANDEM_BINARY_ADD] = {true, TND_CODE_ADD, TND_CODE_ADD},
    [TANDEM_BINARY_SUB] = {true, TND_CODE_SUB, TND_CODE_SUB_FROM},
    [TANDEM_BINARY_MUL] = {true, TND_CODE_MUL, TND_CODE_MUL},
    [TANDEM_BINARY_DIV] = {true, TND_CODE_DIV, TND_CODE_DIV_BY},
    [TANDEM_BINARY_MAX] = {true, TND_CODE_MAX, TND_CODE_MAX_OF},
    [TANDEM_BINARY_MIN] = {true, TND_CODE_MIN, TND_CODE_MIN_OF},
    [TANDEM_BINARY_AND] = {true, TND_CODE_AND, TND_CODE_AND},
    [TANDEM_BINARY_OR] = {true, TND_CODE_OR, TND_CODE_OR},
    [TANDEM_BINARY_XOR] = {true, TND_CODE_XOR, TND_CODE_XOR},
    [TANDEM_BINARY_EQUAL] = {true, TND_CODE_EQUAL, TND_CODE_EQUAL},
    [TANDEM_BINARY_LESS] = {true, TND_CODE_LESS, TND_CODE_MORE},
    [TANDEM_BINARY_LESS_EQUAL] = {true, TND_CODE_LESS_EQUAL, TND_CODE_MORE_EQUAL}};

/* Codes of binary operations on registers of TND_FORM_I32; sums and products wrap around. */
static const struct binary_code integer_codes[] = {
    [TANDEM_BINARY_ADD] = {true, TND_CODE_ADD_I32, TND_CODE_ADD_I32},
    [TANDEM_BINARY_SUB] = {true, TND_CODE_SUB_I32, TND_CODE_SUB_FROM_I32},
    [TANDEM_BINARY_MUL] = {true, TND_CODE_MUL_I32, TND_CODE_MUL_I32},
    [TANDEM_BINARY_MAX] = {true, TND_CODE_MAX_I32, TND_CODE_MAX_I32},
    [TANDEM_BINARY_MIN] = {true, TND_CODE_MIN_I32, TND_CODE_MIN_I32},
    [TANDEM_BINARY_AND] = {true, TND_CODE_AND, TND_CODE_AND},
    [TANDEM_BINARY_OR] = {true, TND_CODE_OR, TND_CODE_OR},
    [TANDEM_BINARY_XOR] = {true, TND_CODE_XOR, TND_CODE_XOR},
    [TANDEM_BINARY_EQUAL] = {true, TND_CODE_EQUAL_I32, TND_CODE_EQUAL_I32},
    [TANDEM_BINARY_LESS] = {true, TND_CODE_LESS_I32, TND_CODE_MORE_I32},
    [TANDEM_BINARY_LESS_EQUAL] = {true, TND_CODE_LESS_EQUAL_I32, TND_CODE_MORE_EQUAL_I32}};

/* ---- types ---- */

bool tnd_strip_has_store(enum tandem_dtype type)
{
    return tandem_dtype_bytes(type) <= 2 || type == TANDEM_DTYPE_I32;
}

bool tnd_strip_has_load(enum tandem_dtype type)
{
    return tnd_strip_has_store(type) || type == TANDEM_DTYPE_I64;
}

bool tnd_strip_has_cast(enum tandem_dtype type)
{
    return tnd_strip_has_store(type) && type != TANDEM_DTYPE_BOOL; /* (bool has its own code) */
}

/* ---- forms of registers ---- */

static bool is_narrow(enum tandem_dtype type) /* whether floats hold all values */
{
    return type == TANDEM_DTYPE_F32 || (tandem_dtype_bytes(type) <= 2 && type != TANDEM_DTYPE_BOOL);
}

static bool is_operand(const struct tnd_fuse *fuse, int i)
{
    return i < fuse->n_inputs;
}

/* Whether a register holds its values as floats, exactly. */
static bool is_float(const struct tnd_fuse *fuse, int i)
{
    return fuse->forms[i] == TND_FORM_FLOAT &&
           (is_narrow(tnd_fuse_type(fuse, i)) || !is_operand(fuse, i));
}

static bool is_f32(const struct tnd_fuse *fuse, int i)
{
    return tnd_fuse_type(fuse, i) == TANDEM_DTYPE_F32;
}

static bool is_mask(const struct tnd_fuse *fuse, int i)
{
    return fuse->forms[i] == TND_FORM_MASK;
}

static bool is_i32(const struct tnd_fuse *fuse, int i)
{
    return fuse->forms[i] == TND_FORM_I32;
}

/* Whether the cast to I32 cannot leave its range; other casts saturate, which needs floats. */
static bool casts_small_integers(const struct tnd_fuse *fuse, const struct tnd_fuse_step *step)
{
    const enum tandem_dtype from = tnd_fuse_type(fuse, step->in[0]);
    return from == TANDEM_DTYPE_BOOL || (is_narrow(from) && tnd_lane_of(from) == TND_LANE_I64);
}

/* The form of a step's result in kernels. */
static enum tnd_fuse_form form_of(const struct tnd_fuse *fuse, const struct tnd_fuse_step *step)
{
    if (step->type == TANDEM_DTYPE_BOOL) {
        return TND_FORM_MASK;
    }
    return step->type == TANDEM_DTYPE_I32 &&
                   (step->op != TND_NET_CAST || casts_small_integers(fuse, step))
               ? TND_FORM_I32
               : TND_FORM_FLOAT;
}

static const struct binary_code *binary_code_of(const struct tnd_fuse *fuse,
                                                const struct tnd_fuse_step *step)
{
    static const struct binary_code none = {.is_there = false};
    const size_t kind = (size_t)step->kind;
    if (is_i32(fuse, step->in[0])) {
        return kind < sizeof(integer_codes) / sizeof(integer_codes[0]) ? &integer_codes[kind]
                                                                       : &none;
    }
    return kind < sizeof(binary_codes) / sizeof(binary_codes[0]) ? &binary_codes[kind] : &none;
}

/* The code of a cast; TND_CODE_LOAD: nothing to do. */
static bool cast_code(const struct tnd_fuse *fuse, const struct tnd_fuse_step *step, int *code,
                      int *function)
{
    const int in = step->in[0];
    *function = 0;
    if (step->type == TANDEM_DTYPE_F32) { /* (a wider operand was rounded by its load) */
        *code = is_mask(fuse, in)  ? TND_CODE_ONE
                : is_i32(fuse, in) ? TND_CODE_FROM_I32
                                   : TND_CODE_LOAD;
        return is_mask(fuse, in) || is_i32(fuse, in) || fuse->forms[in] == TND_FORM_FLOAT;
    }
    if (step->type == TANDEM_DTYPE_BOOL) {
        *code = is_i32(fuse, in) ? TND_CODE_IS_TRUE_I32 : TND_CODE_IS_TRUE;
        return is_i32(fuse, in) || is_float(fuse, in);
    }
    if (form_of(fuse, step) == TND_FORM_I32) {
        *code = is_mask(fuse, in) ? TND_CODE_ONE_I32 : TND_CODE_TO_I32;
        return is_mask(fuse, in) || is_float(fuse, in);
    }
    if (is_mask(fuse, in)) {
        *code = TND_CODE_ONE; /* (scales are never 0) */
        return tnd_strip_has_store(step->type) && step->type != TANDEM_DTYPE_F8E8M0;
    }
    *code = TND_CODE_CALL;
    *function = TND_N_STRIP_FUNCTIONS + (int)step->type;
    return is_float(fuse, in) && tnd_strip_has_cast(step->type) &&
           (is_narrow(tnd_fuse_type(fuse, in)) || !is_narrow(step->type));
}

static bool is_fast_unary(const struct tnd_fuse *fuse, const struct tnd_fuse_step *step)
{
    const int in = step->in[0];
    if (step->kind == TANDEM_UNARY_NOT) {
        return is_mask(fuse, in);
    }
    return is_f32(fuse, in) &&
           (unary_code(step->kind) >= 0 || tnd_strip_function_of(step->kind) >= 0);
}

static bool is_fast_binary(const struct tnd_fuse *fuse, const struct tnd_fuse_step *step)
{
    if (!binary_code_of(fuse, step)->is_there) {
        return false;
    }
    if (is_i32(fuse, step->in[0])) {
        return is_i32(fuse, step->in[1]);
    }
    if (step->kind == TANDEM_BINARY_AND || step->kind == TANDEM_BINARY_OR ||
        step->kind == TANDEM_BINARY_XOR) {
        return is_mask(fuse, step->in[0]) && is_mask(fuse, step->in[1]);
    }
    return is_f32(fuse, step->in[0]) && is_f32(fuse, step->in[1]);
}

/* Whether a kernel runs a step, given the forms of the registers. */
static bool is_fast(const struct tnd_fuse *fuse, int s)
{
    const struct tnd_fuse_step *step = &fuse->steps[s];
    const enum tnd_fuse_form out = fuse->forms[fuse->n_inputs + s];
    int code;
    int function;
    if (out != form_of(fuse, step)) {
        return false;
    }
    switch (step->op) {
    case TND_NET_COPY:
        return fuse->forms[step->in[0]] == out &&
               (out != TND_FORM_FLOAT || is_float(fuse, step->in[0]));
    case TND_NET_CAST:
        return cast_code(fuse, step, &code, &function);
    case TND_NET_UNARY:
        return is_fast_unary(fuse, step);
    case TND_NET_BINARY:
        return is_fast_binary(fuse, step);
    case TND_NET_SELECT:
        return is_mask(fuse, step->in[0]) && fuse->forms[step->in[1]] == out &&
               fuse->forms[step->in[2]] == out &&
               (out != TND_FORM_FLOAT ||
                (is_float(fuse, step->in[1]) && is_float(fuse, step->in[2])));
    default:
        return false;
    }
}

/* Whether a step's `job` needs the register in its lane type, and the register has another form. */
static bool needs_lanes(const struct tnd_fuse *fuse, int i)
{
    return tnd_lane_of(tnd_fuse_type(fuse, i)) != TND_LANE_F32 && fuse->forms[i] != TND_FORM_LANE;
}

/* All registers start in the form that kernels prefer. A step that no kernel runs changes its
 * operands and its result to lanes, which may do the same to other steps. */
static void find_fast(struct tnd_fuse *fuse, bool *fast)
{
    const int n = fuse->n_inputs + fuse->n_steps;
    bool changes = true;
    for (int i = 0; i < n; i++) {
        const enum tandem_dtype type = tnd_fuse_type(fuse, i);
        if (!is_operand(fuse, i)) {
            const enum tnd_fuse_form form = form_of(fuse, &fuse->steps[i - fuse->n_inputs]);
            const bool is_known =
                form != TND_FORM_FLOAT || is_narrow(type) || type == TANDEM_DTYPE_I32;
            fuse->forms[i] = is_known ? form : TND_FORM_LANE;
        } else if (type == TANDEM_DTYPE_BOOL || type == TANDEM_DTYPE_I32) {
            fuse->forms[i] = type == TANDEM_DTYPE_BOOL ? TND_FORM_MASK : TND_FORM_I32;
        } else {
            const bool has_load = type == TANDEM_DTYPE_F32 || tnd_strip_has_load(type);
            fuse->forms[i] = has_load ? TND_FORM_FLOAT : TND_FORM_LANE;
        }
    }
    while (changes) {
        changes = false;
        for (int s = 0; s < fuse->n_steps; s++) {
            const struct tnd_fuse_step *step = &fuse->steps[s];
            fast[s] = is_fast(fuse, s);
            if (!fast[s]) {
                changes |= needs_lanes(fuse, fuse->n_inputs + s);
                fuse->forms[fuse->n_inputs + s] = needs_lanes(fuse, fuse->n_inputs + s)
                                                      ? TND_FORM_LANE
                                                      : fuse->forms[fuse->n_inputs + s];
            }
            for (int k = 0; k < step->n_in && !fast[s]; k++) {
                changes |= needs_lanes(fuse, step->in[k]);
                fuse->forms[step->in[k]] =
                    needs_lanes(fuse, step->in[k]) ? TND_FORM_LANE : fuse->forms[step->in[k]];
            }
        }
    }
}

/* ---- codes ---- */

struct translation {
    struct tnd_fuse *fuse;
    int n_codes;
    int first, last; /* steps that are run together */
    int held;        /* register in the accumulator; -1: none */
};

static void emit(struct translation *t, int op, int in, int other)
{
    TND_ASSERT(t->n_codes < 4 * TND_FUSE_REGISTERS);
    t->fuse->codes[t->n_codes++] = (struct tnd_fuse_code){(uint8_t)op, (uint8_t)in, (uint8_t)other};
}

/* Whether a step's result is read from memory. It is not if only the next step reads it, once: then
 * it is in the accumulator. */
static bool is_saved(const struct translation *t, int s)
{
    const int register_of = t->fuse->n_inputs + s;
    for (int i = s + 1; i < t->fuse->n_steps; i++) {
        const struct tnd_fuse_step *step = &t->fuse->steps[i];
        int n_reads = 0;
        bool is_chosen = false;
        for (int k = 0; k < step->n_in; k++) {
            n_reads += step->in[k] == register_of;
            is_chosen |= step->in[k] == register_of && k > 0 && step->op == TND_NET_SELECT;
        }
        if (n_reads > 1 || is_chosen || (n_reads == 1 && (i > s + 1 || i > t->last))) {
            return true;
        }
    }
    return false;
}

static void hold(struct translation *t, int i)
{
    if (t->held != i) {
        emit(t, TND_CODE_LOAD, i, 0);
    }
}

static void translate_step(struct translation *t, const struct tnd_fuse_step *step)
{
    const int *in = step->in;
    int code;
    int function;
    if (step->op == TND_NET_BINARY) {
        const bool is_second = t->held == in[1] && t->held != in[0];
        hold(t, is_second ? in[1] : in[0]);
        const struct binary_code *by = binary_code_of(t->fuse, step);
        emit(t, is_second ? by->second : by->first, is_second ? in[0] : in[1], 0);
        return;
    }
    hold(t, in[0]);
    if (step->op == TND_NET_SELECT) {
        emit(t, TND_CODE_SELECT, in[1], in[2]);
    } else if (step->op == TND_NET_CAST) {
        /* (a call at the end is left to the store to that type) */
        const bool is_last = step == &t->fuse->steps[t->fuse->n_steps - 1];
        (void)cast_code(t->fuse, step, &code, &function);
        if (code != TND_CODE_LOAD && !(is_last && code == TND_CODE_CALL)) {
            emit(t, code, in[0], function);
        }
    } else if (step->op == TND_NET_UNARY) {
        code = step->kind == TANDEM_UNARY_NOT ? TND_CODE_INVERT : unary_code(step->kind);
        function = tnd_strip_function_of(step->kind);
        emit(t, code >= 0 ? code : TND_CODE_CALL, in[0], code >= 0 ? 0 : function);
    }
}

static void translate_run(struct translation *t)
{
    struct tnd_fuse_step *steps = t->fuse->steps;
    steps[t->first].n_fast = t->last - t->first + 1;
    steps[t->first].codes = t->n_codes;
    t->held = -1;
    for (int s = t->first; s <= t->last; s++) {
        translate_step(t, &steps[s]);
        t->held = t->fuse->n_inputs + s;
        if (s < t->last && is_saved(t, s)) {
            emit(t, TND_CODE_SAVE, t->held, 0);
        }
    }
    emit(t, TND_CODE_END, t->held, 0);
}

bool tnd_fuse_is_fast(const struct tnd_fuse *fuse)
{
    const bool is_move = fuse->n_steps == 1 && fuse->steps[0].op == TND_NET_COPY;
    return fuse->n_steps > 0 && (is_move || fuse->steps[0].n_fast == fuse->n_steps);
}

void tnd_fuse_translate(struct tnd_fuse *fuse)
{
    bool fast[TND_FUSE_REGISTERS];
    struct translation t = {.fuse = fuse};
    find_fast(fuse, fast);
    for (int s = 0; s < fuse->n_steps; s++) {
        fuse->steps[s].n_fast = 0;
        if (!fast[s]) {
            continue;
        }
        t.first = t.last = s;
        while (t.last + 1 < fuse->n_steps && fast[t.last + 1]) {
            fuse->steps[++t.last].n_fast = 0;
        }
        s = t.last;
        translate_run(&t);
    }
}
