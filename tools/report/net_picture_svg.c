/* SPDX-License-Identifier: MIT
 * The simple layout: boxes in layers from top to bottom, each near the middle of what it reads. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tools/report/net_picture.h"
#include "tools/report/report_parts.h"

/* Pixels. */
enum { LINE = 13, BOX = 3 * LINE + 6, LAYER = BOX + 34, GAP = 14, MARGIN = 16, TITLE = 24 };
#define CHARACTER 6.2 /* width at a font size of 10 pixels, about */

/* A box and the x coordinate it should be near. */
struct wish {
    int box;
    double x;
};

static int compare_wishes(const void *a, const void *b)
{
    const struct wish *x = a;
    const struct wish *y = b;
    return x->x != y->x ? (x->x > y->x) - (x->x < y->x) : x->box - y->box;
}

static int count_lines(const struct tnd_picture_box *box)
{
    int n = 1;
    while (n < 3 && box->lines[n][0] != '\0') {
        n++;
    }
    return n;
}

static double width_of(const struct tnd_picture_box *box)
{
    size_t most = 4;
    for (int i = 0; i < 3; i++) {
        const size_t n = strlen(box->lines[i]);
        most = n > most ? n : most;
    }
    return (double)most * CHARACTER + 12.0;
}

/* Places the boxes of a layer side by side, each as near as possible to its wish. */
static double place_layer(struct tnd_picture *picture, struct wish *wishes, int n)
{
    double right = 0;
    qsort(wishes, (size_t)n, sizeof(wishes[0]), compare_wishes);
    for (int i = 0; i < n; i++) {
        struct tnd_picture_box *box = &picture->boxes[wishes[i].box];
        const double least = right + box->width / 2;
        box->x = wishes[i].x > least ? wishes[i].x : least;
        right = box->x + box->width / 2 + GAP;
    }
    return right - GAP;
}

/* Sorts box indices by layer into `order`; `begin` has one entry per layer and one more. */
static void sort_layers(const struct tnd_picture *picture, int *begin, int n_layers, int *order)
{
    memset(begin, 0, ((size_t)n_layers + 1) * sizeof(begin[0]));
    for (int i = 0; i < picture->n_boxes; i++) {
        begin[picture->boxes[i].layer + 1]++;
    }
    for (int i = 0; i < n_layers; i++) {
        begin[i + 1] += begin[i];
    }
    for (int i = 0; i < picture->n_boxes; i++) {
        order[begin[picture->boxes[i].layer]++] = i;
    }
    for (int i = n_layers; i > 0; i--) {
        begin[i] = begin[i - 1];
    }
    begin[0] = 0;
}

/* Mean x of a box's operands; lines are in the order of their readers. */
static double wish_of(const struct tnd_picture *picture, const int *first, int box)
{
    double sum = 0;
    int n = 0;
    for (int i = first[box]; i < picture->n_lines && picture->lines[i].to == box; i++, n++) {
        sum += picture->boxes[picture->lines[i].from].x;
    }
    return n > 0 ? sum / n : 0.0;
}

static int find_layers(struct tnd_picture *picture, int *first)
{
    int n = 0;
    for (int i = 0; i < picture->n_boxes; i++) {
        picture->boxes[i].width = width_of(&picture->boxes[i]);
        n = picture->boxes[i].layer + 1 > n ? picture->boxes[i].layer + 1 : n;
        first[i] = picture->n_lines;
    }
    for (int i = picture->n_lines - 1; i >= 0; i--) {
        first[picture->lines[i].to] = i;
    }
    return n;
}

/* Places all boxes; returns the width. 0: out of memory. */
static double lay_out(struct tnd_picture *picture, int *out_layers)
{
    const size_t n = (size_t)picture->n_boxes + 2;
    int *memory = tnd_alloc(3 * n * sizeof(int));
    struct wish *wishes = tnd_alloc(n * sizeof(*wishes));
    double width = (double)strlen(picture->title) * CHARACTER * 1.3;
    if (memory != NULL && wishes != NULL) {
        int *first = memory, *begin = memory + n, *order = memory + 2 * n;
        *out_layers = find_layers(picture, first);
        sort_layers(picture, begin, *out_layers, order);
        for (int layer = 0; layer < *out_layers; layer++) {
            const int count = begin[layer + 1] - begin[layer];
            for (int i = 0; i < count; i++) {
                const int box = order[begin[layer] + i];
                wishes[i] = (struct wish){box, wish_of(picture, first, box)};
            }
            const double right = place_layer(picture, wishes, count);
            width = right > width ? right : width;
        }
    } else {
        width = 0;
    }
    tnd_free(memory);
    tnd_free(wishes);
    return width;
}

static int top_of(const struct tnd_picture_box *box)
{
    return TITLE + MARGIN + box->layer * LAYER;
}

static int height_of(const struct tnd_picture_box *box)
{
    return count_lines(box) * LINE + 6;
}

static void draw(const struct tnd_picture *picture, double left, struct tnd_text *out)
{
    static const char *const classes[] = {
        [TND_PICTURE_INPUT] = "in", [TND_PICTURE_OPERATION] = "op", [TND_PICTURE_OUTPUT] = "out"};
    tnd_text_printf(out, "<g transform=\"translate(%.0f,0)\">\n<text class=\"t\" y=\"%d\">", left,
                    TITLE - 6);
    tnd_report_escape(out, picture->title);
    tnd_text_add(out, "</text>\n");
    for (int i = 0; i < picture->n_lines; i++) {
        const struct tnd_picture_line *line = &picture->lines[i];
        const struct tnd_picture_box *a = &picture->boxes[line->from];
        const struct tnd_picture_box *b = &picture->boxes[line->to];
        const int y0 = top_of(a) + height_of(a);
        const int y1 = top_of(b);
        const int middle = (y0 + y1) / 2;
        /* curves around boxes in the layers between */
        const double side = b->layer - a->layer > 1 ? 70.0 : 0.0;
        tnd_text_printf(out, "<path%s d=\"M%.0f %dC%.0f %d %.0f %d %.0f %d\"/>\n",
                        line->is_view ? " class=\"v\"" : "", a->x, y0, a->x + side,
                        side > 0 ? y0 + LAYER / 2 : middle, b->x + side,
                        side > 0 ? y1 - LAYER / 2 : middle, b->x, y1);
    }
    for (int i = 0; i < picture->n_boxes; i++) {
        const struct tnd_picture_box *box = &picture->boxes[i];
        tnd_text_printf(
            out, "<rect class=\"%s\" x=\"%.0f\" y=\"%d\" width=\"%.0f\" height=\"%d\"/>\n",
            classes[box->kind], box->x - box->width / 2, top_of(box), box->width, height_of(box));
        for (int k = 0; k < count_lines(box); k++) {
            tnd_text_printf(out, "<text x=\"%.0f\" y=\"%d\"%s>", box->x,
                            top_of(box) + (k + 1) * LINE, k == 0 ? " class=\"b\"" : "");
            tnd_report_escape(out, box->lines[k]);
            tnd_text_add(out, "</text>\n");
        }
    }
    tnd_text_add(out, "</g>\n");
}

void tnd_picture_svg(struct tnd_picture *pictures, int n, struct tnd_text *out)
{
    double width = MARGIN;
    int layers = 1;
    struct tnd_text body = TND_TEXT_INIT;
    for (int i = 0; i < n; i++) {
        int own = 0;
        const double more = lay_out(&pictures[i], &own);
        out->failed = out->failed || more <= 0;
        draw(&pictures[i], width, &body);
        width += more + 3 * MARGIN;
        layers = own > layers ? own : layers;
    }
    tnd_text_printf(out,
                    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%d\">\n"
                    "<style>\n"
                    "rect{fill:#f6f6f6;stroke:#888}.in{fill:#dcecff;rx:8px}.out{fill:#ddf3dd;"
                    "rx:8px}\n"
                    "path{fill:none;stroke:#777}.v{stroke-dasharray:4 3}\n"
                    "text{font:10px monospace;text-anchor:middle}.b{font-weight:bold}\n"
                    ".t{font:bold 13px sans-serif;text-anchor:start}\n"
                    "</style>\n<rect width=\"100%%\" height=\"100%%\" style=\"fill:#fff;"
                    "stroke:none\"/>\n",
                    width - 2 * MARGIN, TITLE + 2 * MARGIN + layers * LAYER);
    tnd_text_add_bytes(out, tnd_text_string(&body), body.n);
    tnd_text_add(out, "</svg>\n");
    out->failed = out->failed || body.failed;
    tnd_text_fini(&body);
}
