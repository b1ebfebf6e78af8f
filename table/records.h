/* SPDX-License-Identifier: MIT
 * Records of a table as data: what each kind looks like (record-list.h), and what is done to all of
 * them alike. Knows nothing of files. Nobody outside table/ but tests and the tools includes it. */
#ifndef TND_RECORDS_H
#define TND_RECORDS_H

#include "table/tnd_table.h"

enum tnd_fact_kind {
#define KIND(kind, form, low, high) TND_FACT_##kind,
    TND_FACT_KIND_LIST(KIND)
#undef KIND
};

enum tnd_fact_form {
    TND_FORM_TEXT,
    TND_FORM_TYPE,
    TND_FORM_WHOLE,
    TND_FORM_REAL,
    TND_FORM_FLAG,
    TND_FORM_CHOICE,
    TND_FORM_PAIR
};

enum tnd_fact_role { TND_KEY, TND_KEY_DOWN, TND_LARGER, TND_SMALLER };

struct tnd_fact {
    const char *name; /* member of the struct and of the file */
    enum tnd_fact_kind kind;
    enum tnd_fact_role role;
    int place; /* in files and in the checksum */
    size_t offset, bytes;
};

enum tnd_team_rule { TND_TEAM_NEVER, TND_TEAM_ALWAYS, TND_TEAM_BY_THREADS };

/* Most facts of a kind. */
enum { TND_MAX_FACTS = 20 };

struct tnd_record_kind {
    const char *name; /* of the list in files */
    size_t list;      /* where a table has its struct tnd_vector */
    size_t bytes;     /* of a record */
    const struct tnd_fact *facts;
    int n_facts;
    int (*compare)(const void *a, const void *b); /* by key */
    int (*prefer)(const void *a, const void *b);  /* by values: above 0 when `a` wins */
    size_t samples;                               /* where a record has its samples; 0: none */
    const char *over;                             /* what its samples are over */
    int limit, kept, layers;
    uint32_t parts;
    enum tnd_team_rule team;
};

extern const struct tnd_record_kind tnd_record_kinds[TND_RECORD_KINDS];
/* The points of curves and transfers; in no list of the table. */
extern const struct tnd_record_kind tnd_sample_kind;

enum tnd_fact_form tnd_fact_form(enum tnd_fact_kind kind);
/** What a whole or real fact may be. */
void tnd_fact_range(enum tnd_fact_kind kind, double *out_low, double *out_high);
/** Whether a file may leave the fact out, which is 0 then. */
bool tnd_fact_is_optional(const struct tnd_fact *fact);
/** Whether a writer leaves it out of this record. */
bool tnd_fact_is_left_out(const struct tnd_fact *fact, const void *record);
/** The fact's name where samples are over `over` in place of M. */
const char *tnd_fact_name(const struct tnd_fact *fact, const char *over);
/** The facts in the order of files; returns how many. */
int tnd_facts_in_files(const struct tnd_record_kind *kind,
                       const struct tnd_fact *out[TND_MAX_FACTS]);

/** Order of two records by their first `n` facts alone. */
int tnd_record_compare_first(const struct tnd_record_kind *kind, const void *a, const void *b,
                             int n);

/* ---- values ---- */

const char *tnd_fact_text(const struct tnd_fact *fact, const void *record);
/** Value of a fact that is a whole number, flag, choice or type. */
int64_t tnd_fact_whole(const struct tnd_fact *fact, const void *record);
void tnd_fact_set_whole(const struct tnd_fact *fact, void *record, int64_t value);
double tnd_fact_real(const struct tnd_fact *fact, const void *record);

/* ---- lists ---- */

struct tnd_vector *tnd_record_list(struct tandem_table *table, enum tnd_record kind);
const struct tnd_vector *tnd_record_list_const(const struct tandem_table *table,
                                               enum tnd_record kind);
const void *tnd_record_at(const struct tandem_table *table, enum tnd_record kind, int at);
/** Samples of a record; NULL for a kind without. */
struct tnd_vector *tnd_record_samples(enum tnd_record kind, void *record);

/** Index of the first record that is not before `key` in its first `n_facts` facts. */
int tnd_record_lower_bound(const struct tandem_table *table, enum tnd_record kind, const void *key,
                           int n_facts);
/** Record of the key, or NULL. */
const void *tnd_record_find(const struct tandem_table *table, enum tnd_record kind,
                            const void *key);
/** Adds a record behind the last, for bulk; the samples of `record` are not taken. The list must be
 *  sorted before anything is searched. Errors: ARGUMENT, MEMORY, LIMIT. */
enum tandem_status tnd_record_append(struct tandem_table *table, enum tnd_record kind,
                                     const void *record);
/** Sorts, and joins records of one key by the merge rule. Errors: LIMIT, MEMORY. */
enum tandem_status tnd_record_sort(struct tandem_table *table, enum tnd_record kind);
/** Puts the records of two sorted lists into an empty one. Errors: MEMORY, LIMIT. */
enum tandem_status tnd_record_merge(struct tandem_table *out, const struct tandem_table *a,
                                    const struct tandem_table *b, enum tnd_record kind);
/** Frees the records of all kinds. */
void tnd_record_clear(struct tandem_table *table);
/** Makes a table that was copied member by member forget its records without freeing them. */
void tnd_record_forget(struct tandem_table *table);

#endif
