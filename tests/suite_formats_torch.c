/* SPDX-License-Identifier: MIT
 * PyTorch checkpoints: all of the field's test files against values that Python's own pickle gave,
 * archives and pickles made here, and hostile ones. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "formats/torch_pickle.h"
#include "tests/support.h"
#include "tests/support_blob.h"
#include "tests/support_models.h"
#include "tests/torch-expect-list.h"
#include "tests/torch-stand-ins-list.h"

/* ---- files of the field ---- */

struct expectation {
    const char *file; /* NULL behind the last one */
    const char *tensor;
    const char *shape;
    enum tandem_type type;
    double sum, first, last;
};
#define EXPECTATION(file, tensor, shape, type, sum, first, last)                                   \
    {file, tensor, shape, TANDEM_TYPE_##type, sum, first, last},
static const struct expectation of_the_field[] = {TORCH_EXPECT_LIST(EXPECTATION){.file = NULL}};
static const struct expectation of_stand_ins[] = {TORCH_STAND_INS_LIST(EXPECTATION){.file = NULL}};
#undef EXPECTATION

static double value_at(const struct tandem_source_tensor *t, int64_t i)
{
    float value = 0.0f;
    if (t->type == TANDEM_TYPE_I32) {
        return ((const int32_t *)t->data)[i];
    }
    check_ok(tandem_dequantize(
        t->type, (const char *)t->data + (size_t)i * tandem_type_block_bytes(t->type), &value, 1));
    return (double)value;
}

static bool same(double a, double b)
{
    return (isnan(a) && isnan(b)) || a == b || fabs(a - b) <= 1e-12 * fabs(b);
}

static void shape_text(const struct tandem_source_tensor *t, char out[128])
{
    snprintf(out, 128, "1 value");
    for (int i = t->n_dims - 1, at = 0; i >= 0; i--) {
        at += snprintf(out + at, 128 - (size_t)at, "%s%lld", i < t->n_dims - 1 ? "x" : "",
                       (long long)t->ne[i]);
    }
}

static void check_expectation(const tandem_source *source, const struct expectation *e)
{
    struct tandem_source_tensor t = {.name = NULL};
    char shape[128];
    double sum = 0.0;
    if (!tandem_source_find(source, e->tensor, &t)) {
        printf("%s lacks %s\n", e->file, e->tensor);
        CU_FAIL("a tensor is missing");
        return;
    }
    const int64_t n = t.ne[0] * t.ne[1] * t.ne[2] * t.ne[3];
    shape_text(&t, shape);
    check_string(shape, e->shape);
    check_int(t.type, e->type);
    check_int(t.bytes, (size_t)n * tandem_type_block_bytes(t.type));
    for (int64_t i = 0; i < n; i++) {
        sum += value_at(&t, i);
    }
    if (!same(sum, e->sum) ||
        (n > 0 && (!same(value_at(&t, 0), e->first) || !same(value_at(&t, n - 1), e->last)))) {
        printf("%s: %s: sum %.17g, expected %.17g\n", e->file, e->tensor, sum, e->sum);
        CU_FAIL("values differ");
    }
}

static void every_checkpoint_of_the_field_has_its_tensors(void)
{
    const struct expectation *e = tnd_test_stands_in("torch") ? of_stand_ins : of_the_field;
    while (e->file != NULL) {
        char name[256];
        const char *file = e->file;
        snprintf(name, sizeof(name), "torch/burn/%s", file);
        const char *path = tnd_test_data(name);
        tandem_source *source = NULL;
        struct tandem_error error = {.text = ""};
        if (path == NULL) {
            return;
        }
        if (!check_status(tandem_source_open(path, &source, &error), TANDEM_OK, NULL, &error)) {
            printf("%s\n", error.text);
        }
        int n = 0;
        for (; e->file != NULL && strcmp(e->file, file) == 0; e++, n++) {
            check_expectation(source, e);
        }
        check_int(tandem_source_tensor_count(source), n);
        tandem_source_close(source);
    }
}

static void a_broken_checkpoint_is_refused_with_a_reason(void)
{
    const char *path = tnd_test_data("torch/burn/src/pytorch/tests/reader/test_data/broken.pt");
    tandem_source *source = NULL;
    struct tandem_error error = {.text = ""};
    if (path != NULL) {
        check_status(tandem_source_open(path, &source, &error), TANDEM_E_TRUNCATED, "3 bytes",
                     &error);
    }
}

/* The two files are of two trainings (3752 and 7504 batches), so their values differ. */
static void the_trained_mnist_has_the_tensors_of_its_safetensors_sibling(void)
{
    const char *folder = "torch/burn/examples/import-model-weights/weights/";
    char name[128];
    tandem_source *torch = NULL;
    tandem_source *sibling = NULL;
    snprintf(name, sizeof(name), "%smnist.pt", folder);
    const char *path = tnd_test_data(name);
    snprintf(name, sizeof(name), "%smnist.safetensors", folder);
    const char *sibling_path = tnd_test_data(name);
    if (path == NULL || sibling_path == NULL) {
        return;
    }
    check_ok(tandem_source_open(path, &torch, NULL));
    check_ok(tandem_source_open(sibling_path, &sibling, NULL));
    check_int(tandem_source_tensor_count(torch), tandem_source_tensor_count(sibling));
    for (int i = 0; i < tandem_source_tensor_count(sibling); i++) {
        struct tandem_source_tensor a = {.name = ""};
        struct tandem_source_tensor b = {.name = ""};
        char shape_a[128];
        char shape_b[128];
        CU_ASSERT_TRUE(tandem_source_tensor_at(sibling, i, &a));
        CU_ASSERT_TRUE(tandem_source_find(torch, a.name, &b));
        shape_text(&a, shape_a);
        shape_text(&b, shape_b);
        check_string(shape_b, shape_a);
        check_int(b.type, a.type);
        check_int(b.bytes, a.bytes);
    }
    tandem_source_close(torch);
    tandem_source_close(sibling);
}

/* ---- making files ---- */

static void put_unicode(struct tnd_blob *blob, const char *text)
{
    tnd_blob_string(blob, "X");
    tnd_blob_number(blob, strlen(text), 4);
    tnd_blob_string(blob, text);
}

static void put_global(struct tnd_blob *blob, const char *module, const char *name)
{
    tnd_blob_string(blob, "c");
    tnd_blob_string(blob, module);
    tnd_blob_string(blob, "\n");
    tnd_blob_string(blob, name);
    tnd_blob_string(blob, "\n");
}

static void put_integer(struct tnd_blob *blob, int64_t value)
{
    tnd_blob_string(blob, "\x8a\x08");
    tnd_blob_number(blob, (uint64_t)value, 8);
}

struct view {
    const char *storage; /* class */
    const char *key;
    int64_t offset;
    int n_dims;
    int64_t shape[5];
    int64_t strides[5];
};

static void put_tensor(struct tnd_blob *blob, const struct view *view)
{
    put_global(blob, "torch._utils", "_rebuild_tensor_v2");
    tnd_blob_string(blob, "((");
    put_unicode(blob, "storage");
    put_global(blob, "torch", view->storage);
    put_unicode(blob, view->key);
    put_unicode(blob, "cpu");
    put_integer(blob, 6);
    tnd_blob_string(blob, "tQ");
    put_integer(blob, view->offset);
    for (int which = 0; which < 2; which++) {
        tnd_blob_string(blob, "(");
        for (int i = 0; i < view->n_dims; i++) {
            put_integer(blob, which == 0 ? view->shape[i] : view->strides[i]);
        }
        tnd_blob_string(blob, "t");
    }
    tnd_blob_string(blob, "\x89");
    put_global(blob, "collections", "OrderedDict");
    tnd_blob_string(blob, ")RtR");
}

/* {"a": view, "n": {"b": view 2, "lr": 0.5}} */
static struct tnd_blob make_pickle(const struct view *a, const struct view *b)
{
    struct tnd_blob blob = {NULL, 0};
    tnd_blob_string(&blob, "\x80\x02}q");
    tnd_blob_number(&blob, 0, 1);
    tnd_blob_string(&blob, "(");
    put_unicode(&blob, "a");
    put_tensor(&blob, a);
    put_unicode(&blob, "n");
    tnd_blob_string(&blob, "}(");
    put_unicode(&blob, "b");
    put_tensor(&blob, b);
    put_unicode(&blob, "lr");
    tnd_blob_string(&blob, "G\x3f\xe0");
    tnd_blob_number(&blob, 0, 6);
    tnd_blob_string(&blob, "uu.");
    return blob;
}

struct file_row {
    const char *name;
    const void *bytes;
    size_t n;
    unsigned method;
    size_t unpacked;
};

static void put_header(struct tnd_blob *blob, const struct file_row *row, bool is_central,
                       bool is_64)
{
    tnd_blob_string(blob, is_central ? "PK\x01\x02" : "PK\x03\x04");
    tnd_blob_number(blob, 45, is_central ? 4 : 2);
    tnd_blob_number(blob, 0, 2);
    tnd_blob_number(blob, row->method, 2);
    tnd_blob_number(blob, 0, 8); /* time, checksum */
    tnd_blob_number(blob, is_64 && is_central ? UINT32_MAX : row->n, 4);
    tnd_blob_number(blob, is_64 && is_central ? UINT32_MAX : row->unpacked, 4);
    tnd_blob_number(blob, strlen(row->name), 2);
    tnd_blob_number(blob, is_64 && is_central ? 28 : 0, 2);
}

static struct tnd_blob make_zip(const struct file_row *rows, int n, bool is_64)
{
    struct tnd_blob blob = {NULL, 0};
    size_t places[8];
    for (int i = 0; i < n; i++) {
        places[i] = blob.n;
        put_header(&blob, &rows[i], false, is_64);
        tnd_blob_string(&blob, rows[i].name);
        tnd_blob_add(&blob, rows[i].bytes, rows[i].n);
    }
    const size_t directory = blob.n;
    for (int i = 0; i < n; i++) {
        put_header(&blob, &rows[i], true, is_64);
        tnd_blob_number(&blob, 0, 10); /* no comment; attributes */
        tnd_blob_number(&blob, is_64 ? UINT32_MAX : places[i], 4);
        tnd_blob_string(&blob, rows[i].name);
        if (is_64) {
            tnd_blob_number(&blob, 1, 2);
            tnd_blob_number(&blob, 24, 2);
            tnd_blob_number(&blob, rows[i].unpacked, 8);
            tnd_blob_number(&blob, rows[i].n, 8);
            tnd_blob_number(&blob, places[i], 8);
        }
    }
    const size_t end = blob.n;
    if (is_64) {
        tnd_blob_string(&blob, "PK\x06\x06");
        tnd_blob_number(&blob, 44, 8);
        tnd_blob_number(&blob, 45, 4);
        tnd_blob_number(&blob, 0, 8);
        tnd_blob_number(&blob, 0, 8);
        blob.n -= 8; /* version twice, disks: 12 bytes before the counts */
        tnd_blob_number(&blob, (uint64_t)n, 8);
        tnd_blob_number(&blob, (uint64_t)n, 8);
        tnd_blob_number(&blob, end - directory, 8);
        tnd_blob_number(&blob, directory, 8);
        tnd_blob_string(&blob, "PK\x06\x07");
        tnd_blob_number(&blob, 0, 4);
        tnd_blob_number(&blob, end, 8);
        tnd_blob_number(&blob, 1, 4);
    }
    tnd_blob_string(&blob, "PK\x05\x06");
    tnd_blob_number(&blob, 0, 4);
    tnd_blob_number(&blob, (uint64_t)n, 2);
    tnd_blob_number(&blob, (uint64_t)n, 2);
    tnd_blob_number(&blob, end - directory, 4);
    tnd_blob_number(&blob, directory, 4);
    tnd_blob_number(&blob, 0, 2);
    return blob;
}

static const struct view plain = {"FloatStorage", "0", 0, 2, {2, 3}, {3, 1}};
static const struct view turned = {"FloatStorage", "0", 1, 2, {2, 2}, {1, 2}};

static struct tnd_blob make_checkpoint(struct tnd_blob pickle, bool is_64, bool is_big)
{
    unsigned char values[24];
    for (int i = 0; i < 6; i++) {
        const float value = (float)i;
        uint32_t bits;
        memcpy(&bits, &value, 4);
        bits = is_big ? __builtin_bswap32(bits) : bits;
        memcpy(values + 4 * i, &bits, 4);
    }
    const struct file_row rows[] = {
        {"m/data.pkl", pickle.bytes, pickle.n, 0, pickle.n},
        {"m/byteorder", is_big ? "big" : "little", is_big ? 3 : 6, 0, is_big ? 3 : 6},
        {"m/data/0", values, 24, 0, 24}};
    struct tnd_blob blob = make_zip(rows, 3, is_64);
    tnd_blob_free(&pickle);
    return blob;
}

static void check_made(const struct tnd_blob *blob)
{
    tandem_source *source = NULL;
    struct tandem_error error = {.text = ""};
    struct tandem_source_tensor t = {.name = NULL};
    double number = 0.0;
    check_status(tnd_torch_zip_read(blob->bytes, blob->n, "made", &source, &error), TANDEM_OK, NULL,
                 &error);
    check_int(tandem_source_tensor_count(source), 2);
    if (tandem_source_find(source, "a", &t)) {
        const float wanted[] = {0, 1, 2, 3, 4, 5};
        check_bits(t.data, wanted, sizeof(wanted), "a");
    }
    if (tandem_source_find(source, "n.b", &t)) {
        const float wanted[] = {1, 3, 2, 4};
        check_int(t.ne[0], 2);
        check_bits(t.data, wanted, sizeof(wanted), "n.b");
    }
    CU_ASSERT_TRUE(tandem_source_number(source, "n.lr", &number) && number == 0.5);
    tandem_source_close(source);
}

static void views_byte_orders_and_zip64_are_read(void)
{
    for (int i = 0; i < 4; i++) {
        struct tnd_blob blob =
            make_checkpoint(make_pickle(&plain, &turned), (i & 1) != 0, (i & 2) != 0);
        check_made(&blob);
        tnd_blob_free(&blob);
    }
}

/* A deflated block of stored bytes: 1, length, its complement, the bytes (RFC 1951, 3.2.4). */
static void deflated_entries_are_read_or_refused_by_method(void)
{
    struct tnd_blob pickle = make_pickle(&plain, &turned);
    struct tnd_blob packed = {NULL, 0};
    float values[6] = {0, 1, 2, 3, 4, 5};
    tnd_blob_number(&packed, 1, 1);
    tnd_blob_number(&packed, pickle.n, 2);
    tnd_blob_number(&packed, ~pickle.n, 2);
    tnd_blob_add(&packed, pickle.bytes, pickle.n);
    struct file_row rows[] = {{"data.pkl", packed.bytes, packed.n, 8, pickle.n},
                              {"data/0", values, 24, 0, 24}};
    tandem_source *source = NULL;
    struct tandem_error error = {.text = ""};
    struct tnd_blob blob = make_zip(rows, 2, false);
#ifdef TND_HAVE_ZLIB
    check_made(&blob);
    tnd_blob_free(&blob);
    rows[0].unpacked++; /* less comes out than the directory says */
    blob = make_zip(rows, 2, false);
    check_status(tnd_torch_zip_read(blob.bytes, blob.n, "made", &source, &error), TANDEM_E_FORMAT,
                 "damaged", &error);
    rows[0].unpacked = (size_t)1 << 31; /* a bomb */
    tnd_blob_free(&blob);
    blob = make_zip(rows, 2, false);
    check_status(tnd_torch_zip_read(blob.bytes, blob.n, "made", &source, &error), TANDEM_E_LIMIT,
                 "needs 2147483648 bytes", &error);
#else
    check_status(tnd_torch_zip_read(blob.bytes, blob.n, "made", &source, &error),
                 TANDEM_E_UNSUPPORTED_BUILD, "method 8", &error);
#endif
    tnd_blob_free(&blob);
    tnd_blob_free(&packed);
    tnd_blob_free(&pickle);
}

/* Tied weights share bytes; forty tensors over one storage ask for a converted file of forty times
 * the size. */
static void tensors_that_share_one_storage_are_bounded(void)
{
    enum { SIDE = 512 };
    const struct view view = {"FloatStorage", "0", 0, 2, {SIDE, SIDE}, {SIDE, 1}};
    float *values = calloc(SIDE * SIDE, sizeof(float));
    for (int n = 2; n <= 40; n += 38) {
        struct tnd_blob pickle = {NULL, 0};
        struct tandem_error error = {.text = ""};
        tandem_source *source = NULL;
        tnd_blob_string(&pickle, "\x80\x02}(");
        for (int i = 0; i < n; i++) {
            char name[8];
            snprintf(name, sizeof(name), "t%d", i);
            put_unicode(&pickle, name);
            put_tensor(&pickle, &view);
        }
        tnd_blob_string(&pickle, "u.");
        tnd_blob_pad(&pickle, 4);
        tnd_blob_number(&pickle, 0, 2); /* the heads have 74 bytes: the values are borrowed */
        const struct file_row rows[] = {{"data.pkl", pickle.bytes, pickle.n, 0, pickle.n},
                                        {"data/0", values, SIDE * SIDE * 4, 0, SIDE * SIDE * 4}};
        struct tnd_blob blob = make_zip(rows, 2, false);
        CU_ASSERT_TRUE(tnd_test_write_file(tnd_test_temp("shared.pt"), blob.bytes, blob.n));
        const enum tandem_status status =
            tandem_source_open(tnd_test_temp("shared.pt"), &source, &error);
        if (n == 2) {
            check_status(status, TANDEM_OK, NULL, &error);
        } else {
            check_status(status, TANDEM_E_LIMIT, "its tensors have 41943040 bytes altogether",
                         &error);
        }
        tandem_source_close(source);
        tnd_blob_free(&blob);
        tnd_blob_free(&pickle);
    }
    free(values);
}

/* The file of the fuzz corpus: two views of one storage, and 64-bit integers. */
static void older_pickles_are_read(void)
{
    tandem_source *source = NULL;
    struct tandem_source_tensor t = {.name = NULL};
    const float b[] = {1, 3, 2, 4};
    const int32_t c[] = {5, -6};
    check_ok(tandem_source_open("tests/fuzz/corpus/torch/legacy.pt", &source, NULL));
    check_string(tandem_source_format(source), "PyTorch, pickles");
    check_int(tandem_source_tensor_count(source), 3);
    if (tandem_source_find(source, "b", &t)) {
        check_bits(t.data, b, sizeof(b), "b");
    }
    if (tandem_source_find(source, "c", &t)) {
        check_bits(t.data, c, sizeof(c), "c");
    }
    tandem_source_close(source);
}

/* ---- hostile files ---- */

static void try_read(const void *bytes, size_t n)
{
    tandem_source *source = NULL;
    struct tandem_error error = {.text = ""};
    const long live = tnd_alloc_live();
    const bool is_zip = tnd_torch_zip_is(bytes, n);
    const enum tandem_status status =
        is_zip ? tnd_torch_zip_read(bytes, n, "damaged", &source, &error)
               : tnd_torch_legacy_read(bytes, n, "damaged", &source, &error);
    if (status == TANDEM_OK) {
        tandem_source_close(source);
    } else if (source != NULL || error.text[0] == '\0') {
        CU_FAIL("an error without a message");
    }
    if (tnd_alloc_live() != live) {
        CU_FAIL("memory was not given back");
    }
}

/* {"model": {"tok_embeddings.weight": view, ...}, "model_args": {"n_heads": 2, ...}} */
static struct tnd_blob make_llama(void)
{
    struct tnd_blob blob = {NULL, 0};
    tnd_blob_string(&blob, "\x80\x02}(");
    put_unicode(&blob, "model");
    tnd_blob_string(&blob, "}(");
    put_unicode(&blob, "tok_embeddings.weight");
    put_tensor(&blob, &plain);
    put_unicode(&blob, "_orig_mod.layers.0.feed_forward.w1.weight");
    put_tensor(&blob, &turned);
    put_unicode(&blob, "freqs_cos");
    put_tensor(&blob, &plain);
    tnd_blob_string(&blob, "u");
    put_unicode(&blob, "model_args");
    tnd_blob_string(&blob, "}(");
    put_unicode(&blob, "n_heads");
    put_integer(&blob, 1);
    put_unicode(&blob, "use_scaled_rope");
    put_integer(&blob, 1);
    put_unicode(&blob, "dim");
    put_integer(&blob, 3);
    put_unicode(&blob, "head_dim"); /* rope turns pairs: 3 would not do */
    put_integer(&blob, 2);
    tnd_blob_string(&blob, "uu.");
    return blob;
}

static void models_of_llamas_authors_get_the_names_of_the_convention(void)
{
    struct tnd_blob blob = make_checkpoint(make_llama(), false, false);
    tandem_source *source = NULL;
    struct tandem_source_tensor t;
    int64_t value = 0;
    check_ok(tnd_torch_zip_read(blob.bytes, blob.n, "made", &source, NULL));
    check_int(tandem_source_tensor_count(source), 3);
    CU_ASSERT_TRUE(tandem_source_find(source, "rope_freqs.weight", &t));
    CU_ASSERT_TRUE(tandem_source_find(source, "token_embd.weight", &t));
    CU_ASSERT_TRUE(tandem_source_find(source, "blk.0.ffn_gate.weight", &t));
    CU_ASSERT_TRUE(tandem_source_integer(source, "llama.attention.head_count_kv", &value));
    check_int(value, 1);
    CU_ASSERT_TRUE(tandem_source_integer(source, "llama.feed_forward_length", &value));
    check_int(value, 2);
    tandem_source_close(source);
    tnd_blob_damage(blob.bytes, blob.n, try_read);
    tnd_blob_free(&blob);
}

static void every_damage_gives_an_error_or_a_source(void)
{
    for (int is_64 = 0; is_64 < 2; is_64++) {
        struct tnd_blob blob = make_checkpoint(make_pickle(&plain, &turned), is_64 != 0, false);
        tnd_blob_damage(blob.bytes, blob.n, try_read);
        tnd_blob_free(&blob);
    }
    size_t n = 0;
    void *legacy = tnd_test_read_file("tests/fuzz/corpus/torch/legacy.pt", &n);
    CU_ASSERT_PTR_NOT_NULL(legacy);
    tnd_blob_damage(legacy, n, try_read);
    free(legacy);
}

/* Reads a checkpoint with this pickle, which must be refused. */
static void check_pickle(struct tnd_blob pickle, enum tandem_status wanted, const char *part)
{
    struct tnd_blob blob = make_checkpoint(pickle, false, false);
    tandem_source *source = NULL;
    struct tandem_error error = {.text = ""};
    check_status(tnd_torch_zip_read(blob.bytes, blob.n, "bad", &source, &error), wanted, part,
                 &error);
    tnd_blob_free(&blob);
}

static struct tnd_blob pickle_of(const char *text)
{
    struct tnd_blob blob = {NULL, 0};
    tnd_blob_string(&blob, text);
    return blob;
}

static void every_foreign_global_is_refused_by_name(void)
{
    struct tnd_blob blob = pickle_of("\x80\x02");
    put_global(&blob, "os", "system");
    put_unicode(&blob, "true");
    tnd_blob_string(&blob, "\x85R.");
    check_pickle(blob, TANDEM_E_UNSUPPORTED_BUILD, "refuses os.system");
    blob = pickle_of("\x80\x04\x8c\x05posix\x8c\x06system\x93.");
    check_pickle(blob, TANDEM_E_UNSUPPORTED_BUILD, "refuses posix.system");
    blob = pickle_of("\x80\x02");
    put_global(&blob, "torch", "ComplexFloatStorage");
    check_pickle(blob, TANDEM_E_UNSUPPORTED_BUILD, "refuses torch.ComplexFloatStorage");
    blob = pickle_of("\x80\x02ios\nsystem\n.");
    check_pickle(blob, TANDEM_E_FORMAT, "opcode 0x69 is none that tensors need");
    blob = pickle_of("\x80\x02)\x81.");
    check_pickle(blob, TANDEM_E_FORMAT, "opcode 0x81");
}

static void impossible_pickles_are_refused(void)
{
    static const struct {
        const char *pickle;
        const char *part;
    } rows[] = {{"\x80\x02.", "an empty stack"},
                {"\x80\x02R.", "an empty stack"},
                {"\x80\x02(.", "a mark for a value"},
                {"\x80\x02K\x01.", "neither tensor nor container"},
                {"\x80\x02}K\x01u.", "the stack has none"},
                {"\x80\x02}(K\x01u.", "a key without value"},
                {"\x80\x02](K\x01K\x02u.", "no container of them"},
                {"\x80\x02h\x07.", "never written"},
                {"\x80\x02]r\xff\xff\xff\xff.", "above the size of the file"},
                {"\x80\x02K\x01K\x02R.", "no function"},
                {"\x80\x02]Q.", "no storage"},
                {"\x80\x02\x86.", "a tuple of an empty stack"},
                {"\x80\x09.", "a protocol above 5"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_pickle(pickle_of(rows[i].pickle), TANDEM_E_FORMAT, rows[i].part);
    }
    check_pickle(pickle_of("\x80\x02X\xff\xff\xff\x7f."), TANDEM_E_TRUNCATED, "2147483647 bytes");
    check_pickle(pickle_of("\x80\x02]"), TANDEM_E_TRUNCATED, "an opcode");
}

static void impossible_tensors_are_refused(void)
{
    static const struct {
        struct view view;
        enum tandem_status status;
        const char *part;
    } rows[] = {
        {{"FloatStorage", "0", 0, 1, {7}, {1}}, TANDEM_E_TRUNCATED, "to 6 of its storage"},
        {{"FloatStorage", "0", 6, 1, {1}, {1}}, TANDEM_E_TRUNCATED, "which has 6"},
        {{"FloatStorage", "0", INT64_MAX, 1, {2}, {1}}, TANDEM_E_FORMAT, "the product"},
        {{"FloatStorage", "0", -1, 1, {1}, {1}}, TANDEM_E_FORMAT, "an offset is -1"},
        {{"FloatStorage", "0", 0, 1, {-1}, {1}}, TANDEM_E_FORMAT, "an extent or stride is -1"},
        {{"FloatStorage", "0", 5, 1, {2}, {-1}}, TANDEM_E_FORMAT, "an extent or stride is -1"},
        {{"FloatStorage", "0", 0, 2, {INT64_MAX, 2}, {0, 0}}, TANDEM_E_FORMAT, "the product"},
        {{"FloatStorage", "0", 0, 1, {(int64_t)1 << 40}, {0}}, TANDEM_E_LIMIT, "its file allows"},
        {{"FloatStorage", "0", 0, 5, {1, 1, 1, 1, 1}, {1, 1, 1, 1, 1}},
         TANDEM_E_FORMAT,
         "number of dimensions is 5"},
        {{"FloatStorage", "9", 0, 1, {1}, {1}}, TANDEM_E_TRUNCATED, "storage '9'"},
        {{"LongStorage", "0", 0, 1, {3}, {1}}, TANDEM_E_LIMIT, "does not fit into 32 bits"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_pickle(make_pickle(&plain, &rows[i].view), rows[i].status, rows[i].part);
    }
}

static void bombs_end_early(void)
{
    struct tnd_blob deep = pickle_of("\x80\x02");
    for (int i = 0; i < 50000; i++) {
        tnd_blob_string(&deep, "]");
    }
    for (int i = 0; i < 49999; i++) {
        tnd_blob_string(&deep, "a");
    }
    tnd_blob_string(&deep, ".");
    check_pickle(deep, TANDEM_E_FORMAT, "the depth of containers in one another");
    struct tnd_blob laughs = pickle_of("\x80\x02]"); /* lists of twice the list before */
    for (int i = 0; i < 30; i++) {
        tnd_blob_string(&laughs, "22\x87");
    }
    tnd_blob_string(&laughs, ".");
    check_pickle(laughs, TANDEM_E_FORMAT, "the number of values");
    struct tnd_blob itself = pickle_of("\x80\x02]2a.");
    check_pickle(itself, TANDEM_E_FORMAT, "the depth of containers in one another");
    struct tnd_blob many = pickle_of("\x80\x02");
    for (int i = 0; i < 1000000; i++) {
        tnd_blob_string(&many, "]");
    }
    check_pickle(many, TANDEM_E_LIMIT, "need more memory than its size allows");
}

static void names_that_meet_are_refused(void)
{
    struct tnd_blob blob = pickle_of("\x80\x02}(");
    put_unicode(&blob, "a.b");
    put_tensor(&blob, &plain);
    put_unicode(&blob, "a");
    tnd_blob_string(&blob, "}");
    put_unicode(&blob, "b");
    put_tensor(&blob, &plain);
    tnd_blob_string(&blob, "su.");
    check_pickle(blob, TANDEM_E_FORMAT, "'a.b' stands in it twice");
}

typedef enum tandem_status (*read_fn)(const void *bytes, size_t n, const char *name,
                                      tandem_source **out_source, struct tandem_error *error);

static void fail_each_allocation(read_fn read, const void *bytes, size_t n_bytes)
{
    bool failed = true;
    for (long n = 1; failed && n < 1000; n++) {
        tandem_source *source = NULL;
        const long live = tnd_alloc_live();
        tnd_alloc_fail_after(n);
        const enum tandem_status status = read(bytes, n_bytes, "made", &source, NULL);
        tnd_alloc_fail_after(-1);
        failed = status == TANDEM_E_MEMORY;
        CU_ASSERT_TRUE(failed || status == TANDEM_OK);
        tandem_source_close(source);
        check_int(tnd_alloc_live(), live);
    }
    CU_ASSERT_FALSE(failed);
}

static void every_failing_allocation_gives_memory_errors_and_no_leak(void)
{
    struct tnd_blob blob = make_checkpoint(make_pickle(&plain, &turned), false, false);
    size_t n = 0;
    void *legacy = tnd_test_read_file("tests/fuzz/corpus/torch/legacy.pt", &n);
    CU_ASSERT_PTR_NOT_NULL_FATAL(legacy);
    fail_each_allocation(tnd_torch_zip_read, blob.bytes, blob.n);
    fail_each_allocation(tnd_torch_legacy_read, legacy, n);
    tnd_blob_free(&blob);
    free(legacy);
}

/* ---- models in parts and in dicts ---- */

/* The file has the tensors of the model, by name, extents and bytes. */
static void check_same_model(const char *file, const char *whole)
{
    struct tandem_error error = {0};
    tandem_source *a = NULL;
    tandem_source *b = NULL;
    check_status(tandem_source_open(tnd_test_temp(file), &a, &error), TANDEM_OK, NULL, &error);
    check_status(tandem_source_open(tnd_test_temp(whole), &b, &error), TANDEM_OK, NULL, &error);
    check_int(tandem_source_tensor_count(a), tandem_source_tensor_count(b));
    struct tandem_source_tensor wanted;
    for (int i = 0; tandem_source_tensor_at(b, i, &wanted); i++) {
        struct tandem_source_tensor t = {.name = ""};
        CU_ASSERT_TRUE(tandem_source_find(a, wanted.name, &t));
        if (t.bytes == wanted.bytes) {
            check_bits(t.data, wanted.data, wanted.bytes, wanted.name);
        } else {
            check_int((int64_t)t.bytes, (int64_t)wanted.bytes);
        }
    }
    tandem_source_close(a);
    tandem_source_close(b);
}

static void models_in_parts_and_in_a_state_dict_are_the_same_model(void)
{
    const struct tandem_llama_shape shape = {.size = sizeof(shape),
                                             .dim = 32,
                                             .hidden = 64,
                                             .layers = 2,
                                             .heads = 4,
                                             .kv_heads = 2,
                                             .vocabulary = 40,
                                             .context = 16};
    tandem_source *model = NULL;
    check_ok(tandem_source_synthesize(&shape, TANDEM_TYPE_F32, 3, &model, NULL));
    CU_ASSERT_TRUE(tnd_model_write_config(model, tnd_test_temp("config.json"), ""));
    CU_ASSERT_TRUE(tnd_model_write_torch_hf(model, tnd_test_temp("whole.bin")));
    CU_ASSERT_TRUE(tnd_model_write_torch_part(model, tnd_test_temp("part-1.bin"), 0, 2, false));
    CU_ASSERT_TRUE(tnd_model_write_torch_part(model, tnd_test_temp("part-2.bin"), 1, 2, false));
    CU_ASSERT_TRUE(tnd_model_write_index(model, tnd_test_temp("pytorch_model.bin.index.json"),
                                         "part-%d.bin", 2));
    CU_ASSERT_TRUE(tnd_model_write_torch_part(model, tnd_test_temp("bare.bin"), 0, 1, true));
    check_same_model("pytorch_model.bin.index.json", "whole.bin");
    check_same_model("bare.bin", "whole.bin");
    /* A tensor in another file than the index says is refused. */
    struct tandem_error error = {0};
    tandem_source *source = NULL;
    CU_ASSERT_TRUE(tnd_model_write_torch_part(model, tnd_test_temp("part-1.bin"), 1, 2, false));
    CU_ASSERT_TRUE(tnd_model_write_torch_part(model, tnd_test_temp("part-2.bin"), 0, 2, false));
    check_status(tandem_source_open(tnd_test_temp("pytorch_model.bin.index.json"), &source, &error),
                 TANDEM_E_FORMAT, "where it should be", &error);
    tandem_source_close(model);
    remove(tnd_test_temp("config.json")); /* other tests write checkpoints here */
}

/* clang-format off */
static CU_TestInfo tests_torch[] = {
    {"models in parts and in a state dict are the same model",
     models_in_parts_and_in_a_state_dict_are_the_same_model},
    {"tensors that share one storage are bounded", tensors_that_share_one_storage_are_bounded},
    {"every checkpoint of the field has its tensors",
     every_checkpoint_of_the_field_has_its_tensors},
    {"a broken checkpoint is refused with a reason",
     a_broken_checkpoint_is_refused_with_a_reason},
    {"the trained mnist has the tensors of its safetensors sibling",
     the_trained_mnist_has_the_tensors_of_its_safetensors_sibling},
    {"views, byte orders and ZIP64 are read", views_byte_orders_and_zip64_are_read},
    {"deflated entries are read or refused by method",
     deflated_entries_are_read_or_refused_by_method},
    {"older pickles are read", older_pickles_are_read},
    {"every damage gives an error or a source", every_damage_gives_an_error_or_a_source},
    {"models of llama's authors get the names of the convention",
     models_of_llamas_authors_get_the_names_of_the_convention},
    {"every foreign global is refused by name", every_foreign_global_is_refused_by_name},
    {"impossible pickles are refused", impossible_pickles_are_refused},
    {"impossible tensors are refused", impossible_tensors_are_refused},
    {"bombs end early", bombs_end_early},
    {"names that meet are refused", names_that_meet_are_refused},
    {"every failing allocation gives memory errors and no leak",
     every_failing_allocation_gives_memory_errors_and_no_leak},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_formats_torch[] = {
    {"torch", NULL, NULL, NULL, NULL, tests_torch},
    CU_SUITE_INFO_NULL,
};
/* clang-format on */
