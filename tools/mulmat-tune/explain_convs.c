/* SPDX-License-Identifier: MIT
 * Explains the methods of convolutions: asks the same questions as lowering a net. */
#include "tools/mulmat-tune/explain_convs.h"

#include <stdio.h>
#include <string.h>

#include "base/emit.h"
#include "base/tnd_status.h"
#include "runtime/tune_convs.h"
#include "tools/mulmat-tune/cmd_output.h"
#include "tune/conv_choice.h"

/* Chooses by the table alone, which may be another machine's. */
struct by_table {
    const struct tandem_table *table;
    int threads;
};

static bool begin(void *user, const struct tnd_conv_shape *shapes, int n)
{
    (void)user;
    (void)shapes;
    (void)n;
    return false;
}

static void choose(void *user, const struct tnd_conv_question *question,
                   struct tnd_conv_choice *out)
{
    const struct by_table *by = user;
    tnd_conv_choose(by->table, by->threads, question, out);
}

static void add(const struct explain_convs_request *request, const struct tnd_conv_choice *choice,
                int threads, const char *separator, struct tnd_text *out)
{
    if (request->json) {
        tnd_text_printf(out, "%s    ", separator);
        tnd_conv_explain_json(choice, threads, out);
    } else {
        tnd_conv_explain(choice, threads, out);
    }
}

/* Adds the choices on devices for which the table has times. */
static void add_devices(const struct explain_convs_request *request,
                        const struct tnd_conv_question *question, struct tnd_text *out)
{
    enum { MOST_DEVICES = 16 };
    const struct tandem_table *table = request->table;
    const char *known[MOST_DEVICES];
    int n = 0;
    for (int i = 0; table != NULL && i < table->n_convolutions; i++) {
        const char *device = table->convolutions[i].device;
        bool is_new = device[0] != '\0' && n < MOST_DEVICES;
        for (int k = 0; is_new && k < n; k++) {
            is_new = strcmp(known[k], device) != 0;
        }
        if (is_new) {
            known[n++] = device;
            const struct tnd_conv_question there = tnd_conv_question_on(question, device);
            struct tnd_conv_choice choice;
            tnd_conv_choose(table, 1, &there, &choice);
            add(request, &choice, 1, ",\n", out);
        }
    }
}

static enum tandem_status add_problem(const struct explain_convs_request *request,
                                      struct tnd_text *out, bool *is_measured,
                                      struct tandem_error *error)
{
    struct by_table by = {request->table, 0};
    const struct tandem_chooser chooser = {begin, choose, &by};
    struct tnd_conv_shape shape;
    struct tnd_conv_choice choice;
    TND_TRY(tnd_conv_problem_parse(request->problem, &shape, &by.threads, error));
    by.threads = by.threads > 0 ? by.threads : request->threads;
    TND_TRY(tnd_conv_ask(&chooser, &shape, &choice, error));
    *is_measured = choice.is_measured;
    add(request, &choice, by.threads, "", out);
    add_devices(request, &choice.question, out);
    return TANDEM_OK;
}

static enum tandem_status add_net(const struct explain_convs_request *request, struct tnd_text *out,
                                  bool *is_measured, struct tandem_error *error)
{
    struct net_convs convs;
    enum tandem_status status = net_convs_read(request->net, &convs, error);
    for (int i = 0; i < convs.n && status == TANDEM_OK; i++) {
        struct tnd_conv_choice choice;
        tnd_conv_choose(request->table, request->threads, &convs.questions[i], &choice);
        *is_measured = *is_measured && choice.is_measured;
        add(request, &choice, request->threads, i > 0 ? ",\n" : "", out);
        add_devices(request, &choice.question, out);
    }
    net_convs_fini(&convs);
    return status;
}

enum tandem_status explain_convs(const struct explain_convs_request *request,
                                 struct tandem_error *error)
{
    struct tnd_text text = TND_TEXT_INIT;
    bool is_measured = true;
    if (request->json) {
        tnd_text_add(&text, "{\n  \"table\": ");
        tnd_emit_json_string(&text, request->table_name);
        tnd_text_add(&text, ",\n  \"convolutions\": [\n");
    } else {
        tnd_text_printf(&text, "Timing table: %s\n",
                        request->table_name[0] != '\0' ? request->table_name : "none");
    }
    const enum tandem_status status = request->problem != NULL
                                          ? add_problem(request, &text, &is_measured, error)
                                          : add_net(request, &text, &is_measured, error);
    if (status != TANDEM_OK) {
        tnd_text_fini(&text);
        return status;
    }
    tnd_text_add(&text, request->json ? "\n  ]\n}\n"
                        : is_measured ? ""
                                      : "\nNot all of it was measured. To know better, on that "
                                        "machine:\n  mulmat-tune bench --net MODEL.onnx\n");
    return tnd_emit_end(&text, tnd_cmd_write, stdout, "explain", error);
}
