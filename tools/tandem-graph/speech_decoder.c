/* SPDX-License-Identifier: MIT
 * Runs a published decoder. Its nets have fixed shapes, so it is lowered for blocks of tokens:
 * those of the text so far, and padding for the next ones, which the causal mask hides from earlier
 * tokens. With a decoder with past, a full block becomes keys and values; otherwise each block
 * reads the whole text. */
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "tools/tandem-graph/speech.h"

enum { BLOCK = 16, MAX_INPUTS = 512 };

static bool has(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

static bool begins(const char *text, const char *part)
{
    return strncmp(text, part, strlen(part)) == 0;
}

bool tnd_speech_takes(const tandem_onnx *model, const char *part)
{
    struct tandem_onnx_value input;
    for (int i = 0; tandem_onnx_input(model, i, &input); i++) {
        if (has(input.name, part)) {
            return true;
        }
    }
    return false;
}

/* Whether the decoder with past accepts several tokens at once. */
static bool takes_blocks(const tandem_onnx *past)
{
    struct tandem_onnx_value input;
    for (int i = 0; tandem_onnx_input(past, i, &input); i++) {
        if (has(input.name, "input_ids")) {
            return input.n_dims == 2 && input.dims[1].extent < 0;
        }
    }
    return false;
}

/* ---- inputs by their roles ---- */

static enum tandem_status refuse(const struct tnd_speech_decoder *decoder, bool is_past,
                                 const struct tandem_onnx_value *input, const char *why,
                                 struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_SHAPE, decoder->paths[is_past], 0, 0,
                         "%.150s: input '%.60s' (%s) %s", decoder->paths[is_past], input->name,
                         input->type_name, why);
}

static const struct tandem_net_array *find_kept(const struct tnd_speech_decoder *decoder,
                                                const char *name)
{
    for (int i = 0; i < decoder->n_kept; i++) {
        if (strcmp(decoder->kept[i].name, name) == 0) {
            return &decoder->kept[i];
        }
    }
    return NULL;
}

/* Input arrays for a net, and their memory. */
struct given {
    int n;
    struct tandem_net_array arrays[MAX_INPUTS];
    void *owned[MAX_INPUTS];
};

static void free_given(struct given *given)
{
    for (int i = 0; i < given->n; i++) {
        tnd_free(given->owned[i]);
    }
}

/* Adds a zeroed array with the shape of an input; extents fixed in the model take precedence over
 * `dims`. */
static enum tandem_status add_zeros(const struct tnd_speech_decoder *decoder, bool is_past,
                                    const struct tandem_onnx_value *input, int n_dims,
                                    const int64_t *dims, struct given *given,
                                    struct tandem_error *error)
{
    struct tandem_net_array *array = &given->arrays[given->n];
    *array = (struct tandem_net_array){.name = input->name, .type = input->type, .n_dims = n_dims};
    if (!input->has_type || input->n_dims != n_dims) {
        return refuse(decoder, is_past, input, "has another number of dimensions than expected",
                      error);
    }
    int64_t n = 1;
    for (int i = 0; i < n_dims; i++) {
        array->dims[i] = input->dims[i].extent >= 0 ? input->dims[i].extent : dims[i];
        for (int k = 0; input->dims[i].extent < 0 && dims[i] < 0 && k < decoder->n_dims; k++) {
            if (input->dims[i].name != NULL &&
                strcmp(decoder->dims[k].name, input->dims[i].name) == 0) {
                array->dims[i] = decoder->dims[k].extent;
            }
        }
        if (array->dims[i] < 0) {
            return refuse(decoder, is_past, input, "has an open dimension: give it by --dim NAME=N",
                          error);
        }
        if (array->dims[i] > 0 && n > ((int64_t)1 << 31) / array->dims[i]) {
            return refuse(decoder, is_past, input, "has more than 2^31 values", error);
        }
        n *= array->dims[i];
    }
    array->bytes = (size_t)n * tandem_dtype_bytes(input->type);
    array->data = tnd_calloc(array->bytes + 1, 1);
    given->owned[given->n] = array->data;
    if (array->data == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, input->name, n, 0, "no memory for %lld values",
                             (long long)n);
    }
    given->n++;
    return TANDEM_OK;
}

/* Fills with first, first + step, ... */
static void count_up(const struct tandem_net_array *array, int64_t first, int64_t step)
{
    for (size_t i = 0; i < array->bytes / tandem_dtype_bytes(array->type); i++) {
        const int64_t value = first + step * (int64_t)i;
        if (array->type == TANDEM_DTYPE_I64) {
            ((int64_t *)array->data)[i] = value;
        } else if (array->type == TANDEM_DTYPE_I32) {
            ((int32_t *)array->data)[i] = (int32_t)value;
        }
    }
}

/* Adds keys and values: the stored ones, or empty ones for the branch of a merged decoder that does
 * not read them. */
static enum tandem_status add_past(const struct tnd_speech_decoder *decoder, bool is_past,
                                   const struct tandem_onnx_value *input, struct given *given,
                                   struct tandem_error *error)
{
    const int64_t frames = decoder->states.dims[1];
    const int64_t none[] = {1, -1, has(input->name, "encoder") ? frames : 0, -1};
    const struct tandem_net_array *kept = find_kept(decoder, input->name);
    if (kept == NULL) {
        return is_past && has(input->name, "past") && decoder->n_kept > 0
                   ? refuse(decoder, is_past, input, "has no output that it could come from", error)
                   : add_zeros(decoder, is_past, input, 4, none, given, error);
    }
    given->arrays[given->n] = *kept;
    given->owned[given->n++] = NULL;
    return TANDEM_OK;
}

static enum tandem_status add_input(const struct tnd_speech_decoder *decoder, bool is_past,
                                    const struct tandem_onnx_value *input, struct given *given,
                                    struct tandem_error *error)
{
    const int64_t length = decoder->room;
    const int64_t ids[] = {1, length};
    const int64_t mask[] = {1, decoder->states.dims[1]};
    if (given->n == MAX_INPUTS) {
        return refuse(decoder, is_past, input, "is one of more than 512", error);
    }
    if (begins(input->name, "past")) {
        return add_past(decoder, is_past, input, given, error);
    }
    if (has(input->name, "input_ids")) {
        return add_zeros(decoder, is_past, input, 2, ids, given, error);
    }
    if (input->type == TANDEM_DTYPE_BOOL && has(input->name, "use_cache")) {
        const int64_t one[] = {1};
        TND_TRY(add_zeros(decoder, is_past, input, 1, one, given, error));
        memset(given->arrays[given->n - 1].data, is_past, given->arrays[given->n - 1].bytes);
        return TANDEM_OK;
    }
    if (has(input->name, "position")) { /* cache_position, position_ids */
        TND_TRY(add_zeros(decoder, is_past, input, input->n_dims,
                          input->n_dims == 1 ? ids + 1 : ids, given, error));
        count_up(&given->arrays[given->n - 1], decoder->n_past, 1);
        return TANDEM_OK;
    }
    if (has(input->name, "attention_mask")) {
        TND_TRY(add_zeros(decoder, is_past, input, 2, mask, given, error));
        count_up(&given->arrays[given->n - 1], 1, 0);
        return TANDEM_OK;
    }
    if (has(input->name, "hidden_states") && input->type == decoder->states.type) {
        given->arrays[given->n] = decoder->states;
        given->arrays[given->n].name = input->name;
        given->owned[given->n++] = NULL;
        return TANDEM_OK;
    }
    return refuse(decoder, is_past, input,
                  "is none that a decoder of Whisper has: input_ids, encoder_hidden_states, "
                  "past_key_values..., use_cache_branch, cache_position, attention_mask",
                  error);
}

/* ---- nets ---- */

/* Lowers the decoder for the block after n_past tokens, and sets all inputs but the tokens. */
static enum tandem_status lower(struct tnd_speech_decoder *decoder, bool is_past,
                                struct tandem_error *error)
{
    const tandem_onnx *model = is_past ? decoder->past : decoder->whole;
    struct given *given = tnd_calloc(1, sizeof(*given));
    struct tandem_onnx_options options = TANDEM_ONNX_OPTIONS_INIT;
    struct tandem_onnx_value input;
    tandem_net *net = NULL;
    enum tandem_status status =
        given != NULL ? TANDEM_OK
                      : tnd_error_set(error, TANDEM_E_MEMORY, NULL, 0, 0, "no memory for inputs");
    for (int i = 0; status == TANDEM_OK && tandem_onnx_input(model, i, &input); i++) {
        status = add_input(decoder, is_past, &input, given, error);
    }
    if (status == TANDEM_OK) {
        options.arrays = given->arrays;
        options.n_arrays = given->n;
        status = tandem_onnx_net(model, &options, &net, error);
    }
    if (status == TANDEM_OK) {
        tandem_lowered_free(decoder->lowered);
        decoder->lowered = NULL;
        status = tandem_net_lower(net, NULL, &decoder->lowered, error);
    }
    for (int i = 0; status == TANDEM_OK && i < given->n; i++) {
        const struct tandem_net_array *array = &given->arrays[i];
        const int at = tandem_lowered_find_input(decoder->lowered, array->name);
        if (at >= 0 && array->bytes > 0) {
            status =
                tandem_lowered_set_input(decoder->lowered, at, array->data, array->bytes, error);
        }
    }
    tandem_net_free(net);
    if (given != NULL) {
        free_given(given);
    }
    tnd_free(given);
    return status;
}

/* Fills the block with tokens, pads it with the last one, and computes it. */
static enum tandem_status compute(const struct tnd_speech_decoder *decoder, const int32_t *tokens,
                                  int64_t n, struct tandem_error *error)
{
    struct tandem_net_array input;
    for (int i = 0; tandem_lowered_input(decoder->lowered, i, &input); i++) {
        if (!has(input.name, "input_ids")) {
            continue;
        }
        if (input.bytes != (size_t)decoder->room * tandem_dtype_bytes(input.type)) {
            return tnd_error_set(
                error, TANDEM_E_SHAPE, decoder->paths[0], (int64_t)input.bytes, decoder->room,
                "%.150s: input '%.60s' takes %lldx%lld, expected an open number "
                "of tokens",
                decoder->paths[0], input.name, (long long)input.dims[0], (long long)input.dims[1]);
        }
        for (int64_t k = 0; k < decoder->room; k++) {
            const int64_t at = decoder->n_past + k < n ? decoder->n_past + k : n - 1;
            if (input.type == TANDEM_DTYPE_I64) {
                ((int64_t *)input.data)[k] = tokens[at];
            } else if (input.type == TANDEM_DTYPE_I32) {
                ((int32_t *)input.data)[k] = tokens[at];
            }
        }
    }
    return tandem_runtime_compute(decoder->runtime, tandem_lowered_graph(decoder->lowered), NULL,
                                  NULL, error);
}

static void drop_kept(struct tnd_speech_decoder *decoder)
{
    for (int i = 0; i < decoder->n_kept; i++) {
        tnd_free(decoder->kept[i].data);
    }
    tnd_free(decoder->kept);
    decoder->kept = NULL;
    decoder->n_kept = 0;
}

/* Finds the output present.X, or present_key_values.X, for input past_key_values.X. */
static bool find_present(const tandem_lowered *lowered, const char *name,
                         struct tandem_net_array *out)
{
    const char *rest = strchr(name, '.');
    struct tandem_net_array array;
    for (int i = 0; rest != NULL && tandem_lowered_output(lowered, i, &array); i++) {
        const char *own = strchr(array.name, '.');
        if (begins(array.name, "present") && own != NULL && strcmp(own, rest) == 0) {
            *out = array;
            return true;
        }
    }
    return false;
}

/* Stores the outputs of the computed block for the decoder with past. Keys and values of the
 * encoder's output are computed once: later blocks have no such output, or an empty one. */
static enum tandem_status keep(struct tnd_speech_decoder *decoder, struct tandem_error *error)
{
    const int n_inputs = tandem_onnx_input_count(decoder->past);
    struct tandem_net_array *kept = tnd_calloc((size_t)n_inputs + 1, sizeof(*kept));
    struct tandem_onnx_value input;
    int n = 0;
    bool has_memory = kept != NULL;
    for (int i = 0; has_memory && tandem_onnx_input(decoder->past, i, &input); i++) {
        struct tandem_net_array found;
        const struct tandem_net_array *old = find_kept(decoder, input.name);
        const bool is_made = begins(input.name, "past") &&
                             find_present(decoder->lowered, input.name, &found) && found.bytes > 0;
        if (!is_made && (!begins(input.name, "past") || old == NULL)) {
            continue;
        }
        kept[n] = is_made ? found : *old;
        kept[n].name = input.name;
        kept[n].data = tnd_alloc(kept[n].bytes + 1);
        has_memory = kept[n].data != NULL;
        if (has_memory) {
            memcpy(kept[n].data, is_made ? found.data : old->data, kept[n].bytes);
            n++;
        }
    }
    drop_kept(decoder);
    decoder->kept = kept;
    decoder->n_kept = n;
    return has_memory ? TANDEM_OK
                      : tnd_error_set(error, TANDEM_E_MEMORY, decoder->paths[1], n, 0,
                                      "no memory for keys and values");
}

/* Moves to the block after the full one. */
static enum tandem_status next_block(struct tnd_speech_decoder *decoder, const int32_t *tokens,
                                     int64_t n, struct tandem_error *error)
{
    const bool keeps = decoder->past != NULL && takes_blocks(decoder->past);
    const int64_t all = decoder->n_past + decoder->room;
    if (decoder->max_tokens > 0 && all >= decoder->max_tokens) {
        return tnd_error_set(error, TANDEM_E_LIMIT, decoder->paths[0], n, decoder->max_tokens,
                             "%.150s: %lld tokens, expected at most %lld", decoder->paths[0],
                             (long long)n, (long long)decoder->max_tokens);
    }
    int64_t next = BLOCK;
    if (decoder->max_tokens > 0 && decoder->max_tokens - all < next) {
        next = decoder->max_tokens - all;
    }
    if (decoder->lowered != NULL && keeps) {
        TND_TRY(compute(decoder, tokens, all < n ? all : n, error));
        TND_TRY(keep(decoder, error));
        decoder->n_past = all;
        decoder->room = next;
        return lower(decoder, true, error);
    }
    decoder->room += next;
    return lower(decoder, false, error);
}

enum tandem_status tnd_speech_begin(struct tnd_speech_decoder *decoder,
                                    const struct tandem_net_array *states,
                                    struct tandem_error *error)
{
    tnd_speech_end(decoder);
    decoder->states = *states;
    if (states->n_dims != 3 || states->dims[0] != 1) {
        return tnd_error_set(error, TANDEM_E_SHAPE, states->name, states->n_dims, 3,
                             "the encoder's output '%.60s' has %d dimensions, expected 3: 1, "
                             "frames, width",
                             states->name, states->n_dims);
    }
    return TANDEM_OK;
}

enum tandem_status tnd_speech_logits(struct tnd_speech_decoder *decoder, const int32_t *tokens,
                                     int64_t n, const float **out_logits, int64_t *out_vocabulary,
                                     struct tandem_error *error)
{
    struct tandem_net_array logits;
    TND_ASSERT(n > 0);
    while (n > decoder->n_past + decoder->room) {
        TND_TRY(next_block(decoder, tokens, n, error));
    }
    TND_TRY(compute(decoder, tokens, n, error));
    if (!tandem_lowered_output(decoder->lowered,
                               tandem_lowered_find_output(decoder->lowered, "logits"), &logits) ||
        logits.type != TANDEM_DTYPE_F32 || logits.n_dims != 3 || logits.dims[0] != 1 ||
        logits.dims[2] < 1 || (logits.dims[1] != decoder->room && logits.dims[1] != 1)) {
        return tnd_error_set(error, TANDEM_E_NOT_FOUND, decoder->paths[0], 0, 0,
                             "%.150s: no output logits of float32 with 3 dimensions: 1, tokens, "
                             "vocabulary",
                             decoder->paths[0]);
    }
    *out_vocabulary = logits.dims[2];
    *out_logits = (const float *)logits.data +
                  (logits.dims[1] == 1 ? 0 : (n - 1 - decoder->n_past) * logits.dims[2]);
    return TANDEM_OK;
}

void tnd_speech_end(struct tnd_speech_decoder *decoder)
{
    tandem_lowered_free(decoder->lowered);
    decoder->lowered = NULL;
    drop_kept(decoder);
    decoder->n_past = decoder->room = 0;
}
