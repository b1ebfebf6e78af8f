/* SPDX-License-Identifier: MIT
 * The generator of source text: loads, steps, the store, and the loops around them. */
#include "graph/fuse_print.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/small_float.h"
#include "base/tnd_assert.h"
#include "ggml-like/scalar-list.h"

static const char *const lanes[TND_N_LANES] = {[TND_LANE_F32] = "float",
                                               [TND_LANE_F64] = "double",
                                               [TND_LANE_I64] = "i64",
                                               [TND_LANE_U64] = "u64"};
static const char *const stores[TND_N_DTYPES] = {
    [TANDEM_DTYPE_F32] = "float", [TANDEM_DTYPE_F64] = "double", [TANDEM_DTYPE_F16] = "u16",
    [TANDEM_DTYPE_BF16] = "u16",  [TANDEM_DTYPE_I8] = "i8",      [TANDEM_DTYPE_I16] = "i16",
    [TANDEM_DTYPE_I32] = "i32",   [TANDEM_DTYPE_I64] = "i64",    [TANDEM_DTYPE_U16] = "u16",
    [TANDEM_DTYPE_U32] = "u32",   [TANDEM_DTYPE_U64] = "u64"};

/* The type of a value in memory: a byte unless the list has another. */
static const char *stored_as(enum tandem_dtype type)
{
    return stores[type] != NULL ? stores[type] : "u8";
}

struct printer {
    const struct tnd_fuse_printed *what;
    enum tnd_dialect dialect;
    struct tnd_text *out;
    const char *indent;
    int n_kept; /* dimensions of the result */
};

static enum tandem_dtype type_of(const struct tnd_fuse *fuse, int i)
{
    return i < fuse->n_inputs ? fuse->inputs[i] : fuse->steps[i - fuse->n_inputs].type;
}

static int last_register(const struct tnd_fuse *fuse)
{
    return fuse->n_inputs + fuse->n_steps - 1;
}

/* ---- numbers and conversions ---- */

static void print_float(struct tnd_text *out, double value, bool is_double)
{
    struct tnd_text number = TND_TEXT_INIT;
    const char *one = is_double ? "1.0" : "1.0f";
    const char *zero = is_double ? "0.0" : "0.0f";
    if (isnan(value)) {
        tnd_text_printf(out, "(%s / %s)", zero, zero);
    } else if (isinf(value)) {
        tnd_text_printf(out, "(%s%s / %s)", value < 0 ? "-" : "", one, zero);
    } else {
        tnd_text_add_double(&number, value);
        const char *text = tnd_text_string(&number);
        tnd_text_printf(out, "(%s%s%s)", text, strpbrk(text, ".e") == NULL ? ".0" : "",
                        is_double ? "" : "f");
    }
    tnd_text_fini(&number);
}

static void print_value(struct tnd_text *out, enum tandem_dtype type, const void *value)
{
    const enum tnd_lane lane = tnd_lane_of(type);
    union tnd_values v;
    tnd_values_load(type, value, 0, 1, lane, &v);
    if (lane == TND_LANE_F32 || lane == TND_LANE_F64) {
        print_float(out, lane == TND_LANE_F32 ? (double)v.f32[0] : v.f64[0], lane == TND_LANE_F64);
    } else {
        tnd_text_printf(out, "(%s)0x%" PRIx64, lanes[lane], v.u64[0]);
    }
}

/* Prints a lane's value `name` converted to the type in memory. */
static void print_stored(struct tnd_text *out, enum tandem_dtype type, enum tnd_lane lane,
                         const char *name)
{
    const bool is_float = lane == TND_LANE_F32 || lane == TND_LANE_F64;
    const enum tnd_dtype_kind kind = tnd_dtype_kind(type);
    const struct tnd_small_float *small = tnd_dtype_small(type);
    if (type == TANDEM_DTYPE_F16 || type == TANDEM_DTYPE_BF16) {
        tnd_text_printf(out, "%s_bits((float)%s)", type == TANDEM_DTYPE_F16 ? "f16" : "bf16", name);
    } else if (small != NULL) {
        tnd_text_printf(out, "small_bits(%d, %d, %d, %d, (float)%s)", small->exponent,
                        small->mantissa, small->bias, (int)small->special, name);
    } else if (type == TANDEM_DTYPE_BOOL) {
        tnd_text_printf(out, "(u8)(%s != 0)", name);
    } else if (kind != TND_KIND_FLOAT && is_float) {
        tnd_text_printf(out, "(%s)%s%s(%s)", stored_as(type),
                        kind == TND_KIND_UNSIGNED ? "to_u64" : "to_i64",
                        lane == TND_LANE_F32 ? "f" : "", name);
    } else {
        tnd_text_printf(out, "(%s)%s", stored_as(type), name);
    }
}

static void print_loaded_begin(struct tnd_text *out, enum tandem_dtype type)
{
    const struct tnd_small_float *small = tnd_dtype_small(type);
    if (small != NULL) {
        tnd_text_printf(out, "small_value(%d, %d, %d, %d, ", small->exponent, small->mantissa,
                        small->bias, (int)small->special);
    } else if (type == TANDEM_DTYPE_F16 || type == TANDEM_DTYPE_BF16) {
        tnd_text_add(out, type == TANDEM_DTYPE_F16 ? "f16_value(" : "bf16_value(");
    } else {
        tnd_text_printf(out, "(%s)(", lanes[tnd_lane_of(type)]);
    }
}

/* ---- steps ---- */

#define TEXT(kind, expression) [kind] = #expression,
static const char *const unary_f32[] = {TND_UNARY_FLOAT_LIST(TEXT, f)};
static const char *const unary_f64[] = {TND_UNARY_FLOAT_LIST(TEXT, )};
static const char *const binary_f32[] = {TND_BINARY_FLOAT_LIST(TEXT, f)};
static const char *const binary_f64[] = {TND_BINARY_FLOAT_LIST(TEXT, )};
#undef TEXT
static const char *const unary_i64[] = {[TANDEM_UNARY_NEG] = "(i64)(0 - (u64)v)",
                                        [TANDEM_UNARY_ABS] = "v < 0 ? (i64)(0 - (u64)v) : v",
                                        [TANDEM_UNARY_SIGN] = "(v > 0) - (v < 0)",
                                        [TANDEM_UNARY_NOT] = "~v"};
static const char *const binary_i64[] = {[TANDEM_BINARY_ADD] = "(i64)((u64)a + (u64)b)",
                                         [TANDEM_BINARY_SUB] = "(i64)((u64)a - (u64)b)",
                                         [TANDEM_BINARY_MUL] = "(i64)((u64)a * (u64)b)",
                                         [TANDEM_BINARY_DIV] =
                                             "b == 0 ? 0 : b == -1 ? (i64)(0 - (u64)a) : a / b",
                                         [TANDEM_BINARY_FMOD] = "b == 0 || b == -1 ? 0 : a % b",
                                         [TANDEM_BINARY_MAX] = "a > b ? a : b",
                                         [TANDEM_BINARY_MIN] = "a < b ? a : b",
                                         [TANDEM_BINARY_AND] = "a & b",
                                         [TANDEM_BINARY_OR] = "a | b",
                                         [TANDEM_BINARY_XOR] = "a ^ b"};
static const char *const compare[] = {[TANDEM_BINARY_EQUAL] = "a == b",
                                      [TANDEM_BINARY_LESS] = "a < b",
                                      [TANDEM_BINARY_LESS_EQUAL] = "a <= b"};

#define PICK(table, kind)                                                                          \
    ((size_t)(kind) < sizeof(table) / sizeof((table)[0]) ? (table)[kind] : NULL)

/* The expression of a step over `v`, or over `a` and `b`; NULL: it has none. */
static const char *expression_of(const struct tnd_fuse_step *step, enum tandem_dtype in)
{
    const enum tnd_lane lane = tnd_lane_of(in);
    switch (step->op) {
    case TND_NET_COPY:
    case TND_NET_CAST:
        return "v";
    case TND_NET_UNARY:
        return lane == TND_LANE_F32   ? PICK(unary_f32, step->kind)
               : lane == TND_LANE_F64 ? PICK(unary_f64, step->kind)
               : step->kind == TANDEM_UNARY_NOT && in == TANDEM_DTYPE_BOOL ? "v == 0"
               : lane == TND_LANE_I64 ? PICK(unary_i64, step->kind)
                                      : NULL;
    case TND_NET_BINARY:
        if (step->kind >= TANDEM_BINARY_EQUAL) {
            return PICK(compare, step->kind);
        }
        return lane == TND_LANE_F32   ? PICK(binary_f32, step->kind)
               : lane == TND_LANE_F64 ? PICK(binary_f64, step->kind)
               : lane == TND_LANE_I64 ? PICK(binary_i64, step->kind)
                                      : NULL;
    case TND_NET_SELECT:
        return "c != 0 ? a : b";
    default:
        return NULL;
    }
}

static void print_step(struct printer *p, int to)
{
    const struct tnd_fuse *fuse = p->what->fuse;
    const struct tnd_fuse_step *step = &fuse->steps[to - fuse->n_inputs];
    static const char *const names[3][3] = {{"v"}, {"a", "b"}, {"c", "a", "b"}};
    const char *expression = expression_of(step, type_of(fuse, step->in[0]));
    struct tnd_text *out = p->out;
    tnd_text_printf(out, "%s%s r%d;\n%s{\n", p->indent, lanes[tnd_lane_of(step->type)], to,
                    p->indent);
    for (int i = 0; i < step->n_in; i++) {
        tnd_text_printf(out, "%s    const %s %s = r%d;\n", p->indent,
                        lanes[tnd_lane_of(type_of(fuse, step->in[i]))], names[step->n_in - 1][i],
                        step->in[i]);
    }
    tnd_text_printf(out, "%s    const %s w = %s;\n%s    r%d = ", p->indent,
                    lanes[step->job.out_lane], expression, p->indent, to);
    if (step->rounds) {
        print_loaded_begin(out, step->type);
        print_stored(out, step->type, step->job.out_lane, "w");
        tnd_text_add(out, ")");
    } else {
        tnd_text_add(out, "w");
    }
    tnd_text_printf(out, ";\n%s}\n", p->indent);
}

/* ---- operands ---- */

/* Prints an operand's offset in values, without dimensions `from` to `to - 1`. */
static void print_place(struct printer *p, int i, int64_t offset, int from, int to)
{
    const struct tnd_fuse_space *space = p->what->space;
    tnd_text_printf(p->out, "%" PRId64, offset);
    for (int d = from; d < to; d++) {
        if (space->strides[i][d] != 0) {
            tnd_text_printf(p->out, " + i%d * %" PRId64, d, space->strides[i][d]);
        }
    }
}

static bool is_pointer(const struct printer *p, int i)
{
    return p->what->in[i].buffer >= 0;
}

static void print_pointer(struct printer *p, const char *type, const char *name, int buffer)
{
    const char *space = p->dialect == TND_DIALECT_OPENCL ? "global " : "";
    tnd_text_printf(p->out, "    %sconst %s *const p%s = (%sconst %s *)", space, type, name, space,
                    type);
    tnd_text_printf(p->out, p->dialect == TND_DIALECT_C ? "b[%d];\n" : "(b%d + b%d_at);\n", buffer,
                    buffer);
}

/* Prints a pointer for each operand in a buffer. */
static void print_pointers(struct printer *p)
{
    const struct tnd_fuse *fuse = p->what->fuse;
    const struct tnd_printed_window *window = p->what->window;
    for (int i = 0; i < fuse->n_inputs; i++) {
        char name[16];
        snprintf(name, sizeof(name), "%d", i);
        if (is_pointer(p, i)) {
            print_pointer(p, stored_as(fuse->inputs[i]), name, p->what->in[i].buffer);
        }
    }
    if (window != NULL) {
        print_pointer(p, "float", "x", 0);
    }
    if (window != NULL && window->kind == TND_WINDOW_PRODUCTS) {
        print_pointer(p, "float", "w", 1);
    }
}

static void print_loads(struct printer *p)
{
    const struct tnd_fuse *fuse = p->what->fuse;
    for (int i = 0; i < fuse->n_inputs; i++) {
        const enum tandem_dtype type = fuse->inputs[i];
        tnd_text_printf(p->out, "%sconst %s r%d = ", p->indent, lanes[tnd_lane_of(type)], i);
        if (p->what->window != NULL && i == p->what->self) {
            tnd_text_add(p->out, "sum");
        } else if (is_pointer(p, i)) {
            print_loaded_begin(p->out, type);
            tnd_text_printf(p->out, "p%d[", i);
            print_place(p, i, p->what->in[i].offset, 0, p->what->space->shape.n);
            tnd_text_add(p->out, "])");
        } else {
            print_value(p->out, type, p->what->in[i].value);
        }
        tnd_text_add(p->out, ";\n");
    }
}

static void print_steps(struct printer *p)
{
    const struct tnd_fuse *fuse = p->what->fuse;
    print_loads(p);
    for (int i = fuse->n_inputs; i <= last_register(fuse); i++) {
        print_step(p, i);
    }
}

static void print_store(struct printer *p, const char *place, const char *name)
{
    const enum tandem_dtype type = type_of(p->what->fuse, last_register(p->what->fuse));
    tnd_text_printf(p->out, "%sout[%s] = ", p->indent, place);
    print_stored(p->out, type, tnd_lane_of(type), name);
    tnd_text_add(p->out, ";\n");
}

/* ---- reductions ---- */

static const char *const neutrals[] = {[TANDEM_REDUCE_SUM] = "0.0f",
                                       [TANDEM_REDUCE_PROD] = "1.0f",
                                       [TANDEM_REDUCE_MAX] = "-(1.0f / 0.0f)",
                                       [TANDEM_REDUCE_MIN] = "1.0f / 0.0f"};
/* (Sums are compensated, if the compiler keeps the order of additions; not beyond finite
 * values.) */
static const char *const combines[] = {
    [TANDEM_REDUCE_SUM] =
        ("const float d = x - lost; const float t = sum + d; lost = (t - sum) - d; "
         "sum = t; lost = lost - lost == 0 ? lost : 0;"),
    [TANDEM_REDUCE_PROD] = "sum = sum * x;",
    [TANDEM_REDUCE_MAX] = "sum = sum > x || sum != sum ? sum : x;",
    [TANDEM_REDUCE_MIN] = "sum = sum < x || sum != sum ? sum : x;"};

const char *tnd_fuse_print_combine(enum tandem_reduce reduce)
{
    return combines[reduce];
}

static void print_reduction(struct printer *p)
{
    const struct tnd_fuse_space *space = p->what->space;
    const int n = space->shape.n;
    const char *indent = p->indent;
    tnd_text_printf(p->out, "%sfloat sum = %s;\n", indent, neutrals[p->what->reduce]);
    if (p->what->reduce == TANDEM_REDUCE_SUM) {
        tnd_text_printf(p->out, "%sfloat lost = 0.0f;\n", indent);
    }
    for (int d = p->n_kept; d < n; d++) {
        tnd_text_printf(p->out, "%sfor (i64 i%d = 0; i%d < %" PRId64 "; i%d++) {\n", indent, d, d,
                        space->shape.dims[d], d);
    }
    p->indent = "            ";
    print_steps(p);
    tnd_text_printf(p->out, "%sconst float x = r%d;\n%s%s\n", p->indent,
                    last_register(p->what->fuse), p->indent, combines[p->what->reduce]);
    p->indent = indent;
    tnd_text_add(p->out, indent);
    tnd_text_add_repeat(p->out, '}', (size_t)(n - p->n_kept));
    tnd_text_add(p->out, "\n");
}

/* ---- moves ---- */

static void print_joined(struct printer *p, const char *place)
{
    const int axis = p->what->axis;
    tnd_text_add(p->out, p->indent);
    for (int i = 0; i < p->what->fuse->n_inputs; i++) {
        tnd_text_printf(p->out, "%sif (i%d < %" PRId64 ") {\n%s    out[%s] = p%d[",
                        i > 0 ? " else " : "", axis, p->what->ends[i], p->indent, place, i);
        print_place(p, i, p->what->in[i].offset, 0, p->what->space->shape.n);
        tnd_text_printf(p->out, "];\n%s}", p->indent);
    }
    tnd_text_add(p->out, "\n");
}

static void print_gathered(struct printer *p, const char *place)
{
    const struct tnd_fuse_space *space = p->what->space;
    const int axis = p->what->axis;
    tnd_text_printf(p->out, "%sconst i64 at = (i64)", p->indent);
    if (is_pointer(p, 1)) {
        tnd_text_add(p->out, "p1[");
        print_place(p, 1, p->what->in[1].offset, axis, axis + 1);
        tnd_text_add(p->out, "]");
    } else {
        print_value(p->out, p->what->fuse->inputs[1], p->what->in[1].value);
    }
    tnd_text_printf(p->out, ";\n%sout[%s] = p0[", p->indent, place);
    print_place(p, 0, p->what->in[0].offset, 0, axis);
    tnd_text_printf(p->out, " + (at < 0 ? at + %" PRId64 " : at) * %" PRId64 " + ",
                    p->what->ends[0], space->strides[0][axis]);
    print_place(p, 0, 0, axis + 1, space->shape.n);
    tnd_text_add(p->out, "];\n");
}

/* ---- walks ---- */

static int64_t kept_values(const struct printer *p, int from)
{
    int64_t n = 1;
    for (int d = from; d < p->n_kept; d++) {
        n *= p->what->space->shape.dims[d];
    }
    return n;
}

/* Prints the indices of the dimensions before `to`, from the number `i` of a value. */
static void print_indices(struct printer *p, int to, const char *type)
{
    for (int d = 0; d < to; d++) {
        tnd_text_printf(p->out, "%sconst i64 i%d = i / (%s)%" PRId64 " %% (%s)%" PRId64 ";\n",
                        p->indent, d, type, kept_values(p, d + 1), type,
                        p->what->space->shape.dims[d]);
    }
}

static void print_value_of(struct printer *p, const char *place)
{
    char name[16];
    if (p->what->move != TND_MOVE_NONE) {
        (p->what->move == TND_MOVE_JOINED ? print_joined : print_gathered)(p, place);
        return;
    }
    if (p->what->n_reduced > 0) {
        print_reduction(p);
        print_store(p, place, "sum");
        return;
    }
    if (p->what->window != NULL) {
        tnd_fuse_print_window(p->what->window, p->dialect, p->indent, p->out);
    }
    print_steps(p);
    snprintf(name, sizeof(name), "r%d", last_register(p->what->fuse));
    print_store(p, place, name);
}

static const char *name_of(const struct printer *p)
{
    return p->what->name != NULL ? p->what->name : TND_PRINTED_NAME;
}

/* C: rows of the last dimension that the result has, each a loop that compilers vectorise. */
static void print_c(struct printer *p)
{
    const int last = p->n_kept - 1;
    const int64_t row = p->what->space->shape.dims[last];
    const char *type = stored_as(type_of(p->what->fuse, last_register(p->what->fuse)));
    tnd_text_printf(p->out,
                    "void %s(void *y, const void *const *b, i64 begin, i64 end)\n{\n"
                    "    %s *const out = (%s *)y;\n    (void)b;\n",
                    name_of(p), type, type);
    print_pointers(p);
    tnd_text_add(p->out, "    for (i64 i = begin; i < end;) {\n");
    p->indent = "        ";
    print_indices(p, last, "i64");
    tnd_text_printf(p->out,
                    "        const i64 first = i %% %" PRId64 ";\n"
                    "        const i64 left = %" PRId64 " - first;\n"
                    "        const i64 n = left < end - i ? left : end - i;\n"
                    "#pragma GCC ivdep\n"
                    "        for (i64 i%d = first; i%d < first + n; i%d++) {\n",
                    row, row, last, last, last);
    p->indent = "            ";
    char place[32];
    snprintf(place, sizeof(place), "i - first + i%d", last);
    print_value_of(p, place);
    tnd_text_add(p->out, "        }\n        i += n;\n    }\n}\n");
}

/* OpenCL and CUDA: one work item per value. */
static void print_items(struct printer *p)
{
    const bool is_opencl = p->dialect == TND_DIALECT_OPENCL;
    const char *type = stored_as(type_of(p->what->fuse, last_register(p->what->fuse)));
    const char *space = is_opencl ? "global " : "";
    const char *byte = is_opencl ? "uchar" : "unsigned char";
    tnd_text_printf(p->out, "%s void %s(%s%s *y, u64 y_at",
                    is_opencl ? "kernel" : "extern \"C\" __global__", name_of(p), space, byte);
    for (int i = 0; i < p->what->n_buffers; i++) {
        tnd_text_printf(p->out, ", %sconst %s *b%d, u64 b%d_at", space, byte, i, i);
    }
    tnd_text_printf(p->out,
                    ")\n{\n    const u32 i = %s;\n    if (i >= %" PRId64 "u) {\n        return;\n"
                    "    }\n    %s%s *const out = (%s%s *)(y + y_at);\n",
                    is_opencl ? "(u32)get_global_id(0)" : "blockIdx.x * blockDim.x + threadIdx.x",
                    kept_values(p, 0), space, type, space, type);
    print_pointers(p);
    p->indent = "    ";
    print_indices(p, p->n_kept, "u32");
    print_value_of(p, "i");
    tnd_text_add(p->out, "}\n");
}

/* ---- the whole ---- */

int64_t tnd_fuse_print_values(const struct tnd_fuse_printed *what)
{
    int64_t n = 1;
    for (int d = 0; d < what->space->shape.n - what->n_reduced; d++) {
        n *= what->space->shape.dims[d];
    }
    return n;
}

bool tnd_fuse_print_has_double(const struct tnd_fuse_printed *what)
{
    bool has = false;
    for (int i = 0; i <= last_register(what->fuse); i++) {
        has = has || type_of(what->fuse, i) == TANDEM_DTYPE_F64;
    }
    return has;
}

bool tnd_fuse_can_print(const struct tnd_fuse_printed *what)
{
    const struct tnd_fuse *fuse = what->fuse;
    const enum tandem_dtype type = type_of(fuse, last_register(fuse));
    for (int i = 0; i < fuse->n_steps; i++) {
        if (expression_of(&fuse->steps[i], type_of(fuse, fuse->steps[i].in[0])) == NULL) {
            return false;
        }
    }
    /* a source can say where values are */
    return tnd_fuse_print_values(what) <= INT32_MAX &&
           (what->n_reduced == 0 || type == TANDEM_DTYPE_F32);
}

bool tnd_fuse_print_function(const struct tnd_fuse_printed *what, enum tnd_dialect dialect,
                             struct tnd_text *out)
{
    struct printer p = {.what = what,
                        .dialect = dialect,
                        .out = out,
                        .indent = "    ",
                        .n_kept = what->space->shape.n - what->n_reduced};
    TND_ASSERT(p.n_kept > 0 && what->fuse->n_steps > 0);
    if (!tnd_fuse_can_print(what)) {
        return false;
    }
    if (dialect == TND_DIALECT_C) {
        print_c(&p);
    } else {
        print_items(&p);
    }
    return !out->failed;
}

bool tnd_fuse_print(const struct tnd_fuse_printed *what, enum tnd_dialect dialect,
                    struct tnd_text *out)
{
    tnd_fuse_print_prelude(dialect, tnd_fuse_print_has_double(what), out);
    return tnd_fuse_print_function(what, dialect, out);
}
