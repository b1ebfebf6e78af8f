/* SPDX-License-Identifier: MIT
 * X(name, opened by default): one line per kind of backend; its vtable is tnd_backend_<name>. */
#if defined(_WIN32) /* its driver is loaded with POSIX calls */
#define TND_BACKEND_CUDA(X)
#else
#define TND_BACKEND_CUDA(X) X(cuda, false)
#endif
#define TND_BACKEND_LIST(X)                                                                        \
    X(cpu, true)                                                                                   \
    X(openblas, true)                                                                              \
    X(opencl, true)                                                                                \
    TND_BACKEND_CUDA(X)                                                                            \
    X(sim, false)
