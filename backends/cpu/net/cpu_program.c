/* SPDX-License-Identifier: MIT
 * The interpreter of fused programs. Steps that kernels implement run over whole rows if operands
 * are dense; other operands and steps run strip by strip. */
#include <string.h>

#include "backends/cpu/net/cpu_net.h"

/* Total bytes of a program's registers, so that they fit into L1 and into the stack of a caller
 * that computes itself (docs/processes.md). */
enum { REGISTERS_BYTES = 32 << 10 };
_Static_assert(TND_FUSE_REGISTERS *TND_STRIP_LEAST * sizeof(double) <= REGISTERS_BYTES,
               "each program has strips");

struct machine {
    const struct tnd_strip_kernel *kernel;
    const struct tnd_fuse *fuse;
    bool is_slow;                   /* some step has no kernel */
    bool is_slow_end;               /* the last step has no kernel */
    int64_t bytes[TND_FUSE_INPUTS]; /* per value */
    size_t result_bytes;
    int strip;             /* values per register: a power of two */
    size_t register_bytes; /* for this many values */
    struct tnd_strip_operand operands[TND_FUSE_REGISTERS];
    _Alignas(64) char registers[REGISTERS_BYTES];
};

static int last_register(const struct machine *machine)
{
    return machine->fuse->n_inputs + machine->fuse->n_steps - 1;
}

static float *own(struct machine *machine, int i)
{
    return (void *)(machine->registers + (size_t)i * machine->register_bytes);
}

static size_t lane_bytes(const struct machine *machine, int i)
{
    const enum tnd_lane lane = tnd_lane_of(tnd_fuse_type(machine->fuse, i));
    return lane == TND_LANE_F32 || machine->fuse->forms[i] != TND_FORM_LANE ? sizeof(float)
                                                                            : sizeof(double);
}

/* Sets the strip length: as many values per register as memory allows. */
static void find_strip(struct machine *machine)
{
    const int n = last_register(machine) + 1;
    size_t widest = 0;
    for (int i = 0; i < n; i++) {
        widest = lane_bytes(machine, i) > widest ? lane_bytes(machine, i) : widest;
    }
    machine->strip = TND_STRIP;
    while ((size_t)n * (size_t)machine->strip * widest > REGISTERS_BYTES) {
        machine->strip /= 2;
    }
    machine->register_bytes = (size_t)machine->strip * widest;
}

static void begin(struct machine *machine, const struct tnd_strip_kernel *kernel,
                  const struct tnd_fuse *fuse)
{
    machine->kernel = kernel;
    machine->fuse = fuse;
    machine->is_slow = !tnd_fuse_is_fast(fuse);
    for (int s = 0; s < fuse->n_steps;) {
        machine->is_slow_end = fuse->steps[s].n_fast == 0;
        s += machine->is_slow_end ? 1 : fuse->steps[s].n_fast;
    }
    find_strip(machine);
    for (int i = 0; i <= last_register(machine); i++) {
        machine->operands[i] = (struct tnd_strip_operand){own(machine, i), machine->strip - 1, 0};
    }
    for (int i = 0; i < fuse->n_inputs; i++) {
        machine->bytes[i] = (int64_t)tandem_dtype_bytes(fuse->inputs[i]);
    }
    machine->result_bytes = tandem_dtype_bytes(tnd_fuse_type(fuse, last_register(machine)));
}

/* ---- operands ---- */

/* Whether kernels can use a register's values in memory directly: floats and 32-bit integers. */
static bool is_plain(const struct machine *machine, int i)
{
    return tnd_fuse_type(machine->fuse, i) == TANDEM_DTYPE_F32 ||
           machine->fuse->forms[i] == TND_FORM_I32;
}

/* Address of value `at` of a register. */
static void *place(struct machine *machine, int i, int at)
{
    return (char *)own(machine, i) + (size_t)at * lane_bytes(machine, i);
}

/* Stores n copies of a value; n is a multiple of TND_STRIP_GRAIN. */
static void fill(float *to, float value, int n)
{
    typedef float vector __attribute__((vector_size(4 * sizeof(float))));
    const vector all = {value, value, value, value};
    for (int k = 0; k < n; k += 4) {
        memcpy(to + k, &all, sizeof(all));
    }
}

static void load_f32(float *to, const float *from, int64_t stride, int n)
{
    if (stride == 0 && n % TND_STRIP_GRAIN == 0) {
        fill(to, *from, n);
        return;
    }
    if (stride == 1) {
        memcpy(to, from, (size_t)n * sizeof(float));
        return;
    }
    for (int k = 0; k < n; k++) {
        to[k] = from[k * stride];
    }
}

/* Gathers strided values of any type. */
static void gather(char *to, const char *from, int64_t stride, size_t bytes, int n)
{
    for (int k = 0; k < n; k++) {
        memcpy(to + (size_t)k * bytes, from + k * stride * (int64_t)bytes, bytes);
    }
}

/* Loads values of a row to index `at` of a register. */
static void load_row(struct machine *machine, int i, int at, const char *from, int64_t stride,
                     int n)
{
    const enum tandem_dtype type = machine->fuse->inputs[i];
    const size_t bytes = (size_t)machine->bytes[i];
    char row[TND_STRIP * sizeof(int64_t)];
    if (is_plain(machine, i)) { /* (integers are moved as if they were floats) */
        load_f32(place(machine, i, at), (const void *)from, stride, n);
        return;
    }
    if (machine->fuse->forms[i] != TND_FORM_LANE) {
        if (stride != 1) {
            gather(row, from, stride, bytes, n);
        }
        machine->kernel->load[type](stride == 1 ? from : row, place(machine, i, at), n);
        return;
    }
    for (int k = 0; k < n; k += TND_LANES) {
        const int n_lanes = n - k < TND_LANES ? n - k : TND_LANES;
        union tnd_values lanes;
        tnd_values_load(type, from + k * stride * (int64_t)bytes, stride, n_lanes,
                        tnd_lane_of(type), &lanes);
        memcpy(place(machine, i, at + k), &lanes, (size_t)n_lanes * lane_bytes(machine, i));
    }
}

/* Loads rows of an operand that form a strip together, `n` values each. */
static void load(struct machine *machine, int i, const char *from, int64_t row_stride,
                 int64_t stride, int n_rows, int n)
{
    const int64_t bytes = machine->bytes[i];
    machine->operands[i] = (struct tnd_strip_operand){own(machine, i), machine->strip - 1, 0};
    for (int r = 0; r < n_rows; r++) {
        load_row(machine, i, r * n, from + r * row_stride * bytes, stride, n);
    }
}

/* Fills a register with an operand that is one value: kernels need only one block of copies, slow
 * steps a whole strip. */
static void repeat(struct machine *machine, int i, const char *from)
{
    const int n = machine->is_slow ? machine->strip : TND_STRIP_LEAST;
    load(machine, i, from, 0, 0, 1, n);
    machine->operands[i].mask = n - 1;
}

/* Uses an operand of `n` values in place; false: it must be loaded. */
static bool is_in_place(struct machine *machine, int i, const char *from, int64_t row_stride,
                        int64_t stride, int n_rows, int64_t n)
{
    if (!is_plain(machine, i) || stride != 1 || (n_rows > 1 && row_stride != n) ||
        n_rows * n % TND_STRIP_GRAIN != 0) {
        return false;
    }
    machine->operands[i] = (struct tnd_strip_operand){(void *)from, -1, 0};
    return true;
}

/* ---- steps ---- */

static void run_slow(struct machine *machine, const struct tnd_fuse_step *step, int to, int n)
{
    for (int at = 0; at < n; at += TND_LANES) {
        const int n_lanes = n - at < TND_LANES ? n - at : TND_LANES;
        union tnd_values in[3];
        union tnd_values out;
        for (int i = 0; i < step->n_in; i++) {
            const size_t bytes = lane_bytes(machine, step->in[i]);
            memcpy(&in[i], (const char *)machine->operands[step->in[i]].from + (size_t)at * bytes,
                   (size_t)n_lanes * bytes);
        }
        step->job.run(&step->job, in, n_lanes, &out);
        if (step->rounds) {
            char stored[TND_LANES * 8];
            tnd_values_store(step->type, step->job.out_lane, &out, n_lanes, stored);
            tnd_values_load(step->type, stored, 1, n_lanes, tnd_lane_of(step->type), &out);
        }
        memcpy(place(machine, to, at), &out, (size_t)n_lanes * lane_bytes(machine, to));
    }
}

/* Runs all steps. If a kernel computes the result, it stores it to `out`. */
static void run_steps(struct machine *machine, int64_t n, float *out)
{
    const struct tnd_fuse *fuse = machine->fuse;
    for (int s = 0; s < fuse->n_steps;) {
        const struct tnd_fuse_step *step = &fuse->steps[s];
        if (step->n_fast == 0) {
            run_slow(machine, step, fuse->n_inputs + s, (int)n);
            s++;
            continue;
        }
        s += step->n_fast;
        const struct tnd_strip_call call = {
            .codes = fuse->codes + step->codes,
            .operands = machine->operands,
            .out = s == fuse->n_steps ? out : own(machine, fuse->n_inputs + s - 1),
            .n = (n + TND_STRIP_GRAIN - 1) / TND_STRIP_GRAIN * TND_STRIP_GRAIN};
        machine->kernel->run(&call);
    }
}

/* Computes `n` values of the result. More than a strip only without slow steps and in whole
 * grains. */
static void run_values(struct machine *machine, int64_t n, char *out)
{
    const int last = last_register(machine);
    const enum tandem_dtype type = tnd_fuse_type(machine->fuse, last);
    if (is_plain(machine, last) && !machine->is_slow_end && n % TND_STRIP_GRAIN == 0) {
        run_steps(machine, n, (void *)out);
        return;
    }
    run_steps(machine, n, own(machine, last));
    if (is_plain(machine, last)) {
        memcpy(out, own(machine, last), (size_t)n * sizeof(float));
        return;
    }
    if (machine->fuse->forms[last] != TND_FORM_LANE) {
        machine->kernel->store[type](own(machine, last), out, (int)n);
        return;
    }
    for (int64_t at = 0; at < n; at += TND_LANES) {
        union tnd_values lanes;
        const int n_lanes = (int)(n - at < TND_LANES ? n - at : TND_LANES);
        memcpy(&lanes, place(machine, last, (int)at), (size_t)n_lanes * lane_bytes(machine, last));
        tnd_values_store(type, tnd_lane_of(type), &lanes, n_lanes,
                         out + (size_t)at * machine->result_bytes);
    }
}

/* ---- walks ---- */

/* Current addresses of the operands, and their strides within and between rows. */
struct walk {
    bool is_uniform[TND_FUSE_INPUTS]; /* a single value, loaded before the first strip */
    const char *from[TND_FUSE_INPUTS];
    int64_t row_strides[TND_FUSE_INPUTS];
    int64_t strides[TND_FUSE_INPUTS];
};

static void begin_walk(struct machine *machine, const struct tnd_fuse_space *space,
                       const void *const *in, struct walk *walk)
{
    const int last = space->shape.n - 1;
    for (int i = 0; i < machine->fuse->n_inputs; i++) {
        walk->strides[i] = space->strides[i][last];
        walk->row_strides[i] = last > 0 ? space->strides[i][last - 1] : 0;
        walk->is_uniform[i] = true;
        for (int d = 0; d <= last; d++) {
            walk->is_uniform[i] = walk->is_uniform[i] && space->strides[i][d] == 0;
        }
        if (walk->is_uniform[i]) {
            repeat(machine, i, in[i]);
        }
    }
}

/* Computes a row or a part of one, as much at a time as kernels can without a copy. */
static void run_row(struct machine *machine, struct walk *walk, int64_t n, char *out)
{
    const struct tnd_fuse *fuse = machine->fuse;
    /* (other results pass through a register) */
    bool is_stream = !machine->is_slow && is_plain(machine, last_register(machine));
    for (int i = 0; i < fuse->n_inputs; i++) {
        if (walk->strides[i] != 0) {
            is_stream = is_stream && walk->strides[i] == 1 && is_plain(machine, i);
        } else if (!walk->is_uniform[i]) {
            repeat(machine, i, walk->from[i]);
        }
    }
    for (int64_t done = 0; done < n;) {
        const int64_t left = n - done;
        const int64_t now = is_stream && left >= TND_STRIP_GRAIN ? left - left % TND_STRIP_GRAIN
                            : left < machine->strip              ? left
                                                                 : machine->strip;
        for (int i = 0; i < fuse->n_inputs; i++) {
            const int64_t stride = walk->strides[i];
            if (stride != 0 && !is_in_place(machine, i, walk->from[i], 0, stride, 1, now)) {
                load(machine, i, walk->from[i], 0, stride, 1, (int)now);
            }
            walk->from[i] += now * stride * machine->bytes[i];
        }
        run_values(machine, now, out);
        out += (size_t)now * machine->result_bytes;
        done += now;
    }
}

/* Computes short rows that form a strip together. */
static void run_short_rows(struct machine *machine, const struct walk *walk, int n_rows, int n,
                           char *out)
{
    for (int i = 0; i < machine->fuse->n_inputs; i++) {
        if (!walk->is_uniform[i] && !is_in_place(machine, i, walk->from[i], walk->row_strides[i],
                                                 walk->strides[i], n_rows, n)) {
            load(machine, i, walk->from[i], walk->row_strides[i], walk->strides[i], n_rows, n);
        }
    }
    run_values(machine, (int64_t)n_rows * n, out);
}

/* Computes a unit (a row of the space, or a part of one) or several short rows before unit `end`.
 * Returns how many units. */
static int64_t run_units(struct machine *machine, const struct tnd_fuse_space *space,
                         const void *const *in, struct walk *walk, char *out, int64_t unit,
                         int64_t end)
{
    const struct tnd_fuse *fuse = machine->fuse;
    const int last = space->shape.n - 1;
    const int64_t row = space->shape.dims[last];
    const int64_t begin_at = unit % space->row_units * TND_FUSE_PART;
    const int64_t left = row - begin_at;
    int64_t rest = unit / space->row_units;
    int64_t n_rows = end - unit;
    out += (rest * row + begin_at) * (int64_t)machine->result_bytes;
    for (int i = 0; i < fuse->n_inputs; i++) {
        walk->from[i] = (const char *)in[i] + begin_at * walk->strides[i] * machine->bytes[i];
    }
    for (int d = last - 1; d >= 0; d--) {
        const int64_t at = rest % space->shape.dims[d];
        const int64_t rows_left = space->shape.dims[d] - at;
        rest /= space->shape.dims[d];
        n_rows = d == last - 1 && rows_left < n_rows ? rows_left : n_rows;
        for (int i = 0; i < fuse->n_inputs; i++) {
            walk->from[i] += at * space->strides[i][d] * machine->bytes[i];
        }
    }
    if (row > machine->strip / 2 || last == 0) {
        const bool is_part = space->row_units > 1 && left > TND_FUSE_PART;
        run_row(machine, walk, is_part ? TND_FUSE_PART : left, out);
        return 1;
    }
    n_rows = n_rows < machine->strip / row ? n_rows : machine->strip / row;
    run_short_rows(machine, walk, (int)n_rows, (int)row, out);
    return n_rows;
}

/* ---- copies ---- */

#define MOVE(TYPE)                                                                                 \
    do {                                                                                           \
        const TYPE *values = (const void *)from;                                                   \
        TYPE *result = (void *)to;                                                                 \
        for (int64_t i = 0; i < n; i++) {                                                          \
            result[i] = values[i * stride];                                                        \
        }                                                                                          \
    } while (0)

static void move_row(const char *from, int64_t stride, size_t bytes, int64_t n, char *to)
{
    if (stride == 1) {
        memcpy(to, from, (size_t)n * bytes);
    } else if (bytes == 1) {
        MOVE(uint8_t);
    } else if (bytes == 2) {
        MOVE(uint16_t);
    } else if (bytes == 4) {
        MOVE(uint32_t);
    } else {
        MOVE(uint64_t);
    }
}

/* A program that only copies moves bytes, regardless of the type. */
static void move_unit(const struct tnd_fuse_space *space, size_t bytes, const char *from, char *to,
                      int64_t unit)
{
    const int last = space->shape.n - 1;
    const int64_t row = space->shape.dims[last];
    const int64_t at = unit % space->row_units * TND_FUSE_PART;
    const bool is_part = space->row_units > 1 && row - at > TND_FUSE_PART;
    int64_t rest = unit / space->row_units;
    int64_t place = at * space->strides[0][last];
    to += (rest * row + at) * (int64_t)bytes;
    for (int d = last - 1; d >= 0; d--) {
        place += rest % space->shape.dims[d] * space->strides[0][d];
        rest /= space->shape.dims[d];
    }
    move_row(from + place * (int64_t)bytes, space->strides[0][last], bytes,
             is_part ? TND_FUSE_PART : row - at, to);
}

void tnd_fuse_run(const struct tnd_strip_kernel *kernel, const struct tnd_fuse *fuse,
                  const struct tnd_fuse_space *space, const void *const *in, void *out,
                  int64_t begin_item, int64_t end_item)
{
    struct machine machine;
    struct walk walk;
    const int64_t last = end_item * space->item_units;
    const int64_t end = last < space->n_units ? last : space->n_units;
    int64_t unit = begin_item * space->item_units;
    if (unit >= end) {
        return;
    }
    if (fuse->n_steps == 1 && fuse->steps[0].op == TND_NET_COPY) {
        for (; unit < end; unit++) {
            move_unit(space, tandem_dtype_bytes(fuse->inputs[0]), in[0], out, unit);
        }
        return;
    }
    begin(&machine, kernel, fuse);
    begin_walk(&machine, space, in, &walk);
    while (unit < end) {
        unit += run_units(&machine, space, in, &walk, out, unit, end);
    }
}

/* ---- tiles ---- */

/* Computes as many rows as fit into a strip, from row `row` on, and returns how many. Operands that
 * are the same for all rows are only loaded for the first strip, which has most rows. */
static int run_tile_rows(struct machine *machine, const struct tnd_fuse_matrix *matrix,
                         const void *const *in, const struct tnd_fuse_tile *tile, int row,
                         int column)
{
    const int left = tile->n_columns - column;
    const int n = left < machine->strip ? left : machine->strip;
    const int fit = machine->strip / n;
    const int n_rows = tile->n_rows - row < fit ? tile->n_rows - row : fit;
    const bool is_dense = n_rows == 1 || tile->stride == n;
    float *values = tile->values + row * tile->stride + column;
    for (int i = 0; i < machine->fuse->n_inputs; i++) {
        const bool is_self = i == matrix->self;
        const int64_t row_stride = is_self ? tile->stride : matrix->strides[i][0];
        const int64_t stride = is_self ? 1 : matrix->strides[i][1];
        const float *from = is_self ? values
                                    : (const float *)in[i] + (tile->row + row) * row_stride +
                                          (tile->column + column) * stride;
        if ((is_self || row == 0 || row_stride != 0) &&
            !is_in_place(machine, i, (const void *)from, row_stride, stride, n_rows, n)) {
            load(machine, i, (const void *)from, row_stride, stride, n_rows, n);
        }
    }
    if (is_dense) {
        run_values(machine, n_rows * n, (void *)values);
        return n_rows;
    }
    const float *result = own(machine, last_register(machine));
    run_steps(machine, n_rows * n, own(machine, last_register(machine)));
    for (int r = 0; r < n_rows; r++) {
        memcpy(values + r * tile->stride, result + r * n, (size_t)n * sizeof(float));
    }
    return n_rows;
}

void tnd_fuse_tile(const struct tnd_strip_kernel *kernel, const struct tnd_fuse *fuse,
                   const struct tnd_fuse_matrix *matrix, const void *const *in,
                   const struct tnd_fuse_tile *tile)
{
    struct machine machine;
    begin(&machine, kernel, fuse);
    for (int column = 0; column < tile->n_columns; column += machine.strip) {
        for (int row = 0; row < tile->n_rows;) {
            row += run_tile_rows(&machine, matrix, in, tile, row, column);
        }
    }
}

/* ---- driver ---- */

int64_t tnd_cpu_items_program(const struct tnd_cpu_kernels *kernels, const struct tnd_work *work)
{
    (void)kernels;
    return tnd_cpu_transposes(work) ? tnd_cpu_transpose_items(work) : work->space.n_items;
}

enum tandem_status tnd_cpu_work_program(const struct tnd_cpu_kernels *kernels,
                                        const struct tandem_tensor *node, int64_t begin,
                                        int64_t end)
{
    const struct tnd_work *work = node->params.work;
    struct tnd_view views[TND_WORK_OPERANDS];
    const void *in[TND_FUSE_INPUTS];
    if (tnd_cpu_transposes(work)) {
        tnd_cpu_transpose(work, node, begin, end);
        return TANDEM_OK;
    }
    tnd_work_views(work, node, views);
    for (int i = 0; i < work->n_in; i++) {
        in[i] = views[i].data;
    }
    tnd_fuse_run(kernels->strip, &work->fuse, &work->space, in, node->data, begin, end);
    return TANDEM_OK;
}
