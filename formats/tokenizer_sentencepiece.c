/* SPDX-License-Identifier: MIT
 * tokenizer.model of sentencepiece: a message in the encoding of Protocol Buffers
 * (https://protobuf.dev/programming-guides/encoding), fields by sentencepiece_model.proto of
 * google/sentencepiece. Fields that do not matter here are passed over. */
#include <string.h>

#include "base/tnd_status.h"
#include "formats/tnd_tokenizer.h"
#include "formats/wire.h"

/* Numbers of fields. */
enum { MODEL_PIECE = 1, MODEL_TRAINER = 2, MODEL_NORMALIZER = 3, MODEL_DENORMALIZER = 5 };
enum { PIECE_TEXT = 1, PIECE_SCORE = 2, PIECE_TYPE = 3 };
enum {
    TRAINER_MODEL_TYPE = 3,
    TRAINER_SUFFIX = 24,
    TRAINER_BYTE_FALLBACK = 35,
    TRAINER_BOS = 41,
    TRAINER_EOS = 42,
    TRAINER_UNKNOWN_TEXT = 44
};
enum {
    NORMALIZER_CHARSMAP = 2,
    NORMALIZER_PREFIX = 3,
    NORMALIZER_REMOVES = 4,
    NORMALIZER_ESCAPES = 5
};
enum { TYPE_UNIGRAM = 1, TYPE_BPE = 2, TYPE_CHAR = 4 };

#define UNKNOWN_TEXT " \xe2\x81\x87 " /* U+2047 */

/* The parsed messages. */
struct model {
    struct tnd_cursor file;
    int64_t n_pieces;
    uint64_t model_type;
    uint64_t bos;
    uint64_t eos;
    bool byte_fallback;
    const uint8_t *unknown_text; /* NULL: the usual one */
    size_t n_unknown_text;
    const uint8_t *charsmap;
    size_t n_charsmap;
    struct tnd_charsmap normalizer;
};

static enum tandem_status read_piece(const struct model *model,
                                     const struct tnd_wire_field *message,
                                     tandem_tokenizer *tokenizer, int64_t id,
                                     struct tandem_error *error)
{
    struct tnd_cursor cursor = tnd_wire_inside(&model->file, message);
    struct tnd_token token = {.text = "", .type = TND_TOKEN_NORMAL};
    while (cursor.at < cursor.n) {
        struct tnd_wire_field field;
        TND_TRY(tnd_wire_next(&cursor, &field, error));
        if (field.number == PIECE_TEXT && field.wire == TND_WIRE_BYTES) {
            if (field.n > TND_MAX_TOKEN_BYTES) {
                return tnd_error_set(
                    error, TANDEM_E_FORMAT, cursor.name, (int64_t)field.n, TND_MAX_TOKEN_BYTES,
                    "%s: piece %lld is %zu bytes long, expected at most %d",
                    tnd_short_name(cursor.name), (long long)id, field.n, TND_MAX_TOKEN_BYTES);
            }
            token.text = tnd_tokenizer_keep(tokenizer, (const char *)field.bytes, field.n);
            token.length = (uint32_t)field.n;
        } else if (field.number == PIECE_SCORE && field.wire == TND_WIRE_4_BYTES) {
            const uint32_t bits = (uint32_t)field.value;
            float score;
            memcpy(&score, &bits, sizeof(bits));
            token.score = (double)score;
        } else if (field.number == PIECE_TYPE && field.wire == TND_WIRE_VARINT) {
            if (field.value < TND_TOKEN_NORMAL || field.value > TND_TOKEN_BYTE) {
                return tnd_error_set(
                    error, TANDEM_E_FORMAT, cursor.name, (int64_t)field.value, TND_TOKEN_BYTE,
                    "%s: piece %lld has the type %llu, expected 1 to 6",
                    tnd_short_name(cursor.name), (long long)id, (unsigned long long)field.value);
            }
            token.type = (enum tnd_token_type)field.value;
        }
        if (token.text == NULL) {
            return tnd_tokenizer_no_memory(cursor.name, field.n, error);
        }
    }
    tokenizer->tokens[id] = token;
    return TANDEM_OK;
}

static enum tandem_status read_trainer(struct model *model, const struct tnd_wire_field *message,
                                       struct tandem_error *error)
{
    struct tnd_cursor cursor = tnd_wire_inside(&model->file, message);
    while (cursor.at < cursor.n) {
        struct tnd_wire_field field;
        TND_TRY(tnd_wire_next(&cursor, &field, error));
        if (field.number == TRAINER_UNKNOWN_TEXT && field.wire == TND_WIRE_BYTES) {
            model->unknown_text = field.bytes;
            model->n_unknown_text = field.n;
        }
        if (field.wire != TND_WIRE_VARINT) {
            continue;
        }
        switch (field.number) {
        case TRAINER_MODEL_TYPE:
            model->model_type = field.value;
            break;
        case TRAINER_SUFFIX:
            model->normalizer.is_suffix = field.value != 0;
            break;
        case TRAINER_BYTE_FALLBACK:
            model->byte_fallback = field.value != 0;
            break;
        case TRAINER_BOS:
            model->bos = field.value;
            break;
        case TRAINER_EOS:
            model->eos = field.value;
            break;
        default:
            break;
        }
    }
    return TANDEM_OK;
}

static enum tandem_status read_normalizer(struct model *model, const struct tnd_wire_field *message,
                                          struct tandem_error *error)
{
    struct tnd_cursor cursor = tnd_wire_inside(&model->file, message);
    while (cursor.at < cursor.n) {
        struct tnd_wire_field field;
        TND_TRY(tnd_wire_next(&cursor, &field, error));
        if (field.number == NORMALIZER_CHARSMAP && field.wire == TND_WIRE_BYTES) {
            model->charsmap = field.bytes;
            model->n_charsmap = field.n;
        } else if (field.wire == TND_WIRE_VARINT) {
            bool *const flag =
                field.number == NORMALIZER_PREFIX    ? &model->normalizer.adds_prefix
                : field.number == NORMALIZER_REMOVES ? &model->normalizer.removes_blanks
                : field.number == NORMALIZER_ESCAPES ? &model->normalizer.escapes_blanks
                                                     : NULL;
            if (flag != NULL) {
                *flag = field.value != 0;
            }
        }
    }
    return TANDEM_OK;
}

/* Reads all but the pieces, which are counted. */
static enum tandem_status read_specs(struct model *model, struct tandem_error *error)
{
    while (model->file.at < model->file.n) {
        struct tnd_wire_field field;
        TND_TRY(tnd_wire_next(&model->file, &field, error));
        if (field.wire != TND_WIRE_BYTES) {
            continue;
        }
        if (field.number == MODEL_PIECE) {
            model->n_pieces++;
        } else if (field.number == MODEL_TRAINER) {
            TND_TRY(read_trainer(model, &field, error));
        } else if (field.number == MODEL_NORMALIZER) {
            TND_TRY(read_normalizer(model, &field, error));
        } else if (field.number == MODEL_DENORMALIZER) {
            struct model other = {.file = model->file};
            TND_TRY(read_normalizer(&other, &field, error));
            if (other.n_charsmap > 0) {
                return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BUILD, model->file.name, 0, 0,
                                     "%s: rules that change decoded text (denormalizer_spec) are "
                                     "not supported",
                                     tnd_short_name(model->file.name));
            }
        }
    }
    if (model->n_pieces == 0 || model->n_pieces > INT32_MAX / 4) {
        return tnd_error_set(error, TANDEM_E_FORMAT, model->file.name, model->n_pieces, 1,
                             "%s: %lld pieces, expected at least one: no sentencepiece model",
                             tnd_short_name(model->file.name), (long long)model->n_pieces);
    }
    if (model->model_type != TYPE_UNIGRAM && model->model_type != TYPE_BPE &&
        model->model_type != TYPE_CHAR) {
        return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BUILD, model->file.name,
                             (int64_t)model->model_type, TYPE_BPE,
                             "%s: model type %llu%s is not supported, expected 1 (unigram), 2 "
                             "(BPE) or 4 (characters)",
                             tnd_short_name(model->file.name),
                             (unsigned long long)model->model_type,
                             model->model_type == 3 ? " (words)" : "");
    }
    return TANDEM_OK;
}

static enum tandem_status read_pieces(struct model *model, tandem_tokenizer *tokenizer,
                                      struct tandem_error *error)
{
    TND_TRY(tnd_tokenizer_reserve(tokenizer, model->n_pieces, model->file.name, error));
    int64_t id = 0;
    for (model->file.at = 0; model->file.at < model->file.n;) {
        struct tnd_wire_field field;
        TND_TRY(tnd_wire_next(&model->file, &field, error));
        if (field.number == MODEL_PIECE && field.wire == TND_WIRE_BYTES) {
            TND_TRY(read_piece(model, &field, tokenizer, id, error));
            id++;
        }
    }
    return TANDEM_OK;
}

static enum tandem_status add_normalizer(const struct model *model, tandem_tokenizer *tokenizer,
                                         struct tandem_error *error)
{
    struct tnd_charsmap *charsmap = tnd_arena_alloc(&tokenizer->memory, sizeof(*charsmap), 16);
    char *rules = tnd_tokenizer_keep(tokenizer, (const char *)model->charsmap, model->n_charsmap);
    if (charsmap == NULL || rules == NULL) {
        return tnd_tokenizer_no_memory(model->file.name, model->n_charsmap, error);
    }
    *charsmap = model->normalizer;
    charsmap->users = &tokenizer->users;
    TND_TRY(tnd_charsmap_read((const uint8_t *)rules, model->n_charsmap, model->file.name, charsmap,
                              error));
    return tnd_tokenizer_add_step(
        tokenizer, (struct tnd_token_step){.kind = TND_TOKEN_STEP_CHARSMAP, .charsmap = charsmap},
        error);
}

static int32_t id_of(uint64_t id, const tandem_tokenizer *tokenizer)
{
    return id < (uint64_t)tokenizer->n_tokens && tokenizer->tokens[id].type == TND_TOKEN_CONTROL
               ? (int32_t)id
               : -1;
}

static enum tandem_status fill(struct model *model, tandem_tokenizer *tokenizer,
                               struct tandem_error *error)
{
    TND_TRY(read_specs(model, error));
    TND_TRY(read_pieces(model, tokenizer, error));
    /* (where no token but user-defined ones has two characters, there is nothing to merge) */
    tokenizer->model = model->model_type == TYPE_UNIGRAM ? TND_MODEL_UNIGRAM : TND_MODEL_SCORES;
    tokenizer->sums_in_float = true;
    tokenizer->has_byte_fallback = model->byte_fallback;
    tokenizer->fuses_unknown = true;
    tokenizer->matches_inside = true;
    tokenizer->escapes_blanks = model->normalizer.escapes_blanks;
    tokenizer->strip = model->normalizer.removes_blanks ? TND_STRIP_EACH
                       : model->normalizer.adds_prefix  ? TND_STRIP_ONE
                                                        : TND_STRIP_NONE;
    const char *unknown_text = (const char *)model->unknown_text;
    tokenizer->unknown_text =
        tnd_tokenizer_keep(tokenizer, unknown_text == NULL ? UNKNOWN_TEXT : unknown_text,
                           unknown_text == NULL ? strlen(UNKNOWN_TEXT) : model->n_unknown_text);
    if (tokenizer->unknown_text == NULL) {
        return tnd_tokenizer_no_memory(model->file.name, model->n_unknown_text, error);
    }
    tokenizer->bos = id_of(model->bos, tokenizer);
    tokenizer->eos = id_of(model->eos, tokenizer);
    tokenizer->adds_bos = tokenizer->bos >= 0; /* the file does not say; models of llama want it */
    for (int64_t id = tokenizer->n_tokens - 1; id >= 0; id--) {
        if (tokenizer->tokens[id].type == TND_TOKEN_UNKNOWN) {
            tokenizer->unknown = (int32_t)id;
        }
    }
    tnd_tokenizer_find_byte_tokens(tokenizer, false);
    tnd_unigram_prepare(tokenizer);
    TND_TRY(tnd_tokenizer_index(tokenizer, error));
    TND_TRY(tnd_tokenizer_index_prefixes(tokenizer, model->file.name, error));
    return add_normalizer(model, tokenizer, error);
}

enum tandem_status tnd_tokenizer_sentencepiece_read(const void *bytes, size_t n, const char *name,
                                                    tandem_tokenizer **out_tokenizer,
                                                    struct tandem_error *error)
{
    /* defaults of omitted fields */
    struct model model = {
        .file = {.data = bytes, .n = n, .name = name},
        .model_type = TYPE_UNIGRAM,
        .bos = 1,
        .eos = 2,
        .normalizer = {.adds_prefix = true, .removes_blanks = true, .escapes_blanks = true}};
    tandem_tokenizer *tokenizer = NULL;
    TND_TRY(tnd_tokenizer_new(name, &tokenizer, error));
    return tnd_tokenizer_end(fill(&model, tokenizer, error), tokenizer, out_tokenizer);
}
