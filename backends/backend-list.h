/* SPDX-License-Identifier: MIT
 * X(name, kind, opened by default): one line a backend; its vtable is tnd_backend_<name>. */
#define TND_BACKEND_LIST(X)                                                                        \
    X(cpu, TANDEM_KIND_CPU, true)                                                                  \
    X(openblas, TANDEM_KIND_OPENBLAS, true)                                                        \
    X(opencl, TANDEM_KIND_OPENCL, true)                                                            \
    X(opencl1, TANDEM_KIND_OPENCL, true)                                                           \
    X(sim, TANDEM_KIND_SIM, false)
