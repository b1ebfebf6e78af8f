/* SPDX-License-Identifier: MIT
 * The command lines of the benches that take numbers alone, "--rounds 15". */
#ifndef TND_BENCH_ARGUMENTS_H
#define TND_BENCH_ARGUMENTS_H

struct tnd_bench_number {
    const char *name; /* "--rounds" */
    double low, high;
    double value; /* as it is where the option is not given */
};

/** Reads `numbers` {n}. --help and -h print `usage` and end the program with 0; whatever else is
 *  not one of the options with a number in its bounds ends it with 2. */
void tnd_bench_arguments(int argc, char **argv, const char *usage, struct tnd_bench_number *numbers,
                         int n);

#endif
