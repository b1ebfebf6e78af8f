/* SPDX-License-Identifier: MIT
 * Shapes for --model: the name of a model size, a list of shapes, or a model file. */
#ifndef MULMAT_TUNE_MODEL_SHAPES_H
#define MULMAT_TUNE_MODEL_SHAPES_H

#include "measure/models.h"
#include "tools/args.h"

/** Shapes of `text`: a size ("7B"), a list ("NxK,NxK"), or a file in any format that formats/
 *  reads, whose matrices are counted with their types. `keeps_types` false: the shapes of a file
 *  without its types. Errors: NOT_FOUND, FORMAT, LIMIT, those of opening the file. */
enum tandem_status model_shapes(const char *text, bool keeps_types, struct tnd_shapes *out,
                                struct tandem_error *error);

/** FORMAT, with the nearest valid shapes, if a row is not a whole number of blocks of `type`. */
enum tandem_status model_shapes_fit(const struct tnd_shapes *shapes, enum tandem_type type,
                                    struct tandem_error *error);

/** Option -m of `command`: numbers are tokens and go to `m`; other texts are a model, as for
 * --model. False, with a message on stderr, for numbers out of range. */
bool model_or_tokens(const char *command, const char *text, const char **model,
                     struct args_ints *m);

#endif
