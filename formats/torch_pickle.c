/* SPDX-License-Identifier: MIT
 * The pickle interpreter: stack, memo, opcodes. Globals are handled in torch_objects.c. */
#include "formats/torch_pickle.h"

#include "base/alloc.h"
#include "formats/source.h"

#define CHUNK_BYTES ((size_t)64 << 10)

/* ---- memory ---- */

static enum tandem_status no_memory(struct tnd_pickle *machine, size_t bytes,
                                    struct tandem_error *error)
{
    const bool is_limit = bytes > machine->budget || machine->budget < CHUNK_BYTES;
    return tnd_error_set(error, is_limit ? TANDEM_E_LIMIT : TANDEM_E_MEMORY, machine->cursor.name,
                         (int64_t)bytes, (int64_t)machine->budget,
                         is_limit ? "%s: pickle, byte %zu: its objects need more memory than its "
                                    "size allows"
                                  : "%s: pickle, byte %zu: no memory for its objects",
                         tnd_short_name(machine->cursor.name), machine->cursor.at);
}

static void *take_memory(struct tnd_pickle *machine, size_t bytes)
{
    bytes = (bytes + 15) / 16 * 16;
    if (bytes > machine->left) {
        const size_t chunk = bytes + 16 > CHUNK_BYTES ? bytes + 16 : CHUNK_BYTES;
        void **memory = chunk > machine->budget ? NULL : tnd_alloc(chunk);
        if (memory == NULL) {
            return NULL;
        }
        machine->budget -= chunk;
        *memory = machine->chunks;
        machine->chunks = memory;
        machine->at = (unsigned char *)memory + 16;
        machine->left = chunk - 16;
    }
    void *out = machine->at;
    machine->at += bytes;
    machine->left -= bytes;
    return out;
}

/* Makes place for item `n` of a list of pointers; new ones are NULL. */
static enum tandem_status reserve(struct tnd_pickle *machine, struct tnd_pickle_value ***list,
                                  size_t n, size_t *capacity, struct tandem_error *error)
{
    if (n < *capacity) {
        return TANDEM_OK;
    }
    size_t wanted = *capacity < 64 ? 64 : *capacity * 2;
    wanted = wanted <= n ? n + 1 : wanted;
    const size_t item = sizeof(**list);
    const size_t more = (wanted - *capacity) * item;
    void *larger =
        more > machine->budget ? NULL : tnd_realloc(*list, *capacity * item, wanted * item);
    if (larger == NULL) {
        return no_memory(machine, more, error);
    }
    machine->budget -= more;
    *list = larger;
    memset(*list + *capacity, 0, more);
    *capacity = wanted;
    return TANDEM_OK;
}

enum tandem_status tnd_pickle_append(struct tnd_pickle *machine, struct tnd_pickle_value *list,
                                     struct tnd_pickle_value *item, struct tandem_error *error)
{
    if (list->n == list->capacity) {
        const uint32_t wanted = list->capacity == 0 ? 4 : list->capacity * 2;
        struct tnd_pickle_value **items =
            wanted > UINT32_MAX / 4 ? NULL : take_memory(machine, wanted * sizeof(*items));
        if (items == NULL) {
            return no_memory(machine, wanted * sizeof(*items), error);
        }
        if (list->n > 0) {
            memcpy(items, list->items, list->n * sizeof(*items));
        }
        list->items = items;
        list->capacity = wanted;
    }
    list->items[list->n++] = item;
    return TANDEM_OK;
}

void tnd_pickle_init(struct tnd_pickle *machine, const void *bytes, size_t n, size_t at,
                     const char *name)
{
    *machine = (struct tnd_pickle){
        .cursor = {bytes, n, at, name},
        .budget = n < SIZE_MAX - TND_SOURCE_SPARE_BYTES ? n + TND_SOURCE_SPARE_BYTES : SIZE_MAX};
}

void tnd_pickle_fini(struct tnd_pickle *machine)
{
    while (machine->chunks != NULL) {
        void *next = *(void **)machine->chunks;
        tnd_free(machine->chunks);
        machine->chunks = next;
    }
    tnd_free(machine->stack);
    tnd_free(machine->memo);
    tnd_free(machine->storages);
}

enum tandem_status tnd_pickle_broken(const struct tnd_pickle *machine, const char *what,
                                     struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_FORMAT, machine->cursor.name, (int64_t)machine->cursor.at,
                         0, "%s: pickle, byte %zu: %s", tnd_short_name(machine->cursor.name),
                         machine->cursor.at, what);
}

/* ---- the stack ---- */

static enum tandem_status push(struct tnd_pickle *machine, struct tnd_pickle_value *value,
                               struct tandem_error *error)
{
    TND_TRY(reserve(machine, &machine->stack, machine->n_stack, &machine->stack_capacity, error));
    machine->stack[machine->n_stack++] = value;
    return TANDEM_OK;
}

static enum tandem_status push_new(struct tnd_pickle *machine, struct tnd_pickle_value value,
                                   struct tandem_error *error)
{
    struct tnd_pickle_value *memory = take_memory(machine, sizeof(*memory));
    if (memory == NULL) {
        return no_memory(machine, sizeof(*memory), error);
    }
    *memory = value;
    return push(machine, memory, error);
}

static enum tandem_status push_integer(struct tnd_pickle *machine, int64_t integer,
                                       struct tandem_error *error)
{
    const struct tnd_pickle_value value = {.kind = TND_PICKLE_INTEGER, .integer = integer};
    return push_new(machine, value, error);
}

static enum tandem_status pop(struct tnd_pickle *machine, struct tnd_pickle_value **out,
                              struct tandem_error *error)
{
    if (machine->n_stack == 0) {
        return tnd_pickle_broken(machine, "an opcode takes from an empty stack", error);
    }
    *out = machine->stack[--machine->n_stack];
    return (*out)->kind == TND_PICKLE_MARK
               ? tnd_pickle_broken(machine, "an opcode takes a mark for a value", error)
               : TANDEM_OK;
}

static enum tandem_status top(struct tnd_pickle *machine, struct tnd_pickle_value **out,
                              struct tandem_error *error)
{
    TND_TRY(pop(machine, out, error));
    machine->n_stack++;
    return TANDEM_OK;
}

/* Index of the first value above the last mark. */
static enum tandem_status find_mark(struct tnd_pickle *machine, size_t *out,
                                    struct tandem_error *error)
{
    for (size_t i = machine->n_stack; i > 0; i--) {
        if (machine->stack[i - 1]->kind == TND_PICKLE_MARK) {
            *out = i;
            return TANDEM_OK;
        }
    }
    return tnd_pickle_broken(machine, "an opcode needs a mark, the stack has none", error);
}

/* Makes a list or dict of the values from `first` on; they leave the stack, and so does a mark. */
static enum tandem_status gather(struct tnd_pickle *machine, enum tnd_pickle_kind kind,
                                 size_t first, bool has_mark, struct tandem_error *error)
{
    struct tnd_pickle_value list = {.kind = kind};
    for (size_t i = first; i < machine->n_stack; i++) {
        if (machine->stack[i]->kind == TND_PICKLE_MARK) {
            return tnd_pickle_broken(machine, "an opcode takes a mark for a value", error);
        }
        TND_TRY(tnd_pickle_append(machine, &list, machine->stack[i], error));
    }
    if (kind == TND_PICKLE_DICT && list.n % 2 != 0) {
        return tnd_pickle_broken(machine, "a dict has a key without value", error);
    }
    machine->n_stack = first - (has_mark ? 1 : 0);
    return push_new(machine, list, error);
}

/* Adds the values from `first` on to the list or dict below them (and below the mark). */
static enum tandem_status extend(struct tnd_pickle *machine, enum tnd_pickle_kind kind,
                                 size_t first, bool has_mark, struct tandem_error *error)
{
    const size_t below = first - (has_mark ? 1 : 0);
    if (below == 0 || machine->stack[below - 1]->kind != kind) {
        return tnd_pickle_broken(machine, "items are added to what is no container of them", error);
    }
    if (kind == TND_PICKLE_DICT && (machine->n_stack - first) % 2 != 0) {
        return tnd_pickle_broken(machine, "a dict has a key without value", error);
    }
    for (size_t i = first; i < machine->n_stack; i++) {
        TND_TRY(tnd_pickle_append(machine, machine->stack[below - 1], machine->stack[i], error));
    }
    machine->n_stack = below;
    return TANDEM_OK;
}

/* ---- opcodes with an argument ---- */

static enum tandem_status take_number(struct tnd_pickle *machine, int bytes, uint64_t *out,
                                      struct tandem_error *error)
{
    const uint8_t *at = NULL;
    TND_TRY(tnd_cursor_take(&machine->cursor, (uint64_t)bytes, "an opcode's argument", &at, error));
    *out = 0;
    for (int i = bytes; i > 0; i--) {
        *out = *out << 8 | at[i - 1];
    }
    return TANDEM_OK;
}

/* Pushes a text or bytes that follow a length of this many bytes. */
static enum tandem_status push_text(struct tnd_pickle *machine, int length_bytes,
                                    struct tandem_error *error)
{
    uint64_t n = 0;
    const uint8_t *text = NULL;
    TND_TRY(take_number(machine, length_bytes, &n, error));
    TND_TRY(tnd_cursor_take(&machine->cursor, n, "a text", &text, error));
    if (n > UINT32_MAX) {
        return tnd_pickle_broken(machine, "a text of 4 GiB or more", error);
    }
    const struct tnd_pickle_value value = {
        .kind = TND_PICKLE_TEXT, .n = (uint32_t)n, .text = (const char *)text};
    return push_new(machine, value, error);
}

/* LONG1, LONG4: a number in two's complement; one of more than 8 bytes is kept as none. */
static enum tandem_status push_long(struct tnd_pickle *machine, int length_bytes,
                                    struct tandem_error *error)
{
    uint64_t n = 0;
    const uint8_t *bytes = NULL;
    TND_TRY(take_number(machine, length_bytes, &n, error));
    TND_TRY(tnd_cursor_take(&machine->cursor, n, "a long integer", &bytes, error));
    if (n > 8) {
        return push_new(machine, (struct tnd_pickle_value){.kind = TND_PICKLE_NONE}, error);
    }
    uint64_t bits = n > 0 && (bytes[n - 1] & 0x80) != 0 ? UINT64_MAX : 0;
    for (uint64_t i = n; i > 0; i--) {
        bits = bits << 8 | bytes[i - 1];
    }
    return push_integer(machine, (int64_t)bits, error);
}

static enum tandem_status push_double(struct tnd_pickle *machine, struct tandem_error *error)
{
    const uint8_t *bytes = NULL;
    uint64_t bits = 0;
    struct tnd_pickle_value value = {.kind = TND_PICKLE_NUMBER};
    TND_TRY(tnd_cursor_take(&machine->cursor, 8, "a number", &bytes, error));
    for (int i = 0; i < 8; i++) { /* big-endian, unlike all else */
        bits = bits << 8 | bytes[i];
    }
    memcpy(&value.number, &bits, sizeof(value.number));
    return push_new(machine, value, error);
}

static enum tandem_status take_line(struct tnd_pickle *machine, const char **out, size_t *out_n,
                                    struct tandem_error *error)
{
    struct tnd_cursor *cursor = &machine->cursor;
    const uint8_t *at = cursor->data + cursor->at;
    const uint8_t *end = memchr(at, '\n', tnd_cursor_left(cursor));
    if (end == NULL) {
        return tnd_pickle_broken(machine, "a name without end", error);
    }
    *out = (const char *)at;
    *out_n = (size_t)(end - at);
    cursor->at += *out_n + 1;
    return TANDEM_OK;
}

static enum tandem_status push_global(struct tnd_pickle *machine, bool from_stack,
                                      struct tandem_error *error)
{
    const char *module = NULL;
    const char *name = NULL;
    size_t module_n = 0;
    size_t name_n = 0;
    struct tnd_pickle_value value = {.kind = TND_PICKLE_GLOBAL};
    if (from_stack) {
        struct tnd_pickle_value *second = NULL;
        struct tnd_pickle_value *first = NULL;
        TND_TRY(pop(machine, &second, error));
        TND_TRY(pop(machine, &first, error));
        if (first->kind != TND_PICKLE_TEXT || second->kind != TND_PICKLE_TEXT) {
            return tnd_pickle_broken(machine, "the name of a global is no text", error);
        }
        module = first->text;
        module_n = first->n;
        name = second->text;
        name_n = second->n;
    } else {
        TND_TRY(take_line(machine, &module, &module_n, error));
        TND_TRY(take_line(machine, &name, &name_n, error));
    }
    TND_TRY(tnd_pickle_find_global(machine, module, module_n, name, name_n, &value, error));
    return push_new(machine, value, error);
}

static enum tandem_status put(struct tnd_pickle *machine, uint64_t index,
                              struct tandem_error *error)
{
    struct tnd_pickle_value *value = NULL;
    TND_TRY(top(machine, &value, error));
    if (index > machine->cursor.n) {
        return tnd_pickle_broken(machine, "a memo's number above the size of the file", error);
    }
    TND_TRY(reserve(machine, &machine->memo, (size_t)index, &machine->memo_capacity, error));
    machine->memo[index] = value;
    machine->n_memo++;
    return TANDEM_OK;
}

static enum tandem_status get(struct tnd_pickle *machine, uint64_t index,
                              struct tandem_error *error)
{
    if (index >= machine->memo_capacity || machine->memo[index] == NULL) {
        return tnd_pickle_broken(machine, "a memo is read that was never written", error);
    }
    return push(machine, machine->memo[index], error);
}

static enum tandem_status call(struct tnd_pickle *machine, struct tandem_error *error)
{
    struct tnd_pickle_value *arguments = NULL;
    struct tnd_pickle_value *global = NULL;
    struct tnd_pickle_value value = {.kind = TND_PICKLE_NONE};
    TND_TRY(pop(machine, &arguments, error));
    TND_TRY(pop(machine, &global, error));
    if (global->kind != TND_PICKLE_GLOBAL || arguments->kind != TND_PICKLE_LIST) {
        return tnd_pickle_broken(machine, "a call of what is no function", error);
    }
    TND_TRY(tnd_pickle_call(machine, global, arguments, &value, error));
    return push_new(machine, value, error);
}

static enum tandem_status push_storage(struct tnd_pickle *machine, struct tandem_error *error)
{
    struct tnd_pickle_value *id = NULL;
    struct tnd_pickle_value value = {.kind = TND_PICKLE_STORAGE};
    TND_TRY(pop(machine, &id, error));
    TND_TRY(tnd_pickle_storage(machine, id, &value, error));
    TND_TRY(push_new(machine, value, error));
    TND_TRY(reserve(machine, &machine->storages, machine->n_storages, &machine->storage_capacity,
                    error));
    machine->storages[machine->n_storages++] = machine->stack[machine->n_stack - 1];
    return TANDEM_OK;
}

/* ---- the opcodes ---- */

static enum tandem_status run_memo(struct tnd_pickle *machine, uint8_t opcode,
                                   struct tandem_error *error)
{
    uint64_t index = machine->n_memo;
    if (opcode != 0x94) { /* MEMOIZE counts by itself */
        TND_TRY(take_number(machine, opcode == 'q' || opcode == 'h' ? 1 : 4, &index, error));
    }
    return opcode == 'h' || opcode == 'j' ? get(machine, index, error) : put(machine, index, error);
}

static enum tandem_status run_number(struct tnd_pickle *machine, uint8_t opcode,
                                     struct tandem_error *error)
{
    uint64_t bits = 0;
    switch (opcode) {
    case 'J': /* BININT */
        TND_TRY(take_number(machine, 4, &bits, error));
        return push_integer(machine, (int32_t)bits, error);
    case 'K': /* BININT1 */
    case 'M': /* BININT2 */
        TND_TRY(take_number(machine, opcode == 'K' ? 1 : 2, &bits, error));
        return push_integer(machine, (int64_t)bits, error);
    case 0x88: /* NEWTRUE */
    case 0x89: /* NEWFALSE */
        return push_integer(machine, opcode == 0x88, error);
    case 0x8a: /* LONG1 */
        return push_long(machine, 1, error);
    case 0x8b: /* LONG4 */
        return push_long(machine, 4, error);
    default: /* BINFLOAT */
        return push_double(machine, error);
    }
}

static enum tandem_status run_container(struct tnd_pickle *machine, uint8_t opcode,
                                        struct tandem_error *error)
{
    const struct tnd_pickle_value list = {.kind = TND_PICKLE_LIST};
    const struct tnd_pickle_value dict = {.kind = TND_PICKLE_DICT};
    size_t first = 0;
    const size_t n = machine->n_stack;
    switch (opcode) {
    case ']': /* EMPTY_LIST, EMPTY_TUPLE, EMPTY_SET */
    case ')':
    case 0x8f:
        return push_new(machine, list, error);
    case '}': /* EMPTY_DICT */
        return push_new(machine, dict, error);
    case 0x85: /* TUPLE1, 2, 3 */
    case 0x86:
    case 0x87:
        first = (size_t)opcode - 0x84;
        return n < first ? tnd_pickle_broken(machine, "a tuple of an empty stack", error)
                         : gather(machine, TND_PICKLE_LIST, n - first, false, error);
    case 'a': /* APPEND */
        return n < 2 ? tnd_pickle_broken(machine, "an item without list", error)
                     : extend(machine, TND_PICKLE_LIST, n - 1, false, error);
    case 's': /* SETITEM */
        return n < 3 ? tnd_pickle_broken(machine, "an item without dict", error)
                     : extend(machine, TND_PICKLE_DICT, n - 2, false, error);
    default:
        break;
    }
    TND_TRY(find_mark(machine, &first, error));
    switch (opcode) {
    case 't': /* TUPLE, LIST, FROZENSET */
    case 'l':
    case 0x91:
        return gather(machine, TND_PICKLE_LIST, first, true, error);
    case 'd': /* DICT */
        return gather(machine, TND_PICKLE_DICT, first, true, error);
    case 'u': /* SETITEMS */
        return extend(machine, TND_PICKLE_DICT, first, true, error);
    case '1': /* POP_MARK */
        machine->n_stack = first - 1;
        return TANDEM_OK;
    default: /* APPENDS, ADDITEMS */
        return extend(machine, TND_PICKLE_LIST, first, true, error);
    }
}

/* Opcodes that are no number, text, container or memo. */
static enum tandem_status run_other(struct tnd_pickle *machine, uint8_t opcode,
                                    struct tandem_error *error)
{
    struct tnd_pickle_value *value = NULL;
    uint64_t ignored = 0;
    switch (opcode) {
    case '(': /* MARK */
        return push_new(machine, (struct tnd_pickle_value){.kind = TND_PICKLE_MARK}, error);
    case 'N': /* NONE */
        return push_new(machine, (struct tnd_pickle_value){.kind = TND_PICKLE_NONE}, error);
    case 0x80: /* PROTO */
        TND_TRY(take_number(machine, 1, &ignored, error));
        return ignored > 5 ? tnd_pickle_broken(machine, "a protocol above 5", error) : TANDEM_OK;
    case 0x95: /* FRAME */
        return take_number(machine, 8, &ignored, error);
    case '0': /* POP */
        return pop(machine, &value, error);
    case '2': /* DUP */
        TND_TRY(top(machine, &value, error));
        return push(machine, value, error);
    case 'c': /* GLOBAL */
        return push_global(machine, false, error);
    case 0x93: /* STACK_GLOBAL */
        return push_global(machine, true, error);
    case 'R': /* REDUCE */
        return call(machine, error);
    case 'b': /* BUILD: attributes of an object, which none of ours needs */
        TND_TRY(pop(machine, &value, error));
        return top(machine, &value, error);
    case 'Q': /* BINPERSID */
        return push_storage(machine, error);
    default:
        return tnd_error_set(error, TANDEM_E_FORMAT, machine->cursor.name, opcode, 0,
                             "%s: pickle, byte %zu: opcode 0x%02x is none that tensors need",
                             tnd_short_name(machine->cursor.name), machine->cursor.at - 1, opcode);
    }
}

static enum tandem_status run_opcode(struct tnd_pickle *machine, uint8_t opcode,
                                     struct tandem_error *error)
{
    static const struct {
        uint8_t opcode;
        int length_bytes;
    } texts[] = {{'U', 1}, {'C', 1}, {0x8c, 1}, {'T', 4}, {'B', 4}, {'X', 4}, {0x8d, 8}, {0x8e, 8}};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (texts[i].opcode == opcode) {
            return push_text(machine, texts[i].length_bytes, error);
        }
    }
    if (opcode != 0 && strchr("hjqr\x94", opcode) != NULL) {
        return run_memo(machine, opcode, error);
    }
    if (opcode != 0 && strchr("JKMG\x88\x89\x8a\x8b", opcode) != NULL) {
        return run_number(machine, opcode, error);
    }
    if (opcode != 0 && strchr("])}atlduse1\x85\x86\x87\x8f\x90\x91", opcode) != NULL) {
        return run_container(machine, opcode, error);
    }
    return run_other(machine, opcode, error);
}

enum tandem_status tnd_pickle_run(struct tnd_pickle *machine,
                                  const struct tnd_pickle_value **out_root,
                                  struct tandem_error *error)
{
    struct tnd_pickle_value *root = NULL;
    machine->n_stack = 0;
    machine->n_memo = 0;
    if (machine->memo_capacity > 0) {
        memset(machine->memo, 0, machine->memo_capacity * sizeof(machine->memo[0]));
    }
    for (;;) {
        const uint8_t *opcode = NULL;
        TND_TRY(tnd_cursor_take(&machine->cursor, 1, "an opcode", &opcode, error));
        if (*opcode == '.') { /* STOP */
            TND_TRY(pop(machine, &root, error));
            *out_root = root;
            return TANDEM_OK;
        }
        TND_TRY(run_opcode(machine, *opcode, error));
    }
}
