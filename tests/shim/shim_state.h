/* SPDX-License-Identifier: MIT
 * What the shim remembers: the plan, counts, living objects and reads under way. Everything here
 * may be called by any thread; only tnd_shim_lose_device calls OpenCL. */
#ifndef TND_TESTS_SHIM_STATE_H
#define TND_TESTS_SHIM_STATE_H

#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
/* The functions declared here are defined and exported by this library. */
#pragma GCC visibility push(default)
#include <CL/cl.h>
#pragma GCC visibility pop

#include "tests/shim/shim_control.h"

#define TND_SHIM_EXPORT __attribute__((visibility("default")))

/** One call of a function, counted. */
struct tnd_shim_call {
    const char *name;
    int64_t number;
    cl_int planned; /* CL_SUCCESS: forward it */
    bool is_loss;   /* this call is the one at which the device is lost */
};
struct tnd_shim_call tnd_shim_count(const char *name);

/** The device is lost while work is under way: it comes to rest, and its reads leave poison. */
void tnd_shim_lose_device(void);

/** An object was made by `call`; `queue` for events, else NULL. NULL objects are ignored. */
void tnd_shim_made(enum tnd_shim_kind kind, const void *object, const void *queue,
                   const struct tnd_shim_call *call);
void tnd_shim_retained(enum tnd_shim_kind kind, const void *object);
/** One reference less; false (and counted) when it is not alive. */
bool tnd_shim_released(enum tnd_shim_kind kind, const void *object, bool *out_is_last);
void tnd_shim_held_by_others(int64_t n_references);
void tnd_shim_built(void);
/** Up to `max` living queues. */
int tnd_shim_queues(cl_command_queue *out_queues, int max);
/** Queue and number of the call of a living event; false when it is unknown. */
bool tnd_shim_event(const void *event, const void **out_queue, int64_t *out_number);

/** A mapped range of a buffer. */
void tnd_shim_mapped(const void *buffer, const void *address, const struct tnd_shim_call *call);
void tnd_shim_unmapped(const void *buffer, const void *address);

/** A read into host memory which was not waited for. */
void tnd_shim_reading(const void *queue, void *host, size_t bytes,
                      const struct tnd_shim_call *call);
/** Reads of `queue` (NULL: of all) up to call `number` are over: with `is_poisoned` their memory
 *  is filled with bytes that no result has, since a read that failed leaves anything. */
void tnd_shim_settle(const void *queue, int64_t number, bool is_poisoned);
void tnd_shim_poison(void *host, size_t bytes);

#endif
