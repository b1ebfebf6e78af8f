/* SPDX-License-Identifier: MIT
 * bench-planning: what it costs to plan the pass of a llama on the machine of a timing table, new
 * and known. Nothing is computed, so no device is needed. Takes a few seconds.
 * usage: bench-planning [--layers N] TABLE... */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "formats/source.h"
#include "sched/plan.h"
#include "tools/report/model_graph.h"
#include "tools/report/stub_backends.h"
#include "tune/planner.h"

enum { GRAPHS = 48, FIRST_M = 2, THREADS = 2 };

struct sample {
    double new_us, known_us, predicted_us;
};

static void stop_at(enum tandem_status status, const struct tandem_error *error)
{
    if (status != TANDEM_OK) {
        fprintf(stderr, "bench-planning: %s\n", error->text);
        exit(1);
    }
}

static int by_new(const void *left, const void *right)
{
    double a = ((const struct sample *)left)->new_us;
    double b = ((const struct sample *)right)->new_us;
    return (a > b) - (a < b);
}

static double plan_once(struct tnd_planner *planner, const struct model_graph *pass,
                        double *out_predicted_us)
{
    const struct tnd_clock *clock = tnd_clock_real();
    struct tandem_plan *plan;
    struct tandem_error error;
    uint64_t begin = clock->now_ns(clock);
    stop_at(tnd_planner_plan(planner, pass->graph, THREADS, &plan, &error), &error);
    double us = (double)(clock->now_ns(clock) - begin) / 1e3;
    *out_predicted_us = plan->schedule != NULL ? (double)plan->schedule->makespan_us : 0;
    tandem_plan_free(plan);
    return us;
}

static void run(const tandem_table *table, const char *path, int64_t layers)
{
    const struct tandem_llama_shape shape = {.size = sizeof(shape),
                                             .dim = 4096,
                                             .hidden = 14336,
                                             .layers = layers,
                                             .heads = 32,
                                             .kv_heads = 8,
                                             .vocabulary = 128256,
                                             .context = 4096,
                                             .head_size = 128};
    struct tandem_error error;
    struct model_graphs graphs = {.source = NULL};
    struct tnd_registry *registry;
    struct tnd_planner *planner;
    struct sample samples[GRAPHS];
    int n_nodes = 0;
    double predicted_us = 0;
    stop_at(tnd_source_outline(&shape, TANDEM_TYPE_Q4_0, &graphs.source, &error), &error);
    stop_at(tandem_model_new(graphs.source, &graphs.model, &error), &error);
    stop_at(tnd_stub_backends_open(table, THREADS, &registry, &error), &error);
    const struct tnd_planner_options options = {.registry = registry, .clock = tnd_clock_real()};
    stop_at(tnd_planner_new(&options, &planner, &error), &error);
    tnd_planner_set_candidates(planner, tnd_stub_candidates);
    tnd_planner_set_table(planner, table);
    for (int i = 0; i < GRAPHS; i++) {
        struct model_graph pass;
        stop_at(model_graph_build(&graphs, FIRST_M + i, 0, 1, &pass, &error), &error);
        samples[i].new_us = plan_once(planner, &pass, &samples[i].predicted_us);
        samples[i].known_us = plan_once(planner, &pass, &samples[i].predicted_us);
        n_nodes = pass.graph->n_nodes;
        predicted_us += samples[i].predicted_us / GRAPHS;
        model_graph_fini(&pass);
    }
    qsort(samples, GRAPHS, sizeof(samples[0]), by_new);
    const struct sample *middle = &samples[GRAPHS / 2];
    printf("%-40s %4d nodes: new %8.1f us (%.2f us a node; %.1f .. %.1f), known %7.1f us (%.2f), "
           "a run %.1f us\n",
           path, n_nodes, middle->new_us, middle->new_us / n_nodes, samples[0].new_us,
           samples[GRAPHS - 1].new_us, middle->known_us, middle->known_us / n_nodes, predicted_us);
    tnd_planner_free(planner);
    tnd_registry_close(registry);
    model_graphs_close(&graphs);
}

/* Exits unless the remaining arguments are tables. */
static int64_t read_arguments(int argc, char **argv, int *out_first)
{
    static const char usage[] = "usage: bench-planning [--layers N] TABLE...\n"
                                "Plans passes of a llama on the machines of timing tables: what "
                                "it takes, in microseconds.\n"
                                "  --layers N  of a model of N layers, not of 2, 8, 32 and 128\n";
    int64_t layers = 0;
    *out_first = 1;
    if (argc > 2 && strcmp(argv[1], "--layers") == 0) {
        layers = strtol(argv[2], NULL, 10);
        *out_first = 3;
        if (layers < 1 || layers > 512) {
            fprintf(stderr, "bench-planning: --layers must be 1 .. 512\n");
            exit(2);
        }
    }
    for (int i = *out_first; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            fputs(usage, stdout);
            exit(0);
        }
        if (argv[i][0] == '-') {
            fprintf(stderr, "unknown option '%s'\n%s", argv[i], usage);
            exit(2);
        }
    }
    if (argc <= *out_first) {
        fprintf(stderr, "bench-planning: no table is named\n%s", usage);
        exit(2);
    }
    return layers;
}

int main(int argc, char **argv)
{
    int first;
    int64_t only = read_arguments(argc, argv, &first);
    for (int i = first; i < argc; i++) {
        struct tandem_error error;
        tandem_table *table;
        stop_at(tandem_table_load(argv[i], &table, &error), &error);
        for (int64_t layers = only > 0 ? only : 2; layers <= (only > 0 ? only : 128); layers *= 4) {
            run(table, argv[i], layers);
        }
        tandem_table_free(table);
    }
    return 0;
}
