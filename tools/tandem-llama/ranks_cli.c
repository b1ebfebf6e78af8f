/* SPDX-License-Identifier: MIT
 * Joining the ranks of an MPI launcher, and leaving them. */
#include "tools/tandem-llama/ranks_cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/say.h"
#include "tools/tandem-llama/cli.h"

/* Of this process: MPI is started once. */
static tandem_communicator *joined;
static bool has_session;

bool tnd_ranks_begin(int argc, char **argv)
{
    static const char *const shared[] = {"run", "chat", "bench"};
    struct tandem_error error = {.text = ""};
    bool is_shared = false;
    for (int i = 0; argc > 1 && i < 3; i++) {
        is_shared = is_shared || strcmp(argv[1], shared[i]) == 0;
    }
    if (!is_shared || tandem_communicator_launched() < 2) {
        return true;
    }
    if (tandem_communicator_open(&joined, &error) != TANDEM_OK) {
        (void)tnd_cli_fail(&error);
        return false;
    }
    if (tandem_communicator_rank(joined) > 0) { /* rank 0 speaks for all, but for errors */
        tnd_say_level = TND_SAY_QUIET;
        if (freopen("/dev/null", "w", stdout) == NULL) {
            return false;
        }
    }
    return true;
}

/* "2,1,1" for `count` ranks. */
static enum tandem_status read_shares(const char *text, int count, double *out,
                                      struct tandem_error *error)
{
    const char *at = text;
    for (int i = 0; i < count; i++) {
        char *end;
        out[i] = strtod(at, &end);
        const bool is_last = i == count - 1;
        if (end == at || *end != (is_last ? '\0' : ',')) {
            snprintf(error->text, sizeof(error->text),
                     "--shares '%.100s': expected %d numbers with ',' between them, one a rank",
                     text, count);
            return error->status = TANDEM_E_ARGUMENT;
        }
        at = end + 1;
    }
    return TANDEM_OK;
}

/* Does what rank 0 does, and ends with it. */
static void follow(const tandem_model *model, tandem_runtime *runtime)
{
    struct tandem_error error = {.text = ""};
    has_session = true;
    const enum tandem_status status = tandem_session_follow(model, runtime, joined, &error);
    const int code = status == TANDEM_OK ? 0 : tnd_cli_fail(&error);
    exit(tnd_ranks_end(code));
}

static void say_ranks(void)
{
    const int count = tandem_communicator_count(joined);
    tnd_say("%d ranks (%s):", count, tandem_communicator_name(joined));
    for (int i = 0; i < count; i++) {
        tnd_say(" %s", tandem_communicator_host(joined, i));
    }
    tnd_say("\n");
}

enum tandem_status tnd_ranks_session_new(const tandem_model *model, tandem_runtime *runtime,
                                         struct tandem_session_options *options,
                                         const struct tnd_ranks_options *ranks,
                                         tandem_session **out_session, struct tandem_error *error)
{
    const int count = tandem_communicator_count(joined);
    double *shares = calloc((size_t)count, sizeof(shares[0]));
    if (joined == NULL || shares == NULL) {
        free(shares);
        return tandem_session_new(model, runtime, options, out_session, error);
    }
    if (ranks->limit_s > 0) {
        tandem_communicator_set_limit(joined, ranks->limit_s);
    }
    if (tandem_communicator_rank(joined) > 0) {
        free(shares);
        follow(model, runtime);
    }
    options->communicator = joined;
    options->shares = ranks->shares != NULL ? shares : NULL;
    enum tandem_status status =
        ranks->shares != NULL ? read_shares(ranks->shares, count, shares, error) : TANDEM_OK;
    if (status == TANDEM_OK) {
        say_ranks();
        has_session = true;
        status = tandem_session_new(model, runtime, options, out_session, error);
    }
    free(shares);
    return status;
}

int tnd_ranks_end(int code)
{
    const struct tandem_error why = {.status = TANDEM_E_STATE, .text = "the command has failed"};
    if (joined == NULL) {
        return code;
    }
    fflush(NULL);
    if (code != 0) {
        tandem_communicator_fail(joined, &why);
    } else if (has_session && tandem_communicator_rank(joined) == 0) {
        (void)tandem_session_dismiss(joined, NULL);
    }
    tandem_communicator_close(joined);
    joined = NULL;
    return code;
}
