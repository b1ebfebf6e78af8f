/* SPDX-License-Identifier: MIT
 * The inner loops of convolutions, of every instruction set that this machine has: sums of tiles of
 * every size, pools and sums of columns. */
#include <math.h>
#include <string.h>

#include "tests/net_levels.h"
#include "tests/suite_backends.h"
#include "tests/support.h"

enum { TAPS = 3, RUN = 5, GUARD = 8, PLACES = TND_CONV_PIXELS, FILTERS = TND_CONV_FILTERS };

/* An addend by place and filter, and a bound. */
static const struct tnd_fuse_code ending_codes[] = {
    {.op = TND_CODE_ADD, .in = 0}, {.op = TND_CODE_MAX, .in = 1}, {.op = TND_CODE_END}};

enum { ENDING_LINE = FILTERS + 3 };

/* Whether `n` filters of `places` places have an ending, and nothing behind them is written. `sums`
 * are those without it, `width` a place. */
static bool is_ended(const float *sums, int width, const float *addends, const float *y, int places,
                     int n)
{
    bool is = true;
    for (int i = 0; i < places * ENDING_LINE; i++) {
        const int m = i / ENDING_LINE;
        const int f = i % ENDING_LINE;
        const float sum = f < n ? sums[m * width + f] + addends[i] : 0;
        is = is && y[i] == (f >= n ? -77 : sum > 0.25F ? sum : 0.25F);
    }
    return is;
}

/* What an ending of the codes above works on. */
struct ending {
    float addends[(PLACES + 1) * ENDING_LINE], bounds[FILTERS], y[(PLACES + 1) * ENDING_LINE];
    struct tnd_strip_operand operands[2];
};

static struct tnd_conv_ending begin_ending(struct ending *at)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    tnd_test_fill(&rng, at->addends, (PLACES + 1) * ENDING_LINE);
    for (int i = 0; i < FILTERS; i++) {
        at->bounds[i] = 0.25F;
    }
    for (int i = 0; i < (PLACES + 1) * ENDING_LINE; i++) {
        at->y[i] = -77;
    }
    at->operands[0] = (struct tnd_strip_operand){.from = at->addends, .row = ENDING_LINE};
    at->operands[1] = (struct tnd_strip_operand){.from = at->bounds, .row = 0};
    return (struct tnd_conv_ending){ending_codes, at->operands, ENDING_LINE};
}

/* The tile again, of fewer filters, with an ending. */
static void check_ended_tile(const struct tnd_conv_kernel *kernel, struct tnd_conv_tile tile,
                             int panels, int places)
{
    struct ending at;
    const float *sums = tile.y;
    tile.n_filters =
        panels * TND_CONV_PANEL - (TND_CONV_PANEL - 1) / kernel->end_filters * kernel->end_filters;
    tile.ending = begin_ending(&at);
    tile.y = at.y;
    kernel->run[panels - 1][places - 1](&tile);
    CU_ASSERT_TRUE(
        is_ended(sums, panels * TND_CONV_PANEL, at.addends, at.y, places, tile.n_filters));
    CU_ASSERT_EQUAL(at.y[places * ENDING_LINE], -77);
}

static void check_sums(const struct tnd_conv_kernel *kernel, int panels, int places)
{
    enum { PANEL = TAPS * RUN * TND_CONV_PANEL };
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed() + (uint64_t)places);
    float x[TAPS * PLACES * RUN];
    float w[TND_CONV_PANELS * (PANEL + GUARD)];
    float y[PLACES * FILTERS + GUARD];
    const float *rows[TAPS * PLACES];
    const int filters = panels * TND_CONV_PANEL;
    const struct tnd_conv_tile tile = {.rows = rows,
                                       .n_taps = TAPS,
                                       .run = RUN,
                                       .w = w,
                                       .w_panel = PANEL + GUARD,
                                       .n_filters = filters,
                                       .y = y};
    tnd_test_fill(&rng, x, TAPS * PLACES * RUN);
    tnd_test_fill(&rng, w, TND_CONV_PANELS * (PANEL + GUARD));
    for (int i = 0; i < TAPS * places; i++) {
        rows[i] = x + (TAPS * places - 1 - i) * RUN; /* (anywhere) */
    }
    for (int i = 0; i < PLACES * FILTERS + GUARD; i++) {
        y[i] = -77;
    }
    kernel->run[panels - 1][places - 1](&tile);
    bool is_right = true;
    for (int i = 0; i < places * filters; i++) {
        const int f = i % filters;
        double sum = 0;
        for (int k = 0; k < TAPS * RUN; k++) {
            sum += (double)rows[k / RUN * places + i / filters][k % RUN] *
                   (double)w[f / TND_CONV_PANEL * (PANEL + GUARD) + k * TND_CONV_PANEL +
                             f % TND_CONV_PANEL];
        }
        is_right = is_right && fabs(sum - (double)y[i]) < 1e-5;
    }
    CU_ASSERT_TRUE(is_right);
    CU_ASSERT_EQUAL(y[places * filters], -77);
    check_ended_tile(kernel, tile, panels, places);
}

/* Few filters, whose lanes are the values of a tap, behind which lies what is no number. */
static void check_few(const struct tnd_conv_kernel *kernel, int filters, int places, int run)
{
    enum { MOST = 40, ROW = 48 };
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed() + (uint64_t)(run * places));
    float x[TAPS * PLACES][MOST];
    float w[FILTERS * TAPS * ROW + GUARD];
    float y[PLACES * TND_CONV_PANEL];
    const float *rows[TAPS * PLACES];
    const int64_t row = tnd_conv_few_row(run);
    const struct tnd_conv_tile tile = {.rows = rows,
                                       .n_taps = TAPS,
                                       .run = run,
                                       .w = w,
                                       .w_panel = TAPS * row + GUARD,
                                       .n_filters = filters,
                                       .y = y};
    int wrong = 0;
    memset(w, 0, sizeof(w));
    for (int i = 0; i < filters * TAPS; i++) {
        tnd_test_fill(&rng, w + i / TAPS * tile.w_panel + i % TAPS * row, run);
    }
    for (int i = 0; i < TAPS * places; i++) {
        rows[i] = x[TAPS * places - 1 - i] + MOST - run;
        tnd_test_fill(&rng, x[i], MOST);
    }
    for (int i = 0; i < PLACES * TND_CONV_PANEL; i++) {
        y[i] = -77;
    }
    kernel->few(&tile, places);
    for (int i = 0; i < PLACES * TND_CONV_PANEL; i++) {
        const int f = i % TND_CONV_PANEL;
        const int place = i / TND_CONV_PANEL;
        double sum = 0;
        for (int k = 0; f < filters && place < places && k < TAPS * run; k++) {
            sum += (double)rows[k / run * places + place][k % run] *
                   (double)w[f * tile.w_panel + k / run * row + k % run];
        }
        wrong += f < filters && place < places ? !(fabs(sum - (double)y[i]) < 1e-4) : y[i] != -77;
    }
    CU_ASSERT_EQUAL(wrong, 0);
}

/* Some of the places again, with an ending. */
static void check_ended_lines(const struct tnd_conv_kernel *kernel, struct tnd_conv_lines lines)
{
    struct ending at;
    const float *sums = lines.y;
    for (lines.n_places = 1; lines.n_places <= TND_CONV_LINE_PLACES; lines.n_places++) {
        lines.ending = begin_ending(&at);
        lines.y = at.y;
        kernel->lines(&lines);
        CU_ASSERT_TRUE(
            is_ended(sums, kernel->channels, at.addends, at.y, lines.n_places, lines.n_channels));
        CU_ASSERT_EQUAL(at.y[lines.n_places * ENDING_LINE], -77);
    }
}

/* Places of a line with a filter a channel; the block begins at a channel of its own. */
static void check_lines(const struct tnd_conv_kernel *kernel, int taps, int stride, int n_channels)
{
    enum { LINES = 3, CHANNEL = 5, WIDE = CHANNEL + FILTERS, MOST = LINES * TND_CONV_LINE_COLUMNS };
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed() + (uint64_t)(taps * n_channels));
    const int n_columns = (TND_CONV_LINE_PLACES - 1) * stride + taps;
    const int panel = LINES * taps * TND_CONV_PANEL + GUARD;
    float x[MOST][WIDE];
    float w[TND_CONV_PANELS * (LINES * TND_CONV_LINE_TAPS * TND_CONV_PANEL + GUARD)];
    float y[TND_CONV_LINE_PLACES * FILTERS + GUARD];
    const float *columns[MOST];
    const struct tnd_conv_lines lines = {.columns = columns,
                                         .n_lines = LINES,
                                         .taps = taps,
                                         .stride = stride,
                                         .channel = CHANNEL,
                                         .n_channels = n_channels,
                                         .w = w,
                                         .w_panel = panel,
                                         .y = y};
    int wrong = 0;
    tnd_test_fill(&rng, w, (int)(sizeof(w) / sizeof(w[0])));
    for (int i = 0; i < LINES * n_columns; i++) { /* (anywhere, as far behind as can be) */
        columns[i] = x[LINES * n_columns - 1 - i] + WIDE - CHANNEL - n_channels;
        tnd_test_fill(&rng, x[i], WIDE);
    }
    for (int i = 0; i < TND_CONV_LINE_PLACES * FILTERS + GUARD; i++) {
        y[i] = -77;
    }
    kernel->lines(&lines);
    for (int i = 0; i < TND_CONV_LINE_PLACES * n_channels; i++) {
        const int c = i % n_channels;
        const int place = i / n_channels;
        double sum = 0;
        for (int k = 0; k < LINES * taps; k++) {
            sum += (double)columns[k / taps * n_columns + place * stride + k % taps][CHANNEL + c] *
                   (double)w[c / TND_CONV_PANEL * panel + k * TND_CONV_PANEL + c % TND_CONV_PANEL];
        }
        wrong += !(fabs(sum - (double)y[place * kernel->channels + c]) < 1e-4);
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(y[TND_CONV_LINE_PLACES * kernel->channels], -77);
    if (n_channels % kernel->end_filters == 0) {
        check_ended_lines(kernel, lines);
    }
}

static void lines_of_one_filter_a_channel_have_the_right_sums(void)
{
    for (int k = 0; tnd_test_kernels(k) != NULL; k++) {
        const struct tnd_conv_kernel *kernel = &tnd_test_kernels(k)->conv;
        for (int i = 0; i < 6 * kernel->channels; i++) {
            check_lines(kernel, 3 + i % 3 * 2, 1 + i / 3 % 2, 1 + i / 6);
        }
    }
}

static void few_filters_have_the_right_sums(void)
{
    for (int k = 0; tnd_test_kernels(k) != NULL; k++) {
        for (int i = 0; i < 9 * PLACES * 8; i++) {
            check_few(&tnd_test_kernels(k)->conv, 1 + i % 9, 1 + i / 9 % PLACES, 1 + i * 7 % 40);
        }
    }
}

static void tiles_of_every_size_have_the_right_sums(void)
{
    for (int k = 0; tnd_test_kernels(k) != NULL; k++) {
        const struct tnd_conv_kernel *kernel = &tnd_test_kernels(k)->conv;
        for (int panels = 1; panels <= kernel->panels; panels++) {
            for (int places = 1; places <= kernel->pixels; places++) {
                check_sums(kernel, panels, places);
            }
        }
    }
}

/* Values that operations treat apart, and others. */
static void fill_odd(struct tnd_test_rng *rng, float *values, int n)
{
    static const float odd[] = {NAN,   INFINITY,  -INFINITY,  0.0f,
                                -0.0f, 0x1p-149f, -0x1p-130f, 0x1p127f};
    tnd_test_fill(rng, values, n);
    for (int i = 0; i < n; i++) {
        const int64_t which = tnd_test_rng_int(rng, 0, 15);
        values[i] = which < 8 ? odd[which] : values[i];
    }
}

/* The bits but for which NaN it is. */
static bool is_same(float a, float b)
{
    return memcmp(&a, &b, sizeof(a)) == 0 || (isnan(a) && isnan(b));
}

/* From 1 to 9 rows of odd values, against the rule: NaN where one is, else the largest. */
static void check_largest(const struct tnd_conv_kernel *kernel)
{
    enum { ROWS = 9, CHANNEL = 3 };
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed() + 7);
    float x[ROWS][CHANNEL + FILTERS];
    float y[FILTERS + GUARD];
    const float *rows[ROWS];
    int wrong = 0;
    for (int n = 1; n <= ROWS; n++) {
        rows[n - 1] = x[n - 1];
        fill_odd(&rng, x[n - 1], CHANNEL + FILTERS);
        for (int i = 0; i < FILTERS + GUARD; i++) {
            y[i] = -77;
        }
        kernel->largest(rows, n, CHANNEL, y);
        for (int i = 0; i < kernel->channels + GUARD; i++) {
            float want = i < kernel->channels ? x[0][CHANNEL + i] : -77;
            for (int r = 1; r < n && i < kernel->channels; r++) {
                want = want > x[r][CHANNEL + i] || isnan(want) ? want : x[r][CHANNEL + i];
            }
            wrong += !is_same(y[i], want);
        }
    }
    CU_ASSERT_EQUAL(wrong, 0);
}

static void the_largest_of_rows_may_be_nan(void)
{
    for (int k = 0; tnd_test_kernels(k) != NULL; k++) {
        check_largest(&tnd_test_kernels(k)->conv);
    }
}

/* Bytes of either sign, any number of channels; the second time the result is a row, too. */
static void the_largest_bytes_of_rows(void)
{
    enum { ROWS = 9, MOST = 150 };
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed() + 9);
    uint8_t x[ROWS][MOST];
    const uint8_t *rows[ROWS + 1];
    for (int r = 0; r < ROWS; r++) {
        rows[r] = x[r];
        for (int i = 0; i < MOST; i++) {
            x[r][i] = (uint8_t)tnd_test_rng_int(&rng, 0, 255);
        }
    }
    for (int k = 0; tnd_test_kernels(k) != NULL; k++) {
        for (int c = 0; c < 2 * MOST; c++) {
            const uint8_t flip = c % 2 == 0 ? 0 : 128;
            const int n = 1 + c % ROWS;
            uint8_t y[MOST + GUARD];
            int wrong = 0;
            memset(y, 77, sizeof(y));
            tnd_test_kernels(k)->conv.largest_bytes(rows, n, c / 2, flip, y);
            rows[ROWS] = y;
            tnd_test_kernels(k)->conv.largest_bytes(rows + ROWS - 1, 2, c / 2, flip, y);
            for (int i = 0; i < MOST + GUARD; i++) {
                int want = i < c / 2 ? x[ROWS - 1][i] ^ flip : 77;
                for (int r = 0; r < n && i < c / 2; r++) {
                    want = want > (x[r][i] ^ flip) ? want : x[r][i] ^ flip;
                }
                wrong += y[i] != (i < c / 2 ? want ^ flip : 77);
            }
            CU_ASSERT_EQUAL(wrong, 0);
        }
    }
}

static void columns_are_added_in_order_in_double_precision(void)
{
    enum { ROWS = 5, MOST = 70, STRIDE = 80 };
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed() + 8);
    float x[ROWS * STRIDE];
    fill_odd(&rng, x, ROWS * STRIDE);
    for (int k = 0; tnd_test_strip(k) != NULL; k++) {
        int wrong = 0;
        for (int n = 0; n <= MOST; n++) {
            double sums[MOST + GUARD];
            for (int i = 0; i < MOST + GUARD; i++) {
                sums[i] = i;
            }
            tnd_test_strip(k)->add_rows(x, STRIDE, ROWS, n, sums);
            for (int i = 0; i < MOST + GUARD; i++) {
                double want = i;
                for (int r = 0; r < ROWS && i < n; r++) {
                    want += (double)x[r * STRIDE + i];
                }
                wrong +=
                    memcmp(&want, &sums[i], sizeof(want)) != 0 && !(isnan(want) && isnan(sums[i]));
            }
        }
        CU_ASSERT_EQUAL(wrong, 0);
    }
}

CU_TestInfo tnd_tests_net_tiles[] = {
    {"tiles_of_every_size_have_the_right_sums", tiles_of_every_size_have_the_right_sums},
    {"few_filters_have_the_right_sums", few_filters_have_the_right_sums},
    {"lines_of_one_filter_a_channel_have_the_right_sums",
     lines_of_one_filter_a_channel_have_the_right_sums},
    {"the_largest_of_rows_may_be_nan", the_largest_of_rows_may_be_nan},
    {"the_largest_bytes_of_rows", the_largest_bytes_of_rows},
    {"columns_are_added_in_order_in_double_precision",
     columns_are_added_in_order_in_double_precision},
    CU_TEST_INFO_NULL,
};
