/* SPDX-License-Identifier: MIT
 * Times of convolutions: keys of the table, looking them up, telling them. */
#include "tools/tandem-graph/conv_book.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/tnd_runtime.h"
#include "table/records.h"
#include "tools/device_option.h"
#include "tune/planner.h"
#include "tune/profiles.h"

enum tandem_status tnd_conv_book_open(tandem_runtime *runtime, struct tnd_conv_book *out,
                                      struct tandem_error *error)
{
    *out = (struct tnd_conv_book){.table = NULL};
    if (runtime == NULL) {
        return TANDEM_OK;
    }
    struct tnd_runtime_parts parts;
    tnd_runtime_parts(runtime, &parts);
    const int forced = tnd_planner_forced(parts.planner);
    out->for_device =
        forced >= 0 && tnd_device_option_has_profile(tnd_profile_at(parts.registry, forced)->name);
    out->threads = tandem_runtime_threads(runtime);
    return tnd_runtime_copy_table(runtime, &out->table, error);
}

struct tnd_lower_options tnd_conv_book_options(struct tnd_conv_book *book)
{
    return book->for_device
               ? (struct tnd_lower_options){.for_device = true}
               : (struct tnd_lower_options){.conv_times = tnd_conv_book_times, .user = book};
}

void tnd_conv_book_close(struct tnd_conv_book *book)
{
    tandem_table_free(book->table);
    book->table = NULL;
}

/* "3x3"; 40 characters hold three extents of any tensor. */
static void write_extents(char out[40], int n, const int64_t *extents)
{
    int at = 0;
    for (int i = 0; i < n && at < 40; i++) {
        at += snprintf(out + at, (size_t)(40 - at), "%s%" PRId64, i > 0 ? "x" : "", extents[i]);
    }
}

void tnd_conv_book_key(const struct tnd_conv_shape *shape, enum tnd_conv_method method, int threads,
                       struct tnd_conv_time *out)
{
    memset(out, 0, sizeof(*out));
    snprintf(out->method, sizeof(out->method), "%s", tnd_conv_method_name(method));
    out->channels = shape->channels;
    out->filters = shape->filters;
    out->groups = shape->groups;
    out->images = shape->images;
    write_extents(out->window, shape->n, shape->window);
    write_extents(out->stride, shape->n, shape->stride);
    write_extents(out->dilation, shape->n, shape->dilation);
    write_extents(out->padding, shape->n, shape->padding);
    write_extents(out->result, shape->n, shape->result);
    out->threads = threads;
}

void tnd_conv_book_times(void *user, const struct tnd_conv_shape *shape,
                         double us[TND_CONV_METHODS])
{
    const struct tnd_conv_book *book = user;
    for (int method = 0; book->table != NULL && method < TND_CONV_METHODS; method++) {
        struct tnd_conv_time key;
        tnd_conv_book_key(shape, (enum tnd_conv_method)method, book->threads, &key);
        const struct tnd_conv_time *time =
            tnd_record_find(book->table, TND_RECORD_CONVOLUTIONS, &key);
        us[method] = time != NULL ? time->median_us : us[method];
    }
}

void tnd_conv_book_text(const struct tnd_conv_shape *shape, char *out, size_t bytes)
{
    struct tnd_conv_time key;
    char groups[32] = "";
    tnd_conv_book_key(shape, TND_CONV_DIRECT, 1, &key);
    if (shape->groups > 1) {
        snprintf(groups, sizeof(groups), " in %" PRId64 " groups", shape->groups);
    }
    snprintf(out, bytes,
             "%s, %" PRId64 " to %" PRId64 " channels%s, steps %s, gaps %s, result %" PRId64 "x%s",
             key.window, key.channels, key.filters, groups, key.stride, key.dilation, key.images,
             key.result);
}

static void print_times(const struct tnd_conv_choice *choice)
{
    for (int method = 0; method < TND_CONV_METHODS; method++) {
        if (!choice->may[method]) {
            continue;
        }
        printf("  %s", tnd_conv_method_name((enum tnd_conv_method)method));
        if (choice->us[method] >= 0) {
            printf(" %.1f us", choice->us[method]);
        } else {
            printf(" not measured");
        }
    }
}

static void print_conversions(const struct tnd_lowered *lowered)
{
    const struct tnd_conversion *one;
    double values = 0;
    int n = 0;
    for (; (one = tnd_lowered_conversion(lowered, n)) != NULL; n++) {
        printf("layout %d:", n + 1);
        for (int d = 0; d < one->shape.n; d++) {
            printf("%s%" PRId64, d == 0 ? " " : "x", one->shape.dims[d]);
        }
        printf(" %s%s%s\n", one->is_last ? "to channels last" : "from channels last",
               one->name != NULL ? ", value " : "", one->name != NULL ? one->name : "");
        values += (double)tnd_dims_values(&one->shape);
    }
    printf("copies that change a layout: %d, %.0f values in all\n", n, values);
}

void tnd_conv_book_explain(const struct tnd_lowered *lowered)
{
    const struct tnd_conv_choice *choice;
    for (int i = 0; (choice = tnd_lowered_conv(lowered, i)) != NULL; i++) {
        char text[256];
        tnd_conv_book_text(&choice->shape, text, sizeof(text));
        printf("convolution %d: %s\n  %s: %s;", i + 1, text, tnd_conv_method_name(choice->method),
               choice->reason);
        print_times(choice);
        printf("\n");
    }
    print_conversions(lowered);
}
