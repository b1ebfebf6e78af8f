/* SPDX-License-Identifier: MIT
 * A pickle interpreter that builds only containers, numbers, texts and descriptions of tensors: it
 * calls no code, and refuses by name every class and function that is not in its list. Opcodes:
 * Python's Lib/pickletools.py, protocols 2 to 5; their use by PyTorch: torch/serialization.py and
 * torch/_utils.py of pytorch/pytorch. */
#ifndef TND_TORCH_PICKLE_H
#define TND_TORCH_PICKLE_H

#include "formats/cursor.h"
#include "formats/foreign.h"

enum tnd_pickle_kind {
    TND_PICKLE_NONE,
    TND_PICKLE_INTEGER, /* and bool */
    TND_PICKLE_NUMBER,
    TND_PICKLE_TEXT, /* and bytes */
    TND_PICKLE_LIST, /* and tuple, set */
    TND_PICKLE_DICT, /* items alternate between keys and values */
    TND_PICKLE_GLOBAL,
    TND_PICKLE_STORAGE,
    TND_PICKLE_TENSOR,
    TND_PICKLE_MARK
};

/** Classes and functions that a GLOBAL may name. */
enum tnd_pickle_global {
    TND_PICKLE_ORDERED_DICT,
    TND_PICKLE_REBUILD_TENSOR,
    TND_PICKLE_REBUILD_PARAMETER,
    TND_PICKLE_SIZE,
    TND_PICKLE_STORAGE_CLASS
};

struct tnd_pickle_value {
    enum tnd_pickle_kind kind;
    uint32_t n;        /* bytes of a text; items of a list or dict */
    uint32_t capacity; /* of a list or dict; of a GLOBAL: enum tnd_pickle_global */
    union {
        int64_t integer;
        double number;
        const char *text; /* in the pickle, not terminated */
        struct tnd_pickle_value **items;
        enum tnd_foreign_type type; /* of a storage class */
        struct {
            const struct tnd_pickle_value *key; /* TEXT */
            enum tnd_foreign_type type;
            int64_t offset; /* of a view of a storage, in values */
        } storage;
        struct {
            const struct tnd_pickle_value *storage;
            int64_t offset;
            const struct tnd_pickle_value *shape; /* lists of INTEGER */
            const struct tnd_pickle_value *strides;
        } tensor;
    };
};

/** Memory of an interpreter: chunks that are freed together. */
struct tnd_pickle {
    struct tnd_cursor cursor;
    size_t budget; /* bytes that may still be allocated */
    void *chunks;  /* each starts with a pointer to the next */
    unsigned char *at;
    size_t left;
    struct tnd_pickle_value **stack;
    size_t n_stack, stack_capacity;
    struct tnd_pickle_value **memo;
    size_t memo_capacity;
    size_t n_memo;
    struct tnd_pickle_value **storages; /* all storages referenced */
    size_t n_storages, storage_capacity;
};

/** Makes an interpreter over borrowed bytes, starting at `at`. Always call fini. */
void tnd_pickle_init(struct tnd_pickle *machine, const void *bytes, size_t n, size_t at,
                     const char *name);
/** Runs to the next STOP; `out_root` is valid until fini, also after further runs. Errors: FORMAT,
 * TRUNCATED, UNSUPPORTED_BUILD, LIMIT, MEMORY. */
enum tandem_status tnd_pickle_run(struct tnd_pickle *machine,
                                  const struct tnd_pickle_value **out_root,
                                  struct tandem_error *error);
void tnd_pickle_fini(struct tnd_pickle *machine);

/** torch_objects.c: finds a GLOBAL by module and name; refuses those not in the list. */
enum tandem_status tnd_pickle_find_global(struct tnd_pickle *machine, const char *module,
                                          size_t module_n, const char *name, size_t name_n,
                                          struct tnd_pickle_value *out, struct tandem_error *error);
/** The result of calling a GLOBAL with arguments: an OrderedDict, a tensor, ... */
enum tandem_status tnd_pickle_call(struct tnd_pickle *machine,
                                   const struct tnd_pickle_value *global,
                                   struct tnd_pickle_value *arguments, struct tnd_pickle_value *out,
                                   struct tandem_error *error);
/** The storage that a persistent id describes. */
enum tandem_status tnd_pickle_storage(struct tnd_pickle *machine, const struct tnd_pickle_value *id,
                                      struct tnd_pickle_value *out, struct tandem_error *error);
/** Fails with FORMAT and the position in the pickle. */
enum tandem_status tnd_pickle_broken(const struct tnd_pickle *machine, const char *what,
                                     struct tandem_error *error);
/** Adds an item to a list or dict. Errors: MEMORY, LIMIT. */
enum tandem_status tnd_pickle_append(struct tnd_pickle *machine, struct tnd_pickle_value *list,
                                     struct tnd_pickle_value *item, struct tandem_error *error);

/* ---- torch_tensors.c ---- */

/** Whether a file is a whole model, whose configuration is looked up, or one of its files. */
enum tnd_torch_role {
    TND_TORCH_WHOLE,
    TND_TORCH_PART,      /* names are kept */
    TND_TORCH_MODEL_PART /* names are mapped as of a Hugging Face model */
};

/** Bytes of one storage by key. */
struct tnd_torch_storage {
    const char *key;
    size_t key_bytes;
    const uint8_t *data;
    size_t bytes;
};
struct tnd_torch_storages {
    struct tnd_torch_storage *rows; /* sorted by key */
    size_t n;
    bool is_big_endian;
    size_t file_bytes;
};
/** Sorts by key. */
void tnd_torch_sort(struct tnd_torch_storages *storages);
/** Checks sorted rows for duplicate keys. Errors: FORMAT. */
enum tandem_status tnd_torch_check_keys(const struct tnd_torch_storages *storages, const char *path,
                                        struct tandem_error *error);
/** Finds a key (TEXT) in sorted rows; NULL: none. */
const struct tnd_torch_storage *tnd_torch_find(const struct tnd_torch_storages *storages,
                                               const struct tnd_pickle_value *key);
/** Adds all tensors in the tree of `root` to the source, names joined by '.', and scalars of dicts
 * as values. Errors: FORMAT, TRUNCATED, LIMIT, MEMORY. */
enum tandem_status tnd_torch_add(tandem_source *source, const struct tnd_pickle_value *root,
                                 const struct tnd_torch_storages *storages, const char *path,
                                 enum tnd_torch_role role, struct tandem_error *error);

/* ---- loaders ---- */

bool tnd_torch_zip_is(const uint8_t *bytes, size_t n);
/** torch_zip.c: reads the archive that torch.save has written since version 1.6. */
enum tandem_status tnd_torch_zip_read(const void *bytes, size_t n, const char *path,
                                      tandem_source **out_source, struct tandem_error *error);
/** Adds one file's tensors to a source, which borrows the bytes. Errors: those of
 * tnd_torch_zip_read. */
enum tandem_status tnd_torch_zip_add(const void *bytes, size_t n, const char *path,
                                     enum tnd_torch_role role, tandem_source *source,
                                     struct tandem_error *error);
enum tandem_status tnd_torch_legacy_add(const void *bytes, size_t n, const char *path,
                                        enum tnd_torch_role role, tandem_source *source,
                                        struct tandem_error *error);
bool tnd_torch_legacy_is(const uint8_t *bytes, size_t n);
/** torch_legacy.c: reads pickles followed by the storages, as torch.save wrote before version
 * 1.6. */
enum tandem_status tnd_torch_legacy_read(const void *bytes, size_t n, const char *path,
                                         tandem_source **out_source, struct tandem_error *error);

#endif
