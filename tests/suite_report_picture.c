/* SPDX-License-Identifier: MIT
 * Pictures of nets: boxes, lines, layers, escaped names, limits. */
#include <stdio.h>
#include <string.h>

#include "tests/support.h"
#include "tools/report/net_picture.h"

static const struct tnd_dims four = {1, {4}};

/* y = exp(x) + x * 2 */
static struct tnd_net *small_net(const char *name)
{
    struct tnd_net *net = tnd_net_new();
    const int x = tnd_net_input(net, TANDEM_DTYPE_F32, &four, name, NULL);
    const int e = tnd_net_unary(net, TANDEM_UNARY_EXP, x);
    const int twice =
        tnd_net_binary(net, TANDEM_BINARY_MUL, x, tnd_net_scalar(net, TANDEM_DTYPE_F32, 2.0));
    (void)tnd_net_output(net, tnd_net_binary(net, TANDEM_BINARY_ADD, e, twice));
    return net;
}

static void a_picture_has_a_box_for_each_input_operation_and_output(void)
{
    const char *const names[] = {"y"};
    struct tnd_net *net = small_net("x");
    struct tnd_picture picture = {.n_boxes = 0};
    check_ok(tnd_picture_take(net, "small", names, &picture, NULL));
    check_int(picture.n_boxes, 5);
    check_int(picture.n_lines, 5);
    check_string(picture.title, "small: 3 operations");
    check_string(picture.boxes[0].lines[0], "x");
    check_string(picture.boxes[1].lines[0], "exp");
    check_string(picture.boxes[2].lines[2], "by 2");
    check_string(picture.boxes[4].lines[0], "y");
    check_int(picture.boxes[4].layer, 3);
    tnd_picture_fini(&picture);
    tnd_net_free(net);
}

/* Nothing of a name is taken for markup, neither by SVG nor by graphviz. */
static void names_are_escaped_in_both_forms(void)
{
    struct tnd_net *net = small_net("<a href=\"x\">&\\n\x1b");
    struct tnd_picture picture = {.n_boxes = 0};
    struct tnd_text text = TND_TEXT_INIT;
    check_ok(tnd_picture_take(net, "small", NULL, &picture, NULL));
    tnd_picture_svg(&picture, 1, &text);
    CU_ASSERT_PTR_NULL(strstr(tnd_text_string(&text), "<a href"));
    CU_ASSERT_PTR_NOT_NULL(strstr(tnd_text_string(&text), "&#60;a href=&#34;x"));
    tnd_text_clear(&text);
    tnd_picture_dot(&picture, 1, &text);
    CU_ASSERT_PTR_NOT_NULL(strstr(tnd_text_string(&text), "<a href=\\\"x\\\">&\\\\n\\\\x1b"));
    tnd_text_fini(&text);
    tnd_picture_fini(&picture);
    tnd_net_free(net);
}

static void boxes_of_a_layer_do_not_overlap(void)
{
    struct tnd_net *net = tnd_net_new();
    struct tnd_picture picture = {.n_boxes = 0};
    struct tnd_text text = TND_TEXT_INIT;
    const int x = tnd_net_input(net, TANDEM_DTYPE_F32, &four, "x", NULL);
    for (int i = 0; i < 20; i++) {
        (void)tnd_net_output(net, tnd_net_unary(net, (enum tandem_unary)i, x));
    }
    check_ok(tnd_picture_take(net, "wide", NULL, &picture, NULL));
    tnd_picture_svg(&picture, 1, &text);
    for (int i = 0; i < picture.n_boxes; i++) {
        for (int k = 0; k < i; k++) {
            const struct tnd_picture_box *a = &picture.boxes[k], *b = &picture.boxes[i];
            const double gap = a->x < b->x ? b->x - a->x : a->x - b->x;
            CU_ASSERT_TRUE(a->layer != b->layer || gap >= (a->width + b->width) / 2);
        }
    }
    tnd_text_fini(&text);
    tnd_picture_fini(&picture);
    tnd_net_free(net);
}

static void a_net_that_is_too_large_is_refused(void)
{
    struct tandem_error error = {.text = ""};
    struct tnd_net *net = tnd_net_new();
    struct tnd_picture picture = {.n_boxes = 0};
    int x = tnd_net_input(net, TANDEM_DTYPE_F32, &four, "x", NULL);
    for (int i = 0; i <= TND_PICTURE_MAX; i++) {
        x = tnd_net_unary(net, TANDEM_UNARY_NEG, x);
    }
    check_status(tnd_picture_take(net, "long", NULL, &picture, &error), TANDEM_E_LIMIT,
                 "expected at most 20000", &error);
    tnd_picture_fini(&picture);
    tnd_net_free(net);
}

static CU_TestInfo tests[] = {
    {"a picture has a box for each input, operation and output",
     a_picture_has_a_box_for_each_input_operation_and_output},
    {"names are escaped in both forms", names_are_escaped_in_both_forms},
    {"boxes of a layer do not overlap", boxes_of_a_layer_do_not_overlap},
    {"a net that is too large is refused", a_net_that_is_too_large_is_refused},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_report_picture[];
CU_SuiteInfo suites_report_picture[] = {
    {"pictures of nets", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
