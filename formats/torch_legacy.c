/* SPDX-License-Identifier: MIT
 * Checkpoints before PyTorch 1.6: five pickles (magic number, protocol, facts of the machine, the
 * object, keys of its storages), then for each key the number of values and the values. After
 * torch/serialization.py (_legacy_load). */
#include "base/alloc.h"
#include "base/checked.h"
#include "formats/torch_pickle.h"

/* PROTO 2 to 5, LONG1 of 10 bytes, STOP. */
static const uint8_t magic[] = {0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46, 0xf9,
                                0x20, 0x6a, 0xa8, 0x50, 0x19, 0x2e};
#define MAGIC_BYTES (2 + sizeof(magic))
#define PROTOCOL    1001

bool tnd_torch_legacy_is(const uint8_t *bytes, size_t n)
{
    return n >= MAGIC_BYTES && bytes[0] == 0x80 && bytes[1] <= 5 &&
           memcmp(bytes + 2, magic, sizeof(magic)) == 0;
}

/* Value of a dict by key; NULL when there is none. */
static const struct tnd_pickle_value *look_up(const struct tnd_pickle_value *dict, const char *key)
{
    for (uint32_t i = 0; dict->kind == TND_PICKLE_DICT && i + 1 < dict->n; i += 2) {
        const struct tnd_pickle_value *item = dict->items[i];
        if (item->kind == TND_PICKLE_TEXT && item->n == strlen(key) &&
            memcmp(item->text, key, item->n) == 0) {
            return dict->items[i + 1];
        }
    }
    return NULL;
}

/* Types of all storages that the object names, sorted by key; `bytes` holds the type. */
static void note_types(const struct tnd_pickle *machine, struct tnd_torch_storages *out)
{
    for (size_t i = 0; i < machine->n_storages; i++) {
        const struct tnd_pickle_value *storage = machine->storages[i];
        out->rows[out->n++] = (struct tnd_torch_storage){.key = storage->storage.key->text,
                                                         .key_bytes = storage->storage.key->n,
                                                         .bytes = storage->storage.type};
    }
    tnd_torch_sort(out);
}

/* Takes number and values of one storage. */
static enum tandem_status take_storage(struct tnd_pickle *machine,
                                       const struct tnd_torch_storages *types,
                                       const struct tnd_pickle_value *key,
                                       struct tnd_torch_storages *out, struct tandem_error *error)
{
    const uint8_t *data = NULL;
    uint64_t count = 0;
    size_t bytes = 0;
    const struct tnd_torch_storage *row =
        key->kind == TND_PICKLE_TEXT ? tnd_torch_find(types, key) : NULL;
    if (row == NULL) {
        return tnd_pickle_broken(machine, "a storage that no tensor names", error);
    }
    const enum tnd_foreign_type type = (enum tnd_foreign_type)row->bytes;
    TND_TRY(tnd_cursor_u64(&machine->cursor, "the number of values of a storage", &count, error));
    if (out->is_big_endian) {
        count = __builtin_bswap64(count);
    }
    if (!tnd_mul_size((size_t)count, tnd_foreign_bytes(type), &bytes)) {
        bytes = SIZE_MAX;
    }
    TND_TRY(tnd_cursor_take(&machine->cursor, bytes, "a storage", &data, error));
    out->rows[out->n++] = (struct tnd_torch_storage){key->text, key->n, data, bytes};
    return TANDEM_OK;
}

static enum tandem_status take_storages(struct tnd_pickle *machine,
                                        const struct tnd_pickle_value *keys,
                                        struct tnd_torch_storages *out, struct tandem_error *error)
{
    struct tnd_torch_storages types = {.n = 0};
    if (keys->kind != TND_PICKLE_LIST || keys->n > TND_SOURCE_MAX_TENSORS ||
        machine->n_storages > 4 * TND_SOURCE_MAX_TENSORS) {
        return tnd_pickle_broken(machine, "expected a list of at most 131072 keys of storages",
                                 error);
    }
    types.rows = tnd_calloc(machine->n_storages, sizeof(types.rows[0]));
    out->rows = tnd_calloc(keys->n, sizeof(out->rows[0]));
    enum tandem_status status = TANDEM_OK;
    if (types.rows == NULL || out->rows == NULL) {
        status = tnd_error_set(error, TANDEM_E_MEMORY, machine->cursor.name, keys->n, 0,
                               "%s: no memory for its list of storages",
                               tnd_short_name(machine->cursor.name));
    } else {
        note_types(machine, &types);
    }
    for (uint32_t i = 0; status == TANDEM_OK && i < keys->n; i++) {
        status = take_storage(machine, &types, keys->items[i], out, error);
    }
    tnd_free(types.rows);
    tnd_torch_sort(out);
    return status == TANDEM_OK ? tnd_torch_check_keys(out, machine->cursor.name, error) : status;
}

static enum tandem_status read_all(struct tnd_pickle *machine, struct tnd_torch_storages *storages,
                                   tandem_source *source, enum tnd_torch_role role,
                                   struct tandem_error *error)
{
    const struct tnd_pickle_value *protocol = NULL;
    const struct tnd_pickle_value *facts = NULL;
    const struct tnd_pickle_value *root = NULL;
    const struct tnd_pickle_value *keys = NULL;
    TND_TRY(tnd_pickle_run(machine, &protocol, error));
    if (protocol->kind != TND_PICKLE_INTEGER || protocol->integer != PROTOCOL) {
        return tnd_pickle_broken(machine, "the protocol is not 1001", error);
    }
    TND_TRY(tnd_pickle_run(machine, &facts, error));
    const struct tnd_pickle_value *order = look_up(facts, "little_endian");
    storages->is_big_endian =
        order != NULL && order->kind == TND_PICKLE_INTEGER && order->integer == 0;
    TND_TRY(tnd_pickle_run(machine, &root, error));
    TND_TRY(tnd_pickle_run(machine, &keys, error));
    TND_TRY(take_storages(machine, keys, storages, error));
    return tnd_torch_add(source, root, storages, machine->cursor.name, role, error);
}

enum tandem_status tnd_torch_legacy_add(const void *bytes, size_t n, const char *path,
                                        enum tnd_torch_role role, tandem_source *source,
                                        struct tandem_error *error)
{
    struct tnd_pickle machine;
    struct tnd_torch_storages storages = {.file_bytes = n};
    if (!tnd_torch_legacy_is(bytes, n)) {
        return tnd_error_set(error, TANDEM_E_FORMAT, path, (int64_t)n, MAGIC_BYTES,
                             "%s: does not begin with PyTorch's magic number",
                             tnd_short_name(path));
    }
    tnd_pickle_init(&machine, bytes, n, MAGIC_BYTES, path);
    const enum tandem_status status = read_all(&machine, &storages, source, role, error);
    tnd_pickle_fini(&machine);
    tnd_free(storages.rows);
    return status;
}

enum tandem_status tnd_torch_legacy_read(const void *bytes, size_t n, const char *path,
                                         tandem_source **out_source, struct tandem_error *error)
{
    tandem_source *source;
    TND_TRY(tnd_source_new("PyTorch, pickles", &source, error));
    const enum tandem_status status =
        tnd_torch_legacy_add(bytes, n, path, TND_TORCH_WHOLE, source, error);
    return tnd_source_end(status, source, out_source);
}
