/* SPDX-License-Identifier: MIT
 * Printing a replay: sums by lane, by profile and by shape of the products. */
#include "tools/report/replay_print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/emit.h"

enum { MAX_CHOICES = 64 };

/* Products of one shape that use one profile. */
struct choice {
    const struct tandem_plan_node *node; /* the first one */
    const struct tandem_tensor *product;
    int count;
    double us; /* on their lanes, without transfers */
};

static int64_t tokens_of(const struct tandem_tensor *product)
{
    return product->ne[product->op == TANDEM_OP_MUL_MAT_ID ? 2 : 1];
}

static bool is_same(const struct choice *choice, const struct tandem_plan_node *node,
                    const struct tandem_tensor *product)
{
    const struct tandem_tensor *known = choice->product;
    return known->ne[0] == product->ne[0] && tokens_of(known) == tokens_of(product) &&
           known->src[0]->ne[0] == product->src[0]->ne[0] &&
           known->src[0]->type == product->src[0]->type &&
           choice->node->n_threads == node->n_threads &&
           strcmp(choice->node->profile, node->profile) == 0;
}

static bool is_product(const struct tandem_tensor *node)
{
    return node->op == TANDEM_OP_MUL_MAT_ID ||
           (node->op == TANDEM_OP_MUL_MAT && tnd_mul_mat_is_plain(node));
}

/* Index of the entry that a product belongs to; `n` if there is none yet. */
static int find_choice(const struct tnd_replay_subject *subject, int i,
                       const struct choice *choices, int n)
{
    int c = 0;
    const struct tnd_item *item = &subject->items->list[i];
    while (c < n && !is_same(&choices[c], item->choice, item->tensor)) {
        c++;
    }
    return c;
}

/* Entries in the order of the plan, at most MAX_CHOICES. */
static int find_choices(const struct tnd_replay_subject *subject, const struct tnd_replay *replay,
                        struct choice out[MAX_CHOICES])
{
    int n = 0;
    const struct tnd_item *items = subject->items->list;
    for (int i = 0; i < subject->items->n; i++) {
        if (!is_product(items[i].tensor)) {
            continue;
        }
        int c = find_choice(subject, i, out, n);
        if (c == n && n < MAX_CHOICES) {
            out[n++] = (struct choice){items[i].choice, items[i].tensor, 0, 0};
        }
        if (c < n) {
            out[c].count++;
        }
    }
    for (int i = 0; i < replay->n_events; i++) {
        const struct tnd_replay_event *event = &replay->events[i];
        int c = is_product(items[event->item].tensor) && event->step >= 0
                    ? find_choice(subject, event->item, out, n)
                    : n;
        if (c < n) {
            out[c].us += event->end_us - event->begin_us;
        }
    }
    return n;
}

static double share(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

static double rate(const struct tnd_replay *replay, const struct tnd_replay_subject *subject)
{
    return replay->makespan_us > 0 ? (double)subject->m * 1e6 / replay->makespan_us : 0;
}

/* ---- text ---- */

static void add_time(struct tnd_text *out, int width, double us)
{
    tnd_emit_number(out, width, 3, us * 1e-3);
    tnd_text_add(out, " ms");
}

static void add_percent(struct tnd_text *out, double part, double whole)
{
    tnd_emit_number(out, 6, 1, 100 * share(part, whole));
    tnd_text_add(out, " %");
}

static void text_choices(const struct tnd_replay *replay, const struct tnd_replay_subject *subject,
                         struct tnd_text *out)
{
    struct choice choices[MAX_CHOICES];
    int n = find_choices(subject, replay, choices);
    tnd_text_add(out, "  products (N x K, tokens)              way                     threads  "
                      "count      time\n");
    for (int i = 0; i < n; i++) {
        char shape[96];
        const struct tandem_tensor *product = choices[i].product;
        snprintf(shape, sizeof(shape), "%" PRId64 " x %" PRId64 " %s, M %" PRId64, product->ne[0],
                 product->src[0]->ne[0], tandem_type_name(product->src[0]->type),
                 tokens_of(product));
        tnd_text_printf(out, "    %-36s  %-22s  %7d  %5d  ", shape, choices[i].node->profile,
                        choices[i].node->n_threads, choices[i].count);
        add_time(out, 9, choices[i].us);
        tnd_text_add_char(out, '\n');
    }
}

void tnd_replay_text(const struct tnd_replay *replay, const struct tnd_replay_subject *subject,
                     struct tnd_text *out)
{
    tnd_text_printf(out, "M = %" PRId64 ", at most %d thread%s: ", subject->m, subject->threads,
                    subject->threads == 1 ? "" : "s");
    add_time(out, 0, replay->makespan_us);
    tnd_text_add(out, ", ");
    tnd_emit_number(out, 0, 2, rate(replay, subject));
    tnd_text_add(out, " tokens/s");
    if (subject->graph->n_chains > 1) {
        tnd_text_printf(out, ", in %d micro-batches", subject->graph->n_chains);
    }
    tnd_text_add(out, "\n  lane                               busy      share  events\n");
    for (int i = 0; i < replay->n_lanes; i++) {
        const struct tnd_replay_lane *lane = &replay->lanes[i];
        tnd_text_printf(out, "    %-24s  ", lane->name);
        add_time(out, 9, lane->busy_us);
        add_percent(out, lane->busy_us, replay->makespan_us);
        tnd_text_printf(out, "  %6d\n", lane->n_events);
    }
    tnd_text_printf(out, "    %-24s  ", "(the CPU waits)");
    add_time(out, 9, replay->makespan_us - replay->host_busy_us);
    add_percent(out, replay->makespan_us - replay->host_busy_us, replay->makespan_us);
    tnd_text_add(out, "\n  critical path                      time      share  events\n");
    for (int i = 0; i < replay->n_parts; i++) {
        const struct tnd_replay_part *part = &replay->parts[i];
        tnd_text_printf(out, "    %-24s  ", part->name);
        add_time(out, 9, part->us);
        add_percent(out, part->us, replay->makespan_us);
        tnd_text_printf(out, "  %6d\n", part->n_events);
    }
    text_choices(replay, subject, out);
    if (replay->n_untimed_products > 0) {
        tnd_text_printf(out, "  Products without times in the table, which took none here: %d.\n",
                        replay->n_untimed_products);
    }
    if (replay->n_untimed > replay->n_untimed_products) {
        tnd_text_printf(out,
                        "  %d steps of other operations (norms, attention and the like) are not in "
                        "the table and took no time here; see --memory-gbps.\n",
                        replay->n_untimed - replay->n_untimed_products);
    }
}

/* ---- JSON ---- */

static void json_number(struct tnd_text *out, const char *name, double value)
{
    tnd_text_printf(out, "\"%s\": ", name);
    tnd_text_add_double(out, value);
}

static void json_choices(const struct tnd_replay *replay, const struct tnd_replay_subject *subject,
                         const char *indent, struct tnd_text *out)
{
    struct choice choices[MAX_CHOICES];
    int n = find_choices(subject, replay, choices);
    for (int i = 0; i < n; i++) {
        const struct tandem_tensor *product = choices[i].product;
        tnd_text_printf(out,
                        "%s\n%s    {\"type\": \"%s\", \"n\": %" PRId64 ", \"k\": %" PRId64
                        ", \"m\": %" PRId64 ", \"profile\": ",
                        i > 0 ? "," : "", indent, tandem_type_name(product->src[0]->type),
                        product->ne[0], product->src[0]->ne[0], tokens_of(product));
        tnd_emit_json_string(out, choices[i].node->profile);
        tnd_text_printf(out, ", \"threads\": %d, \"count\": %d, ", choices[i].node->n_threads,
                        choices[i].count);
        json_number(out, "us", choices[i].us);
        tnd_text_add_char(out, '}');
    }
}

void tnd_replay_json(const struct tnd_replay *replay, const struct tnd_replay_subject *subject,
                     const char *indent, struct tnd_text *out)
{
    tnd_text_printf(out, "{\"m\": %" PRId64 ", \"threads\": %d, ", subject->m, subject->threads);
    if (subject->graph->n_chains > 1) {
        tnd_text_printf(out, "\"micro_batches\": %d, ", subject->graph->n_chains);
    }
    json_number(out, "makespan_us", replay->makespan_us);
    tnd_text_add(out, ", ");
    json_number(out, "tokens_per_s", rate(replay, subject));
    tnd_text_add(out, ", ");
    json_number(out, "cpu_us", replay->worker_us);
    tnd_text_add(out, ", ");
    json_number(out, "cpu_waits_us", replay->makespan_us - replay->host_busy_us);
    tnd_text_printf(out,
                    ", \"events\": %d, \"untimed_events\": %d, "
                    "\"untimed_product_events\": %d,\n%s  \"lanes\": [",
                    replay->n_events, replay->n_untimed, replay->n_untimed_products, indent);
    for (int i = 0; i < replay->n_lanes; i++) {
        const struct tnd_replay_lane *lane = &replay->lanes[i];
        tnd_text_printf(out, "%s\n%s    {\"lane\": ", i > 0 ? "," : "", indent);
        tnd_emit_json_string(out, lane->name);
        tnd_text_printf(out, ", \"workers\": %d, \"events\": %d, ", lane->workers, lane->n_events);
        json_number(out, "busy_us", lane->busy_us);
        tnd_text_add(out, ", ");
        json_number(out, "share", share(lane->busy_us, replay->makespan_us));
        tnd_text_add_char(out, '}');
    }
    tnd_text_printf(out, "],\n%s  \"critical_path\": [", indent);
    for (int i = 0; i < replay->n_parts; i++) {
        const struct tnd_replay_part *part = &replay->parts[i];
        tnd_text_printf(out, "%s\n%s    {\"part\": ", i > 0 ? "," : "", indent);
        tnd_emit_json_string(out, part->name);
        tnd_text_printf(out, ", \"events\": %d, ", part->n_events);
        json_number(out, "us", part->us);
        tnd_text_add(out, ", ");
        json_number(out, "share", share(part->us, replay->makespan_us));
        tnd_text_add_char(out, '}');
    }
    tnd_text_printf(out, "],\n%s  \"products\": [", indent);
    json_choices(replay, subject, indent, out);
    tnd_text_add(out, "]}");
}

/* ---- trace ---- */

static void trace_names(const struct tnd_replay *replay, const struct tnd_replay_subject *subject,
                        int process, struct tnd_text *out)
{
    tnd_text_printf(out,
                    "%s{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": %d, \"args\": "
                    "{\"name\": \"M = %" PRId64 "\"}}",
                    out->n > 0 ? ",\n" : "", process, subject->m);
    for (int i = 0; i < replay->n_lanes; i++) {
        tnd_text_printf(out,
                        ",\n{\"name\": \"thread_name\", \"ph\": \"M\", \"pid\": %d, \"tid\": %d, "
                        "\"args\": {\"name\": ",
                        process, i + 1);
        tnd_emit_json_string(out, replay->lanes[i].name);
        tnd_text_add(out, "}}");
    }
}

void tnd_replay_trace(const struct tnd_replay *replay, const struct tnd_replay_subject *subject,
                      int process, struct tnd_text *out)
{
    trace_names(replay, subject, process, out);
    for (int i = 0; i < replay->n_events; i++) {
        const struct tnd_replay_event *event = &replay->events[i];
        const struct tandem_tensor *node = subject->items->list[event->item].tensor;
        char name[TANDEM_MAX_NAME + 32];
        snprintf(name, sizeof(name), "%s %s", event->step < 0 ? "wake" : tandem_op_name(node->op),
                 node->name);
        tnd_text_add(out, ",\n{\"name\": ");
        tnd_emit_json_string(out, name);
        tnd_text_printf(out, ", \"ph\": \"X\", \"pid\": %d, \"tid\": %d, \"ts\": ", process,
                        event->lane + 1);
        tnd_text_add_double(out, event->begin_us);
        tnd_text_add(out, ", \"dur\": ");
        tnd_text_add_double(out, event->end_us - event->begin_us);
        tnd_text_add(out, ", \"args\": {\"profile\": ");
        tnd_emit_json_string(out, subject->items->list[event->item].choice->profile);
        tnd_text_printf(out, ", \"node\": %d, \"stage\": \"%s\", \"timed\": %s}}", event->item,
                        tandem_stage_name((enum tandem_stage)event->stage),
                        event->is_timed ? "true" : "false");
    }
}
