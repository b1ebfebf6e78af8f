/* SPDX-License-Identifier: MIT
 * The tests of the opencl suites, each array ended by CU_TEST_INFO_NULL, and what they share. */
#ifndef TND_TESTS_SUITE_OPENCL_H
#define TND_TESTS_SUITE_OPENCL_H

#include "backends/gpu/gpu_device.h"
#include "backends/opencl/cl_driver.h"
#include "backends/gpu/gpu_memory.h"
#include "tests/support.h"

extern CU_TestInfo tnd_tests_opencl_bcml1[];    /* suite_opencl_bcml1.c */
extern CU_TestInfo tnd_tests_opencl_cublas[];   /* suite_opencl_cublas.c */
extern CU_TestInfo tnd_tests_opencl_cuda[];     /* suite_opencl_cuda.c */
extern CU_TestInfo tnd_tests_opencl_device[];   /* suite_opencl_device.c */
extern CU_TestInfo tnd_tests_opencl_experts[];  /* suite_opencl_experts.c */
extern CU_TestInfo tnd_tests_opencl_faults[];   /* suite_opencl_faults.c */
extern CU_TestInfo tnd_tests_opencl_graphs[];   /* suite_opencl_graphs.c */
extern CU_TestInfo tnd_tests_opencl_lies[];     /* suite_opencl_lies.c */
extern CU_TestInfo tnd_tests_opencl_matmul[];   /* suite_opencl_matmul.c */
extern CU_TestInfo tnd_tests_opencl_memory[];   /* suite_opencl_memory.c */
extern CU_TestInfo tnd_tests_opencl_ops[];      /* suite_opencl_ops.c */
extern CU_TestInfo tnd_tests_opencl_programs[]; /* suite_opencl_programs.c */
extern CU_TestInfo tnd_tests_opencl_ptx[];      /* suite_opencl_ptx.c */
extern CU_TestInfo tnd_tests_opencl_sample[];   /* suite_opencl_sample.c */
extern CU_TestInfo tnd_tests_opencl_tune[];     /* suite_opencl_tune.c */

/** Whether the tests run on CUDA's stand-in, and where that lies; else NULL. */
bool tnd_test_cl_is_cuda(void);
const char *tnd_test_cl_library(void);
/** Steers the stand-in; false after a skip. */
struct tnd_fake;
bool tnd_test_cl_fake(struct tnd_fake *out);
/** Opens by the driver of the tests. */
enum tandem_status tnd_test_cl_device_open(const struct tnd_gpu_options *options,
                                           struct tnd_gpu_device **out_device,
                                           struct tandem_error *error);
enum tandem_status tnd_test_cl_backend_open(const struct tandem_backend_options *options,
                                            tandem_backend **out_backend,
                                            struct tandem_error *error);

/** Opens the first device there is, without a cache unless `options` names one; NULL after a skip
 *  or a failure. */
struct tnd_gpu_device *tnd_test_cl_open(struct tnd_gpu_options options);
struct tnd_gpu_statistics tnd_test_cl_statistics(struct tnd_gpu_device *device);

/* ---- memory by host address, as tests name it ---- */

/** Maps a range of host memory, or prepares a weight. */
enum tandem_status tnd_test_cl_map(struct tnd_gpu_device *device, const void *begin, size_t bytes,
                                   struct tandem_error *error);
enum tandem_status tnd_test_cl_prepare(struct tnd_gpu_device *device, const tandem_tensor *weight,
                                       struct tandem_error *error);
/** Gives back what begins there on the device; nothing when nothing does. */
void tnd_test_cl_give_back(struct tnd_gpu_device *device, const void *begin);
/** Forgets what was mapped on a device that is closed. */
void tnd_test_cl_closed(const struct tnd_gpu_device *device);
/** Where the device has a host address: a mirror, else a weight. */
struct tandem_place tnd_test_cl_place(const struct tnd_gpu_device *device, const void *address);
enum tandem_status tnd_test_cl_find(struct tnd_gpu_device *device, const void *address,
                                    size_t bytes, struct tnd_gpu_range *out_range,
                                    struct tandem_error *error);
/** Fills in what a work touches. */
struct tandem_places tnd_test_cl_places(const struct tnd_gpu_device *device,
                                        const struct tandem_work *work);
enum tandem_status tnd_test_cl_upload(struct tnd_gpu_device *device, const void *begin,
                                      size_t bytes, struct tandem_error *error);
enum tandem_status tnd_test_cl_download(struct tnd_gpu_device *device, void *begin, size_t bytes,
                                        uint64_t *out_ticket, struct tandem_error *error);

#endif
