/* SPDX-License-Identifier: MIT
 * Which cells of a table are invalid on this machine, and why: each field of the fingerprint that
 * differs invalidates the cells that depend on it, and no others (docs/tuning.md has the list). */
#ifndef TND_INVALIDATE_H
#define TND_INVALIDATE_H

#include "table/tnd_table.h"

/* What a cell can depend on, as bits. */
enum tnd_part {
    TND_PART_CPU = 1,       /* times of our own kernels */
    TND_PART_LIBRARY = 2,   /* times of BLAS libraries on the CPU */
    TND_PART_TEAMS = 4,     /* times of both with several threads */
    TND_PART_HANDOFFS = 8,  /* costs of waking and joining threads */
    TND_PART_TRANSFERS = 16 /* transfers between devices and the host */
};

/* One field that differs. */
struct tnd_invalid_reason {
    char field[24];   /* name of the field or of the backend */
    uint32_t parts;   /* enum tnd_part; 0: the identity of `backend` differs */
    char backend[16]; /* "": a field of the machine differs */
    int64_t n_cells;  /* cells invalidated by it; a cell counts for the first of its reasons */
    char text[256];   /* "table: measured with driver '1', this machine has '2'" */
};

enum { TND_MAX_REASONS = 16 + TND_MAX_IDENTITIES };

struct tnd_invalid_report {
    int n;
    int64_t n_cells; /* of all reasons */
    struct tnd_invalid_reason reasons[TND_MAX_REASONS];
};

/** Names the parts of a reason ("our kernels, hand-offs"), or the backend. `out` is always
 * terminated. */
void tnd_parts_text(const struct tnd_invalid_reason *reason, char *out, size_t bytes);

/** Removes the cells that are invalid on `machine` and reports why. The rest counts as measured on
 * it: fields that the machine knows replace the table's. A table without a fingerprint stays as it
 * is. The kind of a backend is taken from the table's profiles; a backend that no profile has, and
 * an unknown profile, depend on all parts. */
void tnd_table_invalidate(struct tandem_table *table, const struct tnd_fingerprint *machine,
                          struct tnd_invalid_report *out_report);

/** The report as one error: OK when nothing is invalid, else TABLE_FOREIGN with the first reason,
 *  how many cells are invalid and how many more fields differ. */
enum tandem_status tnd_invalid_error(const struct tnd_invalid_report *report,
                                     struct tandem_error *error);

#endif
