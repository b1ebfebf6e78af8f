/* SPDX-License-Identifier: MIT
 * Shared by the two files of filters. */
#ifndef TND_TEMPLATE_FILTERS_H
#define TND_TEMPLATE_FILTERS_H

#include <stdio.h>

#include "formats/template.h"

#define FILTER(name)                                                                               \
    static struct tnd_value name(struct tnd_render *render, struct tnd_value self,                 \
                                 const struct tnd_arguments *arguments)

/** A filter of lists by its name; NULL: there is none. */
tnd_template_call tnd_find_list_filter(const char *name);

#endif
