/* SPDX-License-Identifier: MIT
 * Messages in the wire format of Protocol Buffers, from text. */
#ifndef TND_TESTS_SUPPORT_WIRE_H
#define TND_TESTS_SUPPORT_WIRE_H

#include "tests/support_blob.h"

/** Adds fields: "7:{1:{4:'Relu'}}" (messages and texts), "1:8" (numbers), "4~0000803f" (numbers of
 *  4 bytes, in hex), "9=00ff" (bytes) and "!0aff" (bytes as they are). */
void tnd_blob_fields(struct tnd_blob *blob, const char *text);

#endif
