/* SPDX-License-Identifier: MIT
 * Interface between the library and libtandem-mpi*.so, which links an MPI but not this library. */
#ifndef TND_MPI_LIBRARY_H
#define TND_MPI_LIBRARY_H

#include "tandem/communicator.h"

/** The only function of libtandem-mpi*.so: starts MPI and makes a transport over all ranks.
 * `version`: TANDEM_VERSION_STRING of the caller. False on failure, with the reason in `why`. */
#define TND_MPI_LIBRARY_ENTRY "tandem_mpi_transport"
typedef bool (*tnd_mpi_transport_fn)(const char *version, struct tandem_transport *out, char *why,
                                     size_t why_bytes);

#endif
