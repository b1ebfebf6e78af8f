/* SPDX-License-Identifier: MIT
 * Small models as Hugging Face writes them, whose weights follow from the names of tensors. */
#include "tests/support_golden.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/architectures-golden-list.h"
#include "tests/support.h"
#include "tests/support_blob.h"

const struct tnd_golden_model tnd_golden_models[] = {
#define GOLDEN(name, config, tensors, a, b, c, d, token) {name, config, tensors},
    TND_GOLDEN_ARCHITECTURES(GOLDEN)
#undef GOLDEN
};
const int tnd_n_golden_models = sizeof(tnd_golden_models) / sizeof(tnd_golden_models[0]);

const int32_t tnd_golden_tokens[TND_GOLDEN_TOKENS] = {1, 5, 9, 3, 7, 2, 8, 11, 30, 21, 4, 4};

/* As golden_values of tools/judges/golden_models.py. */
static float value_of(const char *name, int64_t i)
{
    int64_t start = 0;
    for (int64_t k = 0; name[k] != '\0'; k++) {
        start += name[k] * (k + 1);
    }
    const float value = (float)((start + i * 97) % 1009) / 1024.0f - 0.5f;
    return strstr(name, "norm") != NULL || strstr(name, ".ln_") != NULL ||
                   strstr(name, "LayerNorm") != NULL
               ? value + 1.0f
               : value;
}

/* One tensor of the list, "name extent extent ..."; returns what stands behind it. */
static const char *put_tensor(const char *at, struct tnd_blob *header, struct tnd_blob *data)
{
    char line[512];
    char name[256];
    int n = 0;
    int64_t values = 1;
    const size_t begin = data->n;
    (void)sscanf(at, "%255[^ ]%n", name, &n);
    at += n;
    snprintf(line, sizeof(line), "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[",
             header->n > 1 ? "," : "", name);
    tnd_blob_string(header, line);
    for (int i = 0; *at == ' '; i++) {
        char *end;
        const long long extent = strtoll(at + 1, &end, 10);
        snprintf(line, sizeof(line), "%s%lld", i > 0 ? "," : "", extent);
        tnd_blob_string(header, line);
        values *= extent;
        at = end;
    }
    for (int64_t i = 0; i < values; i++) {
        const float value = value_of(name, i);
        tnd_blob_add(data, &value, sizeof(value));
    }
    snprintf(line, sizeof(line), "],\"data_offsets\":[%zu,%zu]}", begin, data->n);
    tnd_blob_string(header, line);
    return *at == ';' ? at + 1 : at;
}

int tnd_golden_write(const char *config, const char *tensors, int left_out, const char *more)
{
    struct tnd_blob header = {NULL, 0}, data = {NULL, 0}, unused = {NULL, 0}, file = {NULL, 0};
    int n = 0;
    tnd_blob_string(&header, "{");
    for (const char *at = tensors; *at != '\0'; n++) {
        at = n == left_out ? put_tensor(at, &unused, &unused) : put_tensor(at, &header, &data);
    }
    if (more != NULL) {
        put_tensor(more, &header, &data);
    }
    tnd_blob_string(&header, "}");
    while (header.n % 8 != 0) {
        tnd_blob_string(&header, " ");
    }
    tnd_blob_number(&file, header.n, 8);
    tnd_blob_add(&file, header.bytes, header.n);
    tnd_blob_add(&file, data.bytes, data.n);
    CU_ASSERT_TRUE(tnd_test_write_file(tnd_test_temp("config.json"), config, strlen(config)));
    CU_ASSERT_TRUE(tnd_test_write_file(tnd_test_temp("model.safetensors"), file.bytes, file.n));
    tnd_blob_free(&header);
    tnd_blob_free(&data);
    tnd_blob_free(&unused);
    tnd_blob_free(&file);
    return n;
}
