/* SPDX-License-Identifier: MIT
 * What the files of the stand-in for libcuda share. */
#ifndef TND_FAKE_STATE_H
#define TND_FAKE_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/fake_cuda/fake_check.h"
#include "tests/fake_cuda/fake_control.h"
#include "tests/fake_cuda/fake_order.h"

/** The results that are made here; the numbers and texts are those of the driver's reference. */
#define TND_FAKE_RESULT_LIST(X)                                                                    \
    X(SUCCESS, 0, "no error")                                                                      \
    X(ERROR_INVALID_VALUE, 1, "invalid argument")                                                  \
    X(ERROR_OUT_OF_MEMORY, 2, "out of memory")                                                     \
    X(ERROR_NOT_INITIALIZED, 3, "initialization error")                                            \
    X(ERROR_DEINITIALIZED, 4, "driver shutting down")                                              \
    X(ERROR_STUB_LIBRARY, 34, "CUDA driver is a stub library")                                     \
    X(ERROR_DEVICE_UNAVAILABLE, 46, "CUDA-capable device(s) is/are busy or unavailable")           \
    X(ERROR_NO_DEVICE, 100, "no CUDA-capable device is detected")                                  \
    X(ERROR_INVALID_DEVICE, 101, "invalid device ordinal")                                         \
    X(ERROR_INVALID_IMAGE, 200, "device kernel image is invalid")                                  \
    X(ERROR_INVALID_CONTEXT, 201, "invalid device context")                                        \
    X(ERROR_MAP_FAILED, 205, "mapping of buffer object failed")                                    \
    X(ERROR_NO_BINARY_FOR_GPU, 209, "no kernel image is available for execution on the device")    \
    X(ERROR_ECC_UNCORRECTABLE, 214, "uncorrectable ECC error encountered")                         \
    X(ERROR_UNSUPPORTED_PTX_VERSION, 222,                                                          \
      "the provided PTX was compiled with an unsupported "                                         \
      "toolchain.")                                                                                \
    X(ERROR_INVALID_SOURCE, 300, "device kernel image is invalid")                                 \
    X(ERROR_OPERATING_SYSTEM, 304, "OS call failed or operation not supported on this OS")         \
    X(ERROR_INVALID_HANDLE, 400, "invalid resource handle")                                        \
    X(ERROR_NOT_FOUND, 500, "named symbol not found")                                              \
    X(ERROR_NOT_READY, 600, "device not ready")                                                    \
    X(ERROR_ILLEGAL_ADDRESS, 700, "an illegal memory access was encountered")                      \
    X(ERROR_LAUNCH_OUT_OF_RESOURCES, 701, "too many resources requested for launch")               \
    X(ERROR_LAUNCH_TIMEOUT, 702, "the launch timed out and was terminated")                        \
    X(ERROR_MISALIGNED_ADDRESS, 716, "misaligned address")                                         \
    X(ERROR_LAUNCH_FAILED, 719, "unspecified launch failure")                                      \
    X(ERROR_NOT_SUPPORTED, 801, "operation not supported")                                         \
    X(ERROR_SYSTEM_NOT_READY, 802, "system not yet initialized")                                   \
    X(ERROR_SYSTEM_DRIVER_MISMATCH, 803,                                                           \
      "system has unsupported display driver / cuda driver "                                       \
      "combination")                                                                               \
    X(ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, 804,                                                   \
      "forward compatibility was attempted on non supported HW")                                   \
    X(ERROR_UNKNOWN, 999, "unknown error")

enum {
#define TND_FAKE_RESULT_ENUM(name, number, text) CUDA_##name = number,
    TND_FAKE_RESULT_LIST(TND_FAKE_RESULT_ENUM)
#undef TND_FAKE_RESULT_ENUM
};

/* fake_memory.c. Device memory: each allocation between pages that nobody may touch, its end at the
 * end of a page; bytes in front of it and behind are checked. Addresses count inside kernels only,
 * copies go through a second mapping. */
int tnd_fake_allocate(uint64_t bytes, uint64_t *out_address);
int tnd_fake_free(uint64_t address);
/** Where the host finds bytes of the device; NULL: not all of one allocation. `is_written`: they
 *  get a value. */
char *tnd_fake_view(uint64_t address, uint64_t bytes, bool is_written);
/** A copy touches bytes of the device: NULL, or the wait that is missing. `address` 0: none. */
const char *tnd_fake_copy_touches(uint64_t address, uint64_t bytes, bool is_write);
/** Kernels run between these two. `leave` gives NULL or what was overwritten. */
void tnd_fake_enter(void);
const char *tnd_fake_leave(void);
bool tnd_fake_is_device(const void *address);
/** The allocation that holds bytes of a kernel's address; false: none does. */
bool tnd_fake_range_of(const void *address, size_t bytes, struct tnd_fake_range *out);
void tnd_fake_memory_info(uint64_t *out_free, uint64_t *out_total);
int tnd_fake_allocate_pinned(uint64_t bytes, void **out);
int tnd_fake_free_pinned(void *address);
bool tnd_fake_is_pinned(const void *address);

/* fake_stream.c. Tasks run in order on a thread of the stream's own. */
struct tnd_fake_stream;
struct tnd_fake_event;
typedef void (*tnd_fake_task)(void *data); /* frees its data */
struct tnd_fake_stream *tnd_fake_stream_new(bool is_blocking);
void tnd_fake_stream_free(struct tnd_fake_stream *stream); /* after all of its tasks */
/** NULL: the default stream, for which all blocking streams wait, and which this call waits for. */
void tnd_fake_push(struct tnd_fake_stream *stream, tnd_fake_task task, void *data);
/** What the task that runs on this thread is. */
struct tnd_fake_command *tnd_fake_command(void);
void tnd_fake_wait(struct tnd_fake_stream *stream);
void tnd_fake_wait_all(void);
bool tnd_fake_is_done(struct tnd_fake_stream *stream);
bool tnd_fake_is_stream(const struct tnd_fake_stream *stream);

struct tnd_fake_event *tnd_fake_event_new(void);
void tnd_fake_event_free(struct tnd_fake_event *event);
bool tnd_fake_is_event(const struct tnd_fake_event *event);
void tnd_fake_event_record(struct tnd_fake_event *event, struct tnd_fake_stream *stream);
void tnd_fake_event_wait(struct tnd_fake_event *event);
void tnd_fake_event_hold(struct tnd_fake_event *event, struct tnd_fake_stream *stream);
bool tnd_fake_event_is_done(struct tnd_fake_event *event);
bool tnd_fake_event_times(const struct tnd_fake_event *from, const struct tnd_fake_event *to,
                          float *out_ms);

/* fake_launch.c. A number for what runs on a stream as kernels do. */
uint32_t tnd_fake_launch_number(void);

/* fake_cuda.c */
/** The calling thread's context; NULL: none. */
const void *tnd_fake_current(void);
void tnd_fake_live(enum tnd_fake_kind kind, int change);
void tnd_fake_count_graph(void);
/** A rule was broken; `code` (0: none) becomes the result of all later calls. */
void tnd_fake_wrong(const char *what, int code);

#endif
