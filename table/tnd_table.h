/* SPDX-License-Identifier: MIT
 * Internals of a timing table: profiles, curves, samples, fingerprint. Internal twin of
 * tandem/table.h. */
#ifndef TND_TABLE_H
#define TND_TABLE_H

#include <string.h>

#include "backends/registry.h"
#include "base/vector.h"
#include "table/record-list.h"
#include "tandem/table.h"

/* One measured point. */
struct tnd_sample {
    int64_t m;
    double median_us;
    double spread_us; /* median absolute deviation; 0 when unknown */
    uint32_t count;   /* number of measurements; 0 when unknown (text tables) */
    int64_t when;     /* seconds since 1970; 0 when unknown */
    /* How often this cell was found wrong or measured again. Even: valid; odd: it was found wrong
     * while programs ran and waits for the next bench. The larger generation wins a merge, so that
     * an old copy of the cell, whatever its count, cannot bring back the wrong time. */
    uint32_t generation;
    double joules; /* that the machine used meanwhile; 0 when unknown */
    /* Not stored; set by tnd_table_judge (judge.h): standard error (0 before), and the time to
     * use. */
    double error_us, fit_us;
};

/* A spread above this share of the median is called noisy, everywhere. */
#define TND_NOISY_FRAC 0.08

/** Whether the spread of the sample is above TND_NOISY_FRAC of its median. */
bool tnd_sample_is_noisy(const struct tnd_sample *sample);
/** Whether the sample was marked by tnd_table_mark_stale and not measured since. */
bool tnd_sample_is_stale(const struct tnd_sample *sample);

/* Key of a curve. Names, not slots: a table outlives the runtime. */
struct tnd_curve_key {
    char op[24];           /* "mul_mat" */
    enum tandem_type type; /* of the weights */
    int64_t n, k;
    char backend[16]; /* "cpu", "openblas", ... */
    uint8_t stage;    /* enum tandem_stage */
    uint8_t task;     /* enum tandem_task */
    bool parallel;
    bool own_threads;
    bool warm;       /* operands stay in the cache; else they rotate through memory ("cold") */
    int32_t threads; /* 1 for stages that are not parallel and use no threads of their own */
};

struct tnd_curve {
    struct tnd_curve_key key;
    TND_VECTOR_OF(struct tnd_sample, samples); /* ascending m, no two alike */
};

/* Direction of a transfer between the host and a device with memory of its own. */
enum tnd_direction { TND_UPLOAD, TND_DOWNLOAD, TND_DIRECTIONS };

struct tnd_transfer {
    char backend[16];
    uint8_t direction;      /* enum tnd_direction */
    struct tnd_curve curve; /* its samples are over bytes instead of M; the key is not used */
};

/* The cost of handing work to the other workers of a team. */
struct tnd_handoff {
    int32_t threads; /* size of the team, including the thread that hands over; >= 2 */
    double spin_us;  /* microseconds until all spinning workers have run and joined */
    double wake_us;  /* the same when the workers sleep */
    uint32_t count;
    int64_t when;
};

/* Deviation of a profile's result from the double-precision reference, on this machine. */
struct tnd_check {
    char profile[32];
    enum tandem_type type; /* of the weights */
    int64_t m, n, k;
    double nmse;  /* squared error over the squared reference; TND_CHECK_NOT_FINITE: not finite */
    double bound; /* above it the result counts as wrong */
    int64_t when;
};
#define TND_CHECK_NOT_FINITE 1e12

enum tnd_verdict {
    TND_VERDICT_UNKNOWN, /* not checked */
    TND_VERDICT_RIGHT,
    TND_VERDICT_WRONG
};

/* Backends that run at the same time compete for memory bandwidth: how much longer one takes while
 * another runs. */
struct tnd_slowdown {
    char backend[16];
    char beside[16];
    double factor; /* >= 1 */
    uint32_t count;
    int64_t when;
};

/* Times of a fixed piece of work on one thread, repeated a few times. */
struct tnd_reference_time {
    double fastest_us; /* set by the clock rate */
    double mean_us;    /* slower if other programs ran */
};

/* The state of the machine while a sweep measured. */
struct tnd_sweep_state {
    int64_t when;                                     /* same as that of the sweep's samples */
    struct tnd_reference_time before, between, after; /* between: the slowest of several */
};

/* Measured peak performance of the CPU: an upper bound for all other times. */
struct tnd_peak {
    char unit[16];   /* "fma" (fp32), "int8 VNNI" (after the instruction set), "bf16", "read" (main
                      * memory), "cache" (each thread reads its own 256 KiB repeatedly);
                      * TND_NUMA_UNIT_* on machines with several NUMA nodes */
    int32_t threads; /* running together */
    double rate;     /* 1e9 operations a second (a multiply-add is two), or 1e9 bytes */
    uint32_t count;
    int64_t when;
};

/* Memory bandwidth on machines with several NUMA nodes: workers of one node read from their own
 * node or from another one; workers of all nodes read at once, each from its own node or from pages
 * interleaved over all. */
#define TND_NUMA_UNIT_OWN        "numa-own"
#define TND_NUMA_UNIT_OTHER      "numa-other"
#define TND_NUMA_UNIT_ALL_OWN    "numa-all-own"
#define TND_NUMA_UNIT_INTERLEAVE "numa-interleave"

/* Time of another program on this machine, by its own benchmark. */
struct tnd_program_time {
    int64_t when;               /* time of the measurement */
    char program[16];           /* "llama.cpp" */
    char version[32];           /* "7321 (c0ffee12)": number and commit of its build */
    char backends[32];          /* "CPU", "CUDA,BLAS" */
    char device[64];            /* "NVIDIA ..." or "none" */
    char cache[16];             /* type of keys and values */
    int64_t bytes, weights;     /* of the model: all tensors together */
    uint32_t prompt, generated; /* tokens in one run; one of them is 0 */
    int32_t threads;
    int64_t ubatch;
    uint32_t layers;        /* layers that may be on the device */
    uint32_t expert_layers; /* layers whose experts stay on the CPU */
    bool repack;
    bool no_op_offload;
    double median_us, spread_us; /* of a run */
    uint32_t count;              /* number of runs */
};

/* Time of one method of computing a convolution. Extents of windows and results are texts, the
 * slowest dimension first: "3x3". */
struct tnd_conv_time {
    char method[16]; /* "direct", "im2col", "winograd" */
    int64_t channels, filters, groups, images;
    char window[40], stride[40], dilation[40];
    char padding[40]; /* before the first value */
    char result[40];  /* extents of one image's result */
    uint8_t followed; /* 1: followed by element-wise operations */
    int32_t threads;  /* 1 on devices */
    char device[16];  /* device with its own memory that holds operands and result; "": the CPU */
    double median_us, spread_us;
    uint32_t count;
    int64_t when;
};

/* Time of moving bytes between ranks (docs/cluster.md). */
struct tnd_link {
    char kind[16]; /* "message": from one end to the other; "both directions": the same at once in
                    * both; "all-reduce", "all-gather": of all ranks, over the bytes of each */
    char transport[48];     /* "Open MPI v4.1.4" */
    int32_t ranks;          /* number of ranks taking part */
    char from[80], to[80];  /* host and fingerprint; of collectives: rank 0's, and "all" */
    struct tnd_curve curve; /* its samples are over bytes instead of M; the key is not used */
};

/* Time of a product inside another program that uses our kernels (docs/bridge.md). */
struct tnd_hosted_time {
    char program[80];      /* release of the program and of its kernels */
    char kernels[16];      /* "ours"; "loaded": the program's own kernels with weights in its own
                            * layout; "plain": its own kernels with weights in a layout that ours
                            * can use */
    enum tandem_type type; /* of the weights */
    int64_t n, k, m;
    uint32_t experts, used; /* 0: no experts; used: experts per token */
    int32_t threads;
    double median_us, spread_us;
    uint32_t count;
    int64_t when;
    uint8_t disturbed; /* 1: another program used CPUs meanwhile */
};

/* Times of candidates for the numbers of a backend's kernels (backends/tuner.h). */
struct tnd_kernel_time {
    char backend[16];
    char family[16];  /* kernels whose numbers are chosen together: "matvec" */
    char numbers[96]; /* the candidate: "matvec_lanes=64,matvec_rows=2" */
    enum tandem_type type;
    int64_t n, k, m;
    int32_t threads; /* 1 on devices */
    double median_us, spread_us;
    uint32_t count;
    int64_t when;
};

/** Whether the record is the time of a kernel launch on a device, alone or in a graph of
 * launches. */
static inline bool tnd_is_launch_time(const struct tnd_kernel_time *time)
{
    return strcmp(time->family, "launches") == 0;
}

/* A stage of a profile in the table, with a backend name instead of a slot. */
struct tnd_table_stage {
    char backend[16]; /* "": the stage does not exist */
    uint8_t kind;     /* enum tandem_backend_kind */
    uint8_t task;
    bool parallel;
    bool wait;
    bool own_threads;
};
struct tnd_table_profile {
    char name[32];
    struct tnd_table_stage stage[TANDEM_STAGES];
};

/* A fact that a backend reports about itself (tandem/backend.h); a backend may have several. */
struct tnd_identity {
    char backend[16]; /* the instance: "opencl", "opencl1" */
    char key[24];
    char value[96];
};
enum { TND_MAX_IDENTITIES = 64 };

/* The machine that was measured. Empty strings and zeros are unknown and not compared. */
struct tnd_fingerprint {
    char cpu_model[96];
    char cpu_id[48];
    char isa[48];
    int32_t n_cpus, n_cores, n_core_kinds;
    uint64_t l2_bytes, l3_bytes, ram_bytes;
    uint64_t topology_hash;
    char build_id[48];
    char library[16]; /* version of Tandem */
    int n_identities;
    struct tnd_identity identities[TND_MAX_IDENTITIES]; /* sorted by backend and key */
};

enum tnd_record {
#define TND_TABLE_KIND(kind, ...) TND_RECORD_##kind,
    TND_RECORD_LIST(TND_TABLE_KIND)
#undef TND_TABLE_KIND
        TND_RECORD_KINDS,
    /* Kinds from this one on have a checksum of their own: older versions skip these lists, and can
     * still check the file. */
    TND_RECORD_LATER = TND_RECORD_PROGRAMS
};

enum {
    TND_TABLE_MAX_CURVES = 65536,
    TND_TABLE_MAX_PROFILES = 64, /* several for each device that a registry can hold */
    TND_TABLE_MAX_TRANSFERS = 32,
    TND_TABLE_MAX_HANDOFFS = 32,
    TND_TABLE_MAX_CHECKS = 4096,
    TND_TABLE_MAX_SLOWDOWNS = 256, /* for each pair of devices */
    TND_TABLE_MAX_SWEEPS = 8,      /* the newest are kept */
    TND_TABLE_MAX_PEAKS = 256,
    TND_TABLE_MAX_PROGRAMS = 512, /* the newest are kept */
    TND_TABLE_MAX_CONVOLUTIONS = 16384,
    TND_TABLE_MAX_LINKS = 4096,
    TND_TABLE_MAX_HOSTED = 16384,
    TND_TABLE_MAX_KERNEL_TIMES = 8192
};

struct tandem_table {
    int version;        /* 1 or 2: version of the file it was read from */
    bool has_retired;   /* its file had records of a kind no longer used; they were dropped */
    uint8_t objective;  /* enum tandem_objective of plans made with it; not stored */
    double mean_watts;  /* over all samples with joules, when `objective` was set */
    char model[32];     /* "7B" or "" */
    char gpu_name[32];  /* text header: name of the GPU backend */
    uint8_t gpu_kind;   /* text header: its number */
    char type_text[16]; /* text header: the weight type as it is spelled there */
    int64_t m_step;     /* text header: step of M; 0: none given */
    int n_shapes;       /* from a text table: (N, K) in the order of the file, to keep it */
    int64_t (*shapes)[2];
    bool has_fingerprint;
    struct tnd_fingerprint fingerprint;
    int n_profiles;
    struct tnd_table_profile profiles[TND_TABLE_MAX_PROFILES];
    /* curves, n_curves and so on, sorted by key without duplicates */
#define TND_TABLE_MEMBER(kind, list, type, ...) TND_VECTOR_OF(struct type, list);
    TND_RECORD_LIST(TND_TABLE_MEMBER)
#undef TND_TABLE_MEMBER
};

/** Key of one stage of a product's profile with weights that rotate through memory. `threads` is
 * that of the profile: stages that are not parallel and use no threads of their own have 1. */
void tnd_stage_key(const struct tnd_table_stage *stage, int which, enum tandem_type type, int64_t n,
                   int64_t k, int threads, struct tnd_curve_key *out);
/** The curve with exactly this key, or NULL. O(log n). */
const struct tnd_curve *tnd_table_find(const struct tandem_table *table,
                                       const struct tnd_curve_key *key);
/** Adds a record, or merges it with the one of the same key by the merge rule (record-list.h). Of
 * sweeps, only the newest TND_TABLE_MAX_SWEEPS are kept. Errors: ARGUMENT (a fact out of its
 * range), MEMORY, LIMIT. */
enum tandem_status tnd_record_add(struct tandem_table *table, enum tnd_record kind,
                                  const void *record);
/** Like tnd_record_add, for one sample of a kind that has samples; only the facts of `record` are
 * read. */
enum tandem_status tnd_cell_add(struct tandem_table *table, enum tnd_record kind,
                                const void *record, const struct tnd_sample *sample);

static inline enum tandem_status tnd_table_add(struct tandem_table *table,
                                               const struct tnd_curve_key *key,
                                               const struct tnd_sample *sample)
{
    return tnd_cell_add(table, TND_RECORD_CURVES, key, sample);
}
/** Adds one measured transfer of `sample->m` bytes. */
enum tandem_status tnd_table_add_transfer(struct tandem_table *table, const char *backend,
                                          enum tnd_direction direction,
                                          const struct tnd_sample *sample);
static inline enum tandem_status tnd_table_add_handoff(struct tandem_table *table,
                                                       const struct tnd_handoff *handoff)
{
    return tnd_record_add(table, TND_RECORD_HANDOFFS, handoff);
}
static inline enum tandem_status tnd_table_add_check(struct tandem_table *table,
                                                     const struct tnd_check *check)
{
    return tnd_record_add(table, TND_RECORD_CHECKS, check);
}
static inline enum tandem_status tnd_table_add_slowdown(struct tandem_table *table,
                                                        const struct tnd_slowdown *slowdown)
{
    return tnd_record_add(table, TND_RECORD_SLOWDOWNS, slowdown);
}
static inline enum tandem_status tnd_table_add_sweep(struct tandem_table *table,
                                                     const struct tnd_sweep_state *sweep)
{
    return tnd_record_add(table, TND_RECORD_SWEEPS, sweep);
}
static inline enum tandem_status tnd_table_add_peak(struct tandem_table *table,
                                                    const struct tnd_peak *peak)
{
    return tnd_record_add(table, TND_RECORD_PEAKS, peak);
}

/** The curve over bytes, or NULL: the backend works in host memory, or was not measured. */
const struct tnd_curve *tnd_table_transfer(const struct tandem_table *table, const char *backend,
                                           enum tnd_direction direction);
/** Marks as stale the samples of a curve that an estimate at `m` uses (the one at m, or both
 * neighbours, or the outermost one). Returns how many were not stale before; 0 without such a
 * curve. */
int tnd_table_mark_stale(struct tandem_table *table, const struct tnd_curve_key *key, int64_t m);
/** Like tnd_table_mark_stale, for all samples of a backend whose kernels have changed. */
int tnd_table_mark_backend_stale(struct tandem_table *table, const char *backend);
/** Makes samples of `fresh` that are newer than stale ones of `old` replace them when the two are
 * merged. Only samples of curves. */
void tnd_table_supersede(struct tandem_table *fresh, const struct tandem_table *old);

/** Verdict on a profile's results for a weight type: WRONG when any stored error is above `bound`,
 * or, with `bound` 0, above the bound stored with it. `out_nmse` (may be NULL) gets the largest
 * error, untouched when UNKNOWN. */
enum tnd_verdict tnd_table_check(const struct tandem_table *table, const char *profile,
                                 enum tandem_type type, double bound, double *out_nmse);

/** Factor by which `backend` is slower while `beside` runs; false and untouched when unknown. */
bool tnd_table_slowdown(const struct tandem_table *table, const char *backend, const char *beside,
                        double *out_factor);

/** The peak of a unit ("fma", "int8", "bf16", "read", "cache", ...) in 1e9 operations or bytes a
 * second; 0 when unknown. A thread count that was not measured gets the bound that its neighbours
 * imply: the rate of fewer threads scaled up, and no more than the rate of more threads. At least
 * what fewer threads reached, or the proportional share of more: a measured peak may have been
 * disturbed. */
double tnd_table_peak(const struct tandem_table *table, const char *unit, int threads);

/** "upload", "download". Static. */
const char *tnd_direction_name(enum tnd_direction direction);

/** Adds a profile unless there is one of that name. Errors: LIMIT. */
enum tandem_status tnd_table_add_profile(struct tandem_table *table,
                                         const struct tnd_table_profile *profile);
const struct tnd_table_profile *tnd_table_profile(const struct tandem_table *table,
                                                  const char *name);
/** Total order of keys: returns below, equal to or above 0. */
int tnd_curve_key_compare(const struct tnd_curve_key *a, const struct tnd_curve_key *b);

/** Reads this machine's fingerprint, without identities of backends. */
void tnd_fingerprint_read(struct tnd_fingerprint *out);
/** Reads this machine's fingerprint with the identities of the registry's backends. */
void tnd_fingerprint_read_all(const struct tnd_registry *registry, struct tnd_fingerprint *out);
/** OK, or TABLE_FOREIGN with the first field that differs and both values in the error's text. */
enum tandem_status tnd_fingerprint_compare(const struct tnd_fingerprint *table,
                                           const struct tnd_fingerprint *machine,
                                           struct tandem_error *error);
uint64_t tnd_fingerprint_hash(const struct tnd_fingerprint *fingerprint);
/** tnd_fingerprint_hash of this machine, without its devices. */
uint64_t tnd_fingerprint_here(void);
/** Value of a backend's identity for this key; "" without one. */
const char *tnd_fingerprint_identity(const struct tnd_fingerprint *fingerprint, const char *backend,
                                     const char *key);
/** Sets an identity of a backend, truncating the value if it is too long; "" removes it. False when
 * there are TND_MAX_IDENTITIES already, or a name is too long. */
bool tnd_fingerprint_set_identity(struct tnd_fingerprint *fingerprint, const char *backend,
                                  const char *key, const char *value);

/** Writes text version 1 for one weight type (TANDEM_TYPE_NUMBERS: the first of the table), with
 * the profiles whose stages all have one-thread times. Errors: TABLE when nothing fits the format,
 * FILE when `write` stops. */
enum tandem_status tnd_table_write_text(const struct tandem_table *table, enum tandem_type type,
                                        tandem_write_fn write, void *user,
                                        struct tandem_error *error);

#endif
