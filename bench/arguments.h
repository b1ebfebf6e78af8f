/* SPDX-License-Identifier: MIT
 * Command lines of benches that take only numbers: "--rounds 15". */
#ifndef TND_BENCH_ARGUMENTS_H
#define TND_BENCH_ARGUMENTS_H

struct tnd_bench_number {
    const char *name; /* "--rounds" */
    double low, high;
    double value; /* initially the default */
};

/** Reads `numbers` {n}. --help and -h print `usage` and exit with 0; any other argument that is not
 * one of the options with a number within its bounds exits with 2. */
void tnd_bench_arguments(int argc, char **argv, const char *usage, struct tnd_bench_number *numbers,
                         int n);

#endif
