/* SPDX-License-Identifier: MIT
 * Operators of ONNX: windows of signals and the discrete Fourier transform, which is a product with
 * a constant matrix. */
#include <math.h>
#include <string.h>

#include "formats/onnx_op.h"

#define PI          3.14159265358979323846
#define MAX_ENTRIES (1 << 24) /* of a constant that an operator makes */

/* ---- windows ---- */

enum window { HANN, HAMMING, BLACKMAN };

static void fill_window(double *out, int64_t n, int64_t period, enum window kind)
{
    static const double terms[][3] = {[HANN] = {0.5, 0.5, 0.0},
                                      [HAMMING] = {25.0 / 46.0, 21.0 / 46.0, 0.0},
                                      [BLACKMAN] = {0.42, 0.5, 0.08}};
    for (int64_t i = 0; i < n; i++) {
        const double angle = period == 0 ? 0.0 : 2.0 * PI * (double)i / (double)period;
        out[i] = terms[kind][0] - terms[kind][1] * cos(angle) + terms[kind][2] * cos(2.0 * angle);
    }
}

static void build_window(struct tnd_onnx_call *call)
{
    const int64_t to = tnd_onnx_int(call, "output_datatype", 1);
    const bool is_periodic = tnd_onnx_int(call, "periodic", 1) != 0;
    int64_t size = -1;
    int n;
    enum tandem_dtype type;
    tnd_onnx_known(call, tnd_onnx_in(call, 0), "its size", &size, 1, &n);
    if (n != 1 || size < 0 || size > MAX_ENTRIES || to < 0 || to > 1000 ||
        !tnd_onnx_dtype((enum tnd_onnx_type)to, &type)) {
        (void)tnd_onnx_refuse(call, "%lld values of type %lld", (long long)size, (long long)to);
        return;
    }
    struct tnd_array *values = tnd_array_new(TANDEM_DTYPE_F64, &TND_DIMS(size));
    if (values != NULL) {
        fill_window(values->data, size, is_periodic ? size : size - 1, (enum window)call->kind);
    }
    call->out[0] = tnd_net_cast(call->net, tnd_net_constant(call->net, values), type);
}

/* ---- Fourier ---- */

struct transform {
    int axis;
    int64_t length; /* values that go in */
    int64_t n_out;
    bool is_inverse;
    int64_t period; /* of the whole transform */
    bool is_half;   /* what goes in is the first half of a spectrum, what comes out is real */
};

/* {length, n_out} of cosines or sines. */
static int matrix(struct tnd_onnx_call *call, const struct transform *it, bool is_sine,
                  enum tandem_dtype type)
{
    struct tnd_array *array = tnd_array_new(TANDEM_DTYPE_F64, &TND_DIMS(it->length, it->n_out));
    for (int64_t i = 0; array != NULL && i < array->n; i++) {
        /* (the angle is reduced while it is an integer: exact for long transforms) */
        const int64_t from = i / it->n_out;
        const int64_t turn = from * (i % it->n_out) % it->period;
        const double angle = 2.0 * PI * (double)turn / (double)it->period;
        /* (all but the first and the middle stand for their mirror images, too) */
        const bool is_twice = it->is_half && from != 0 && 2 * from != it->period;
        const double value = (is_twice ? 2.0 : 1.0) * (is_sine ? sin(angle) : cos(angle));
        ((double *)array->data)[i] = it->is_inverse ? value / (double)it->period : value;
    }
    return tnd_net_cast(call->net, tnd_net_constant(call->net, array), type);
}

/* The real (0) or the imaginary (1) part, its axis the last, cut or filled up with zeros. */
static int part_of(struct tnd_onnx_call *call, int x, const struct transform *it, int64_t part)
{
    static const int64_t none[TANDEM_NET_MAX_DIMS];
    struct tnd_net *net = call->net;
    struct tnd_dims shape = *tnd_onnx_shape_of(call, x);
    int axes[TANDEM_NET_MAX_DIMS];
    int64_t end[TANDEM_NET_MAX_DIMS] = {0};
    const int last = shape.n - 2;
    x = tnd_net_slice(net, x, shape.n - 1, part, 1, 1);
    shape.n--;
    x = tnd_net_reshape(net, x, &shape);
    for (int i = 0; i <= last; i++) {
        axes[i] = i < it->axis ? i : i < last ? i + 1 : it->axis;
    }
    end[last] = it->length - shape.dims[it->axis];
    return tnd_net_pad(net, TANDEM_PAD_CONSTANT, tnd_net_permute(net, x, axes), none, end,
                       tnd_onnx_scalar(call, x, 0.0));
}

/* {..., n_out} with its axis back in its place, and a dimension of 1 behind. */
static int put_back(struct tnd_onnx_call *call, int x, const struct transform *it)
{
    int axes[TANDEM_NET_MAX_DIMS];
    if (x == TANDEM_NET_NONE) {
        return x;
    }
    const int rank = tnd_onnx_shape_of(call, x)->n;
    for (int i = 0; i < rank; i++) {
        axes[i] = i < it->axis ? i : i == it->axis ? rank - 1 : i - 1;
    }
    x = tnd_net_permute(call->net, x, axes);
    struct tnd_dims shape = *tnd_onnx_shape_of(call, x);
    shape.dims[shape.n++] = 1;
    return tnd_net_reshape(call->net, x, &shape);
}

static int transform(struct tnd_onnx_call *call, int x, const struct transform *it)
{
    struct tnd_net *net = call->net;
    const enum tandem_dtype type = tnd_onnx_type_of(call, x);
    const struct tnd_dims *shape = tnd_onnx_shape_of(call, x);
    const bool is_complex = shape->dims[shape->n - 1] == 2;
    const int cosine = matrix(call, it, false, type);
    const int sine = matrix(call, it, true, type);
    const int real = part_of(call, x, it, 0);
    int parts[2] = {tnd_net_matmul(net, real, cosine), tnd_net_matmul(net, real, sine)};
    parts[1] = it->is_inverse ? parts[1] : tnd_net_unary(net, TANDEM_UNARY_NEG, parts[1]);
    if (is_complex) {
        const int other = part_of(call, x, it, 1);
        const enum tandem_binary kind = it->is_inverse ? TANDEM_BINARY_SUB : TANDEM_BINARY_ADD;
        parts[0] = tnd_net_binary(net, kind, parts[0], tnd_net_matmul(net, other, sine));
        parts[1] =
            tnd_net_binary(net, TANDEM_BINARY_ADD, parts[1], tnd_net_matmul(net, other, cosine));
    }
    if (it->is_half) {
        return put_back(call, parts[0], it);
    }
    const int both[] = {put_back(call, parts[0], it), put_back(call, parts[1], it)};
    return both[0] == TANDEM_NET_NONE || both[1] == TANDEM_NET_NONE
               ? TANDEM_NET_NONE
               : tnd_net_concat(net, both, 2, tnd_onnx_shape_of(call, both[0])->n - 1);
}

/* The axis and the length are operands, the axis only from opset 20 on. */
static bool read_transform(struct tnd_onnx_call *call, const struct tnd_dims *shape,
                           struct transform *it)
{
    int64_t axis = call->opset < 20 ? tnd_onnx_int(call, "axis", 1) : -2;
    int n = 1;
    if (call->opset >= 20 && tnd_onnx_in(call, 2) != TANDEM_NET_NONE) {
        tnd_onnx_known(call, tnd_onnx_in(call, 2), "its axis", &axis, 1, &n);
    }
    if (n != 1 || shape->n < 2 || !tnd_onnx_axis(call, axis, shape->n, &it->axis)) {
        return false;
    }
    it->length = shape->dims[it->axis];
    if (tnd_onnx_in(call, 1) != TANDEM_NET_NONE) {
        tnd_onnx_known(call, tnd_onnx_in(call, 1), "its length", &it->length, 1, &n);
    }
    return n == 1;
}

static void build_dft(struct tnd_onnx_call *call)
{
    const int from = tnd_onnx_in(call, 0);
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, from);
    const bool is_onesided = tnd_onnx_int(call, "onesided", 0) != 0;
    struct transform it = {.is_inverse = tnd_onnx_int(call, "inverse", 0) != 0};
    if (!read_transform(call, &shape, &it)) {
        return;
    }
    it.is_half = is_onesided && it.is_inverse;
    if (it.is_half && tnd_onnx_in(call, 1) == TANDEM_NET_NONE) {
        it.length = 2 * (it.length - 1);
    }
    it.period = it.length;
    it.n_out = is_onesided && !it.is_half ? it.length / 2 + 1 : it.length;
    it.length = it.is_half ? it.length / 2 + 1 : it.length;
    if (it.axis == shape.n - 1 || it.period < 1 || it.length < 1 ||
        it.length > MAX_ENTRIES / it.n_out ||
        (shape.dims[shape.n - 1] != 1 && shape.dims[shape.n - 1] != 2) ||
        (is_onesided && (shape.dims[shape.n - 1] == 2) != it.is_half)) {
        (void)tnd_onnx_refuse(call, "a transform of %lld values along axis %d",
                              (long long)it.length, it.axis);
        return;
    }
    const int wide = tnd_onnx_wide(call, from);
    if (wide != TANDEM_NET_NONE) { /* (nothing is built behind an attribute of a wrong type) */
        call->out[0] =
            tnd_net_cast(call->net, transform(call, wide, &it), tnd_onnx_type_of(call, from));
    }
}

/* ---- the same for frames of a signal ---- */

/* One number that shapes depend on; `otherwise` where it was left out, 0 where it is not known. */
static int64_t number_of(struct tnd_onnx_call *call, int operand, const char *what,
                         int64_t otherwise)
{
    int n = 1;
    if (tnd_onnx_in(call, operand) != TANDEM_NET_NONE) {
        tnd_onnx_known(call, tnd_onnx_in(call, operand), what, &otherwise, 1, &n);
    }
    return n == 1 ? otherwise : 0;
}

/* {batch, frames, length, 1 or 2} of a signal {batch, values, 1 or 2}. */
static int frames_of(struct tnd_onnx_call *call, int x, int64_t n, int64_t length, int64_t step)
{
    struct tnd_array *places = tnd_array_new(TANDEM_DTYPE_I64, &TND_DIMS(n, length));
    for (int64_t i = 0; places != NULL && i < places->n; i++) {
        ((int64_t *)places->data)[i] = i / length * step + i % length;
    }
    return tnd_net_gather(call->net, x, tnd_net_constant(call->net, places), 1);
}

static void build_stft(struct tnd_onnx_call *call)
{
    const int signal = tnd_onnx_in(call, 0);
    const int window = tnd_onnx_in(call, 2);
    struct tnd_dims shape = *tnd_onnx_shape_of(call, signal);
    /* Exporters write real signals without the dimension of the parts too, as ONNX Runtime takes
     * them: {batch, values}. */
    if (shape.n == 2) {
        shape = (struct tnd_dims){3, {shape.dims[0], shape.dims[1], 1}};
    }
    const struct tnd_dims by = *tnd_onnx_shape_of(call, window);
    const bool is_onesided = tnd_onnx_int(call, "onesided", 1) != 0;
    const int64_t step = number_of(call, 1, "its step", 0);
    const int64_t length =
        number_of(call, 3, "the length of a frame", by.n == 1 ? by.dims[0] : shape.dims[1]);
    const struct transform it = {.axis = 2,
                                 .length = length,
                                 .n_out = is_onesided ? length / 2 + 1 : length,
                                 .period = length};
    if (shape.n != 3 || step < 1 || length < 1 || length > shape.dims[1] ||
        (window != TANDEM_NET_NONE && (by.n != 1 || by.dims[0] != length)) ||
        (shape.dims[2] != 1 && (shape.dims[2] != 2 || is_onesided)) ||
        length > MAX_ENTRIES / it.n_out ||
        (shape.dims[1] - length) / step + 1 > MAX_ENTRIES / length) {
        (void)tnd_onnx_refuse(call, "frames of %lld values, %lld apart, of %lld", (long long)length,
                              (long long)step, (long long)shape.dims[1]);
        return;
    }
    const int from = tnd_net_reshape(call->net, signal, &shape);
    int x = frames_of(call, tnd_onnx_wide(call, from), (shape.dims[1] - length) / step + 1, length,
                      step);
    if (window != TANDEM_NET_NONE) {
        const struct tnd_dims column = {2, {length, 1}};
        x = tnd_net_binary(call->net, TANDEM_BINARY_MUL, x,
                           tnd_net_reshape(call->net, tnd_onnx_wide(call, window), &column));
    }
    if (x != TANDEM_NET_NONE) {
        call->out[0] =
            tnd_net_cast(call->net, transform(call, x, &it), tnd_onnx_type_of(call, signal));
    }
}

/* ---- mel ---- */

/* The bin of a spectrum at place `i` of those that lie evenly between two edges on the mel scale,
 * 2595 log10(1 + hertz / 700). */
static int64_t mel_place(const double *edges, int64_t bins, int64_t i, double dft, double rate)
{
    const double low = 2595.0 * log10(1.0 + edges[0] / 700.0);
    const double high = 2595.0 * log10(1.0 + edges[1] / 700.0);
    const double mel = low + (double)i * (high - low) / (double)(bins + 2);
    const double place = floor((dft + 1.0) * 700.0 * (pow(10.0, mel / 2595.0) - 1.0) / rate);
    return place >= 0.0 && place < 0x1p31 ? (int64_t)place : -1;
}

/* A triangle over a bin's three places, in column `i`. */
static void fill_triangle(double *out, int64_t bins, int64_t i, const int64_t *place)
{
    if (place[1] == place[0]) {
        out[place[1] * bins + i] = 1.0;
    }
    for (int64_t k = place[0]; k <= place[1] && place[1] > place[0]; k++) {
        out[k * bins + i] = (double)(k - place[0]) / (double)(place[1] - place[0]);
    }
    for (int64_t k = place[1]; k < place[2]; k++) {
        out[k * bins + i] = (double)(place[2] - k) / (double)(place[2] - place[1]);
    }
}

static void build_mel(struct tnd_onnx_call *call)
{
    const int64_t wanted = tnd_onnx_int(call, "output_datatype", 1);
    double numbers[5];
    enum tandem_dtype type;
    for (int i = 0; i < 5; i++) {
        const int operand = tnd_onnx_in(call, i);
        const struct tnd_array *known =
            operand == TANDEM_NET_NONE ? NULL : tnd_onnx_ask(call, operand);
        if (known == NULL || known->n != 1) {
            (void)tnd_onnx_refuse(call, "operand %d is no known number", i);
            return;
        }
        numbers[i] = tnd_array_number(known, 0);
    }
    if (wanted < 0 || wanted > 1000 || !tnd_onnx_dtype((enum tnd_onnx_type)wanted, &type) ||
        !(numbers[0] >= 1.0 && numbers[0] <= 4096.0) ||
        !(numbers[1] >= 1.0 && numbers[1] <= 65536.0) || !(numbers[2] > 0.0)) {
        (void)tnd_onnx_refuse(call, "%.6g bins of a transform of %.6g values", numbers[0],
                              numbers[1]);
        return;
    }
    const int64_t bins = (int64_t)numbers[0];
    const struct tnd_dims shape = {2, {(int64_t)numbers[1] / 2 + 1, bins}};
    struct tnd_array *array = tnd_array_new(TANDEM_DTYPE_F64, &shape);
    for (int64_t i = 0; array != NULL && i < bins; i++) {
        int64_t place[3];
        for (int k = 0; k < 3; k++) {
            place[k] = mel_place(numbers + 3, bins, i + k, floor(numbers[1]), numbers[2]);
        }
        if (place[0] < 0 || place[0] > place[1] || place[1] > place[2] ||
            place[1] >= shape.dims[0] || place[2] > shape.dims[0]) {
            tnd_array_free(array);
            (void)tnd_onnx_refuse(call, "edges %.6g and %.6g outside of the spectrum", numbers[3],
                                  numbers[4]);
            return;
        }
        fill_triangle(array->data, bins, i, place);
    }
    call->out[0] = tnd_net_cast(call->net, tnd_net_constant(call->net, array), type);
}

const struct tnd_onnx_op tnd_onnx_signal[] = {
    {"MelWeightMatrix", build_mel, 0, "5"},
    {"HannWindow", build_window, HANN, "1"},
    {"HammingWindow", build_window, HAMMING, "1"},
    {"BlackmanWindow", build_window, BLACKMAN, "1"},
    {"DFT", build_dft, 0, "1-2 20:1-3"},
    {"STFT", build_stft, 0, "2-4"},
    {NULL, NULL, 0, NULL},
};
