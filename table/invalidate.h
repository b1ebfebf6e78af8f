/* SPDX-License-Identifier: MIT
 * What of a table is worth nothing on this machine, and why: each field of the fingerprint that
 * differs voids the cells that depend on it, and no others (docs/tuning.md has the list). */
#ifndef TND_INVALIDATE_H
#define TND_INVALIDATE_H

#include "table/tnd_table.h"

/* What a cell can depend on; bits. */
enum tnd_part {
    TND_PART_CPU = 1,       /* times of our own kernels */
    TND_PART_LIBRARY = 2,   /* times of BLAS libraries on the CPU */
    TND_PART_CREWS = 4,     /* those of both with several threads */
    TND_PART_HANDOFFS = 8,  /* costs of waking and joining threads */
    TND_PART_DEVICES = 16,  /* times of devices */
    TND_PART_TRANSFERS = 32 /* between them and the host */
};

/* One field that differs. */
struct tnd_void_reason {
    const char *field; /* static */
    uint32_t parts;    /* enum tnd_part */
    int64_t n_cells;   /* that it voided; those of several reasons count for the first */
    char text[256];    /* "table: measured with driver '1', this machine has '2'" */
};

enum { TND_VOID_MAX_REASONS = 16 };

struct tnd_void_report {
    int n;
    int64_t n_cells; /* of all reasons */
    struct tnd_void_reason reasons[TND_VOID_MAX_REASONS];
};

/** Parts that a difference in a field voids; 0 for a field that is not compared or unknown. */
uint32_t tnd_void_parts(const char *field);
/** "our kernels, hand-offs" for bits. `out` is always terminated. */
void tnd_void_parts_text(uint32_t parts, char *out, size_t bytes);
/** Parts that a record depends on, by its kind and its facts. The kind of a backend is that of the
 *  table's profiles; a backend that no profile has, or an unknown profile, depends on all. */
uint32_t tnd_record_parts(const struct tandem_table *table, enum tnd_record kind,
                          const void *record);

/** Removes what is void on `machine` and tells why. What is left counts as measured on it: fields
 *  that the machine knows replace the table's. A table without a fingerprint stays as it is.
 *  `out_report` may be NULL. */
void tnd_table_void(struct tandem_table *table, const struct tnd_fingerprint *machine,
                    struct tnd_void_report *out_report);

/** The report as one error: OK when nothing is void, else TABLE_FOREIGN with the first reason, how
 *  many cells it voids and how many more fields differ. */
enum tandem_status tnd_void_error(const struct tnd_void_report *report, struct tandem_error *error);

#endif
