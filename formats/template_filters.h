/* SPDX-License-Identifier: MIT
 * Shared by the two files of filters. */
#ifndef TND_TEMPLATE_FILTERS_H
#define TND_TEMPLATE_FILTERS_H

#include <stdio.h>

#include "formats/template.h"

/** A filter of lists by its name; NULL: there is none. */
const struct tnd_builtin *tnd_find_list_filter(const char *name);

#endif
