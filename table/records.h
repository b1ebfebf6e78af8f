/* SPDX-License-Identifier: MIT
 * Records of a table as data: the facts of each kind (record-list.h), and what all kinds have in
 * common. Independent of files. Outside of table/, only tests and tools include it. */
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
    int place; /* order in files and in the checksum */
    size_t offset, bytes;
};

enum tnd_team_rule { TND_TEAM_NEVER, TND_TEAM_ALWAYS, TND_TEAM_BY_THREADS };

/* Maximum number of facts of a kind. */
enum { TND_MAX_FACTS = 20 };

struct tnd_record_kind {
    const char *name; /* name of the list in files */
    size_t list;      /* offset of the struct tnd_vector in a table */
    size_t bytes;     /* size of a record */
    const struct tnd_fact *facts;
    int n_facts;
    int (*compare)(const void *a, const void *b); /* order by key */
    int (*prefer)(const void *a, const void *b);  /* order by values: above 0 when `a` wins */
    size_t samples;                               /* offset of the samples in a record; 0: none */
    const char *over;                             /* "m" or "bytes": the x axis of the samples */
    int limit, kept, layers;
    uint32_t parts;
    enum tnd_team_rule team;
};

extern const struct tnd_record_kind tnd_record_kinds[TND_RECORD_KINDS];
/* The samples of curves and transfers; not a list of the table. */
extern const struct tnd_record_kind tnd_sample_kind;

enum tnd_fact_form tnd_fact_form(enum tnd_fact_kind kind);
/** Range of a whole or real fact. */
void tnd_fact_range(enum tnd_fact_kind kind, double *out_low, double *out_high);
/** Whether a file may leave the fact out; it is 0 then. */
bool tnd_fact_is_optional(const struct tnd_fact *fact);
/** Whether a writer leaves the fact of this record out. */
bool tnd_fact_is_left_out(const struct tnd_fact *fact, const void *record);
/** The fact's name in files; M is called `over`. */
const char *tnd_fact_name(const struct tnd_fact *fact, const char *over);
/** Puts the facts into the order of files; returns how many there are. */
int tnd_facts_in_files(const struct tnd_record_kind *kind,
                       const struct tnd_fact *out[TND_MAX_FACTS]);

/** Order of two records by only their first `n` facts. */
int tnd_record_compare_first(const struct tnd_record_kind *kind, const void *a, const void *b,
                             int n);

/* ---- values ---- */

const char *tnd_fact_text(const struct tnd_fact *fact, const void *record);
/** Value of a whole number, flag, choice or type. */
int64_t tnd_fact_whole(const struct tnd_fact *fact, const void *record);
void tnd_fact_set_whole(const struct tnd_fact *fact, void *record, int64_t value);
double tnd_fact_real(const struct tnd_fact *fact, const void *record);

/* ---- lists ---- */

struct tnd_vector *tnd_record_list(struct tandem_table *table, enum tnd_record kind);
const struct tnd_vector *tnd_record_list_const(const struct tandem_table *table,
                                               enum tnd_record kind);
const void *tnd_record_at(const struct tandem_table *table, enum tnd_record kind, int at);
/** Samples of a record; NULL for a kind without samples. */
struct tnd_vector *tnd_record_samples(enum tnd_record kind, void *record);

/** Index of the first record that is not before `key`, compared by its first `n_facts` facts. */
int tnd_record_lower_bound(const struct tandem_table *table, enum tnd_record kind, const void *key,
                           int n_facts);
/** The record with this key, or NULL. */
const void *tnd_record_find(const struct tandem_table *table, enum tnd_record kind,
                            const void *key);
/** Appends a record without its samples, for bulk loading. The list must be sorted before it is
 * searched. Errors: ARGUMENT, MEMORY, LIMIT. */
enum tandem_status tnd_record_append(struct tandem_table *table, enum tnd_record kind,
                                     const void *record);
/** Sorts the list and merges records with the same key. Errors: LIMIT, MEMORY. */
enum tandem_status tnd_record_sort(struct tandem_table *table, enum tnd_record kind);
/** Merges two sorted lists into an empty one. Errors: MEMORY, LIMIT. */
enum tandem_status tnd_record_merge(struct tandem_table *out, const struct tandem_table *a,
                                    const struct tandem_table *b, enum tnd_record kind);
/** Frees the records of all kinds. */
void tnd_record_clear(struct tandem_table *table);
/** Makes a table that was copied member by member drop its lists without freeing them. */
void tnd_record_forget(struct tandem_table *table);

#endif
