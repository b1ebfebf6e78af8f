/* SPDX-License-Identifier: MIT
 * X(name, opened by default): one line a kind of backend; its vtable is tnd_backend_<name>. */
#define TND_BACKEND_LIST(X)                                                                        \
    X(cpu, true)                                                                                   \
    X(openblas, true)                                                                              \
    X(opencl, true)                                                                                \
    X(cuda, false)                                                                                 \
    X(sim, false)
