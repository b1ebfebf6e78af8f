/* SPDX-License-Identifier: MIT
 * Models of one node from text, and what they must give. */
#include "tests/suite_formats_onnx_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ATTRIBUTES 16
#define MAX_LIST       16

/* ---- text ---- */

static enum tandem_dtype type_of(const char *text, size_t n)
{
    for (int i = 0; i < TND_N_DTYPES; i++) {
        const char *name = tandem_dtype_name((enum tandem_dtype)i);
        if (strlen(name) == n && strncmp(name, text, n) == 0) {
            return (enum tandem_dtype)i;
        }
    }
    CU_FAIL_FATAL("no such type");
    return TANDEM_DTYPE_F32;
}

static void put(struct tnd_array *array, int64_t i, const char *text, char **end)
{
    char *to = (char *)array->data + (size_t)i * tandem_dtype_bytes(array->type);
    union tnd_values lanes;
    switch (tnd_dtype_kind(array->type)) {
    case TND_KIND_FLOAT:
        lanes.f64[0] = strtod(text, end);
        tnd_values_store(array->type, TND_LANE_F64, &lanes, 1, to);
        break;
    case TND_KIND_UNSIGNED:
        lanes.u64[0] = strtoull(text, end, 10);
        tnd_values_store(array->type, TND_LANE_U64, &lanes, 1, to);
        break;
    default:
        lanes.i64[0] = strtoll(text, end, 10);
        tnd_values_store(array->type, TND_LANE_I64, &lanes, 1, to);
        break;
    }
}

struct tnd_array *onnx_case_array(const char *text)
{
    const char *at = strchr(text, '[');
    struct tnd_dims shape = {.n = 0};
    const enum tandem_dtype type = type_of(text, (size_t)(at - text));
    char *end = (char *)at + 1;
    while (*end != ']') {
        shape.dims[shape.n++] = strtoll(end, &end, 10);
        end += *end == ',';
    }
    struct tnd_array *array = tnd_array_new(type, &shape);
    end++;
    for (int64_t i = 0; i < array->n; i++) {
        put(array, i, end, &end);
    }
    CU_ASSERT_EQUAL(*end, '\0');
    return array;
}

void check_onnx_array(const struct tnd_array *got, const char *want_text, const char *what)
{
    struct tnd_array *want = onnx_case_array(want_text);
    const bool is_half = tandem_dtype_bytes(want->type) == 2;
    const bool is_float = tnd_dtype_kind(want->type) == TND_KIND_FLOAT;
    bool is_same = got->type == want->type && tnd_dims_is_equal(&got->shape, &want->shape);
    for (int64_t i = 0; is_same && i < want->n; i++) {
        const double x = tnd_array_number(got, i);
        const double y = tnd_array_number(want, i);
        const double most = is_float ? (is_half ? 1e-2 : 1e-5) * fabs(y) + 1e-6 : 0.0;
        is_same = x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= most;
        if (!is_same) {
            (void)printf("\n%s: value %lld is %.9g, expected %.9g\n", what, (long long)i, x, y);
        }
    }
    if (got->type != want->type || !tnd_dims_is_equal(&got->shape, &want->shape)) {
        char text[160];
        (void)printf("\n%s: %s of %s, expected %s\n", what, tandem_dtype_name(got->type),
                     tnd_dims_text(&got->shape, text), want_text);
    }
    CU_ASSERT_TRUE(is_same);
    tnd_array_free(want);
}

/* ---- attributes ---- */

/* Room for what attributes of a node point to. */
struct room {
    char names[MAX_ATTRIBUTES][32];
    char words[MAX_ATTRIBUTES][32];
    int64_t ints[MAX_ATTRIBUTES][MAX_LIST];
    float floats[MAX_ATTRIBUTES][MAX_LIST];
    struct tnd_onnx_string strings[MAX_ATTRIBUTES][MAX_LIST];
    char text[1000];
    struct tnd_onnx_tensor tensors[MAX_ATTRIBUTES];
    struct tnd_array *arrays[MAX_ATTRIBUTES]; /* of the tensors */
    struct tnd_onnx_attribute list[MAX_ATTRIBUTES];
    int n;
};

static char *read_list(struct room *room, struct tnd_onnx_attribute *to, char *at)
{
    const bool is_float = strcspn(at, ".") < strcspn(at, "]");
    at++;
    while (*at != ']') {
        room->floats[room->n][to->n] = strtof(at, NULL);
        room->ints[room->n][to->n] = (int64_t)strtod(at, &at);
        to->n++;
        at += *at == ',';
    }
    to->type = is_float ? TND_ONNX_ATTRIBUTE_F32S : TND_ONNX_ATTRIBUTE_I64S;
    to->ints = room->ints[room->n];
    to->floats = room->floats[room->n];
    return at + 1;
}

static char *read_words(struct room *room, struct tnd_onnx_attribute *to, char *at)
{
    for (at++; *at != ']'; at += *at == ',') {
        const size_t n = strcspn(at + 1, "'");
        room->strings[room->n][to->n++] = (struct tnd_onnx_string){(uint8_t *)at + 1, n};
        at += n + 2;
    }
    to->type = TND_ONNX_ATTRIBUTE_STRINGS;
    to->strings = room->strings[room->n];
    return at + 1;
}

static enum tnd_onnx_type onnx_type(enum tandem_dtype type)
{
    for (int i = 1; i <= TND_ONNX_LAST_TYPE; i++) {
        enum tandem_dtype found;
        if (tnd_onnx_dtype((enum tnd_onnx_type)i, &found) && found == type) {
            return (enum tnd_onnx_type)i;
        }
    }
    return TND_ONNX_UNDEFINED;
}

static char *read_tensor(struct room *room, struct tnd_onnx_attribute *to, char *at)
{
    char *end = strchr(at, '}');
    *end = '\0';
    struct tnd_array *array = onnx_case_array(at + 1);
    struct tnd_onnx_tensor *tensor = &room->tensors[room->n];
    *tensor = (struct tnd_onnx_tensor){.name = "",
                                       .type = onnx_type(array->type),
                                       .n_dims = array->shape.n,
                                       .dims = array->shape.dims,
                                       .n_values = array->n,
                                       .data = array->data,
                                       .bytes = (size_t)array->n * tandem_dtype_bytes(array->type)};
    room->arrays[room->n] = array;
    to->type = TND_ONNX_ATTRIBUTE_TENSOR;
    to->tensor = tensor;
    return end + 1;
}

static char *read_value(struct room *room, struct tnd_onnx_attribute *to, char *at)
{
    if (*at == '{') {
        return read_tensor(room, to, at);
    }
    if (*at == '[') {
        return at[1] == '\'' ? read_words(room, to, at) : read_list(room, to, at);
    }
    if (*at == '\'') {
        const size_t n = strcspn(at + 1, "'");
        memcpy(room->words[room->n], at + 1, n);
        to->type = TND_ONNX_ATTRIBUTE_STRING;
        to->s = (struct tnd_onnx_string){(const uint8_t *)room->words[room->n], n};
        return at + n + 2;
    }
    to->type =
        strcspn(at, ".") < strcspn(at, " ") ? TND_ONNX_ATTRIBUTE_F32 : TND_ONNX_ATTRIBUTE_I64;
    to->f = strtof(at, NULL);
    to->i = strtoll(at, NULL, 10);
    return at + strcspn(at, " ");
}

static void read_attributes(struct room *room, const char *text)
{
    char *at = room->text;
    (void)snprintf(room->text, sizeof(room->text), "%s", text);
    while (*at != '\0') {
        struct tnd_onnx_attribute *to = &room->list[room->n];
        const size_t n = strcspn(at, "=");
        memcpy(room->names[room->n], at, n);
        *to = (struct tnd_onnx_attribute){.name = room->names[room->n], .reference = ""};
        at = read_value(room, to, at + n + 1);
        at += strspn(at, " ");
        room->n++;
    }
}

/* ---- models ---- */

static const char *const in_names[ONNX_CASE_MAX] = {"i0", "i1", "i2", "i3", "i4",  "i5",
                                                    "i6", "i7", "i8", "i9", "i10", "i11"};
static const char *const out_names[ONNX_CASE_MAX] = {"o0", "o1", "o2", "o3", "o4",  "o5",
                                                     "o6", "o7", "o8", "o9", "o10", "o11"};

/* What a case is made of. */
struct made {
    struct room room;
    char domain[32];
    const char *in[ONNX_CASE_MAX];
    const char *out[ONNX_CASE_MAX];
    struct tnd_onnx_value inputs[ONNX_CASE_MAX];
    struct tnd_onnx_value outputs[ONNX_CASE_MAX];
    struct tnd_onnx_node node;
    struct tnd_onnx_graph graph;
    struct tnd_array *arrays[ONNX_CASE_MAX];
    const char *names[ONNX_CASE_MAX];
};

static void make_node(const struct onnx_case *it, struct made *made)
{
    int n_in = 0;
    int n_out = 0;
    for (; n_in < ONNX_CASE_MAX && it->in[n_in] != NULL; n_in++) {
        const bool is_there = it->in[n_in][0] != '\0';
        made->in[n_in] = is_there ? in_names[n_in] : "";
        if (is_there) {
            const int at = made->graph.n_inputs++;
            made->arrays[at] = onnx_case_array(it->in[n_in]);
            made->names[at] = in_names[n_in];
            made->inputs[at] = (struct tnd_onnx_value){.name = in_names[n_in],
                                                       .kind = TND_ONNX_TENSOR,
                                                       .type = onnx_type(made->arrays[at]->type),
                                                       .n_dims = -1};
        }
    }
    for (; n_out < ONNX_CASE_MAX && it->want[n_out] != NULL; n_out++) {
        const bool is_there = it->want[n_out][0] != '\0';
        made->out[n_out] = is_there ? out_names[n_out] : "";
        if (is_there) {
            made->outputs[made->graph.n_outputs++].name = out_names[n_out];
        }
    }
    read_attributes(&made->room, it->attributes);
    const char *dot = strrchr(it->op, '.'); /* behind a domain */
    if (dot != NULL) {
        memcpy(made->domain, it->op, (size_t)(dot - it->op));
    }
    made->node = (struct tnd_onnx_node){.name = "it",
                                        .op = dot != NULL ? dot + 1 : it->op,
                                        .domain = made->domain,
                                        .n_inputs = n_in,
                                        .n_outputs = n_out,
                                        .n_attributes = made->room.n,
                                        .inputs = made->in,
                                        .outputs = made->out,
                                        .attributes = made->room.list};
}

static void run_case(const struct onnx_case *it, struct made *made, struct tnd_net *net)
{
    struct tnd_array *out[ONNX_CASE_MAX] = {NULL};
    struct tandem_error error = {0};
    check_status(tnd_net_run(net, made->arrays, out, &error), TANDEM_OK, NULL, &error);
    for (int i = 0, at = 0; i < ONNX_CASE_MAX && it->want[i] != NULL; i++) {
        if (it->want[i][0] != '\0' && out[at] != NULL) {
            check_onnx_array(out[at++], it->want[i], it->op);
        }
    }
    for (int i = 0; i < ONNX_CASE_MAX; i++) {
        tnd_array_free(out[i]);
    }
}

void check_onnx_case(const struct onnx_case *it)
{
    struct made *made = calloc(1, sizeof(*made));
    make_node(it, made);
    made->graph.name = "case";
    made->graph.n_nodes = 1;
    made->graph.nodes = &made->node;
    made->graph.inputs = made->inputs;
    made->graph.outputs = made->outputs;
    const struct tnd_onnx_model model = {.opset = it->opset, .graph = &made->graph};
    const struct tnd_onnx_build_options options = {
        .n_arrays = made->graph.n_inputs,
        .array_names = made->names,
        .arrays = (const struct tnd_array *const *)made->arrays};
    struct tnd_net *net = NULL;
    struct tandem_error error = {0};
    const enum tandem_status status = tnd_onnx_build(&model, &options, &net, &error);
    if (it->want[0][0] == '!') {
        CU_ASSERT_NOT_EQUAL(status, TANDEM_OK);
        check_contains(error.text, it->want[0] + 1);
    } else if (tnd_check_status(status, TANDEM_OK, NULL, &error, it->op, __FILE__, __LINE__)) {
        run_case(it, made, net);
    }
    tnd_net_free(net);
    for (int i = 0; i < ONNX_CASE_MAX; i++) {
        tnd_array_free(made->arrays[i]);
    }
    for (int i = 0; i < made->room.n; i++) {
        tnd_array_free(made->room.arrays[i]);
    }
    free(made);
}
