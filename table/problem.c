/* SPDX-License-Identifier: MIT
 * Printing and parsing problem strings. */
#include "table/problem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tnd_status.h"
#include "tandem/ops.h"

void tnd_problem_print(const struct tnd_problem *problem, char *out, size_t n)
{
    char threads[16] = "";
    if (problem->threads > 0) {
        snprintf(threads, sizeof(threads), ":t%d", problem->threads);
    }
    snprintf(out, n, "%s:%s:n%" PRId64 ":k%" PRId64 ":m%" PRId64 "%s%s%s", problem->op,
             tandem_type_name(problem->type), problem->n, problem->k, problem->m, threads,
             problem->profile[0] != '\0' ? ":" : "", problem->profile);
}

/* Copies the part up to the next ':' and moves past it; false when it is empty or too long. */
static bool take_part(const char **cursor, char *out, size_t n)
{
    size_t length = strcspn(*cursor, ":");
    if (length == 0 || length >= n) {
        return false;
    }
    memcpy(out, *cursor, length);
    out[length] = '\0';
    *cursor += length;
    if (**cursor == ':') {
        (*cursor)++;
    }
    return true;
}

static bool parse_extent(const char *part, char letter, int64_t *out)
{
    if (part[0] != letter || part[1] < '0' || part[1] > '9') {
        return false;
    }
    char *end;
    long long value = strtoll(part + 1, &end, 10);
    if (*end != '\0' || value < 1 || value > INT32_MAX) {
        return false;
    }
    *out = value;
    return true;
}

enum tandem_status tnd_problem_parse(const char *text, struct tnd_problem *out,
                                     struct tandem_error *error)
{
    struct tnd_problem problem;
    memset(&problem, 0, sizeof(problem));
    const char *cursor = text;
    char part[32] = "";
    const char *expected = "an operation";
    if (!take_part(&cursor, problem.op, sizeof(problem.op))) {
        goto bad;
    }
    expected = "a weight type";
    if (!take_part(&cursor, part, sizeof(part)) || !tandem_type_from_name(part, &problem.type)) {
        goto bad;
    }
    int64_t *const extents[3] = {&problem.n, &problem.k, &problem.m};
    const char *const names[3] = {"n and rows of W", "k and columns of W",
                                  "m and number of tokens"};
    for (int i = 0; i < 3; i++) {
        expected = names[i];
        if (!take_part(&cursor, part, sizeof(part)) || !parse_extent(part, "nkm"[i], extents[i])) {
            goto bad;
        }
    }
    if (*cursor == 't' && cursor[1] >= '0' && cursor[1] <= '9') {
        int64_t threads;
        expected = "t and number of threads";
        if (!take_part(&cursor, part, sizeof(part)) || !parse_extent(part, 't', &threads)) {
            goto bad;
        }
        problem.threads = (int)threads;
    }
    expected = "a profile";
    if (*cursor != '\0' &&
        (!take_part(&cursor, problem.profile, sizeof(problem.profile)) || *cursor != '\0')) {
        goto bad;
    }
    *out = problem;
    return TANDEM_OK;
bad:
    return tnd_error_set(
        error, TANDEM_E_FORMAT, text, cursor - text, 0,
        "problem '%.120s': expected %s %s%.40s, as in mul_mat:q4_0:n4096:k4096:m32", text, expected,
        *cursor == '\0' ? "at the end" : "at ", cursor);
}

void tnd_problem_of_node(const tandem_tensor *node, struct tnd_problem *out)
{
    const int64_t *w = tandem_tensor_ne(tandem_tensor_src(node, 0));
    struct tnd_problem problem;
    memset(&problem, 0, sizeof(problem));
    snprintf(problem.op, sizeof(problem.op), "%s", tandem_tensor_op_name(node));
    problem.type = tandem_tensor_type(tandem_tensor_src(node, 0));
    problem.n = w[1];
    problem.k = w[0];
    problem.m = tandem_tensor_ne(node)[1];
    *out = problem;
}
