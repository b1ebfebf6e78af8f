/* SPDX-License-Identifier: MIT
 * Sources: named tensors, named values, and the memory behind them. Loaders (llama2c.c, synth.c,
 * ...) fill a source with the functions below; readers use tandem/formats.h. */
#ifndef TND_SOURCE_H
#define TND_SOURCE_H

#include "base/file.h"
#include "tandem/formats.h"

/* Most tensors, and most values, of a source: far above every real model, and a bound on what a
 * hostile file can make us allocate for its lists. */
#define TND_SOURCE_MAX_TENSORS 131072
#define TND_SOURCE_MAX_VALUES  65536
/* Bytes that a loader may allocate beyond the size of its file. */
#define TND_SOURCE_SPARE_BYTES ((size_t)16 << 20)
/* Bound on the bytes of all tensors that borrow from files, in multiples of the files' bytes: tied
 * weights need 2. */
#define TND_SOURCE_MAX_SHARING 4.0

enum tnd_value_kind {
    TND_VALUE_INTEGER = TANDEM_VALUE_INTEGER,
    TND_VALUE_NUMBER = TANDEM_VALUE_NUMBER,
    TND_VALUE_TEXT = TANDEM_VALUE_TEXT,
    TND_VALUE_ARRAY = TANDEM_VALUE_ARRAY
};

/** A list in GGUF's encoding: items without gaps, each text after its 64-bit length. */
struct tnd_source_array {
    uint32_t item_type; /* enum tnd_gguf_type */
    int64_t count;
    const uint8_t *bytes;
    size_t n_bytes;
    size_t *offsets; /* owned; offset of each text's length; NULL for other items */
    void *owned;     /* memory of `bytes`, or NULL: borrowed */
};

struct tnd_source_value {
    char *key; /* owned */
    enum tnd_value_kind kind;
    int64_t integer;
    double number;
    char *text; /* owned; NULL unless kind is TEXT */
    size_t text_bytes;
    struct tnd_source_array *array; /* owned; NULL unless kind is ARRAY */
    int gguf_type;                  /* as stated in the file; -1: not stated */
};

struct tnd_source_name {
    const char *name; /* the tensor's name, borrowed */
    size_t index;
};

/** How the weights of a Hugging Face model are quantised (formats/hf_quantized.c). */
enum tnd_hf_method { TND_HF_PLAIN, TND_HF_FP8, TND_HF_GPTQ, TND_HF_AWQ };
struct tnd_hf_quantized {
    enum tnd_hf_method method;
    int64_t group;    /* values of a column that share a scale; -1: the whole column */
    int64_t block[2]; /* fp8: rows and columns that share a scale */
    int zero_step;    /* amount to add to stored zeros */
};
/* Type of a tensor of raw e4m3 bytes; tnd_hf_unpack replaces it before loading ends. */
#define TND_HF_RAW_F8 TANDEM_TYPE_NUMBERS

struct tnd_hf_family;
struct tnd_partial;
struct tandem_source {
    const char *format;                   /* static text */
    struct tandem_source_tensor *tensors; /* their names are owned */
    size_t n_tensors;
    size_t tensor_capacity;
    struct tnd_source_name *by_name; /* in the order of the names, or NULL */
    size_t n_by_name;                /* n_tensors when by_name was made */
    struct tnd_source_value *values;
    size_t n_values;
    size_t value_capacity;
    void *memory;                /* owned tensor data, or NULL */
    struct tnd_file file;        /* the file that tensors borrow from; closed with the source */
    struct tnd_partial *partial; /* the bytes present of `file`; NULL: all */
    void **blocks;               /* more owned tensor data */
    size_t n_blocks;
    size_t block_capacity;
    size_t block_bytes;          /* bytes of all blocks */
    struct tnd_file *more_files; /* more files of the model */
    size_t n_more_files;
    size_t more_file_capacity;
    bool is_outline;                     /* its tensors have no data */
    const struct tnd_hf_family *hf;      /* family of a config.json, static; NULL: none */
    const struct tnd_hf_whole *hf_whole; /* multimodal model around this text part, or NULL */
    struct tnd_hf_quantized hf_quantized;
    int64_t hf_unused_positions; /* unused leading rows of learned positions */
};

/** Makes an empty source. `format` is static text for tandem_source_format. Errors: MEMORY. */
enum tandem_status tnd_source_new(const char *format, tandem_source **out_source,
                                  struct tandem_error *error);

/** Adds a tensor; the name is copied, `data` is borrowed until the source is closed. Names are not
 * checked for duplicates: see tnd_source_check_names. Errors: MEMORY. */
enum tandem_status tnd_source_add(tandem_source *source, const char *name, enum tandem_type type,
                                  int n_dims, const int64_t *ne, const void *data, size_t bytes,
                                  struct tandem_error *error);

/** Add a value; keys and texts are copied. Errors: MEMORY. */
enum tandem_status tnd_source_set_integer(tandem_source *source, const char *key, int64_t value,
                                          struct tandem_error *error);
/** Adds 0 or 1, written to files as a bool. */
enum tandem_status tnd_source_set_flag(tandem_source *source, const char *key, bool flag,
                                       struct tandem_error *error);
enum tandem_status tnd_source_set_number(tandem_source *source, const char *key, double value,
                                         struct tandem_error *error);
enum tandem_status tnd_source_set_text(tandem_source *source, const char *key, const char *value,
                                       struct tandem_error *error);
/** Adds a text of `n` bytes, which may contain zero bytes. Errors: MEMORY, LIMIT. */
enum tandem_status tnd_source_set_text_bytes(tandem_source *source, const char *key,
                                             const char *value, size_t n,
                                             struct tandem_error *error);
/** Adds a value with copies of its key and text; takes ownership of a list. Errors: MEMORY,
 * LIMIT. */
enum tandem_status tnd_source_add_value(tandem_source *source, const char *key,
                                        struct tnd_source_value value, struct tandem_error *error);
/** The value of a key, or NULL: none of that kind. */
const struct tnd_source_value *tnd_source_value_of(const tandem_source *source, const char *key,
                                                   enum tnd_value_kind kind);

/** Whether a conversion to another type of weights may change the tensor: matrices except routers
 * of experts, which are small, and in which a rounding error chooses another expert. */
bool tnd_source_converts(const struct tandem_source_tensor *tensor);

/* ---- outline.c ---- */

/** Makes a Llama-like model without weights: its tensors have addresses that must not be read or
 * written. Graphs over them can be planned but not run. Errors: ARGUMENT, OVERFLOW, MEMORY. */
enum tandem_status tnd_source_outline(const struct tandem_llama_shape *shape, enum tandem_type type,
                                      tandem_source **out_source, struct tandem_error *error);

/* ---- source_array.c ---- */

/** Adds a list of `count` items of a type in GGUF's encoding, which the loader has checked. `bytes`
 * are borrowed until the source is closed, or copied. Errors: MEMORY, LIMIT. */
enum tandem_status tnd_source_set_array(tandem_source *source, const char *key, uint32_t item_type,
                                        int64_t count, const uint8_t *bytes, size_t n_bytes,
                                        bool copies, struct tandem_error *error);
void tnd_source_array_free(struct tnd_source_array *array);

/* ---- source_memory.c ---- */

/** Allocates memory that is freed with the source: in total at most the bytes of its file
 * (`file_bytes`) plus TND_SOURCE_SPARE_BYTES. Errors: MEMORY, LIMIT. */
enum tandem_status tnd_source_alloc(tandem_source *source, const char *name, size_t bytes,
                                    size_t file_bytes, void **out_memory,
                                    struct tandem_error *error);
/** Maps another file, which is closed with the source. `out_file` is borrowed until the next call.
 * Errors: FILE, MEMORY. */
enum tandem_status tnd_source_map(tandem_source *source, const char *path,
                                  struct tnd_file *out_file, struct tandem_error *error);
/** Frees blocks and closes files. */
void tnd_source_memory_free(tandem_source *source);
/** Ends a loader that made `source` with tnd_source_new: on success indexes the source and returns
 * it in `out_source`, else closes it. Returns `status`. */
enum tandem_status tnd_source_end(enum tandem_status status, tandem_source *source,
                                  tandem_source **out_source);
/** Checks that all names of tensors differ, and all keys. Errors: FORMAT, MEMORY. */
enum tandem_status tnd_source_check_names(const tandem_source *source, const char *path,
                                          struct tandem_error *error);

/** Call after reading tensors. FILE: one of the files was truncated, changed or replaced meanwhile,
 * or a tensor is not in the part of the file that a rank has. */
enum tandem_status tnd_source_check(const tandem_source *source, struct tandem_error *error);
/** Whether this thread's loader reads its files instead of mapping them. Thread-local, as loaders
 * open more files of a model without a parameter for it. */
extern _Thread_local bool tnd_source_copies;

/** Index of a tensor by name, or -1. */
int64_t tnd_source_find(const tandem_source *source, const char *name);
/** Indexes the names, so that finding a tensor takes O(log n); call it after adding all. Without
 * memory finding stays O(n), with the same results. */
void tnd_source_index(tandem_source *source);

/** Copies the values of another source whose keys start with `prefix`, except keys that exist.
 * Errors: MEMORY. */
enum tandem_status tnd_source_copy_values(tandem_source *source, const tandem_source *from,
                                          const char *prefix, struct tandem_error *error);

#endif
