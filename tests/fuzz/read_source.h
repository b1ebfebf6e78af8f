/* SPDX-License-Identifier: MIT
 * Reads every part of a source once, so that a sanitizer sees what lies outside of it. */
#ifndef TND_TESTS_FUZZ_READ_SOURCE_H
#define TND_TESTS_FUZZ_READ_SOURCE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tandem/formats.h"

static volatile unsigned read_source_sum;

static inline void read_bytes(const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        read_source_sum += ((const unsigned char *)bytes)[i];
    }
}

static inline void read_array(const struct tandem_array *array)
{
    for (int64_t i = 0; i < array->count; i++) {
        const char *text;
        size_t n;
        double number;
        if (tandem_array_text(array, i, &text, &n)) {
            read_bytes(text, n);
        }
        read_source_sum += tandem_array_number(array, i, &number) ? 1 : 0;
    }
}

static inline void read_source(const tandem_source *source)
{
    struct tandem_source_tensor tensor;
    struct tandem_source_value value;
    for (int i = 0; tandem_source_tensor_at(source, i, &tensor); i++) {
        read_bytes(tensor.data, tensor.bytes);
        read_bytes(tensor.name, strlen(tensor.name));
    }
    for (int i = 0; tandem_source_value_at(source, i, &value); i++) {
        if (value.kind == TANDEM_VALUE_ARRAY) {
            read_array(&value.array);
        } else if (value.kind == TANDEM_VALUE_TEXT) {
            read_bytes(value.text, strlen(value.text));
        }
    }
}

#endif
