/* SPDX-License-Identifier: MIT
 * What a loader fills: named tensors, named values, and the memory behind them. Loaders (llama2c.c,
 * synth.c, ...) build a source with the functions below; readers use tandem/formats.h. */
#ifndef TND_SOURCE_H
#define TND_SOURCE_H

#include "base/file.h"
#include "tandem/formats.h"

enum tnd_value_kind { TND_VALUE_INTEGER, TND_VALUE_NUMBER, TND_VALUE_TEXT };

struct tnd_source_value {
    char *key; /* owned */
    enum tnd_value_kind kind;
    int64_t integer;
    double number;
    char *text; /* owned; NULL unless kind is TEXT */
};

struct tandem_source {
    const char *format;                   /* static text */
    struct tandem_source_tensor *tensors; /* their names are owned */
    size_t n_tensors;
    size_t tensor_capacity;
    struct tnd_source_value *values;
    size_t n_values;
    size_t value_capacity;
    void *memory;         /* owned tensor data, or NULL */
    struct tnd_file file; /* that tensors borrow from; closed with the source */
};

/** An empty source. `format` is static text for tandem_source_format. Errors: MEMORY. */
enum tandem_status tnd_source_new(const char *format, tandem_source **out_source,
                                  struct tandem_error *error);

/** Adds a tensor; the name is copied, `data` borrowed until the source is closed. Names are
 *  not checked for repetition: loaders make them. Errors: MEMORY. */
enum tandem_status tnd_source_add(tandem_source *source, const char *name, enum tandem_type type,
                                  int n_dims, const int64_t *ne, const void *data, size_t bytes,
                                  struct tandem_error *error);

/** Add a value; keys and texts are copied. Errors: MEMORY. */
enum tandem_status tnd_source_set_integer(tandem_source *source, const char *key, int64_t value,
                                          struct tandem_error *error);
enum tandem_status tnd_source_set_number(tandem_source *source, const char *key, double value,
                                         struct tandem_error *error);
enum tandem_status tnd_source_set_text(tandem_source *source, const char *key, const char *value,
                                       struct tandem_error *error);
/** Adds copies of all values of another source. Errors: MEMORY. */
enum tandem_status tnd_source_copy_values(tandem_source *source, const tandem_source *from,
                                          struct tandem_error *error);

#endif
