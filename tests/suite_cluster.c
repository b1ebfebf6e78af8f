/* SPDX-License-Identifier: MIT
 * Communicators over threads: all-reduce in rank order, all-gather, what is refused, and what
 * happens when a rank leaves or does not answer. */
#include <stdio.h>
#include <string.h>

#include "cluster/among.h"
#include "tests/support.h"
#include "tests/support_ranks.h"

extern CU_SuiteInfo suites_cluster_models[];
extern CU_SuiteInfo suites_cluster_architectures[];
extern CU_SuiteInfo suites_cluster_phases[];
extern CU_SuiteInfo suites_cluster_choices[];
extern CU_SuiteInfo suites_cluster_flights[];
extern CU_SuiteInfo suites_cluster_states[];
extern CU_SuiteInfo suites_cluster_parts[];
extern CU_SuiteInfo suites_cluster_devices[];

enum { MOST = 40000 };

/* ---- all-reduce and all-gather ---- */

static float value_of(int rank, size_t i)
{
    return (float)((double)((rank + 1) * 7919 + (int)(i % 1013) * 31 % 977) / 3.0 - 500.0) *
           (rank % 2 == 0 ? 1.0f : 1e-4f);
}

struct sums {
    size_t n;
    float *out[TND_RANKS_MOST];
};

static enum tandem_status sum(tandem_communicator *communicator, void *user,
                              struct tandem_error *error)
{
    const struct sums *sums = user;
    const int rank = tandem_communicator_rank(communicator);
    for (size_t i = 0; i < sums->n; i++) {
        sums->out[rank][i] = value_of(rank, i);
    }
    return tandem_communicator_all_reduce(communicator, sums->out[rank], sums->n, error);
}

static void sums_have_the_bits_of_rank_order(void)
{
    static float memory[TND_RANKS_MOST][MOST];
    static float want[MOST];
    const size_t sizes[] = {1, 5, 4095, 4096, 4097, MOST};
    const int counts[] = {1, 2, 3, 4, 7};
    for (int c = 0; c < 5; c++) {
        for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
            struct sums sums = {.n = sizes[s]};
            struct tnd_rank_result results[TND_RANKS_MOST];
            for (int r = 0; r < counts[c]; r++) {
                sums.out[r] = memory[r];
            }
            tnd_ranks_run(counts[c], sum, &sums, results);
            for (size_t i = 0; i < sizes[s]; i++) {
                want[i] = value_of(0, i);
                for (int r = 1; r < counts[c]; r++) {
                    want[i] += value_of(r, i);
                }
            }
            for (int r = 0; r < counts[c]; r++) {
                check_ok(results[r].status);
                check_bits(memory[r], want, sizes[s] * sizeof(want[0]), "sum");
            }
        }
    }
}

/* Rank r has r values, so rank 0 none. */
static enum tandem_status collect(tandem_communicator *communicator, void *user,
                                  struct tandem_error *error)
{
    const int rank = tandem_communicator_rank(communicator);
    const int count = tandem_communicator_count(communicator);
    int mine[TND_RANKS_MOST], got[TND_RANKS_MOST * TND_RANKS_MOST], told = rank == 0 ? 42 : 0;
    size_t bytes[TND_RANKS_MOST];
    int *n_wrong = user, n = 0;
    for (int r = 0; r < count; r++) {
        mine[r] = rank * 100 + r;
        bytes[r] = (size_t)r * sizeof(mine[0]);
    }
    enum tandem_status status =
        tandem_communicator_all_gather(communicator, mine, bytes, got, error);
    status = status == TANDEM_OK
                 ? tandem_communicator_broadcast(communicator, &told, sizeof(told), error)
                 : status;
    status = status == TANDEM_OK ? tandem_communicator_barrier(communicator, error) : status;
    int first[TND_RANKS_MOST * TND_RANKS_MOST];
    status = status == TANDEM_OK ? tandem_communicator_gather(communicator, mine, bytes,
                                                              rank == 0 ? first : NULL, error)
                                 : status;
    n_wrong[rank] += rank == 0 && count > 1 &&
                     memcmp(first, got, (size_t)(count * (count - 1) / 2) * sizeof(got[0])) != 0;
    for (int r = 0; r < count; r++) {
        for (int i = 0; i < r; i++) {
            n_wrong[rank] += got[n++] != r * 100 + i;
        }
    }
    n_wrong[rank] += told != 42;
    n_wrong[rank] += tandem_communicator_host(communicator, 0)[0] == '\0';
    return status;
}

static void ranks_collect_what_each_has(void)
{
    for (int count = 1; count <= 7; count++) {
        struct tnd_rank_result results[TND_RANKS_MOST];
        int n_wrong[TND_RANKS_MOST] = {0};
        tnd_ranks_run(count, collect, n_wrong, results);
        for (int r = 0; r < count; r++) {
            check_ok(results[r].status);
            check_int(n_wrong[r], 0);
        }
    }
}

/* Rank r has (r + 1) * i % 3 values for rank i, so for rank 0 none; it keeps as many itself. */
static enum tandem_status hand_out(tandem_communicator *communicator, void *user,
                                   struct tandem_error *error)
{
    const int rank = tandem_communicator_rank(communicator);
    const int count = tandem_communicator_count(communicator);
    int mine[TND_RANKS_MOST * 2], got[TND_RANKS_MOST * 2], *n_wrong = user, n = 0;
    size_t to[TND_RANKS_MOST], from[TND_RANKS_MOST];
    for (int r = 0; r < count; r++) {
        to[r] = (size_t)((rank + 1) * r % 3) * sizeof(mine[0]);
        from[r] = (size_t)((r + 1) * rank % 3) * sizeof(mine[0]);
        for (int i = 0; i < (rank + 1) * r % 3; i++) {
            mine[n++] = rank * 100 + r * 10 + i;
        }
    }
    const enum tandem_status status =
        tandem_communicator_all_to_all(communicator, mine, to, got, from, error);
    n = 0;
    for (int r = 0; r < count; r++) {
        for (int i = 0; i < (r + 1) * rank % 3; i++) {
            n_wrong[rank] += got[n++] != r * 100 + rank * 10 + i;
        }
    }
    from[rank]++;
    n_wrong[rank] += tandem_communicator_all_to_all(communicator, mine, to, got, from, NULL) !=
                     TANDEM_E_ARGUMENT;
    return status;
}

static void each_rank_has_something_for_each_other_one(void)
{
    for (int count = 1; count <= 7; count++) {
        struct tnd_rank_result results[TND_RANKS_MOST];
        int n_wrong[TND_RANKS_MOST] = {0};
        tnd_ranks_run(count, hand_out, n_wrong, results);
        for (int r = 0; r < count; r++) {
            check_ok(results[r].status);
            check_int(n_wrong[r], 0);
        }
    }
}

static enum tandem_status hand_round(tandem_communicator *communicator, void *user,
                                     struct tandem_error *error)
{
    const int rank = tandem_communicator_rank(communicator);
    const int count = tandem_communicator_count(communicator);
    int *out = user, value = rank == 0 ? 1 : 0;
    enum tandem_status status = TANDEM_OK;
    if (rank > 0) {
        status = tandem_communicator_receive(communicator, rank - 1, &value, sizeof(value), error);
    }
    value *= rank + 1;
    if (status == TANDEM_OK && rank + 1 < count) {
        status = tandem_communicator_send(communicator, rank + 1, &value, sizeof(value), error);
    }
    out[rank] = value;
    return status;
}

static void messages_go_from_rank_to_rank(void)
{
    struct tnd_rank_result results[TND_RANKS_MOST];
    int out[TND_RANKS_MOST];
    tnd_ranks_run(5, hand_round, out, results);
    check_ok(results[4].status);
    check_int(out[4], 120);
}

/* ---- what is refused ---- */

static enum tandem_status ask_wrong(tandem_communicator *communicator, void *user,
                                    struct tandem_error *error)
{
    char byte = 0;
    (void)user;
    return tandem_communicator_send(communicator, tandem_communicator_rank(communicator), &byte, 1,
                                    error);
}

static void messages_to_oneself_are_refused(void)
{
    struct tnd_rank_result results[TND_RANKS_MOST];
    tnd_ranks_run(2, ask_wrong, NULL, results);
    check_status(results[1].status, TANDEM_E_ARGUMENT, "between rank 1 and rank 1 of 2",
                 &results[1].error);
}

static void another_byte_order_or_version_is_refused_by_all_ranks(void)
{
    struct tnd_rank_result results[TND_RANKS_MOST];
    const char order[] = {1, 2, 3, 4, 5, 6, 7, 9};
    const char version[] = "0.0.1";
    int n_wrong[TND_RANKS_MOST] = {0};
    tnd_ranks_forge_hello(2, order, 0, sizeof(order));
    tnd_ranks_run(3, collect, n_wrong, results);
    for (int r = 0; r < 2; r++) { /* (rank 2 itself does not know of the forgery) */
        check_status(results[r].status, TANDEM_E_ABI, "rank 2 on", &results[r].error);
        check_contains(results[r].error.text, "another byte order");
    }
    tnd_ranks_forge_hello(1, version, sizeof(uint64_t), sizeof(version));
    tnd_ranks_run(3, collect, n_wrong, results);
    for (int r = 0; r < 3; r += 2) {
        check_status(results[r].status, TANDEM_E_ABI, "rank 1 on", &results[r].error);
        check_contains(results[r].error.text, "runs version 0.0.1 of Tandem");
    }
}

static bool no_exchange(void *self, const struct tandem_message *sends, int n_sends,
                        const struct tandem_message *receives, int n_receives, double limit_s,
                        int *out_rank, char *why, size_t why_bytes)
{
    (void)self, (void)sends, (void)n_sends, (void)receives, (void)n_receives, (void)limit_s;
    (void)out_rank, (void)why, (void)why_bytes;
    return true;
}

static void count_close(void *self, bool has_failed)
{
    *(int *)self += 1 + has_failed;
}

static void a_wrong_transport_is_closed_and_refused(void)
{
    int n_closed = 0;
    struct tandem_transport transport = {.size = sizeof(transport),
                                         .self = &n_closed,
                                         .rank = 3,
                                         .count = 3,
                                         .exchange = no_exchange,
                                         .close = count_close};
    struct tandem_error error = {0};
    tandem_communicator *communicator = NULL;
    check_status(tandem_communicator_new(&transport, &communicator, &error), TANDEM_E_ARGUMENT,
                 "rank 3 of 3", &error);
    check_int(n_closed, 2);
    CU_ASSERT_PTR_NULL(communicator);
}

/* ---- failures ---- */

/* Rank 1 leaves; the others want a sum with it, and then anything. */
static enum tandem_status leave_early(tandem_communicator *communicator, void *user,
                                      struct tandem_error *error)
{
    float one = 1.0f;
    (void)user;
    if (tandem_communicator_rank(communicator) == 1) {
        return TANDEM_OK;
    }
    const enum tandem_status first = tandem_communicator_all_reduce(communicator, &one, 1, error);
    const enum tandem_status again = tandem_communicator_barrier(communicator, error);
    return first == again ? first : TANDEM_E_STATE;
}

static void a_rank_that_leaves_ends_the_others_with_its_number(void)
{
    struct tnd_rank_result results[TND_RANKS_MOST];
    tnd_ranks_run(4, leave_early, NULL, results);
    for (int r = 0; r < 4; r++) {
        if (r != 1) {
            check_status(results[r].status, TANDEM_E_RANK,
                         "did not take part in an all-reduce of 4 bytes", &results[r].error);
        }
    }
    check_contains(results[0].error.text, "rank 1 on");
}

/* Rank 1 keeps silent for longer than the limit of rank 0, which only then lets it go on. */
static enum tandem_status keep_silent(tandem_communicator *communicator, void *user,
                                      struct tandem_error *error)
{
    char byte = 0;
    (void)user;
    if (tandem_communicator_rank(communicator) == 1) {
        tnd_ranks_await_waiting(1);
        tnd_ranks_advance(4.0); /* not yet */
        tnd_ranks_await_waiting(1);
        tnd_ranks_advance(2.0);
        return TANDEM_OK;
    }
    tandem_communicator_set_limit(communicator, 5.0);
    return tandem_communicator_receive(communicator, 1, &byte, 1, error);
}

static void a_rank_that_does_not_answer_is_given_up(void)
{
    struct tnd_rank_result results[TND_RANKS_MOST];
    tnd_ranks_run(2, keep_silent, NULL, results);
    check_status(results[0].status, TANDEM_E_RANK, "no answer within 5.0 s", &results[0].error);
    check_ok(results[1].status);
}

static void no_launcher_is_no_library(void)
{
    check_int(tandem_communicator_launched(), 0);
    check_int(tandem_communicator_count(NULL), 1);
    check_int(tandem_communicator_rank(NULL), 0);
    tandem_communicator_close(NULL);
}

/* ---- some of the ranks ---- */

/* Ranks 3, 0 and 2 of 4 add up; rank 1 takes no part, and sends a byte to rank 3 behind that. */
static enum tandem_status sum_among(tandem_communicator *all, void *user,
                                    struct tandem_error *error)
{
    static const int ranks[] = {3, 0, 2};
    const int rank = tandem_communicator_rank(all);
    float *out = (float *)user + 4 * rank;
    tandem_communicator *some = NULL;
    char byte = 'x';
    if (rank == 1) {
        return tandem_communicator_send(all, 3, &byte, 1, error);
    }
    enum tandem_status status = tnd_communicator_among(all, ranks, 3, &some, error);
    if (status != TANDEM_OK) {
        return status;
    }
    const int own = tandem_communicator_rank(some);
    out[0] = (float)own;
    out[1] = (float)tandem_communicator_count(some);
    out[2] = value_of(own, 0);
    out[3] = value_of(own, 1);
    status = tandem_communicator_all_reduce(some, out + 2, 2, error);
    tandem_communicator_close(some);
    return status == TANDEM_OK && rank == 3 ? tandem_communicator_receive(all, 1, &byte, 1, error)
                                            : status;
}

static void some_of_the_ranks_compute_in_an_order_of_their_own(void)
{
    static const float numbers[] = {1, -1, 2, 0}; /* among them, of each of all */
    struct tnd_rank_result results[TND_RANKS_MOST];
    float out[16] = {0};
    tnd_ranks_run(4, sum_among, out, results);
    for (int r = 0; r < 4; r++) {
        check_ok(results[r].status);
        if (r != 1) {
            CU_ASSERT_EQUAL(out[4 * r], numbers[r]);
            CU_ASSERT_EQUAL(out[4 * r + 1], 3);
            CU_ASSERT_EQUAL(out[4 * r + 2], value_of(0, 0) + value_of(1, 0) + value_of(2, 0));
            CU_ASSERT_EQUAL(out[4 * r + 3], value_of(0, 1) + value_of(1, 1) + value_of(2, 1));
        }
    }
}

/* What fails among some fails for all that take part, with the number among them. */
static enum tandem_status leave_among(tandem_communicator *all, void *user,
                                      struct tandem_error *error)
{
    static const int ranks[] = {1, 0};
    tandem_communicator *some = NULL;
    float value = 1;
    enum tandem_status status = tnd_communicator_among(all, ranks, 2, &some, error);
    if (status == TANDEM_OK && tandem_communicator_rank(all) == 0) {
        status = tandem_communicator_all_reduce(some, &value, 1, error);
        *(bool *)user = tandem_communicator_error(all) == NULL;
        tandem_communicator_close(some);
        *(bool *)user = *(bool *)user && tandem_communicator_error(all) != NULL;
        return status;
    }
    tandem_communicator_close(some);
    return status;
}

static void what_fails_among_some_fails_for_all(void)
{
    struct tnd_rank_result results[TND_RANKS_MOST];
    bool is_told = false;
    tnd_ranks_run(2, leave_among, &is_told, results);
    check_status(results[0].status, TANDEM_E_RANK, "rank 0", &results[0].error);
    CU_ASSERT_TRUE(is_told);
}

static CU_TestInfo tests[] = {
    {"sums have the bits of rank order", sums_have_the_bits_of_rank_order},
    {"ranks collect what each has", ranks_collect_what_each_has},
    {"each rank has something for each other one", each_rank_has_something_for_each_other_one},
    {"messages go from rank to rank", messages_go_from_rank_to_rank},
    {"messages to oneself are refused", messages_to_oneself_are_refused},
    {"another byte order or version is refused by all ranks",
     another_byte_order_or_version_is_refused_by_all_ranks},
    {"a wrong transport is closed and refused", a_wrong_transport_is_closed_and_refused},
    {"a rank that leaves ends the others with its number",
     a_rank_that_leaves_ends_the_others_with_its_number},
    {"a rank that does not answer is given up", a_rank_that_does_not_answer_is_given_up},
    {"no launcher is no library", no_launcher_is_no_library},
    {"some of the ranks compute in an order of their own",
     some_of_the_ranks_compute_in_an_order_of_their_own},
    {"what fails among some fails for all", what_fails_among_some_fails_for_all},
    CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites_cluster[] = {
    {"communicators", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};

int main(int argc, char **argv)
{
    return tnd_suites_run(argc, argv, suites_cluster, suites_cluster_models,
                          suites_cluster_architectures, suites_cluster_phases,
                          suites_cluster_choices, suites_cluster_flights, suites_cluster_states,
                          suites_cluster_parts, suites_cluster_devices, NULL);
}
