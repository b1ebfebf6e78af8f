/* SPDX-License-Identifier: MIT
 * Shared by the two files of filters. */
#ifndef TND_TEMPLATE_FILTERS_H
#define TND_TEMPLATE_FILTERS_H

#include <stdio.h>

#include "formats/template.h"

/** Finds a filter of lists by name; NULL: none. */
const struct tnd_builtin *tnd_find_list_filter(const char *name);

#endif
