/* SPDX-License-Identifier: MIT
 * Shared by the commands of tandem-graph: messages, arrays by name, building a net from a model,
 * and computing it. */
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

/** Options for computing, and their entries for a struct args_command. */
struct tnd_graph_runtime {
    int64_t threads; /* 0: one per core */
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

/** Opens a runtime; *out_runtime is NULL for the reference. Errors: those of
 * tandem_runtime_open. */
enum tandem_status tnd_graph_open_runtime(const struct tnd_graph_runtime *wanted,
                                          tandem_runtime **out_runtime, struct tandem_error *error);

/** "fold,dead,...": names of all passes in order. Static. */
const char *tnd_graph_pass_names(void);
/** Parses "fold,equal" into a set of passes; NULL: all; "none": none. False, after a message on
 * stderr, for an unknown name. */
bool tnd_graph_passes(const char *text, unsigned *out);
#define TND_GRAPH_PASSES_ROW(text)                                                                 \
    {                                                                                              \
        "passes", ARGS_STRING, (text), 0, 0, "P[,P..]",                                            \
            "these alone, as optimize names them; none; default: all"                              \
    }

/** Builds the net of a model for these symbolic dimensions; if extents depend on computed values,
 * only the first part: *out_stopped gets the node that begins the next part, else NULL. The caller
 * frees the net. Errors: those of tnd_onnx_build, LIMIT. */
enum tandem_status tnd_graph_build(const struct tnd_onnx_model *model,
                                   const struct tandem_onnx_dim *dims, int n_dims,
                                   struct tnd_net **out_net,
                                   const struct tnd_onnx_node **out_stopped,
                                   struct tandem_error *error);
/** Prints that a net is only the first part of its model; nothing for NULL. */
void tnd_graph_tell_part(FILE *file, const struct tnd_onnx_node *stopped);

/** How to compute a model. */
struct tnd_graph_call {
    tandem_onnx *model;
    tandem_runtime *runtime; /* NULL: use the reference */
    const char *passes;      /* NULL: all */
    /** Called once, after the first part is built and before anything is computed; may be NULL. */
    enum tandem_status (*ready)(void *user, struct tandem_error *error);
    void *user;
};
/** Computes a model, part by part if extents depend on values; `out` gets its outputs, which the
 * caller frees; the names belong to the model. Errors: ARGUMENT (an input is missing), those of
 * tandem_onnx_begin, of tnd_net_run and of `ready`, LIMIT. */
enum tandem_status tnd_graph_compute(const struct tnd_graph_call *call,
                                     const struct tnd_graph_arrays *inputs,
                                     struct tnd_graph_arrays *out, struct tandem_error *error);

/** Runs one case of the ONNX project. `reason` gets why it did not pass. */
enum tnd_case_status { TND_CASE_PASSED, TND_CASE_FAILED, TND_CASE_REFUSED, TND_N_CASE_STATUSES };
enum tnd_case_status tnd_graph_case(const char *folder, tandem_runtime *runtime,
                                    struct tandem_error *reason);

/** Reads the samples of a .wav or .npy file, TND_MEL_RATE a second; free with tnd_wav_free. Errors:
 * those of the readers, SHAPE, ARGUMENT (another sample rate). */
enum tandem_status tnd_graph_sound(const char *path, struct tnd_wav *out,
                                   struct tandem_error *error);
/** Computes the spectrogram (formats/mel.h) of a .wav file or a .npy file of samples. Errors: those
 * of the readers, SHAPE, ARGUMENT (another sample rate). */
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

/** The clock for measurements. */
double tnd_graph_now_ns(void);
/** Sorts in ascending order. */
void tnd_graph_sort(double *values, int n);

#endif
