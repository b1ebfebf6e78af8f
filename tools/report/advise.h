/* SPDX-License-Identifier: MIT
 * Settings for another program by a table: what depends on the machine from Tandem's times, what
 * depends on the program's own kernels from its own times (struct tnd_program_time); what was not
 * measured is reported as unknown. */
#ifndef TND_ADVISE_H
#define TND_ADVISE_H

#include "base/text.h"
#include "table/tnd_table.h"
#include "tools/report/advise_model.h"

enum { TND_ADVISE_REASONS = 24, TND_ADVISE_REASON = 360 };

struct tnd_advise_request {
    const struct tandem_table *table;
    const struct tnd_advise_model *model;
    double device_bytes; /* memory of the device; 0: no device */
    int64_t context;     /* tokens of the KV cache */
};

struct tnd_advise_reason {
    bool is_unknown; /* the line states an unknown */
    char text[TND_ADVISE_REASON];
};

struct tnd_advice {
    int threads, batch_threads; /* 0: unknown */
    int64_t ubatch;             /* 0: unknown */
    int layers;                 /* on the device; the output counts as one; -1: left to the
                                 * program */
    int expert_layers;          /* layers whose experts stay on the CPU */
    int64_t offload_m;          /* tokens from which moving weights there pays; 0: unknown */
    bool no_op_offload;
    bool knows_repack, repack;
    enum tandem_type cache;            /* F16 or Q8_0 */
    bool has_times;                    /* the table has times of the program with this model */
    char version[96];                  /* version and backends of the program that was measured */
    double prompt_tps, generation_tps; /* 0: unknown */
    double prompt_range[2], generation_range[2]; /* 0: unknown */
    int n_reasons;
    struct tnd_advise_reason reasons[TND_ADVISE_REASONS];
};

/** Never fails; what is unknown is left unknown. */
void tnd_advise(const struct tnd_advise_request *request, struct tnd_advice *out);

/** The command line for llama.cpp: options as of ggml 0.25.3 (llama.cpp 0c1e570). */
void tnd_advise_command(const struct tnd_advise_request *request, const struct tnd_advice *advice,
                        struct tnd_text *out);
/** The advice for people, and as a JSON object. */
void tnd_advise_text(const struct tnd_advise_request *request, const struct tnd_advice *advice,
                     struct tnd_text *out);
void tnd_advise_json(const struct tnd_advise_request *request, const struct tnd_advice *advice,
                     const char *indent, struct tnd_text *out);

/** Time in microseconds of all products of a pass of `m` tokens by the table's CPU profiles on
 * `threads` threads; infinite when one of them has none. */
double tnd_advise_cpu_us(const struct tandem_table *table, const struct tnd_advise_model *model,
                         int64_t m, int threads);
/** Number of tokens from which moving the host's weights to the table's device and computing there
 * is faster than computing on `threads` threads; 0: never up to `m_limit`, -1: unknown. */
int64_t tnd_advise_offload_m(const struct tandem_table *table, const struct tnd_advise_model *model,
                             int threads, int64_t m_limit);

#endif
