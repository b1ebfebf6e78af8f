/* SPDX-License-Identifier: MIT
 * The objects of run and chat: a model with its tokenizer, a runtime, a session and a sampler, and
 * the options for them. */
#ifndef TANDEM_LLAMA_KIT_H
#define TANDEM_LLAMA_KIT_H

#include "tandem/llama.h"
#include "tools/cache_option.h"
#include "tools/draft_option.h"
#include "tools/op_times.h"
#include "tools/tandem-llama/cli.h"

struct tnd_kit_options {
    const char *tokenizer; /* NULL: that of the model file */
    const char *type;      /* NULL: as in the file */
    const char *cache_type;
    const char *draft; /* NULL: no drafts */
    struct tnd_cli_runtime runtime;
    struct tnd_ranks_options ranks;
    int64_t context; /* 0: the model's context */
    enum tandem_pooling pooling;
    bool has_embeddings;
    double temperature;
    double top_p;
    double min_p;
    double repeat_penalty;
    int64_t top_k;
    int64_t seed;
    bool keeps_utf8; /* on by default */
    bool any_bytes;
    int64_t micro_batches;
    bool is_unfused;
    bool print_plan;
    bool print_stats;
    struct tnd_op_times *times; /* receives predicted times; NULL: not wanted */
};

/** Entries of these options for a struct args_command. */
#define TND_KIT_ROWS(o)                                                                            \
    {"t", ARGS_STRING, &(o)->tokenizer, 0, 0, "FILE", "tokenizer; default: the model file's own"}, \
        {"temp",                                                                                   \
         ARGS_NUMBER,                                                                              \
         &(o)->temperature,                                                                        \
         0,                                                                                        \
         1e6,                                                                                      \
         "T",                                                                                      \
         "temperature; 0: always the likeliest token; 1.0"},                                       \
        {"top-p",                                                                                  \
         ARGS_NUMBER,                                                                              \
         &(o)->top_p,                                                                              \
         0,                                                                                        \
         1,                                                                                        \
         "P",                                                                                      \
         "draw from the likeliest tokens that sum to P; 0.9"},                                     \
        {"top-k", ARGS_INT, &(o)->top_k, 0, 1e9, "K", "draw from the K likeliest tokens; 0: all"}, \
        {"min-p",                                                                                  \
         ARGS_NUMBER,                                                                              \
         &(o)->min_p,                                                                              \
         0,                                                                                        \
         1,                                                                                        \
         "P",                                                                                      \
         "draw from tokens with P of the likeliest's probability; 0"},                             \
        {"repeat-penalty",                                                                         \
         ARGS_NUMBER,                                                                              \
         &(o)->repeat_penalty,                                                                     \
         0,                                                                                        \
         1e6,                                                                                      \
         "F",                                                                                      \
         "weakens the last 64 tokens; 1: not"},                                                    \
        {"seed", ARGS_INT, &(o)->seed, -9e18, 9e18, "S", "of the random numbers; 1"},              \
        {"utf8",                                                                                   \
         ARGS_FLAG,                                                                                \
         &(o)->keeps_utf8,                                                                         \
         0,                                                                                        \
         0,                                                                                        \
         NULL,                                                                                     \
         "only tokens that keep the text valid UTF-8: the default"},                               \
        {"any-bytes",                                                                              \
         ARGS_FLAG,                                                                                \
         &(o)->any_bytes,                                                                          \
         0,                                                                                        \
         0,                                                                                        \
         NULL,                                                                                     \
         "any token, also one that makes the text invalid UTF-8"},                                 \
        TND_RANKS_ROWS(&(o)->ranks), TND_RUNTIME_ROWS(&(o)->runtime),                              \
        {"type",                                                                                   \
         ARGS_STRING,                                                                              \
         &(o)->type,                                                                               \
         0,                                                                                        \
         0,                                                                                        \
         "TYPE",                                                                                   \
         "convert the weights first (q4_0, f16, ...)"},                                            \
        {"cache",                                                                                  \
         ARGS_STRING,                                                                              \
         &(o)->cache_type,                                                                         \
         0,                                                                                        \
         0,                                                                                        \
         "TYPE",                                                                                   \
         "of keys and values: " TND_CACHE_OPTION_TYPES "; f32"},                                   \
        {"context",                                                                                \
         ARGS_INT,                                                                                 \
         &(o)->context,                                                                            \
         0,                                                                                        \
         1e9,                                                                                      \
         "N",                                                                                      \
         "tokens of a text; run: the steps, chat: 4096"},                                          \
        {"draft", ARGS_STRING, &(o)->draft, 0, 0, "lookup|FILE", TND_DRAFT_OPTION_HELP},           \
        {"micro-batches",                                                                          \
         ARGS_INT,                                                                                 \
         &(o)->micro_batches,                                                                      \
         0,                                                                                        \
         8,                                                                                        \
         "N",                                                                                      \
         "parts of a prompt in turn on devices or ranks; 1: never; 0: planned"},                   \
        {"unfused",                                                                                \
         ARGS_FLAG,                                                                                \
         &(o)->is_unfused,                                                                         \
         0,                                                                                        \
         0,                                                                                        \
         NULL,                                                                                     \
         "attention by two products; to compare"},                                                 \
        {"plan", ARGS_FLAG, &(o)->print_plan, 0, 0, NULL, "print the plans to stderr"},            \
    {                                                                                              \
        "stats", ARGS_FLAG, &(o)->print_stats, 0, 0, NULL,                                         \
            "print machine, table and memory to stderr"                                            \
    }

#define TND_KIT_DEFAULTS                                                                           \
    {                                                                                              \
        .temperature = 1.0, .top_p = 0.9, .seed = 1                                                \
    }

struct tnd_kit {
    struct tnd_kit_options options;
    tandem_source *source;
    tandem_model *model;
    tandem_tokenizer *tokenizer;
    tandem_runtime *runtime;
    tandem_session *session;
    struct tnd_draft_option draft;
    tandem_sampler *sampler;
    double load_seconds;    /* for model file and weights */
    double prepare_seconds; /* for packing */
};

/** Opens everything as kit->options say. Call tnd_kit_close after an error, too. */
enum tandem_status tnd_kit_open(struct tnd_kit *kit, const char *checkpoint,
                                struct tandem_error *error);
/** Opens only the tokenizer; source and model must be open. */
enum tandem_status tnd_kit_open_tokenizer(struct tnd_kit *kit, const char *checkpoint,
                                          struct tandem_error *error);
/** A kit that is zeroed except for its options is allowed. */
void tnd_kit_close(struct tnd_kit *kit);

/** Prints to stderr which timing table is used. False when there is none: then the runtime has
 * logged why, and how to make one. */
bool tnd_kit_say_table(const tandem_runtime *runtime);
/** Prints machine, table and memory to stderr. */
void tnd_kit_print_stats(const struct tnd_kit *kit);
/** Prints "prompt: 12 tokens in 0.1 s, 120 tokens/s" to stderr. */
void tnd_kit_print_speed(const char *what, int64_t n, double seconds);
/** Prints part of a text at once. Drops a single control character, which a terminal would act on,
 * as llama2.c does; other bytes pass. */
void tnd_kit_print_text(const char *text, size_t n);

#endif
