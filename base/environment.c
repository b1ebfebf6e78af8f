/* SPDX-License-Identifier: MIT
 * Reads the variables of environment.h; no other file of the library calls getenv for them. A
 * program that runs with more rights than its user (setuid, capabilities) reads all of them as
 * unset. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/environment.h"
#include "base/text.h"

static const struct {
    const char *name;
    const char *words; /* each followed by a space */
    double most;       /* numbers from above 0 up to this one are valid; 0: not a number */
    const char *text;
} variables[] = {
#define ENVIRONMENT_ROW(name, variable, words, most, text) {variable, words, most, text},
    TND_ENVIRONMENT_LIST(ENVIRONMENT_ROW)
#undef ENVIRONMENT_ROW
};

static const char *read_variable(enum tnd_environment_variable variable)
{
    const char *value = secure_getenv(variables[variable].name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

static double read_number(enum tnd_environment_variable variable, const char *value)
{
    double number = 0;
    return tnd_text_to_double(value, strlen(value), &number) && number > 0 &&
                   number <= variables[variable].most
               ? number
               : 0;
}

static bool has_word(const char *words, const char *value)
{
    const size_t n = strlen(value);
    for (const char *at = words; *at != '\0'; at = strchr(at, ' ') + 1) {
        if (strncmp(at, value, n) == 0 && at[n] == ' ') {
            return true;
        }
    }
    return false;
}

static bool counts(enum tnd_environment_variable variable, const char *value)
{
    if (variables[variable].most > 0) {
        return read_number(variable, value) > 0;
    }
    return variables[variable].words[0] == '\0' || has_word(variables[variable].words, value);
}

const char *tnd_environment(enum tnd_environment_variable variable)
{
    const char *value = read_variable(variable);
    return value != NULL && counts(variable, value) ? value : NULL;
}

double tnd_environment_number(enum tnd_environment_variable variable)
{
    const char *value = read_variable(variable);
    return value != NULL ? read_number(variable, value) : 0;
}

void tnd_environment_check(const struct tnd_log *log)
{
    static atomic_bool is_told[TND_ENVIRONMENT_COUNT];
    for (int i = 0; i < TND_ENVIRONMENT_COUNT; i++) {
        const enum tnd_environment_variable variable = (enum tnd_environment_variable)i;
        const char *value = read_variable(variable);
        if (value == NULL || counts(variable, value) || atomic_exchange(&is_told[i], true)) {
            continue;
        }
        if (variables[i].most > 0) {
            tnd_log_line(log, TANDEM_LOG_WARN, "environment",
                         "%s='%.40s' is ignored, expected a number above 0, at most %g",
                         variables[i].name, value, variables[i].most);
        } else {
            const int n = (int)strlen(variables[i].words) - 1;
            tnd_log_line(log, TANDEM_LOG_WARN, "environment",
                         "%s='%.40s' is ignored, expected%s %.*s", variables[i].name, value,
                         memchr(variables[i].words, ' ', (size_t)n) != NULL ? " one of" : "", n,
                         variables[i].words);
        }
    }
}

const char *tnd_environment_name(enum tnd_environment_variable variable)
{
    return variables[variable].name;
}

const char *tnd_environment_text(enum tnd_environment_variable variable)
{
    return variables[variable].text;
}
