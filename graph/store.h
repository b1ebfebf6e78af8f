/* SPDX-License-Identifier: MIT
 * What nets of one model compute from constants alone, kept so that each piece is there once: the
 * net for other extents finds weights, folded constants and packed panels by how they were made,
 * and neither computes nor copies them again.
 *
 * An array of the store has holders: whoever got it gives it back by tnd_array_free. A large one
 * that nobody holds loses its values, not its place: others are found by it, and tnd_array_fill
 * computes the values anew. Equal small constants are one array. One thread at a time. */
#ifndef TND_STORE_H
#define TND_STORE_H

#include "ggml-like/array.h"
#include "tandem/tensor.h"

struct tnd_store;

/** An array of a store as an operand: a view of its values. */
struct tnd_store_operand {
    const struct tnd_array *array;
    struct tnd_view view; /* without `data` */
    int64_t offset;       /* of the value at index 0 */
};

/** Computes the values of `out`, which are zeros before, from operands and the bytes of the
 * recipe. */
typedef enum tandem_status (*tnd_store_make_fn)(const void *how, const struct tnd_view *in,
                                                int n_in, struct tnd_array *out,
                                                struct tandem_error *error);

/** How an array is made; also the key by which it is found. */
struct tnd_store_recipe {
    tnd_store_make_fn make;
    const void *how; /* compared byte by byte: padding bytes must be set */
    size_t n_how;
    const struct tnd_store_operand *in;
    int n_in;
    enum tandem_dtype type;
    struct tnd_dims shape;
    bool is_late; /* computed later, by tnd_array_fill; computing cannot fail */
};

struct tnd_store *tnd_store_new(void);
/** Frees a store, none of whose arrays is referenced any more. NULL is allowed. */
void tnd_store_free(struct tnd_store *store);
/** Call after building each net: frees arrays without references that recent nets did not use. */
void tnd_store_sweep(struct tnd_store *store);

/** Whether an array belongs to this store. */
bool tnd_store_has(const struct tnd_store *store, const struct tnd_array *array);
/** Takes ownership of `array` and returns the store's array of equal values, which may be `array`
 * itself. NULL: out of memory; `array` is freed. */
struct tnd_array *tnd_store_take(struct tnd_store *store, struct tnd_array *array);
/** The array of a recipe, which is made if absent. Errors: those of the function, MEMORY. */
enum tandem_status tnd_store_derive(struct tnd_store *store, const struct tnd_store_recipe *recipe,
                                    struct tnd_array **out, struct tandem_error *error);
/** As tnd_store_take, for arrays that the caller makes: NULL: no memory. `*is_new`: it is zeroed,
 *  and counts from tnd_store_made on. Nothing can be derived of it, and it goes with its last
 *  holder. */
struct tnd_array *tnd_store_find(struct tnd_store *store, const struct tnd_store_recipe *recipe,
                                 bool *is_new);
void tnd_store_made(struct tnd_array *array);
/** Adds a reference to an array of the store. */
void tnd_store_hold(struct tnd_array *array);
/** Two arrays have equal values: from the next net on there is `a` in place of `b`. */
void tnd_store_note_same(const struct tnd_array *a, const struct tnd_array *b);

/** A constant tensor over an array from value `offset` on, which lives as long as the array: the
 * same one for all nets, so that runtimes prepare it once. NULL: out of memory, or too few
 * values. */
tandem_tensor *tnd_store_tensor(struct tnd_array *array, int64_t offset, int n_dims,
                                const int64_t *ne);

/** Bytes of all values in memory. */
size_t tnd_store_bytes(const struct tnd_store *store);

#endif
