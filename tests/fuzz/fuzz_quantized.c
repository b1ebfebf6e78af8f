/* SPDX-License-Identifier: MIT
 * Any tensors as the quantised matrix of a model of Hugging Face (tnd_hf_unpack): an error with a
 * message, or weights that can all be read. The first bytes say what the tensors are: method,
 * group, block, and of each tensor type and extents. */
#include <stdlib.h>
#include <string.h>

#include "formats/safetensors.h"
#include "tests/fuzz/read_source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct bytes {
    const uint8_t *at;
    size_t n;
};

static int take(struct bytes *bytes)
{
    return bytes->n == 0 ? 0 : (bytes->n--, *bytes->at++);
}

/* A tensor with data of its own, as long as its type and extents ask for. */
static void add(tandem_source *source, const char *name, struct bytes *bytes)
{
    static const enum tandem_type types[] = {TANDEM_TYPE_F32, TANDEM_TYPE_F16, TANDEM_TYPE_BF16,
                                             TANDEM_TYPE_I32, TND_HF_RAW_F8};
    const enum tandem_type type = types[take(bytes) % 5];
    const int n_dims = 1 + take(bytes) % 3;
    int64_t ne[TANDEM_MAX_DIMS] = {1, 1, 1, 1};
    size_t values = 1;
    void *data = NULL;
    struct tandem_error error;
    for (int i = 0; i < n_dims; i++) {
        ne[i] = take(bytes) % 80;
        values *= (size_t)ne[i];
    }
    const size_t n = values * (type == TND_HF_RAW_F8 ? 1 : tandem_type_block_bytes(type));
    if (tnd_source_alloc(source, name, n + 1, (size_t)1 << 24, &data, &error) != TANDEM_OK) {
        return;
    }
    memset(data, take(bytes), n);
    const size_t from = bytes->n < n ? bytes->n : n;
    memcpy(data, bytes->at, from);
    bytes->at += from;
    bytes->n -= from;
    (void)tnd_source_add(source, name, type, n_dims, ne, data, n, &error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"a.qweight", "a.scales", "a.qzeros",          "a.g_idx",
                                        "a.weight",  "b.weight", "a.weight_scale_inv"};
    struct bytes bytes = {data, size};
    struct tandem_error error = {.text = ""};
    tandem_source *source = NULL;
    if (tnd_source_new("fuzz", &source, &error) != TANDEM_OK) {
        return 0;
    }
    source->hf_quantized.method = (enum tnd_hf_method)(1 + take(&bytes) % 3);
    source->hf_quantized.group = take(&bytes);
    source->hf_quantized.group = source->hf_quantized.group == 0 ? -1 : source->hf_quantized.group;
    source->hf_quantized.block[0] = 1 + take(&bytes);
    source->hf_quantized.block[1] = 1 + take(&bytes);
    source->hf_quantized.zero_step = take(&bytes) % 2;
    const int which = take(&bytes);
    for (int i = 0; i < 7; i++) {
        if ((which >> i & 1) != 0) {
            add(source, names[i], &bytes);
        }
    }
    if (tnd_hf_unpack(source, &error) == TANDEM_OK) {
        read_source(source);
    } else if (error.text[0] == '\0') {
        abort();
    }
    tandem_source_close(source);
    return 0;
}
