/* SPDX-License-Identifier: MIT
 * ONNX models through the public headers: an encoder of fixed shapes beside a decoder whose texts
 * grow. The models are written here, field by field, in the wire format of Protocol Buffers. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tandem/tandem.h"
#include "tests/suite_net.h"

enum { STATES = 4, WIDTH = 3, WIRE_VARINT = 0, WIRE_BYTES = 2 };

/* ---- messages (numbers of fields: onnx.proto) ---- */

struct message {
    unsigned char bytes[1024];
    size_t n;
};

static void add_varint(struct message *to, uint64_t value)
{
    for (; value > 127; value >>= 7) {
        to->bytes[to->n++] = (unsigned char)(value | 128);
    }
    to->bytes[to->n++] = (unsigned char)value;
}

static void add_number(struct message *to, unsigned field, uint64_t value)
{
    add_varint(to, field << 3 | WIRE_VARINT);
    add_varint(to, value);
}

static void add_bytes(struct message *to, unsigned field, const void *bytes, size_t n)
{
    add_varint(to, field << 3 | WIRE_BYTES);
    add_varint(to, n);
    memcpy(to->bytes + to->n, bytes, n);
    to->n += n;
}

static void add_text(struct message *to, unsigned field, const char *text)
{
    add_bytes(to, field, text, strlen(text));
}

static void add_message(struct message *to, unsigned field, const struct message *inner)
{
    add_bytes(to, field, inner->bytes, inner->n);
}

/* A value of float32 {name or extent, WIDTH} in field 11 (input) or 12 (output) of a graph. */
static void add_value(struct message *graph, unsigned field, const char *name, const char *symbol,
                      int64_t extent)
{
    struct message first = {.n = 0}, second = {.n = 0}, shape = {.n = 0}, tensor = {.n = 0};
    struct message type = {.n = 0}, value = {.n = 0};
    if (symbol != NULL) {
        add_text(&first, 2, symbol);
    } else {
        add_number(&first, 1, (uint64_t)extent);
    }
    add_number(&second, 1, WIDTH);
    add_message(&shape, 1, &first);
    add_message(&shape, 1, &second);
    add_number(&tensor, 1, 1);
    add_message(&tensor, 2, &shape);
    add_message(&type, 1, &tensor);
    add_text(&value, 1, name);
    add_message(&value, 2, &type);
    add_message(graph, field, &value);
}

static void add_node(struct message *graph, const char *op, const char *a, const char *b,
                     const char *out)
{
    struct message node = {.n = 0};
    add_text(&node, 1, a);
    if (b != NULL) {
        add_text(&node, 1, b);
    }
    add_text(&node, 2, out);
    add_text(&node, 4, op);
    add_message(graph, 1, &node);
}

static tandem_onnx *open_model(const struct message *graph, struct message *model)
{
    struct message opset = {.n = 0};
    struct tandem_error error = {.text = ""};
    tandem_onnx *out = NULL;
    add_number(&opset, 2, 13);
    add_number(model, 1, 8);
    add_message(model, 7, graph);
    add_message(model, 8, &opset);
    check_status(tandem_onnx_read(model->bytes, model->n, NULL, &out, &error), TANDEM_OK, NULL,
                 &error);
    return out;
}

static const float weights[WIDTH * WIDTH] = {1, 0, 2, 0, 1, -1, 1, 1, 0};

/* states = signal w, {STATES, WIDTH} */
static tandem_onnx *open_encoder(struct message *model)
{
    struct message graph = {.n = 0}, tensor = {.n = 0};
    add_node(&graph, "MatMul", "signal", "w", "states");
    add_number(&tensor, 1, WIDTH);
    add_number(&tensor, 1, WIDTH);
    add_number(&tensor, 2, 1);
    add_text(&tensor, 8, "w");
    add_bytes(&tensor, 9, weights, sizeof(weights));
    add_message(&graph, 5, &tensor);
    add_value(&graph, 11, "signal", NULL, STATES);
    add_value(&graph, 12, "states", NULL, STATES);
    return open_model(&graph, model);
}

/* Attention of {tokens, WIDTH} over the states. */
static tandem_onnx *open_decoder(struct message *model)
{
    struct message graph = {.n = 0};
    add_node(&graph, "Transpose", "states", NULL, "keys");
    add_node(&graph, "MatMul", "text", "keys", "scores");
    add_node(&graph, "Softmax", "scores", NULL, "parts");
    add_node(&graph, "MatMul", "parts", "states", "next");
    add_value(&graph, 11, "states", NULL, STATES);
    add_value(&graph, 11, "text", "tokens", 0);
    add_value(&graph, 12, "next", "tokens", 0);
    return open_model(&graph, model);
}

/* ---- computing ---- */

static void compute(tandem_runtime *runtime, tandem_lowered *lowered)
{
    struct tandem_error error = {.text = ""};
    check_status(tandem_runtime_compute(runtime, tandem_lowered_graph(lowered), NULL, NULL, &error),
                 TANDEM_OK, NULL, &error);
}

/* What the decoder has to give for one token. */
static void attend(const float *states, const float *token, double *out)
{
    double parts[STATES], sum = 0;
    for (int s = 0; s < STATES; s++) {
        double score = 0;
        for (int i = 0; i < WIDTH; i++) {
            score += (double)token[i] * (double)states[s * WIDTH + i];
        }
        parts[s] = exp(score);
        sum += parts[s];
    }
    for (int i = 0; i < WIDTH; i++) {
        out[i] = 0;
        for (int s = 0; s < STATES; s++) {
            out[i] += parts[s] / sum * (double)states[s * WIDTH + i];
        }
    }
}

/* Decodes `tokens` tokens and compares the last one; gives the net that did it. */
static tandem_lowered *decode(tandem_runtime *runtime, tandem_onnx *decoder, const float *states,
                              float *text, int tokens)
{
    const struct tandem_onnx_dim dims[] = {{"tokens", tokens}};
    const size_t row = WIDTH * sizeof(float);
    struct tandem_net_array next;
    struct tandem_error error = {.text = ""};
    tandem_lowered *lowered = NULL;
    double want[WIDTH];
    check_status(tandem_onnx_lower(decoder, dims, 1, &lowered, &error), TANDEM_OK, NULL, &error);
    if (lowered == NULL) {
        return NULL;
    }
    check_ok(tandem_lowered_set_input(lowered, 0, states, STATES * row, NULL));
    check_ok(tandem_lowered_set_input(lowered, 1, text, (size_t)tokens * row, NULL));
    compute(runtime, lowered);
    CU_ASSERT_TRUE(tandem_lowered_output(lowered, 0, &next));
    check_string(next.name, "next");
    check_int(next.dims[0], tokens);
    attend(states, text + (tokens - 1) * WIDTH, want);
    const float *got = (const float *)next.data + (tokens - 1) * WIDTH;
    for (int i = 0; i < WIDTH; i++) {
        CU_ASSERT_DOUBLE_EQUAL((double)got[i], want[i], 1e-5);
        text[tokens * WIDTH + i] = got[i];
    }
    return lowered;
}

static void an_encoder_runs_once_and_a_decoder_for_texts_that_grow(void)
{
    static const float signal[STATES * WIDTH] = {0.5F, 1, -1, 0, 2, 1, -0.5F, 0, 1, 1, 1, 1};
    struct message bytes[2] = {{.n = 0}, {.n = 0}};
    enum { MOST = 40 };
    float text[(MOST + 4) * WIDTH] = {0.1F, -0.2F, 0.3F};
    tandem_lowered *encoder_net = NULL;
    struct tandem_net_array states = {.data = NULL};
    tandem_onnx *encoder = open_encoder(&bytes[0]);
    tandem_onnx *decoder = open_decoder(&bytes[1]);
    tandem_runtime *runtime = net_test_runtime();
    check_ok(tandem_onnx_lower(encoder, NULL, 0, &encoder_net, NULL));
    check_ok(tandem_lowered_set_input(encoder_net, 0, signal, sizeof(signal), NULL));
    compute(runtime, encoder_net);
    CU_ASSERT_TRUE_FATAL(tandem_lowered_output(encoder_net, 0, &states));
    tandem_lowered *first = decode(runtime, decoder, states.data, text, 1);
    tandem_lowered *second = decode(runtime, decoder, states.data, text, 2);
    CU_ASSERT_PTR_NOT_EQUAL(first, second);
    CU_ASSERT_PTR_EQUAL(decode(runtime, decoder, states.data, text, 1), first);
    for (int tokens = 3; tokens <= MOST; tokens++) {
        (void)decode(runtime, decoder, states.data, text, tokens);
    }
    /* small nets are all kept */
    CU_ASSERT_PTR_EQUAL(decode(runtime, decoder, states.data, text, 1), first);
    CU_ASSERT_PTR_EQUAL(decode(runtime, decoder, states.data, text, 2), second);
    tandem_runtime_close(runtime);
    tandem_onnx_close(encoder);
    tandem_onnx_close(decoder);
}

/* Rows of {n, WIDTH} where something is, in the order of places; how many depends on values. Node
 * "twice" asks again behind the first question. */
static tandem_onnx *open_chooser(struct message *model)
{
    struct message graph = {.n = 0};
    add_node(&graph, "Exp", "x", NULL, "e");
    add_node(&graph, "NonZero", "x", NULL, "places");
    add_node(&graph, "NonZero", "places", NULL, "twice");
    add_node(&graph, "Gather", "e", "twice", "rows");
    add_node(&graph, "Shape", "places", NULL, "shape");
    add_value(&graph, 11, "x", "n", 0);
    struct message names[2] = {{.n = 0}, {.n = 0}};
    add_text(&names[0], 1, "rows");
    add_text(&names[1], 1, "shape");
    add_message(&graph, 12, &names[0]);
    add_message(&graph, 12, &names[1]);
    return open_model(&graph, model);
}

/* Computes all parts; gives the last one. */
static tandem_lowered *compute_parts(tandem_runtime *runtime, tandem_onnx *model, const float *x,
                                     int64_t n, int *n_parts)
{
    struct tandem_error error = {.text = ""};
    struct tandem_net_array input = {.name = "x",
                                     .type = TANDEM_DTYPE_F32,
                                     .n_dims = 2,
                                     .dims = {n, WIDTH},
                                     .data = (void *)(uintptr_t)x,
                                     .bytes = (size_t)(n * WIDTH) * sizeof(float)};
    tandem_lowered *part = NULL;
    tandem_lowered *last = NULL;
    *n_parts = 0;
    check_status(tandem_onnx_begin(model, &input, 1, NULL, &part, &error), TANDEM_OK, NULL, &error);
    while (part != NULL) {
        compute(runtime, part);
        last = part;
        (*n_parts)++;
        check_status(tandem_onnx_next(model, &part, &error), TANDEM_OK, NULL, &error);
    }
    CU_ASSERT_PTR_NOT_NULL_FATAL(last);
    return last;
}

static void extents_that_depend_on_values_are_computed(void)
{
    enum { N = 5, TIMES = 40 };
    struct message bytes = {.n = 0};
    tandem_onnx *model = open_chooser(&bytes);
    tandem_runtime *runtime = net_test_runtime();
    tandem_lowered *part = NULL;
    struct tandem_error error = {.text = ""};
    check_status(tandem_onnx_next(model, &part, &error), TANDEM_E_STATE, "onnx_begin", &error);
    for (int time = 0; time < TIMES; time++) {
        const int64_t n = 1 + time % N;
        float x[N * WIDTH];
        int64_t places[2][N * WIDTH];
        int64_t twice[2][2 * N * WIDTH];
        int64_t n_places = 0;
        int64_t n_twice = 0;
        int n_parts = 0;
        for (int64_t i = 0; i < n * WIDTH; i++) {
            const bool is_zero = time == 3 || (time * 7 + i * i) % 3 == 0;
            x[i] = is_zero ? 0 : (float)(i - 4) / 3;
            if (x[i] != 0) {
                places[0][n_places] = i / WIDTH;
                places[1][n_places++] = i % WIDTH;
            }
        }
        for (int row = 0; row < 2; row++) {
            for (int64_t i = 0; i < n_places; i++) {
                if (places[row][i] != 0) {
                    twice[0][n_twice] = row;
                    twice[1][n_twice++] = i;
                }
            }
        }
        struct tandem_net_array rows;
        struct tandem_net_array shape;
        bool fits = true;
        for (int64_t i = 0; i < n_twice; i++) {
            fits = fits && twice[0][i] < n && twice[1][i] < n;
        }
        if (!fits) {
            continue; /* (places that x does not have) */
        }
        tandem_lowered *last = compute_parts(runtime, model, x, n, &n_parts);
        check_int(n_parts, n_places > 0 ? 3 : 2); /* (of no places none is asked for) */
        CU_ASSERT_TRUE(tandem_lowered_output(last, 0, &rows));
        CU_ASSERT_TRUE(tandem_lowered_output(last, 1, &shape));
        check_string(rows.name, "rows");
        check_int(rows.dims[1], n_twice);
        check_int(((const int64_t *)shape.data)[1], n_places);
        for (int64_t i = 0; i < 2 * n_twice * WIDTH; i++) {
            const int64_t at = twice[i / WIDTH / n_twice][i / WIDTH % n_twice];
            CU_ASSERT_DOUBLE_EQUAL(((const float *)rows.data)[i], exp(x[at * WIDTH + i % WIDTH]),
                                   1e-5);
        }
        const uint64_t serial = tandem_lowered_serial(last);
        CU_ASSERT_EQUAL(tandem_lowered_serial(compute_parts(runtime, model, x, n, &n_parts)),
                        serial); /* the same values again: nothing is made */
    }
    tandem_runtime_close(runtime);
    tandem_onnx_close(model);
}

/* x and exp(x) as a sequence, made in front of an extent that depends on values, read behind it. */
static void sequences_outlive_a_part(void)
{
    enum { N = 2 };
    static const float x[N * WIDTH] = {0, 1, -1, 0, 2, 0.5F};
    struct message graph = {.n = 0}, bytes = {.n = 0}, names[3] = {{.n = 0}, {.n = 0}, {.n = 0}};
    struct tandem_net_array rows, length, places;
    int n_parts = 0;
    add_node(&graph, "Exp", "x", NULL, "e");
    add_node(&graph, "SequenceConstruct", "x", "e", "both");
    add_node(&graph, "NonZero", "x", NULL, "places");
    add_node(&graph, "ConcatFromSequence", "both", NULL, "rows");
    add_node(&graph, "SequenceLength", "both", NULL, "length");
    add_value(&graph, 11, "x", "n", 0);
    add_text(&names[0], 1, "rows");
    add_text(&names[1], 1, "length");
    add_text(&names[2], 1, "places");
    for (int i = 0; i < 3; i++) {
        add_message(&graph, 12, &names[i]);
    }
    tandem_onnx *model = open_model(&graph, &bytes);
    tandem_runtime *runtime = net_test_runtime();
    tandem_lowered *last = compute_parts(runtime, model, x, N, &n_parts);
    check_int(n_parts, 2);
    CU_ASSERT_TRUE_FATAL(tandem_lowered_output(last, 0, &rows));
    CU_ASSERT_TRUE_FATAL(tandem_lowered_output(last, 1, &length));
    CU_ASSERT_TRUE_FATAL(tandem_lowered_output(last, 2, &places));
    check_int(rows.dims[0], 2 * N);
    check_int(((const int64_t *)length.data)[0], 2);
    check_int(places.dims[1], 4);
    for (int i = 0; i < N * WIDTH; i++) {
        CU_ASSERT_DOUBLE_EQUAL(((const float *)rows.data)[i], x[i], 0);
        CU_ASSERT_DOUBLE_EQUAL(((const float *)rows.data)[N * WIDTH + i], exp(x[i]), 1e-5);
    }
    tandem_runtime_close(runtime);
    tandem_onnx_close(model);
}

static void a_model_tells_its_inputs_and_outputs_with_their_symbols(void)
{
    struct message bytes[2] = {{.n = 0}, {.n = 0}};
    struct tandem_onnx_value value = {.name = NULL};
    tandem_onnx *encoder = open_encoder(&bytes[0]);
    tandem_onnx *decoder = open_decoder(&bytes[1]);
    check_int(tandem_onnx_input_count(encoder), 1);
    check_int(tandem_onnx_input_count(decoder), 2);
    check_int(tandem_onnx_output_count(decoder), 1);
    CU_ASSERT_TRUE_FATAL(tandem_onnx_input(decoder, 1, &value));
    check_string(value.name, "text");
    check_string(value.type_name, "float32");
    CU_ASSERT_TRUE(value.has_type && value.type == TANDEM_DTYPE_F32);
    check_int(value.n_dims, 2);
    check_string(value.dims[0].name, "tokens");
    check_int(value.dims[0].extent, -1);
    check_int(value.dims[1].extent, WIDTH);
    CU_ASSERT_TRUE(tandem_onnx_output(encoder, 0, &value));
    check_string(value.name, "states");
    CU_ASSERT_FALSE(tandem_onnx_input(decoder, 2, &value));
    CU_ASSERT_FALSE(tandem_onnx_output(decoder, -1, &value));
    tandem_onnx_close(encoder);
    tandem_onnx_close(decoder);
}

/* A list of maps, which the output states, stands as the matrix that is computed. */
static void maps_of_labels_are_stated_as_a_matrix(void)
{
    struct message graph = {.n = 0}, bytes = {.n = 0}, node = {.n = 0}, labels = {.n = 0};
    struct message map = {.n = 0}, item = {.n = 0}, list = {.n = 0}, type = {.n = 0};
    struct message output = {.n = 0};
    struct tandem_onnx_value value = {.name = NULL};
    add_text(&labels, 1, "classlabels_int64s");
    add_number(&labels, 8, 4);
    add_number(&labels, 8, 9);
    add_number(&labels, 8, 16);
    add_number(&labels, 20, 7);
    add_text(&node, 1, "x");
    add_text(&node, 2, "maps");
    add_text(&node, 4, "ZipMap");
    add_message(&node, 5, &labels);
    add_text(&node, 7, "ai.onnx.ml");
    add_message(&graph, 1, &node);
    add_value(&graph, 11, "x", "n", 0);
    add_number(&map, 1, 7);
    add_message(&item, 5, &map);
    add_message(&list, 1, &item);
    add_message(&type, 4, &list);
    add_text(&output, 1, "maps");
    add_message(&output, 2, &type);
    add_message(&graph, 12, &output);
    tandem_onnx *model = open_model(&graph, &bytes);
    CU_ASSERT_TRUE_FATAL(tandem_onnx_output(model, 0, &value));
    check_string(value.type_name, "float32");
    CU_ASSERT_TRUE(value.has_type && value.type == TANDEM_DTYPE_F32);
    check_int(value.n_dims, 2);
    check_int(value.dims[0].extent, -1);
    check_int(value.dims[1].extent, 3);
    tandem_onnx_close(model);
}

static void a_model_says_who_made_it(void)
{
    struct message graph = {.n = 0}, bytes = {.n = 0}, property = {.n = 0}, empty = {.n = 0};
    struct tandem_onnx_meta meta = {.n_properties = -1};
    const char *key = NULL, *value = NULL;
    add_node(&graph, "Relu", "x", NULL, "y");
    add_value(&graph, 11, "x", NULL, STATES);
    add_value(&graph, 12, "y", NULL, STATES);
    add_text(&graph, 2, "main");
    add_text(&graph, 10, "what it computes");
    add_text(&bytes, 2, "a test");
    add_text(&bytes, 3, "1.5");
    add_text(&bytes, 4, "org.example");
    add_number(&bytes, 5, 7);
    add_bytes(&bytes, 6, "one\0two", 7);
    add_text(&property, 1, "names");
    add_text(&property, 2, "cat, dog");
    add_message(&bytes, 14, &property);
    add_message(&bytes, 14, &empty);
    tandem_onnx *model = open_model(&graph, &bytes);
    CU_ASSERT_TRUE_FATAL(tandem_onnx_meta(model, &meta));
    check_string(meta.producer, "a test");
    check_string(meta.producer_version, "1.5");
    check_string(meta.domain, "org.example");
    check_string(meta.description, "one");
    check_string(meta.graph_name, "main");
    check_string(meta.graph_description, "what it computes");
    check_int(meta.version, 7);
    check_int(meta.n_properties, 2);
    CU_ASSERT_TRUE_FATAL(tandem_onnx_property(model, 0, &key, &value));
    check_string(key, "names");
    check_string(value, "cat, dog");
    CU_ASSERT_TRUE(tandem_onnx_property(model, 1, &key, &value));
    check_string(key, "");
    check_string(value, "");
    CU_ASSERT_FALSE(tandem_onnx_property(model, 2, &key, &value));
    CU_ASSERT_FALSE(tandem_onnx_property(model, -1, &key, &value));
    tandem_onnx_close(model);
    bytes.n = 0;
    model = open_encoder(&bytes);
    CU_ASSERT_TRUE(tandem_onnx_meta(model, &meta));
    check_string(meta.domain, "");
    check_int(meta.version, 0);
    check_int(meta.n_properties, 0);
    tandem_onnx_close(model);
}

static void what_a_model_leaves_open_must_be_said(void)
{
    static const float text[2 * WIDTH] = {1, 2, 3};
    const struct tandem_onnx_dim nameless[] = {{NULL, 2}};
    struct tandem_net_array array = {"text", TANDEM_DTYPE_F32, 2, {2, WIDTH}, NULL, sizeof(text)};
    struct tandem_onnx_options options = TANDEM_ONNX_OPTIONS_INIT;
    struct tandem_error error = {.text = ""};
    struct message bytes = {.n = 0};
    tandem_lowered *lowered = NULL;
    tandem_net *net = NULL;
    tandem_onnx *decoder = open_decoder(&bytes);
    check_status(tandem_onnx_net(decoder, NULL, &net, &error), TANDEM_E_ARGUMENT, "tokens", &error);
    check_status(tandem_onnx_lower(decoder, nameless, 1, &lowered, &error), TANDEM_E_ARGUMENT,
                 "NULL", &error);
    check_status(tandem_onnx_lower(decoder, NULL, -1, &lowered, &error), TANDEM_E_ARGUMENT,
                 "not there", &error);
    options.arrays = &array;
    options.n_arrays = 1;
    check_status(tandem_onnx_net(decoder, &options, &net, &error), TANDEM_E_SHAPE,
                 "has 0 bytes, expected 24", &error);
    array.data = (void *)(uintptr_t)text;
    check_status(tandem_onnx_net(decoder, &options, &net, &error), TANDEM_OK, NULL, &error);
    tandem_onnx_close(decoder);
    check_status(tandem_net_lower(net, NULL, &lowered, &error), TANDEM_OK, NULL, &error);
    CU_ASSERT_TRUE(tandem_lowered_output(lowered, 0, &array));
    check_int(array.dims[0], 2);
    tandem_lowered_free(lowered);
    tandem_net_free(net);
    check_status(tandem_onnx_open("/nowhere/model.onnx", &decoder, &error), TANDEM_E_FILE,
                 "/nowhere", &error);
}

static CU_TestInfo tests[] = {
    {"an encoder runs once and a decoder for texts that grow",
     an_encoder_runs_once_and_a_decoder_for_texts_that_grow},
    {"extents that depend on values are computed", extents_that_depend_on_values_are_computed},
    {"sequences outlive a part", sequences_outlive_a_part},
    {"a model tells its inputs and outputs with their symbols",
     a_model_tells_its_inputs_and_outputs_with_their_symbols},
    {"maps of labels are stated as a matrix", maps_of_labels_are_stated_as_a_matrix},
    {"a model says who made it", a_model_says_who_made_it},
    {"what a model leaves open must be said", what_a_model_leaves_open_must_be_said},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_net_onnx[] = {
    {"ONNX models by the public interface", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
