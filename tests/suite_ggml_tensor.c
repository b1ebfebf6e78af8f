/* SPDX-License-Identifier: MIT
 * Contexts, tensors and views: sizes, strides, sticky errors, hostile extents. */
#include <string.h>

#include "ggml-like/tnd_tensor.h"
#include "tests/suite_ggml.h"

static void contexts_begin_empty_and_forget_everything_on_reset(void)
{
    tandem_context *context = ggml_context();
    const int64_t bad = -1;
    check_context(context, TANDEM_OK, NULL);
    CU_ASSERT_PTR_NULL(tandem_tensor_new(context, TANDEM_TYPE_F32, 1, &bad));
    check_context(context, TANDEM_E_SHAPE, "ne[0] is -1");
    const int64_t good = 3;
    CU_ASSERT_PTR_NULL(tandem_tensor_new(context, TANDEM_TYPE_F32, 1, &good));
    const size_t bytes = tandem_context_bytes(context);
    tandem_context_reset(context);
    check_context(context, TANDEM_OK, NULL);
    CU_ASSERT_PTR_NOT_NULL(tandem_tensor_new(context, TANDEM_TYPE_F32, 1, &good));
    CU_ASSERT(tandem_context_bytes(context) >= bytes);
    tandem_context_free(context);
    tandem_context_free(NULL);
    tandem_context_reset(NULL);
}

static void reset_contexts_do_not_grow(void)
{
    tandem_context *context = ggml_context();
    size_t bytes = 0;
    for (int round = 0; round < 100; round++) {
        tandem_context_reset(context);
        for (int i = 0; i < 20; i++) {
            (void)ggml_ramp(context, 1.0f, 30000, 0, 0, 0);
        }
        if (round == 0) {
            bytes = tandem_context_bytes(context);
        }
    }
    check_int(tandem_context_bytes(context), bytes);
    tandem_context_free(context);
}

static void context_options_are_checked_by_size(void)
{
    struct tandem_error error = {0};
    tandem_context *context = NULL;
    struct tandem_context_options options = TANDEM_CONTEXT_OPTIONS_INIT;
    options.size = 0;
    CU_ASSERT_NOT_EQUAL(tandem_context_new(&options, &context, &error), TANDEM_OK);
    CU_ASSERT_PTR_NULL(context);
    struct {
        struct tandem_context_options known;
        uint64_t later;
    } longer = {TANDEM_CONTEXT_OPTIONS_INIT, 1};
    longer.known.size = sizeof(longer);
    check_status(tandem_context_new(&longer.known, &context, &error), TANDEM_E_ABI, "context",
                 &error);
    longer.later = 0;
    check_ok(tandem_context_new(&longer.known, &context, &error));
    tandem_context_free(context);
    check_status(tandem_context_new(NULL, NULL, &error), TANDEM_E_ARGUMENT, "NULL", &error);
}

static void context_limit_ends_in_a_memory_error(void)
{
    struct tandem_context_options options = TANDEM_CONTEXT_OPTIONS_INIT;
    options.chunk_bytes = 4096;
    options.limit_bytes = 64 * 1024;
    tandem_context *context = NULL;
    CU_ASSERT_EQUAL_FATAL(tandem_context_new(&options, &context, NULL), TANDEM_OK);
    const int64_t ne = 1000;
    int n = 0;
    while (tandem_tensor_new(context, TANDEM_TYPE_F32, 1, &ne) != NULL) {
        n++;
    }
    CU_ASSERT(n > 5 && n < 17);
    check_context(context, TANDEM_E_MEMORY, "no memory");
    CU_ASSERT(tandem_context_bytes(context) <= options.limit_bytes);
    tandem_context_free(context);
}

static void new_tensors_are_zeroed_aligned_and_dense(void)
{
    tandem_context *context = ggml_context();
    const int64_t ne[4] = {64, 3, 2, 5};
    tandem_tensor *t = tandem_tensor_new(context, TANDEM_TYPE_Q4_0, 4, ne);
    CU_ASSERT_PTR_NOT_NULL_FATAL(t);
    CU_ASSERT_EQUAL(tandem_tensor_type(t), TANDEM_TYPE_Q4_0);
    check_int(tandem_tensor_nb(t)[0], 18);
    check_int(tandem_tensor_nb(t)[1], 36);
    check_int(tandem_tensor_nb(t)[2], 108);
    check_int(tandem_tensor_nb(t)[3], 216);
    check_int(tandem_tensor_bytes(t), 1080);
    check_int(tandem_tensor_elements(t), 1920);
    check_int(tnd_tensor_rows(t), 30);
    CU_ASSERT(tandem_tensor_is_contiguous(t));
    check_int((uintptr_t)tandem_tensor_data(t) % TND_ALIGNMENT, 0);
    const unsigned char *bytes = tandem_tensor_data(t);
    int sum = 0;
    for (size_t i = 0; i < tandem_tensor_bytes(t); i++) {
        sum += bytes[i];
    }
    check_int(sum, 0);
    check_string(tandem_tensor_op_name(t), "none");
    CU_ASSERT_PTR_NULL(tandem_tensor_src(t, 0));
    tandem_context_free(context);
}

static void tensors_of_one_and_two_dimensions_need_no_array(void)
{
    tandem_context *context = ggml_context();
    const int64_t *ne = tandem_tensor_ne(tandem_tensor_new_1d(context, TANDEM_TYPE_F16, 5));
    check_int(ne[0], 5);
    check_int(ne[1], 1);
    ne = tandem_tensor_ne(tandem_tensor_new_2d(context, TANDEM_TYPE_F32, 3, 7));
    check_int(ne[0], 3);
    check_int(ne[1], 7);
    check_int(ne[2], 1);
    CU_ASSERT_PTR_NULL(tandem_tensor_new_2d(context, TANDEM_TYPE_Q4_0, 33, 1));
    check_context(context, TANDEM_E_SHAPE, "block of 32");
    tandem_context_free(context);
}

static void values_are_copied_in_the_order_of_the_extents_whatever_the_strides(void)
{
    tandem_context *context = ggml_context();
    float values[12];
    tandem_tensor *t = ggml_ramp(context, 1.0f, 4, 3, 0, 0);
    tandem_tensor *transposed = tandem_transpose(context, t); /* {3, 4} */
    check_ok(tandem_tensor_get(transposed, 0, TANDEM_ALL, values, NULL));
    for (int i = 0; i < 12; i++) {
        CU_ASSERT_EQUAL(values[i], (float)(i / 3 + 4 * (i % 3)));
    }
    /* the middle two columns, as a view with gaps between its rows */
    tandem_tensor *middle =
        tandem_view(context, t, 2, (int64_t[]){2, 3}, &tandem_tensor_nb(t)[1], sizeof(float));
    check_ok(tandem_tensor_set(middle, 1, 4, (float[]){-1, -2, -3, -4}, NULL));
    check_ok(tandem_tensor_get(t, 0, 12, values, NULL));
    static const float wanted[12] = {0, 1, -1, 3, 4, -2, -3, 7, 8, -4, 10, 11};
    CU_ASSERT_EQUAL(memcmp(values, wanted, sizeof(wanted)), 0);
    tandem_context_free(context);
}

static void blocks_are_copied_whole_and_ranges_are_checked(void)
{
    struct tandem_error error;
    unsigned char blocks[4 * 18];
    unsigned char back[2 * 18];
    tandem_context *context = ggml_context();
    tandem_tensor *t = tandem_tensor_new_2d(context, TANDEM_TYPE_Q4_0, 64, 2);
    for (size_t i = 0; i < sizeof(blocks); i++) {
        blocks[i] = (unsigned char)(3 * i);
    }
    check_ok(tandem_tensor_set(t, 0, TANDEM_ALL, blocks, NULL));
    check_ok(
        tandem_tensor_get(t, 32, 64, back, NULL)); /* the end of a row, the begin of the next */
    CU_ASSERT_EQUAL(memcmp(back, blocks + 18, sizeof(back)), 0);
    check_status(tandem_tensor_get(t, 16, 32, back, &error), TANDEM_E_ARGUMENT, "blocks of 32",
                 &error);
    check_status(tandem_tensor_get(t, 96, 64, back, &error), TANDEM_E_ARGUMENT, "it has 128",
                 &error);
    check_status(tandem_tensor_get(t, -32, TANDEM_ALL, back, &error), TANDEM_E_ARGUMENT, "from -32",
                 &error);
    check_status(tandem_tensor_set(t, INT64_MAX - 31, 64, back, &error), TANDEM_E_ARGUMENT,
                 "it has 128", &error);
    check_status(tandem_tensor_set(t, 0, -2, back, &error), TANDEM_E_ARGUMENT, "-2 values", &error);
    check_status(tandem_tensor_set(t, 0, 32, NULL, &error), TANDEM_E_ARGUMENT, "memory is NULL",
                 &error);
    check_status(tandem_tensor_get(NULL, 0, 1, back, &error), TANDEM_E_ARGUMENT, "tensor is NULL",
                 &error);
    check_ok(tandem_tensor_set(t, 128, TANDEM_ALL, back, &error));
    check_ok(tandem_tensor_set(t, 128, 0, NULL, &error));
    tandem_context_free(context);
}

static void an_intermediate_result_has_no_values_to_copy(void)
{
    struct tandem_error error;
    float values[4];
    tandem_context *context = ggml_context();
    tandem_tensor *x = ggml_ramp(context, 1.0f, 4, 0, 0, 0);
    tandem_tensor *inner = tandem_sqr(context, x);
    tandem_tensor *y = tandem_scale(context, inner, 2.0f);
    check_status(tandem_tensor_get(y, 0, 4, values, &error), TANDEM_E_STATE, "output", &error);
    CU_ASSERT_TRUE(ggml_compute_one(context, y));
    check_status(tandem_tensor_get(inner, 0, 4, values, &error), TANDEM_E_STATE, "output", &error);
    check_ok(tandem_tensor_get(y, 3, 1, values, NULL));
    CU_ASSERT_EQUAL(values[0], 18.0f);
    tandem_context_free(context);
}

static void const_memory_is_borrowed_as_a_constant_that_nothing_writes(void)
{
    static const float weights[6] = {1, 2, 3, 4, 5, 6};
    struct tandem_error error;
    float value = 0;
    tandem_context *context = ggml_context();
    tandem_tensor *w = tandem_tensor_borrow_const(context, TANDEM_TYPE_F32, 2, (int64_t[]){3, 2},
                                                  weights, sizeof(weights));
    CU_ASSERT_PTR_EQUAL(tandem_tensor_data(w), weights);
    CU_ASSERT_TRUE((w->flags & TND_TENSOR_CONSTANT) != 0);
    check_ok(tandem_tensor_get(w, 4, 1, &value, NULL));
    CU_ASSERT_EQUAL(value, 5.0f);
    tandem_tensor *view = tandem_view(context, w, 1, (int64_t[]){2}, NULL, 4);
    check_status(tandem_tensor_set(view, 0, 1, &value, &error), TANDEM_E_STATE, "as const", &error);
    tandem_tensor_set_role(w, TANDEM_ROLE_INPUT); /* it stays const */
    CU_ASSERT_PTR_NULL(tandem_cpy(context, ggml_ramp(context, 1.0f, 2, 0, 0, 0), view));
    check_context(context, TANDEM_E_ARGUMENT, "borrowed as const");
    CU_ASSERT_PTR_NULL(tandem_tensor_borrow_const(context, TANDEM_TYPE_F32, 2, (int64_t[]){3, 2},
                                                  weights, sizeof(weights)));
    tandem_context_free(context);
}

static void names_are_kept_and_long_ones_cut(void)
{
    tandem_context *context = ggml_context();
    tandem_tensor *t = ggml_ramp(context, 1.0f, 1, 0, 0, 0);
    check_string(tandem_tensor_name(t), "");
    CU_ASSERT_PTR_EQUAL(tandem_tensor_set_name(t, "blk.0.wq"), t);
    check_string(tandem_tensor_name(t), "blk.0.wq");
    char longer[200];
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    check_int(strlen(tandem_tensor_name(tandem_tensor_set_name(t, longer))), TANDEM_MAX_NAME - 1);
    check_string(tandem_tensor_name(tandem_tensor_set_name(t, NULL)), "");
    CU_ASSERT_PTR_NULL(tandem_tensor_set_name(NULL, "x"));
    tandem_context_free(context);
}

static void hostile_extents_never_overflow(void)
{
    static const int64_t extents[] = {
        INT64_MIN, -1, 0, 1, 2, 256, INT32_MAX, INT64_MAX / 4, INT64_MAX / 2, INT64_MAX};
    const int n = (int)(sizeof(extents) / sizeof(extents[0]));
    tandem_context *context = ggml_context();
    char byte = 0;
    for (int i = 0; i < n * n * n * n; i++) {
        const int64_t ne[4] = {extents[i % n], extents[i / n % n], extents[i / n / n % n],
                               extents[i / n / n / n]};
        tandem_tensor *t = tandem_tensor_borrow(context, TANDEM_TYPE_Q2_K, 4, ne, &byte, SIZE_MAX);
        if (t != NULL) {
            CU_ASSERT(tandem_tensor_elements(t) >= 0 && tandem_tensor_bytes(t) <= PTRDIFF_MAX / 4);
        } else {
            CU_ASSERT_NOT_EQUAL(tandem_context_status(context, NULL), TANDEM_OK);
        }
        tandem_context_reset(context);
    }
    tandem_context_free(context);
}

static void wrong_tensors_are_refused_with_a_reason(void)
{
    tandem_context *context = ggml_context();
    const int64_t ne[2] = {33, 2};
    float memory[66];
    CU_ASSERT_PTR_NULL(tandem_tensor_new(context, TANDEM_TYPE_Q8_0, 2, ne));
    check_context(context, TANDEM_E_SHAPE, "ne[0] is 33, not a multiple of q8_0's block of 32");
    tandem_context_reset(context);
    CU_ASSERT_PTR_NULL(tandem_tensor_new(context, (enum tandem_type)5, 2, ne));
    check_context(context, TANDEM_E_ARGUMENT, "5 is no tensor type");
    tandem_context_reset(context);
    CU_ASSERT_PTR_NULL(tandem_tensor_new(context, TANDEM_TYPE_F32, 5, ne));
    check_context(context, TANDEM_E_ARGUMENT, "n_dims is 5");
    tandem_context_reset(context);
    CU_ASSERT_PTR_NULL(tandem_tensor_new(context, TANDEM_TYPE_F32, 1, NULL));
    check_context(context, TANDEM_E_ARGUMENT, "ne is NULL");
    tandem_context_reset(context);
    CU_ASSERT_PTR_NULL(
        tandem_tensor_borrow(context, TANDEM_TYPE_F32, 2, ne, memory, sizeof(memory) - 1));
    check_context(context, TANDEM_E_TRUNCATED, "f32 {33, 2} needs 264 bytes");
    tandem_context_reset(context);
    CU_ASSERT_PTR_NULL(tandem_tensor_borrow(context, TANDEM_TYPE_F32, 2, ne, NULL, 1000));
    check_context(context, TANDEM_E_ARGUMENT, "NULL");
    tandem_context_reset(context);
    tandem_tensor *t =
        tandem_tensor_borrow(context, TANDEM_TYPE_F32, 2, ne, memory, sizeof(memory));
    CU_ASSERT_PTR_EQUAL(tandem_tensor_data(t), memory);
    CU_ASSERT_PTR_NULL(tandem_tensor_new(NULL, TANDEM_TYPE_F32, 2, ne));
    tandem_context_free(context);
}

static void views_have_the_strides_and_addresses_asked_for(void)
{
    tandem_context *context = ggml_context();
    tandem_tensor *a = ggml_ramp(context, 1.0f, 6, 5, 4, 0); /* {6, 5, 4} */
    const char *base = tandem_tensor_data(a);

    tandem_tensor *view = tandem_view(context, a, 2, (int64_t[]){3, 4}, (size_t[]){24}, 8);
    CU_ASSERT_PTR_NOT_NULL_FATAL(view);
    CU_ASSERT_PTR_EQUAL(tandem_tensor_data(view), base + 8);
    check_int(tandem_tensor_bytes(view), 3 * 24 + 12);
    CU_ASSERT_FALSE(tandem_tensor_is_contiguous(view));
    CU_ASSERT_PTR_EQUAL(tandem_tensor_src(view, 0), a);

    tandem_tensor *inner = tandem_view(context, view, 1, (int64_t[]){2}, NULL, 24 + 4);
    CU_ASSERT_PTR_NOT_NULL_FATAL(inner);
    CU_ASSERT_PTR_EQUAL(inner->root, a);
    check_int(inner->root_offset, 36);
    CU_ASSERT_EQUAL(*(float *)tandem_tensor_data(inner), 9.0f);

    tandem_tensor *shaped = tandem_reshape(context, a, 2, (int64_t[]){30, 4});
    CU_ASSERT_PTR_NOT_NULL_FATAL(shaped);
    check_int(tandem_tensor_nb(shaped)[1], 120);

    tandem_tensor *turned = tandem_permute(context, a, 2, 0, 1, 3); /* {5, 4, 6} */
    CU_ASSERT_PTR_NOT_NULL_FATAL(turned);
    check_int(tandem_tensor_ne(turned)[0], 5);
    check_int(tandem_tensor_ne(turned)[1], 4);
    check_int(tandem_tensor_ne(turned)[2], 6);
    check_int(tandem_tensor_nb(turned)[0], 24);
    check_int(tandem_tensor_nb(turned)[1], 120);
    check_int(tandem_tensor_nb(turned)[2], 4);
    CU_ASSERT_FALSE(tandem_tensor_is_contiguous(turned));

    tandem_tensor *row =
        tandem_transpose(context, ggml_ramp(context, 1.0f, 7, 0, 0, 0)); /* {1, 7} */
    CU_ASSERT_PTR_NOT_NULL_FATAL(row);
    check_int(tandem_tensor_nb(row)[0], 4);
    CU_ASSERT(tandem_tensor_is_contiguous(row));
    check_context(context, TANDEM_OK, NULL);
    tandem_context_free(context);
}

static void wrong_views_are_refused_with_a_reason(void)
{
    tandem_context *context = ggml_context();
    tandem_tensor *a = NULL;
#define REFUSED(expression, status, part)                                                          \
    tandem_context_reset(context);                                                                 \
    a = ggml_ramp(context, 1.0f, 8, 4, 0, 0);                                                      \
    CU_ASSERT_PTR_NULL(expression);                                                                \
    check_context(context, status, part)

    REFUSED(tandem_view(context, a, 2, (int64_t[]){8, 5}, NULL, 0), TANDEM_E_SHAPE,
            "view: {8, 5} at byte 0 does not lie inside a {8, 4} of 128 bytes");
    REFUSED(tandem_view(context, a, 1, (int64_t[]){8}, NULL, 100), TANDEM_E_SHAPE, "at byte 100");
    REFUSED(tandem_view(context, a, 1, (int64_t[]){1}, NULL, SIZE_MAX - 3), TANDEM_E_SHAPE,
            "inside");
    REFUSED(tandem_view(context, a, 1, (int64_t[]){1}, NULL, 2), TANDEM_E_ARGUMENT, "offset 2");
    REFUSED(tandem_view(context, a, 2, (int64_t[]){2, 2}, (size_t[]){6}, 0), TANDEM_E_ARGUMENT,
            "stride 6 of dimension 1");
    REFUSED(tandem_view(context, a, 2, (int64_t[]){2, 3}, (size_t[]){SIZE_MAX - 3}, 0),
            TANDEM_E_SHAPE, "inside");
    REFUSED(tandem_view(context, a, 3, (int64_t[]){1, INT64_MAX, INT64_MAX}, (size_t[]){0, 0}, 0),
            TANDEM_E_OVERFLOW, "63 bits");
    REFUSED(tandem_view(context, a, 1, (int64_t[]){-2}, NULL, 0), TANDEM_E_SHAPE, "ne[0] is -2");
    REFUSED(tandem_view(context, a, 0, (int64_t[]){2}, NULL, 0), TANDEM_E_ARGUMENT, "n_dims is 0");
    REFUSED(tandem_view(context, NULL, 1, (int64_t[]){2}, NULL, 0), TANDEM_E_ARGUMENT, "a is NULL");
    REFUSED(tandem_reshape(context, a, 1, (int64_t[]){31}), TANDEM_E_SHAPE,
            "reshape: {31} has not as many values as a {8, 4}");
    REFUSED(tandem_reshape(context, tandem_transpose(context, a), 1, (int64_t[]){32}),
            TANDEM_E_SHAPE, "not contiguous");
    REFUSED(tandem_permute(context, a, 0, 1, 1, 3), TANDEM_E_ARGUMENT, "0 1 1 3");
    REFUSED(tandem_permute(context, a, 0, 1, 2, -1), TANDEM_E_ARGUMENT, "no permutation");
    REFUSED(tandem_transpose(context,
                             tandem_tensor_new(context, TANDEM_TYPE_Q4_0, 2, (int64_t[]){32, 2})),
            TANDEM_E_TYPE, "transpose: a is q4_0");
#undef REFUSED
    tandem_context_free(context);
}

static void every_look_at_null_is_harmless(void)
{
    CU_ASSERT_PTR_NULL(tandem_tensor_ne(NULL));
    CU_ASSERT_PTR_NULL(tandem_tensor_nb(NULL));
    CU_ASSERT_PTR_NULL(tandem_tensor_data(NULL));
    CU_ASSERT_PTR_NULL(tandem_tensor_src(NULL, 0));
    check_string(tandem_tensor_name(NULL), "");
    check_int(tandem_tensor_elements(NULL), 0);
    check_int(tandem_tensor_bytes(NULL), 0);
    CU_ASSERT_FALSE(tandem_tensor_is_contiguous(NULL));
    CU_ASSERT_EQUAL(tandem_tensor_op(NULL), TANDEM_OP_NONE);
    check_string(tandem_op_name((enum tandem_op)1000), "unknown");
    CU_ASSERT_NOT_EQUAL(tandem_context_status(NULL, NULL), TANDEM_OK);
}

/* Two runtimes may have objects at one tensor; what one gives up is not found any more. */
static void *find_object(const struct tnd_buffer *buffer, uint64_t owner)
{
    struct tnd_handle *handle = NULL;
    return tnd_buffer_next(buffer, owner, &handle);
}

static void buffers_keep_the_objects_of_their_owners_apart(void)
{
    tandem_context *context = NULL;
    int first = 1;
    int second = 2;
    uint64_t owner = tnd_buffer_owners(2);
    check_ok(tandem_context_new(NULL, &context, NULL));
    tandem_tensor *leaf = tandem_tensor_new(context, TANDEM_TYPE_F32, 1, (const int64_t[]){4});
    tandem_tensor *view = tandem_view(context, leaf, 1, (const int64_t[]){2}, NULL, 0);
    CU_ASSERT_PTR_EQUAL(view->root->buffer, leaf->buffer);
    CU_ASSERT_PTR_NULL(find_object(leaf->buffer, owner));
    struct tnd_handle *handle = tnd_buffer_attach(context, leaf->buffer, owner, &first);
    struct tnd_handle *other = tnd_buffer_attach(context, leaf->buffer, owner + 1, &second);
    CU_ASSERT_PTR_EQUAL(find_object(leaf->buffer, owner), &first);
    CU_ASSERT_PTR_EQUAL(find_object(leaf->buffer, owner + 1), &second);
    struct tnd_handle *next = NULL; /* an owner may have several */
    struct tnd_handle *third = tnd_buffer_attach(context, leaf->buffer, owner + 1, &first);
    CU_ASSERT_PTR_EQUAL(tnd_buffer_next(leaf->buffer, owner + 1, &next), &first);
    CU_ASSERT_PTR_EQUAL(tnd_buffer_next(leaf->buffer, owner + 1, &next), &second);
    CU_ASSERT_PTR_NULL(tnd_buffer_next(leaf->buffer, owner + 1, &next));
    tnd_buffer_detach(handle);
    CU_ASSERT_PTR_NULL(find_object(leaf->buffer, owner));
    CU_ASSERT_PTR_EQUAL(find_object(leaf->buffer, owner + 1), &first);
    uint64_t later = tnd_buffer_owners(1);
    CU_ASSERT_TRUE(later > owner + 1);
    /* What was given up is used again. */
    CU_ASSERT_PTR_EQUAL(tnd_buffer_attach(context, leaf->buffer, later, &first), handle);
    CU_ASSERT_PTR_EQUAL(find_object(leaf->buffer, later), &first);
    tandem_context_reset(context); /* owners may give up later */
    tnd_buffer_detach(handle);
    tandem_context_free(context);
    tnd_buffer_detach(other);
    tnd_buffer_detach(third);
}

static CU_TestInfo tensor_tests[] = {
    {"buffers_keep_the_objects_of_their_owners_apart",
     buffers_keep_the_objects_of_their_owners_apart},
    {"contexts_begin_empty_and_forget_everything_on_reset",
     contexts_begin_empty_and_forget_everything_on_reset},
    {"reset_contexts_do_not_grow", reset_contexts_do_not_grow},
    {"context_options_are_checked_by_size", context_options_are_checked_by_size},
    {"context_limit_ends_in_a_memory_error", context_limit_ends_in_a_memory_error},
    {"new_tensors_are_zeroed_aligned_and_dense", new_tensors_are_zeroed_aligned_and_dense},
    {"tensors_of_one_and_two_dimensions_need_no_array",
     tensors_of_one_and_two_dimensions_need_no_array},
    {"values_are_copied_in_the_order_of_the_extents_whatever_the_strides",
     values_are_copied_in_the_order_of_the_extents_whatever_the_strides},
    {"blocks_are_copied_whole_and_ranges_are_checked",
     blocks_are_copied_whole_and_ranges_are_checked},
    {"an_intermediate_result_has_no_values_to_copy", an_intermediate_result_has_no_values_to_copy},
    {"const_memory_is_borrowed_as_a_constant_that_nothing_writes",
     const_memory_is_borrowed_as_a_constant_that_nothing_writes},
    {"names_are_kept_and_long_ones_cut", names_are_kept_and_long_ones_cut},
    {"hostile_extents_never_overflow", hostile_extents_never_overflow},
    {"wrong_tensors_are_refused_with_a_reason", wrong_tensors_are_refused_with_a_reason},
    {"views_have_the_strides_and_addresses_asked_for",
     views_have_the_strides_and_addresses_asked_for},
    {"wrong_views_are_refused_with_a_reason", wrong_views_are_refused_with_a_reason},
    {"every_look_at_null_is_harmless", every_look_at_null_is_harmless},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_ggml_tensor[] = {
    {"tensor", NULL, NULL, NULL, NULL, tensor_tests},
    CU_SUITE_INFO_NULL,
};
