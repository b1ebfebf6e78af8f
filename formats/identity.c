/* SPDX-License-Identifier: MIT
 * What tells models apart: everything that their results depend on. */
#include <string.h>

#include "base/digest.h"
#include "base/mapped_digest.h"
#include "base/tnd_status.h"
#include "formats/source.h"

static uint64_t add_text(uint64_t identity, const char *text, size_t n)
{
    return tnd_digest_add(identity, tnd_digest(text, n));
}

static uint64_t add_value(uint64_t identity, const struct tnd_source_value *value)
{
    uint64_t number = 0;
    identity = add_text(identity, value->key, strlen(value->key));
    identity = tnd_digest_add(identity, (uint64_t)value->kind);
    switch (value->kind) {
    case TND_VALUE_INTEGER:
        return tnd_digest_add(identity, (uint64_t)value->integer);
    case TND_VALUE_NUMBER:
        memcpy(&number, &value->number, sizeof(number));
        return tnd_digest_add(identity, number);
    case TND_VALUE_TEXT:
        return add_text(identity, value->text, value->text_bytes);
    case TND_VALUE_ARRAY:
        identity = tnd_digest_add(identity, value->array->item_type);
        return tnd_digest_add(identity, tnd_digest(value->array->bytes, value->array->n_bytes));
    }
    return identity;
}

static uint64_t add_tensor(uint64_t identity, const struct tandem_source_tensor *tensor)
{
    identity = add_text(identity, tensor->name, strlen(tensor->name));
    identity = tnd_digest_add(identity, (uint64_t)tensor->type);
    for (int i = 0; i < TANDEM_MAX_DIMS; i++) {
        identity = tnd_digest_add(identity, (uint64_t)tensor->ne[i]);
    }
    return tnd_digest_add(identity, tnd_mapped_digest(tensor->data, tensor->bytes));
}

/* Names, authors and licences, and how chats are written down, change no result of the model. */
static bool matters(const char *key)
{
    return strncmp(key, "general.", 8) != 0 && strstr(key, "chat_template") == NULL;
}

enum tandem_status tandem_source_identity(const tandem_source *source, uint64_t *out_identity,
                                          struct tandem_error *error)
{
    TND_REQUIRE(source, "source_identity", error);
    TND_REQUIRE(out_identity, "source_identity", error);
    uint64_t identity = 0;
    if (source->is_outline) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "source", 0, 0,
                             "source_identity: an outline of a model has no weights");
    }
    for (size_t i = 0; i < source->n_values; i++) {
        if (matters(source->values[i].key)) {
            identity = add_value(identity, &source->values[i]);
        }
    }
    for (size_t i = 0; i < source->n_tensors; i++) {
        const struct tandem_source_tensor *tensor = &source->tensors[i];
        identity = add_tensor(identity, tensor);
        TND_TRY(tandem_mapped_check(tensor->data, tensor->bytes, error));
    }
    tnd_mapped_digests_keep(source->file.data);
    for (size_t i = 0; i < source->n_more_files; i++) {
        tnd_mapped_digests_keep(source->more_files[i].data);
    }
    *out_identity = identity;
    return TANDEM_OK;
}
