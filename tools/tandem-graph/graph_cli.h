/* SPDX-License-Identifier: MIT
 * What all commands of tandem-graph share: messages, arrays by name, a model as a net, and what
 * computes it. */
#ifndef TND_GRAPH_CLI_H
#define TND_GRAPH_CLI_H

#include <stdio.h>

#include "formats/wav.h"
#include "graph/lower.h"
#include "graph/pass.h"
#include "tandem/runtime.h"
#include "tools/args.h"
#include "tools/device_option.h"
#include "tools/dim_option.h"
#include "tools/model_parts.h"

/** Inputs, or outputs, of a net. */
struct tnd_graph_arrays {
    int n;
    const char *names[ARGS_LIST_MAX]; /* borrowed */
    struct tnd_array *arrays[ARGS_LIST_MAX];
};

/** Prints "tandem-graph: ..." to stderr and returns the exit code 1. */
int tnd_graph_fail(const struct tandem_error *error);

void tnd_graph_arrays_free(struct tnd_graph_arrays *arrays);

/** Options of how to compute, and their rows for a struct args_command. */
struct tnd_graph_runtime {
    int64_t threads; /* 0: one a core */
    const char *table;
    const char *device;
    const char *profile;
    bool is_reference;
};
#define TND_GRAPH_DEVICE_ROWS(r)                                                                   \
    {"device", ARGS_STRING, &(r)->device, 0, 0, "SEL", TND_DEVICE_OPTION_HELP},                    \
    {                                                                                              \
        "profile", ARGS_STRING, &(r)->profile, 0, 0, "NAME",                                       \
            "force a profile, and its device, wherever it applies"                                 \
    }
#define TND_GRAPH_RUNTIME_ROWS(r)                                                                  \
    {"threads", ARGS_INT, &(r)->threads, 0, 1024, "N", "threads; default: one a core"},            \
        {"table",                                                                                  \
         ARGS_STRING,                                                                              \
         &(r)->table,                                                                              \
         0,                                                                                        \
         0,                                                                                        \
         "FILE",                                                                                   \
         "timing table; none: the rule; default: this machine's"},                                 \
        TND_GRAPH_DEVICE_ROWS(r),                                                                  \
    {                                                                                              \
        "reference", ARGS_FLAG, &(r)->is_reference, 0, 0, NULL,                                    \
            "by plain code on one thread, which is slow"                                           \
    }

/** `out_runtime` gets NULL for the reference. Errors: those of tandem_runtime_open. */
enum tandem_status tnd_graph_open_runtime(const struct tnd_graph_runtime *wanted,
                                          tandem_runtime **out_runtime, struct tandem_error *error);

/** "fold,dead,..": the names of all passes in their order; lives for ever. */
const char *tnd_graph_pass_names(void);
/** "fold,equal" as a set of passes; NULL: all; "none": none. False when a name is no pass: stderr
 *  was told. */
bool tnd_graph_passes(const char *text, unsigned *out);
#define TND_GRAPH_PASSES_ROW(text)                                                                 \
    {                                                                                              \
        "passes", ARGS_STRING, (text), 0, 0, "P[,P..]",                                            \
            "these alone, as optimize names them; none; default: all"                              \
    }

/** The net of a model for these symbolic dimensions; where extents depend on computed values, that
 *  of its first part: *out_stopped gets the node that the next part begins with, else NULL. The
 *  caller frees the net. Errors: those of tnd_onnx_build, LIMIT. */
enum tandem_status tnd_graph_build(const struct tnd_onnx_model *model,
                                   const struct tandem_onnx_dim *dims, int n_dims,
                                   struct tnd_net **out_net,
                                   const struct tnd_onnx_node **out_stopped,
                                   struct tandem_error *error);
/** Prints that a net is the first part of its model; nothing for NULL. */
void tnd_graph_tell_part(FILE *file, const struct tnd_onnx_node *stopped);

/** How a model is computed. */
struct tnd_graph_call {
    tandem_onnx *model;
    tandem_runtime *runtime; /* NULL: by the reference */
    const char *passes;      /* NULL: all */
    /** Called once, when the first part is built and nothing was computed yet; NULL: nothing. */
    enum tandem_status (*ready)(void *user, struct tandem_error *error);
    void *user;
};
/** Computes a model, part by part where extents depend on values; `out` gets its outputs, which the
 *  caller frees; names belong to the model. Errors: ARGUMENT (an input is missing), those of
 *  tandem_onnx_begin, of tnd_net_run and of `ready`, LIMIT. */
enum tandem_status tnd_graph_compute(const struct tnd_graph_call *call,
                                     const struct tnd_graph_arrays *inputs,
                                     struct tnd_graph_arrays *out, struct tandem_error *error);

/** Runs one case of the ONNX project. `reason` says why it did not pass. */
enum tnd_case_status { TND_CASE_PASSED, TND_CASE_FAILED, TND_CASE_REFUSED, TND_N_CASE_STATUSES };
enum tnd_case_status tnd_graph_case(const char *folder, tandem_runtime *runtime,
                                    struct tandem_error *reason);

/** The samples of a .wav file, or of a .npy file, TND_MEL_RATE a second; tnd_wav_free ends them.
 *  Errors: those of the readers, SHAPE, ARGUMENT (another sample rate). */
enum tandem_status tnd_graph_sound(const char *path, struct tnd_wav *out,
                                   struct tandem_error *error);
/** The spectrogram (formats/mel.h) of a .wav file, or of a .npy file of samples. Errors: those of
 *  the readers, SHAPE, ARGUMENT (another sample rate). */
enum tandem_status tnd_graph_mel(const char *path, int bins, int64_t frames, struct tnd_array **out,
                                 struct tandem_error *error);

int tnd_cmd_graph_run(int argc, char **argv);
int tnd_cmd_graph_bench(int argc, char **argv);
int tnd_cmd_graph_inspect(int argc, char **argv);
int tnd_cmd_graph_mel(int argc, char **argv);
int tnd_cmd_graph_optimize(int argc, char **argv);
int tnd_cmd_graph_svg(int argc, char **argv);
int tnd_cmd_graph_transcribe(int argc, char **argv);
int tnd_cmd_graph_test(int argc, char **argv);

/** Times of what is measured. */
double tnd_graph_now_ns(void);
/** Ascending. */
void tnd_graph_sort(double *values, int n);

#endif
