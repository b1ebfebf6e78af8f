/* SPDX-License-Identifier: MIT
 * Arrays in .npy files: what NumPy writes is read, what it cannot have written is refused. */
#include <string.h>

#include "formats/npy.h"
#include "tests/support.h"
#include "tests/support_blob.h"

/* A file of a version with this dictionary and these values. */
static struct tnd_blob make(int version, const char *dictionary, const void *values, size_t bytes)
{
    struct tnd_blob blob = {NULL, 0};
    const size_t n = strlen(dictionary);
    const char lead[] = {(char)version,   0, (char)(n & 255), (char)(n >> 8 & 255),
                         (char)(n >> 16), 0};
    tnd_blob_add(&blob, "\x93NUMPY", 6);
    tnd_blob_add(&blob, lead, version == 1 ? 4 : 6);
    tnd_blob_add(&blob, dictionary, n);
    tnd_blob_add(&blob, values, bytes);
    return blob;
}

static enum tandem_status read_as(int version, const char *dictionary, const void *values,
                                  size_t bytes, struct tnd_array **out, struct tandem_error *error)
{
    struct tnd_blob blob = make(version, dictionary, values, bytes);
    *out = NULL;
    const enum tandem_status status = tnd_npy_read(blob.bytes, blob.n, "x.npy", out, error);
    tnd_blob_free(&blob);
    return status;
}

static void all_versions_and_both_orders_are_read(void)
{
    const float values[] = {1, 2, 3, 4, 5, 6};
    struct tandem_error error = {.text = ""};
    for (int version = 1; version <= 3; version++) {
        struct tnd_array *c, *f;
        check_ok(read_as(version, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n",
                         values, sizeof(values), &c, &error));
        check_ok(read_as(version, "{\"shape\":(2,3),\"fortran_order\":True,\"descr\":\"<f4\"}",
                         values, sizeof(values), &f, &error));
        check_int(c->n, 6);
        check_int(tnd_array_integer(c, 1), 2);
        check_int(tnd_array_integer(f, 1), 3);
        check_int(tnd_array_integer(f, 3), 2);
        check_int(tnd_array_integer(f, 5), 6);
        tnd_array_free(c);
        tnd_array_free(f);
    }
}

static void scalars_and_empty_arrays_are_read(void)
{
    const int64_t one = 42;
    struct tandem_error error = {.text = ""};
    struct tnd_array *array;
    check_ok(read_as(1, "{'descr': '<i8', 'fortran_order': False, 'shape': ()}", &one, 8, &array,
                     &error));
    check_int(array->shape.n, 0);
    check_int(tnd_array_integer(array, 0), 42);
    tnd_array_free(array);
    check_ok(read_as(1, "{'descr': '|u1', 'fortran_order': True, 'shape': (0, 7)}", "", 0, &array,
                     &error));
    check_int(array->n, 0);
    tnd_array_free(array);
    check_ok(read_as(1, "{'descr': '|b1', 'fortran_order': False, 'shape': (2,)}", "\0\7", 2,
                     &array, &error));
    check_int(((uint8_t *)array->data)[1], 1);
    tnd_array_free(array);
}

static void headers_that_numpy_does_not_write_are_refused(void)
{
    static const struct {
        int version;
        const char *dictionary;
        enum tandem_status status;
    } rows[] = {
        {4, "{'descr': '<f4', 'fortran_order': False, 'shape': ()}", TANDEM_E_FORMAT},
        {1, "", TANDEM_E_FORMAT},
        {1, "{", TANDEM_E_FORMAT},
        {1, "{'", TANDEM_E_FORMAT},
        {1, "{'descr'", TANDEM_E_FORMAT},
        {1, "{'descr': '<f4', 'shape': ()}", TANDEM_E_FORMAT},
        {1, "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': ()}",
         TANDEM_E_FORMAT},
        {1, "{'descr': '<f4', 'fortran_order': None, 'shape': ()}", TANDEM_E_FORMAT},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1}", TANDEM_E_FORMAT},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", TANDEM_E_FORMAT},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': ()} x", TANDEM_E_FORMAT},
        {1, "{'descr': '<f4', 'fortran_order': False, 'what': ()}", TANDEM_E_FORMAT},
        {1, "{'descr': '>f4', 'fortran_order': False, 'shape': ()}", TANDEM_E_UNSUPPORTED_BUILD},
        {1, "{'descr': '|O', 'fortran_order': False, 'shape': ()}", TANDEM_E_UNSUPPORTED_BUILD},
        {1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}",
         TANDEM_E_UNSUPPORTED_BUILD},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}",
         TANDEM_E_LIMIT},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
         TANDEM_E_OVERFLOW},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
         TANDEM_E_OVERFLOW},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,)}",
         TANDEM_E_TRUNCATED},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", TANDEM_E_TRUNCATED},
        {1, "{'descr': '|i1', 'fortran_order': False, 'shape': (1,)}", TANDEM_E_FORMAT},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct tandem_error error = {.text = ""};
        struct tnd_array *array;
        check_int(read_as(rows[i].version, rows[i].dictionary, "\0\0\0\0", 4, &array, &error),
                  rows[i].status);
        CU_ASSERT_TRUE(array == NULL && error.text[0] != '\0');
    }
}

static void a_file_cut_anywhere_is_refused(void)
{
    struct tnd_blob blob =
        make(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", "\0\0\0\0", 4);
    for (size_t n = 0; n < blob.n; n++) {
        struct tandem_error error = {.text = ""};
        struct tnd_array *array = NULL;
        check_int(tnd_npy_read(blob.bytes, n, "x.npy", &array, &error), TANDEM_E_TRUNCATED);
    }
    tnd_blob_free(&blob);
}

static void what_is_written_reads_back_the_same(void)
{
    struct tandem_error error = {.text = ""};
    const char *path = tnd_test_temp("written.npy");
    for (int type = 0; type < TND_N_DTYPES; type++) {
        const struct tnd_dims shape = {.n = type % 4, .dims = {2, 3, 1}};
        struct tnd_array *array = tnd_array_new((enum tandem_dtype)type, &shape);
        struct tnd_array *back = NULL;
        memset(array->data, 1, (size_t)array->n * tandem_dtype_bytes(array->type));
        if (type == TANDEM_DTYPE_BF16 || type > TANDEM_DTYPE_BOOL) { /* (NumPy has none) */
            check_int(tnd_npy_save(path, array, &error), TANDEM_E_UNSUPPORTED_BUILD);
            tnd_array_free(array);
            continue;
        }
        check_ok(tnd_npy_save(path, array, &error));
        check_ok(tnd_npy_open(path, &back, &error));
        check_int(back->type, array->type);
        CU_ASSERT_TRUE(tnd_dims_is_equal(&back->shape, &array->shape));
        CU_ASSERT_TRUE(memcmp(back->data, array->data,
                              (size_t)array->n * tandem_dtype_bytes(array->type)) == 0);
        tnd_array_free(array);
        tnd_array_free(back);
    }
}

static CU_TestInfo tests_npy[] = {
    {"all versions and both orders are read", all_versions_and_both_orders_are_read},
    {"scalars and empty arrays are read", scalars_and_empty_arrays_are_read},
    {"headers that NumPy does not write are refused",
     headers_that_numpy_does_not_write_are_refused},
    {"a file cut anywhere is refused", a_file_cut_anywhere_is_refused},
    {"what is written reads back the same", what_is_written_reads_back_the_same},
    CU_TEST_INFO_NULL,
};

/* clang-format off */
CU_SuiteInfo suites_formats_npy[] = {
    {.pName = "npy", .pTests = tests_npy},
    CU_SUITE_INFO_NULL,
};
/* clang-format on */
