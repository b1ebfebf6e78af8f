/* SPDX-License-Identifier: MIT
 * What the files of make-stand-ins share: writing files of the folder of stand-ins. Each function
 * ends the program with a message when the world is at fault. */
#ifndef TND_MAKE_STAND_INS_H
#define TND_MAKE_STAND_INS_H

#include <stddef.h>
#include <stdio.h>

void tnd_stand_in_fail(const char *what) __attribute__((noreturn));
/** A file of the folder of stand-ins; never NULL. */
FILE *tnd_stand_in_open(const char *name, const char *mode);
void tnd_stand_in_write(FILE *file, const void *bytes, size_t n);
void tnd_stand_in_close(FILE *file);

/** Writes quants/TYPE.rand.* (random blocks and their values) and quants/TYPE.tok_embd.* (`values`
 *  quantised, and what the blocks hold). */
void tnd_stand_in_quants(const float *values, int n);

#endif
