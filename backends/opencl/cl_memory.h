/* SPDX-License-Identifier: MIT
 * Device memory by host address: mirrors of ranges that the executor maps, and resident weights.
 * All functions may be called by any thread. */
#ifndef TND_CL_MEMORY_H
#define TND_CL_MEMORY_H

#include "backends/opencl/cl_device.h"
#include "backends/opencl/cl_kernels.h" /* struct tnd_cl_range */
#include "tandem/tensor.h"

enum tandem_status tnd_cl_memory_open(struct tnd_cl_device *device, uint64_t budget_bytes,
                                      struct tandem_error *error);
void tnd_cl_memory_close(struct tnd_cl_device *device);

/** Adds the counts of bytes, weights and mirrors. */
void tnd_cl_memory_count(struct tnd_cl_device *device, struct tnd_cl_statistics *statistics);

/** Where the device keeps `bytes` bytes of this host address: a mirror, else a resident weight.
 *  Errors: STATE when no mirror or weight has all of them. */
enum tandem_status tnd_cl_find(struct tnd_cl_device *device, const void *address, size_t bytes,
                               struct tnd_cl_range *out_range, struct tandem_error *error);
/** The same for the bytes that a tensor's elements lie in, by shape and strides. */
enum tandem_status tnd_cl_find_tensor(struct tnd_cl_device *device, const tandem_tensor *tensor,
                                      struct tnd_cl_range *out_range, struct tandem_error *error);
/** The same for operands that must lie as on the host: the original of a weight that
 *  tnd_cl_keep_form_only has given back is brought to the device again, and stays. Errors: those of
 *  tnd_cl_find, DEVICE_MEMORY (beyond the budget), DEVICE. */
enum tandem_status tnd_cl_find_original(struct tnd_cl_device *device, const tandem_tensor *tensor,
                                        struct tnd_cl_range *out_range, struct tandem_error *error);

/** Another form of a resident weight (packed, another layout), made once. `make` fills `buffer` by
 *  work in the queue; `form` tells forms apart (from 1). It counts against the budget and goes when
 *  the weight is forgotten. Errors: DEVICE_MEMORY, DEVICE, those of `make`; STATE when the weight
 *  is not resident. */
typedef enum tandem_status tnd_cl_make_form(struct tnd_cl_device *device,
                                            const tandem_tensor *weight, struct tnd_cl_range from,
                                            struct tnd_cl_range to, struct tandem_error *error);
enum tandem_status tnd_cl_find_form(struct tnd_cl_device *device, const tandem_tensor *weight,
                                    int form, size_t bytes, tnd_cl_make_form *make,
                                    struct tnd_cl_range *out_range, struct tandem_error *error);

/** Gives back the original of a weight of which a form was made: from then on tnd_cl_find_form
 *  alone finds it, tnd_cl_find does not. It stays where it costs nothing (the host's own memory),
 *  where other tensors lie in it too, and where tnd_cl_find_original has brought it back. */
void tnd_cl_keep_form_only(struct tnd_cl_device *device, const tandem_tensor *weight);

/** Whose scratch memory it is. The tuner multiplies its operands by way of halves, so these stand
 *  apart. */
enum tnd_cl_scratch_slot {
    TND_CL_SCRATCH_SUMS = 0, /* partial sums of attention */
    TND_CL_SCRATCH_TUNE_W = 0,
    TND_CL_SCRATCH_TUNE_X,
    TND_CL_SCRATCH_TUNE_Y,
    TND_CL_SCRATCH_TUNE_F32,
    TND_CL_SCRATCH_HALF_W,
    TND_CL_SCRATCH_HALF_X,
    TND_CL_SCRATCH_HALF_Y,
    TND_CL_SCRATCH_COUNT
};

/** Device memory for the length of one submit: valid until the next call with the same slot asks
 *  for more; grows, is never given back before close. Call under submit_lock. Errors:
 *  DEVICE_MEMORY, DEVICE. */
enum tandem_status tnd_cl_scratch(struct tnd_cl_device *device, enum tnd_cl_scratch_slot slot,
                                  size_t bytes, struct tnd_cl_range *out_range,
                                  struct tandem_error *error);

/* ---- the backend's functions of these names ---- */

enum tandem_status tnd_cl_prepare(struct tnd_cl_device *device, const tandem_tensor *weight,
                                  struct tandem_error *error);
void tnd_cl_forget(struct tnd_cl_device *device, const tandem_tensor *weight);
enum tandem_status tnd_cl_map(struct tnd_cl_device *device, void *begin, size_t bytes,
                              struct tandem_error *error);
void tnd_cl_unmap(struct tnd_cl_device *device, void *begin);
enum tandem_status tnd_cl_upload(struct tnd_cl_device *device, const void *begin, size_t bytes,
                                 struct tandem_error *error);
enum tandem_status tnd_cl_download(struct tnd_cl_device *device, void *begin, size_t bytes,
                                   uint64_t *out_ticket, struct tandem_error *error);
/** Ticket for everything that was submitted so far. */
uint64_t tnd_cl_ticket(struct tnd_cl_device *device);
enum tandem_status tnd_cl_sync(struct tnd_cl_device *device, uint64_t ticket,
                               struct tandem_error *error);

#endif
