/* SPDX-License-Identifier: MIT
 * Layout of the host's structures, determined by calling its own functions rather than by its
 * version. */
#ifndef TND_BRIDGE_LAYOUT_H
#define TND_BRIDGE_LAYOUT_H

#include "bridge/ggml/ggml_abi.h"

/** Offsets, in words, in the host's structures that differ between releases of ggml. */
struct tnd_host_layout {
    int api_version;
    int backend_compute;
    int backend_device;
    int buft_get_alignment;
    int buft_is_host;
    int buft_device;
    bool has_buffer_members; /* init_tensor and set_tensor are where ggml_abi.h says */
};

/** Determines the host's layout (tnd_host). False: it is unknown, and `out_why` says what
 * differs. */
bool tnd_host_layout_find(struct tnd_host_layout *out, char *out_why, size_t why_bytes);

#endif
