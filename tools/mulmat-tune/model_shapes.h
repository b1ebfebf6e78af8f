/* SPDX-License-Identifier: MIT
 * What --model means: the name of a model size, a list of shapes, or a model file. */
#ifndef MULMAT_TUNE_MODEL_SHAPES_H
#define MULMAT_TUNE_MODEL_SHAPES_H

#include "measure/models.h"
#include "tools/args.h"

/** Shapes of `text`: a size ("7B"), a list ("NxK,NxK"), or a file in any format that formats/
 *  reads, whose matrices are counted with their types. `keeps_types` false: the shapes of a file
 *  without its types. Errors: NOT_FOUND, FORMAT, LIMIT, those of opening the file. */
enum tandem_status model_shapes(const char *text, bool keeps_types, struct tnd_shapes *out,
                                struct tandem_error *error);

/** FORMAT, with the nearest ones that fit, for a shape whose rows are no whole blocks of `type`. */
enum tandem_status model_shapes_fit(const struct tnd_shapes *shapes, enum tandem_type type,
                                    struct tandem_error *error);

/** -m of `command`: numbers are tokens and go to `m`; all else means what --model does, and goes
 *  there. False, and said on stderr, for numbers that are out of bounds. */
bool model_or_tokens(const char *command, const char *text, const char **model,
                     struct args_ints *m);

#endif
