/* SPDX-License-Identifier: MIT
 * Reads the variables of environment.h; no other file of the library calls getenv for them. A
 * program that runs with more rights than its user (setuid, capabilities) sees none of them. */
#include <stdlib.h>

#include "base/environment.h"

static const struct {
    const char *name;
    const char *text;
} variables[] = {
#define ENVIRONMENT_ROW(name, variable, text) {variable, text},
    TND_ENVIRONMENT_LIST(ENVIRONMENT_ROW)
#undef ENVIRONMENT_ROW
};

const char *tnd_environment(enum tnd_environment_variable variable)
{
    const char *value = secure_getenv(variables[variable].name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

const char *tnd_environment_name(enum tnd_environment_variable variable)
{
    return variables[variable].name;
}

const char *tnd_environment_text(enum tnd_environment_variable variable)
{
    return variables[variable].text;
}
