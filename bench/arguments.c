/* SPDX-License-Identifier: MIT
 * Reading options that are numbers. */
#include "bench/arguments.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct tnd_bench_number *find(struct tnd_bench_number *numbers, int n, const char *name)
{
    for (int i = 0; i < n; i++) {
        if (strcmp(numbers[i].name, name) == 0) {
            return &numbers[i];
        }
    }
    return NULL;
}

void tnd_bench_arguments(int argc, char **argv, const char *usage, struct tnd_bench_number *numbers,
                         int n)
{
    for (int i = 1; i < argc; i += 2) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            fputs(usage, stdout);
            exit(0);
        }
        struct tnd_bench_number *number = find(numbers, n, argv[i]);
        if (number == NULL) {
            fprintf(stderr, "unknown option '%s'\n%s", argv[i], usage);
            exit(2);
        }
        char *end = NULL;
        const char *text = i + 1 < argc ? argv[i + 1] : "";
        const double value = strtod(text, &end);
        if (end == text || *end != '\0' || !(value >= number->low && value <= number->high)) {
            fprintf(stderr, "%s '%s': expected a number from %g to %g\n", number->name, text,
                    number->low, number->high);
            exit(2);
        }
        number->value = value;
    }
}
