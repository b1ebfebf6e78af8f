/* SPDX-License-Identifier: MIT
 * Device memory in blocks: mirrors that the executor maps, and resident weights. Works bring blocks
 * along as handles, so that a launch needs neither a search nor a lock: submit_lock guards what a
 * launch may change of a weight. Any thread may call any function. */
#ifndef TND_GPU_MEMORY_H
#define TND_GPU_MEMORY_H

#include <stdatomic.h>

#include "backends/gpu/gpu_device.h"
#include "backends/gpu/gpu_kernels.h" /* struct tnd_gpu_range */
#include "tandem/backend.h"

/** Another layout of a weight, or of part of it. */
struct tnd_gpu_form {
    struct tnd_gpu_form *next;
    int form;
    size_t offset; /* of the tensor in its block */
    size_t bytes;
    struct tnd_gpu_buffer *buffer;
};

struct tnd_gpu_block {
    size_t bytes;
    bool is_weight;
    const void *host;           /* of a weight: its address */
    struct tnd_gpu_block *next; /* in the device's list, under its lock */
    /* ---- of a block that was streamed into (gpu_stream.c): under its lock ---- */
    atomic_bool is_streamed;       /* then the members below may be set; never false again */
    struct tnd_gpu_event *arrives; /* the newest upload into it that nothing waits for yet; NULL */
    struct tnd_gpu_event *used;    /* the newest work that uses it; NULL */
    /* ---- of a weight: under submit_lock from tnd_gpu_prepare on ---- */
    struct tnd_gpu_buffer *buffer; /* NULL: only forms are kept */
    size_t offset;                 /* of the block in the buffer */
    bool is_host;                  /* the buffer is the host's memory */
    bool is_row;                   /* one row of values: may use a shared buffer */
    struct tnd_gpu_shared *shared; /* the shared buffer of small constants; else NULL */
    bool is_wanted;                /* the original is needed, whatever forms it has */
    struct tnd_gpu_form *forms;
};

enum tandem_status tnd_gpu_memory_open(struct tnd_gpu_device *device, uint64_t budget_bytes,
                                       struct tandem_error *error);
void tnd_gpu_memory_close(struct tnd_gpu_device *device);

/** Adds bytes and numbers of weights and mirrors to the statistics. */
void tnd_gpu_memory_count(struct tnd_gpu_device *device, struct tnd_gpu_statistics *statistics);

/** `bytes` bytes of a block, as an argument of kernels. Errors: STATE if there is no block, it is
 * too small, or only forms of it are kept. */
enum tandem_status tnd_gpu_find(struct tnd_gpu_device *device, struct tandem_place place,
                                size_t bytes, struct tnd_gpu_range *out_range,
                                struct tandem_error *error);
/** The same for operand i (-1: the result) of a work; bytes follow from shape and strides. */
enum tandem_status tnd_gpu_operand(struct tnd_gpu_device *device, const struct tandem_work *work,
                                   int i, struct tnd_gpu_range *out_range,
                                   struct tandem_error *error);
/** The same for the first operand in its original layout: if tnd_gpu_keep_form_only has freed the
 * original of a weight, it is uploaded again, and stays. Errors: those of tnd_gpu_find,
 * DEVICE_MEMORY (beyond the budget), DEVICE. Under submit_lock. */
enum tandem_status tnd_gpu_original(struct tnd_gpu_device *device, const struct tandem_work *work,
                                    struct tnd_gpu_range *out_range, struct tandem_error *error);

/** Another form of a resident weight (packed, another layout), made once. `make` submits work that
 * fills `buffer`; `form` (from 1) distinguishes forms. It counts against the budget and is freed
 * with the weight. Errors: DEVICE_MEMORY, DEVICE, those of `make`; STATE if the weight is not
 * resident. Under submit_lock. */
typedef enum tandem_status tnd_gpu_make_form(struct tnd_gpu_device *device,
                                             const tandem_tensor *weight, struct tnd_gpu_range from,
                                             struct tnd_gpu_range to, struct tandem_error *error);
enum tandem_status tnd_gpu_find_form(struct tnd_gpu_device *device, const tandem_tensor *weight,
                                     struct tandem_place place, int form, size_t bytes,
                                     tnd_gpu_make_form *make, struct tnd_gpu_range *out_range,
                                     struct tandem_error *error);

/** Frees the original of a weight that has a form: from then on only tnd_gpu_find_form finds it,
 * tnd_gpu_find does not. The original stays if it costs nothing (host memory), if other tensors are
 * in it, or if tnd_gpu_original has uploaded it again. Under submit_lock. */
void tnd_gpu_keep_form_only(struct tnd_gpu_device *device, const tandem_tensor *weight,
                            struct tandem_place place);

/** Users of scratch memory. The tuner converts its operands to half precision while it multiplies,
 * so both have separate slots. */
enum tnd_gpu_scratch_slot {
    TND_GPU_SCRATCH_SUMS = 0, /* partial sums of attention */
    TND_GPU_SCRATCH_TUNE_W = 0,
    TND_GPU_SCRATCH_TUNE_X,
    TND_GPU_SCRATCH_TUNE_Y,
    TND_GPU_SCRATCH_TUNE_F32,
    TND_GPU_SCRATCH_HALF_W,
    TND_GPU_SCRATCH_HALF_X,
    TND_GPU_SCRATCH_HALF_Y,
    TND_GPU_SCRATCH_EXPERTS, /* pairs of tokens and experts, sorted */
    TND_GPU_SCRATCH_SAMPLE,  /* state, histograms and slices of each row */
    TND_GPU_SCRATCH_COUNT
};

/** Device memory for the duration of one submit: valid until the next call for the same slot asks
 * for more. It grows and is only freed on close. Call under submit_lock. Errors: DEVICE_MEMORY,
 * DEVICE. */
enum tandem_status tnd_gpu_scratch(struct tnd_gpu_device *device, enum tnd_gpu_scratch_slot slot,
                                   size_t bytes, struct tnd_gpu_range *out_range,
                                   struct tandem_error *error);

/* ---- the backend's functions with these names ---- */

/** Returns a NULL block for a weight without bytes. */
enum tandem_status tnd_gpu_prepare(struct tnd_gpu_device *device, const tandem_tensor *weight,
                                   struct tnd_gpu_block **out_block, struct tandem_error *error);
enum tandem_status tnd_gpu_map(struct tnd_gpu_device *device, size_t bytes,
                               struct tnd_gpu_block **out_block, struct tandem_error *error);
/** Frees a weight or a mirror; NULL is allowed. */
void tnd_gpu_give_back(struct tnd_gpu_device *device, struct tnd_gpu_block *block);
enum tandem_status tnd_gpu_upload(struct tnd_gpu_device *device, struct tandem_place to,
                                  const void *from, size_t bytes, struct tandem_error *error);
enum tandem_status tnd_gpu_download(struct tnd_gpu_device *device, struct tandem_place from,
                                    void *to, size_t bytes, uint64_t *out_ticket,
                                    struct tandem_error *error);
/** Ticket for everything submitted so far. */
uint64_t tnd_gpu_ticket(struct tnd_gpu_device *device);
/** Whether a download, and everything before it, is over, without waiting; returns false if only
 * tnd_gpu_sync can tell. Ticket 0 is always over. */
bool tnd_gpu_poll(struct tnd_gpu_device *device, uint64_t ticket, bool *out_is_over);
enum tandem_status tnd_gpu_sync(struct tnd_gpu_device *device, uint64_t ticket,
                                struct tandem_error *error);

#endif
