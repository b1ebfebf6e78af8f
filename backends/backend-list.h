/* SPDX-License-Identifier: MIT
 * X(name, kind, opened by default): one line a backend; its vtable is tnd_backend_<name>. */
#define TND_BACKEND_LIST(X)                                                                        \
    X(cpu, TANDEM_KIND_CPU, true)                                                                  \
    X(openblas, TANDEM_KIND_OPENBLAS, true)                                                        \
    X(sim, TANDEM_KIND_SIM, false)
