/* SPDX-License-Identifier: MIT
 * What -model means: the name of a model size, a list of shapes, or a model file. */
#ifndef MULMAT_TUNE_MODEL_SHAPES_H
#define MULMAT_TUNE_MODEL_SHAPES_H

#include "measure/models.h"

/** Shapes of `text`: a size ("7B"), a list ("NxK,NxK"), or a file in any format that formats/
 *  reads, whose matrices are counted with their types. `keeps_types` false: the shapes of a file
 *  without its types. Errors: NOT_FOUND, FORMAT, LIMIT, those of opening the file. */
enum tandem_status model_shapes(const char *text, bool keeps_types, struct tnd_shapes *out,
                                struct tandem_error *error);

#endif
