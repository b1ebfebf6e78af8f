/* SPDX-License-Identifier: MIT
 * Output of llama.cpp's llama-bench: one JSON object per test (`-o jsonl`). It comes from another
 * program, so each member is checked. */
#ifndef TND_LLAMA_BENCH_H
#define TND_LLAMA_BENCH_H

#include "table/tnd_table.h"

enum { TND_LLAMA_BENCH_LINE = 65536, TND_LLAMA_BENCH_RUNS = 1000 };

/** Parses one line into a record of a table, measured at `when`. Errors: FORMAT (a member is
 * missing or out of range, or no record can represent the test), TRUNCATED, LIMIT, MEMORY,
 * UNSUPPORTED_BUILD (without cJSON). */
enum tandem_status tnd_llama_bench_read(const char *line, size_t n, int64_t when,
                                        struct tnd_program_time *out, struct tandem_error *error);

#endif
