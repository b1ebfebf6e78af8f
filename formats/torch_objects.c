/* SPDX-License-Identifier: MIT
 * The classes and functions of Python that checkpoints use, by name, and the results of calling
 * them. All others are refused, and no Python code runs. Arguments after torch/_utils.py. */
#include <string.h>

#include "formats/torch_pickle.h"

static const struct global_row {
    const char *module;
    const char *name;
    enum tnd_pickle_global global;
} globals[] = {
    {"collections", "OrderedDict", TND_PICKLE_ORDERED_DICT},
    {"torch._utils", "_rebuild_tensor", TND_PICKLE_REBUILD_TENSOR},
    {"torch._utils", "_rebuild_tensor_v2", TND_PICKLE_REBUILD_TENSOR},
    {"torch._utils", "_rebuild_parameter", TND_PICKLE_REBUILD_PARAMETER},
    {"torch._utils", "_rebuild_parameter_with_state", TND_PICKLE_REBUILD_PARAMETER},
    {"torch", "Size", TND_PICKLE_SIZE},
};

static bool is_text(const char *text, size_t n, const char *wanted)
{
    return strlen(wanted) == n && memcmp(text, wanted, n) == 0;
}

/* Printable characters of a name, for a message. */
static void copy_printable(const char *text, size_t n, char out[64])
{
    size_t i = 0;
    for (; i < n && i < 63; i++) {
        out[i] = (char)(text[i] >= 0x20 && text[i] < 0x7f ? text[i] : '?');
    }
    out[i] = '\0';
}

enum tandem_status tnd_pickle_find_global(struct tnd_pickle *machine, const char *module,
                                          size_t module_n, const char *name, size_t name_n,
                                          struct tnd_pickle_value *out, struct tandem_error *error)
{
    char shown_module[64];
    char shown_name[64];
    copy_printable(module, module_n, shown_module);
    copy_printable(name, name_n, shown_name);
    for (size_t i = 0; i < sizeof(globals) / sizeof(globals[0]); i++) {
        if (is_text(module, module_n, globals[i].module) &&
            is_text(name, name_n, globals[i].name)) {
            out->capacity = globals[i].global;
            return TANDEM_OK;
        }
    }
    if (is_text(module, module_n, "torch") && strlen(shown_name) == name_n &&
        tnd_foreign_from_storage(shown_name, &out->type)) {
        out->capacity = TND_PICKLE_STORAGE_CLASS;
        return TANDEM_OK;
    }
    return tnd_error_set(
        error, TANDEM_E_UNSUPPORTED_BUILD, machine->cursor.name, (int64_t)machine->cursor.at, 0,
        "%s: pickle, byte %zu: refuses %s.%s: only tensors, containers, numbers "
        "and texts are read",
        tnd_short_name(machine->cursor.name), machine->cursor.at, shown_module, shown_name);
}

static bool is_kind(const struct tnd_pickle_value *list, uint32_t i, enum tnd_pickle_kind kind)
{
    return i < list->n && list->items[i]->kind == kind;
}

static bool are_integers(const struct tnd_pickle_value *list)
{
    for (uint32_t i = 0; i < list->n; i++) {
        if (list->items[i]->kind != TND_PICKLE_INTEGER) {
            return false;
        }
    }
    return true;
}

/* (storage, offset, shape, strides, ...) */
static enum tandem_status rebuild_tensor(struct tnd_pickle *machine,
                                         const struct tnd_pickle_value *arguments,
                                         struct tnd_pickle_value *out, struct tandem_error *error)
{
    if (!is_kind(arguments, 0, TND_PICKLE_STORAGE) || !is_kind(arguments, 1, TND_PICKLE_INTEGER) ||
        !is_kind(arguments, 2, TND_PICKLE_LIST) || !is_kind(arguments, 3, TND_PICKLE_LIST)) {
        return tnd_pickle_broken(machine, "a tensor needs storage, offset, shape and strides",
                                 error);
    }
    const struct tnd_pickle_value *shape = arguments->items[2];
    const struct tnd_pickle_value *strides = arguments->items[3];
    if (shape->n != strides->n || !are_integers(shape) || !are_integers(strides)) {
        return tnd_pickle_broken(machine, "shape and strides of a tensor do not fit together",
                                 error);
    }
    *out = (struct tnd_pickle_value){.kind = TND_PICKLE_TENSOR};
    out->tensor.storage = arguments->items[0];
    out->tensor.offset = arguments->items[1]->integer;
    out->tensor.shape = shape;
    out->tensor.strides = strides;
    return TANDEM_OK;
}

/* Nothing, or a list of pairs. */
static enum tandem_status ordered_dict(struct tnd_pickle *machine,
                                       const struct tnd_pickle_value *arguments,
                                       struct tnd_pickle_value *out, struct tandem_error *error)
{
    *out = (struct tnd_pickle_value){.kind = TND_PICKLE_DICT};
    if (arguments->n == 0) {
        return TANDEM_OK;
    }
    if (arguments->n != 1 || !is_kind(arguments, 0, TND_PICKLE_LIST)) {
        return tnd_pickle_broken(machine, "an OrderedDict takes a list of pairs", error);
    }
    const struct tnd_pickle_value *pairs = arguments->items[0];
    for (uint32_t i = 0; i < pairs->n; i++) {
        if (!is_kind(pairs, i, TND_PICKLE_LIST) || pairs->items[i]->n != 2) {
            return tnd_pickle_broken(machine, "an OrderedDict takes a list of pairs", error);
        }
        TND_TRY(tnd_pickle_append(machine, out, pairs->items[i]->items[0], error));
        TND_TRY(tnd_pickle_append(machine, out, pairs->items[i]->items[1], error));
    }
    return TANDEM_OK;
}

enum tandem_status tnd_pickle_call(struct tnd_pickle *machine,
                                   const struct tnd_pickle_value *global,
                                   struct tnd_pickle_value *arguments, struct tnd_pickle_value *out,
                                   struct tandem_error *error)
{
    switch (global->capacity) {
    case TND_PICKLE_ORDERED_DICT:
        return ordered_dict(machine, arguments, out, error);
    case TND_PICKLE_REBUILD_TENSOR:
        return rebuild_tensor(machine, arguments, out, error);
    case TND_PICKLE_REBUILD_PARAMETER:
        if (!is_kind(arguments, 0, TND_PICKLE_TENSOR)) {
            return tnd_pickle_broken(machine, "a parameter without tensor", error);
        }
        *out = *arguments->items[0];
        return TANDEM_OK;
    case TND_PICKLE_SIZE:
        if (arguments->n != 1 || !is_kind(arguments, 0, TND_PICKLE_LIST)) {
            return tnd_pickle_broken(machine, "a size without extents", error);
        }
        *out = *arguments->items[0];
        return TANDEM_OK;
    default:
        return tnd_pickle_broken(machine, "a call of what is no function", error);
    }
}

/* ('storage', class, key, location, number of values[, None or (key, offset, size) of a view]) */
enum tandem_status tnd_pickle_storage(struct tnd_pickle *machine, const struct tnd_pickle_value *id,
                                      struct tnd_pickle_value *out, struct tandem_error *error)
{
    if (id->kind != TND_PICKLE_LIST || id->n < 5 || !is_kind(id, 0, TND_PICKLE_TEXT) ||
        !is_text(id->items[0]->text, id->items[0]->n, "storage") ||
        !is_kind(id, 1, TND_PICKLE_GLOBAL) || id->items[1]->capacity != TND_PICKLE_STORAGE_CLASS ||
        !is_kind(id, 2, TND_PICKLE_TEXT)) {
        return tnd_pickle_broken(machine, "a persistent id that is no storage", error);
    }
    out->storage.key = id->items[2];
    out->storage.type = id->items[1]->type;
    out->storage.offset = 0;
    if (is_kind(id, 5, TND_PICKLE_LIST)) {
        const struct tnd_pickle_value *view = id->items[5];
        if (!is_kind(view, 1, TND_PICKLE_INTEGER)) {
            return tnd_pickle_broken(machine, "a view of a storage without offset", error);
        }
        out->storage.offset = view->items[1]->integer;
    }
    return TANDEM_OK;
}
