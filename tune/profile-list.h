/* SPDX-License-Identifier: MIT
 * X(identifier): one line a profile, in the order in which they are listed and tried;
 * tnd_profile_<identifier> is its description. On equal predictions the earlier one wins. */
#define TND_PROFILE_LIST(X)                                                                        \
    X(cpu)                                                                                         \
    X(cpu_packed)                                                                                  \
    X(cpu_openblas)                                                                                \
    X(cpu_openblas_threads)                                                                        \
    X(cpu_openblas_panels)                                                                         \
    X(opencl)                                                                                      \
    X(opencl_cpu_clblast)                                                                          \
    X(opencl_clblast)                                                                              \
    X(opencl_openblas)                                                                             \
    X(opencl1)                                                                                     \
    X(opencl1_cpu_clblast)                                                                         \
    X(opencl1_clblast)                                                                             \
    X(opencl1_openblas)
