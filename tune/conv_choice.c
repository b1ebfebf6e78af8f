/* SPDX-License-Identifier: MIT
 * Methods of convolutions by measured times. */
#include "tune/conv_choice.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/emit.h"
#include "table/records.h"
#include "tune/policy.h"

enum { MOST_NEAR = 4 };

/* Measured convolutions near a given one, the nearest first: distance in doublings, and logarithm
 * of the time per multiply-add. */
struct near {
    int n;
    double far[MOST_NEAR];
    double log_rate[MOST_NEAR];
};

/* ---- times ---- */

static void take_measured(const struct tnd_conv_time *record, struct tnd_conv_estimate *out)
{
    const double samples = record->count > 1 ? (double)record->count : 1;
    const double least = record->count < TND_CONV_FEW ? TND_ERROR_BEYOND : TND_ERROR_LINE;
    const bool is_noisy = record->spread_us > TND_NOISY_FRAC * record->median_us;
    const double sigma_us = TND_MAD_TO_SIGMA * record->spread_us;
    const double spread_us = is_noisy ? sigma_us : sigma_us / sqrt(samples);
    *out = (struct tnd_conv_estimate){record->median_us, fmax(spread_us, least * record->median_us),
                                      0};
}

/* Output positions of all images. */
static double places(const struct tnd_conv_shape *shape)
{
    double n = (double)shape->images;
    for (int i = 0; i < shape->n; i++) {
        n *= (double)shape->result[i];
    }
    return n;
}

static double distance(const struct tnd_conv_shape *a, const struct tnd_conv_shape *b)
{
    const double channels = log2((double)a->channels / (double)b->channels);
    const double filters = log2((double)a->filters / (double)b->filters);
    const double sizes = log2(places(a) / places(b));
    return sqrt(channels * channels + filters * filters + sizes * sizes);
}

/* Whether both differ only in sizes and padding. */
static bool is_kin(const struct tnd_conv_time *a, const struct tnd_conv_time *b)
{
    return a->groups == b->groups && a->followed == b->followed && a->threads == b->threads &&
           strcmp(a->device, b->device) == 0 && strcmp(a->method, b->method) == 0 &&
           strcmp(a->window, b->window) == 0 && strcmp(a->stride, b->stride) == 0 &&
           strcmp(a->dilation, b->dilation) == 0;
}

static void add_near(struct near *near, double far, double log_rate)
{
    int at = near->n < MOST_NEAR ? near->n++ : MOST_NEAR;
    while (at > 0 && near->far[at - 1] > far) {
        if (at < MOST_NEAR) {
            near->far[at] = near->far[at - 1];
            near->log_rate[at] = near->log_rate[at - 1];
        }
        at--;
    }
    if (at < MOST_NEAR) {
        near->far[at] = far;
        near->log_rate[at] = log_rate;
    }
}

static void find_near(const struct tandem_table *table, const struct tnd_conv_shape *shape,
                      const struct tnd_conv_time *key, struct near *out)
{
    struct tnd_conv_shape other;
    out->n = 0;
    for (int i = 0; i < table->n_convolutions; i++) {
        const struct tnd_conv_time *record = &table->convolutions[i];
        if (is_kin(record, key) && record->median_us > 0 && tnd_conv_shape_of(record, &other)) {
            const double far = distance(shape, &other);
            if (far <= TND_CONV_FARTHEST) {
                add_near(out, far, log(record->median_us / tnd_conv_multiply_adds(&other)));
            }
        }
    }
}

static double weight(double far)
{
    return 1 / (far * far + TND_CONV_NEAR * TND_CONV_NEAR);
}

/* Weighted mean of values, and their standard deviation. */
static void mean_of(const struct near *near, const double *values, double *out_mean,
                    double *out_sigma)
{
    double sum = 0;
    double mean = 0;
    double squares = 0;
    for (int i = 0; i < near->n; i++) {
        sum += weight(near->far[i]);
        mean += weight(near->far[i]) * values[i];
    }
    mean /= sum;
    for (int i = 0; i < near->n; i++) {
        squares += weight(near->far[i]) * (values[i] - mean) * (values[i] - mean);
    }
    *out_mean = mean;
    *out_sigma = sqrt(squares / sum);
}

static double share_of_distance(const struct near *near)
{
    return TND_ERROR_LINE + TND_ERROR_BEYOND * near->far[0];
}

/* `device` "": on the CPU. */
static void estimate(const struct tandem_table *table, const struct tnd_conv_shape *shape,
                     enum tnd_conv_method method, const char *device, int threads,
                     struct near *near, struct tnd_conv_estimate *out)
{
    struct tnd_conv_time key;
    double mean;
    double sigma;
    near->n = 0;
    *out = (struct tnd_conv_estimate){.us = -1};
    if (table == NULL) {
        return;
    }
    tnd_conv_key(shape, method, threads, &key);
    (void)snprintf(key.device, sizeof(key.device), "%s", device);
    const struct tnd_conv_time *record = tnd_record_find(table, TND_RECORD_CONVOLUTIONS, &key);
    if (record != NULL) {
        take_measured(record, out);
        return;
    }
    find_near(table, shape, &key, near);
    if (near->n > 0) {
        mean_of(near, near->log_rate, &mean, &sigma);
        out->us = exp(mean) * tnd_conv_multiply_adds(shape);
        out->error_us = out->us * (sigma + share_of_distance(near));
        out->n_near = near->n;
    }
}

void tnd_conv_estimate(const struct tandem_table *table, const struct tnd_conv_shape *shape,
                       enum tnd_conv_method method, int threads, struct tnd_conv_estimate *out)
{
    struct near near;
    estimate(table, shape, method, "", threads, &near, out);
}

void tnd_conv_device_estimate(const struct tandem_table *table, const struct tnd_conv_shape *shape,
                              enum tnd_conv_method method, const char *device,
                              struct tnd_conv_estimate *out)
{
    struct near near;
    estimate(table, shape, method, device, 1, &near, out);
}

/* Finds the fastest method with a known time; false: none. */
static bool best_of(const struct tandem_table *table, const struct tnd_conv_shape *shape,
                    const char *device, int threads, double *out_us)
{
    struct near near;
    *out_us = INFINITY;
    for (int method = 0; method < TND_CONV_METHODS; method++) {
        struct tnd_conv_estimate one;
        estimate(table, shape, (enum tnd_conv_method)method, device, threads, &near, &one);
        *out_us = one.us >= 0 ? fmin(*out_us, one.us + one.error_us) : *out_us;
    }
    return isfinite(*out_us);
}

bool tnd_conv_prefers_device(const struct tandem_table *table, int threads, const char *device,
                             const struct tnd_conv_shape *shapes, int n)
{
    double all = 0;
    double known = 0;
    double cpu_us = 0;
    double device_us = 0;
    for (int i = 0; i < n && table != NULL && table->n_convolutions > 0; i++) {
        double there_us;
        double here_us;
        all += tnd_conv_multiply_adds(&shapes[i]);
        if (best_of(table, &shapes[i], device, 1, &there_us) &&
            best_of(table, &shapes[i], "", threads, &here_us)) {
            known += tnd_conv_multiply_adds(&shapes[i]);
            device_us += there_us;
            cpu_us += here_us;
        }
    }
    return known > 0 && known >= TND_CONV_DEVICE_KNOWN * all &&
           device_us <= TND_CONV_DEVICE_GAIN * cpu_us;
}

/* ---- choosing ---- */

/* Whether the methods were measured at the same convolutions. */
static bool is_beside(const struct near *a, const struct near *b)
{
    bool is = a->n > 0 && a->n == b->n;
    for (int i = 0; is && i < a->n; i++) {
        is = a->far[i] == b->far[i];
    }
    return is;
}

/* Whether `a` is faster than `b` by more than the error of the difference. If both were measured at
 * the same convolutions near this one, their ratio is more certain than their times. */
static bool is_clearly_faster(const struct tnd_conv_estimate *a, const struct near *near_a,
                              const struct tnd_conv_estimate *b, const struct near *near_b)
{
    if (is_beside(near_a, near_b)) {
        double ratios[MOST_NEAR];
        double mean;
        double sigma;
        for (int i = 0; i < near_a->n; i++) {
            ratios[i] = near_a->log_rate[i] - near_b->log_rate[i];
        }
        mean_of(near_a, ratios, &mean, &sigma);
        return mean + sigma + share_of_distance(near_a) < 0;
    }
    return a->us + sqrt(a->error_us * a->error_us + b->error_us * b->error_us) < b->us;
}

void tnd_conv_choose(const struct tandem_table *table, int threads,
                     const struct tnd_conv_question *question, struct tnd_conv_choice *out)
{
    struct near near[TND_CONV_METHODS];
    tnd_conv_choose_by_rule(question, out);
    int best = out->by_rule;
    if (question->for_device && question->device[0] == '\0') {
        return; /* (for an unnamed device, whose times are unknown) */
    }
    for (int method = 0; method < TND_CONV_METHODS; method++) {
        if (question->may[method]) {
            estimate(table, &question->shape, (enum tnd_conv_method)method, question->device,
                     question->for_device ? 1 : threads, &near[method], &out->times[method]);
        }
    }
    const struct tnd_conv_estimate *rule = &out->times[out->by_rule];
    if (rule->us < 0) {
        return;
    }
    for (int method = 0; method < TND_CONV_METHODS; method++) {
        const struct tnd_conv_estimate *time = &out->times[method];
        const bool is_faster = time->us >= 0 && time->us < out->times[best].us;
        best = is_faster ? method : best;
    }
    const bool is_clear =
        best == (int)out->by_rule ||
        is_clearly_faster(&out->times[best], &near[best], rule, &near[out->by_rule]);
    const bool is_near = rule->n_near > 0 || out->times[best].n_near > 0;
    out->method = is_clear ? (enum tnd_conv_method)best : out->by_rule;
    out->is_measured = true;
    out->reason = !is_clear ? "by rule, no other method is clearly faster"
                  : is_near ? "the fastest by measured convolutions near this one"
                            : "the fastest that was measured";
}

/* ---- explaining ---- */

/* Threads to print: a device's times have none. */
static int shown_threads(const struct tnd_conv_choice *choice, int threads)
{
    return choice->question.device[0] != '\0' ? 0 : threads;
}

void tnd_conv_explain(const struct tnd_conv_choice *choice, int threads, struct tnd_text *out)
{
    char problem[TND_CONV_PROBLEM_MAX];
    tnd_conv_problem_print(&choice->question.shape, shown_threads(choice, threads),
                           TND_CONV_METHODS, problem, sizeof(problem));
    tnd_text_printf(out, "%s\n  %s%s%s: %s;", problem, tnd_conv_method_name(choice->method),
                    choice->question.device[0] != '\0' ? " on " : "", choice->question.device,
                    choice->reason);
    for (int method = 0; method < TND_CONV_METHODS; method++) {
        const struct tnd_conv_estimate *time = &choice->times[method];
        if (!choice->question.may[method]) {
            continue;
        }
        tnd_text_printf(out, "  %s ", tnd_conv_method_name((enum tnd_conv_method)method));
        if (time->us < 0) {
            tnd_text_add(out, "not measured");
            continue;
        }
        tnd_emit_number(out, 0, 1, time->us);
        tnd_text_add(out, " +- ");
        tnd_emit_number(out, 0, 1, time->error_us);
        tnd_text_add(out, " us");
        if (time->n_near > 0) {
            tnd_text_printf(out, " (by %d near)", time->n_near);
        }
    }
    tnd_text_add_char(out, '\n');
}

struct tnd_conv_question tnd_conv_question_on(const struct tnd_conv_question *question,
                                              const char *device)
{
    struct tnd_conv_question there = *question;
    there.for_device = true;
    there.may[TND_CONV_WINOGRAD] = false;
    there.winograd_gain = 0;
    (void)snprintf(there.device, sizeof(there.device), "%s", device);
    return there;
}

void tnd_conv_explain_on(const struct tandem_table *table, const char *device,
                         const struct tnd_conv_question *question, struct tnd_text *out)
{
    const struct tnd_conv_question there = tnd_conv_question_on(question, device);
    struct tnd_conv_choice choice;
    tnd_conv_choose(table, 1, &there, &choice);
    tnd_conv_explain(&choice, 1, out);
}

void tnd_conv_explain_json(const struct tnd_conv_choice *choice, int threads, struct tnd_text *out)
{
    char problem[TND_CONV_PROBLEM_MAX];
    const char *separator = "";
    tnd_conv_problem_print(&choice->question.shape, shown_threads(choice, threads),
                           TND_CONV_METHODS, problem, sizeof(problem));
    tnd_text_printf(out, "{\"problem\": \"%s\", \"method\": \"%s\", \"by_rule\": \"%s\", ", problem,
                    tnd_conv_method_name(choice->method), tnd_conv_method_name(choice->by_rule));
    if (choice->question.device[0] != '\0') {
        tnd_text_add(out, "\"device\": ");
        tnd_emit_json_string(out, choice->question.device);
        tnd_text_add(out, ", ");
    }
    tnd_text_printf(out, "\"is_measured\": %s, \"reason\": \"%s\", \"methods\": {",
                    choice->is_measured ? "true" : "false", choice->reason);
    for (int method = 0; method < TND_CONV_METHODS; method++) {
        const struct tnd_conv_estimate *time = &choice->times[method];
        if (!choice->question.may[method]) {
            continue;
        }
        tnd_text_printf(out, "%s\"%s\": ", separator,
                        tnd_conv_method_name((enum tnd_conv_method)method));
        separator = ", ";
        if (time->us < 0) {
            tnd_text_add(out, "null");
            continue;
        }
        tnd_text_add(out, "{\"us\": ");
        tnd_text_add_double(out, time->us);
        tnd_text_add(out, ", \"error_us\": ");
        tnd_text_add_double(out, time->error_us);
        tnd_text_printf(out, ", \"near\": %d}", time->n_near);
    }
    tnd_text_add(out, "}}");
}
