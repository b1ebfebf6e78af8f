/* SPDX-License-Identifier: MIT
 * What the build puts beside the suites. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/support.h"

const char *tnd_test_beside(const char *name)
{
    static char path[512];
    char program[400] = "";
    ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
    program[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(program, '/');
    snprintf(path, sizeof(path), "%.*s/%.100s", slash != NULL ? (int)(slash - program) : 1,
             slash != NULL ? program : ".", name);
    return path;
}
