/* SPDX-License-Identifier: MIT
 * Which connections may stay, by a clock that the tests turn; and bodies of many values. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suite_server.h"
#include "tools/tandem-server/srv_body.h"
#include "tools/tandem-server/srv_limits.h"

enum { MOST = 4, CUT = 64 };

static int cuts[CUT], n_cuts;

static void note_cut(int socket)
{
    cuts[n_cuts++ % CUT] = socket;
}

static struct srv_limits limits_new(void)
{
    n_cuts = 0;
    return (struct srv_limits){.options = {.max_connections = MOST,
                                           .max_of_address = 2,
                                           .idle_seconds = 60.0,
                                           .headers_seconds = 10.0,
                                           .body_seconds = 20.0,
                                           .max_bytes = 1000,
                                           .close = note_cut}};
}

static void limits_free(struct srv_limits *limits)
{
    while (limits->first != NULL) {
        tnd_srv_limits_remove(limits, limits->first);
    }
    check_int(limits->n, 0);
    check_int((int64_t)limits->n_bytes, 0);
}

static void the_oldest_half_open_connection_gives_way(void)
{
    struct srv_limits limits = limits_new();
    struct srv_place *places[MOST];
    for (int i = 0; i < MOST; i++) {
        places[i] = tnd_srv_limits_add(&limits, i, 7, (double)i);
    }
    check_int(n_cuts, 0);
    (void)tnd_srv_limits_enter(&limits, places[0], SRV_BODY, 4.0);
    (void)tnd_srv_limits_enter(&limits, places[0], SRV_COMPUTED, 4.0); /* in hand: it stays */
    const struct srv_place *fifth = tnd_srv_limits_add(&limits, 4, 7, 5.0);
    check_int(n_cuts, 1);
    check_int(cuts[0], 1);
    CU_ASSERT_FALSE(fifth->is_reserve);
    tnd_srv_limits_remove(&limits, places[1]);
    check_int(limits.n, MOST);
    (void)tnd_srv_limits_add(&limits, 5, 7, 6.0);
    check_int(cuts[1], 2);
    limits_free(&limits);
}

static void a_greedy_address_makes_room_itself(void)
{
    struct srv_limits limits = limits_new();
    (void)tnd_srv_limits_add(&limits, 0, 1, 0.0); /* older, but somebody else's */
    for (int i = 1; i < MOST; i++) {
        (void)tnd_srv_limits_add(&limits, i, 2, (double)i);
    }
    (void)tnd_srv_limits_add(&limits, 10, 2, 10.0);
    check_int(cuts[0], 1);
    (void)tnd_srv_limits_add(&limits, 11, 3, 11.0); /* of nobody in particular: the oldest */
    check_int(cuts[1], 0);
    limits_free(&limits);
}

static void what_is_in_hand_is_never_cut_off_for_others(void)
{
    struct srv_limits limits = limits_new();
    for (int i = 0; i < MOST; i++) {
        struct srv_place *place = tnd_srv_limits_add(&limits, i, 0, 0.0);
        CU_ASSERT_TRUE(tnd_srv_limits_enter(&limits, place, SRV_BODY, 0.0));
        (void)tnd_srv_limits_enter(&limits, place, i % 2 == 0 ? SRV_COMPUTED : SRV_SENT, 0.0);
    }
    const struct srv_place *extra = tnd_srv_limits_add(&limits, 9, 0, 1.0);
    CU_ASSERT_TRUE(extra->is_reserve);
    check_int(n_cuts, 0);
    (void)tnd_srv_limits_add(&limits, 10, 0, 2.0);
    check_int(n_cuts, 1); /* the one before in the reserve */
    check_int(cuts[0], 9);
    limits_free(&limits);
}

static void each_phase_has_its_deadline(void)
{
    struct srv_limits limits = limits_new();
    struct srv_place *place = tnd_srv_limits_add(&limits, 1, 0, 100.0);
    check_int(tnd_srv_limits_expire(&limits, 110.0), 0);
    (void)tnd_srv_limits_enter(&limits, place, SRV_BODY, 110.0);
    check_int(tnd_srv_limits_expire(&limits, 130.0), 0);
    (void)tnd_srv_limits_enter(&limits, place, SRV_COMPUTED, 130.0);
    check_int(tnd_srv_limits_expire(&limits, 1e9), 0); /* the server's own time */
    tnd_srv_limits_send(&limits, place, 1 << 20, 1000.0);
    check_int(tnd_srv_limits_expire(&limits, 1060.0 + 64.0), 0); /* 16 KiB a second */
    (void)tnd_srv_limits_enter(&limits, place, SRV_WAITS, 1100.0);
    check_int(tnd_srv_limits_expire(&limits, 1160.0), 0);
    check_int(tnd_srv_limits_expire(&limits, 1160.1), 1);
    check_int(tnd_srv_limits_expire(&limits, 2000.0), 0); /* once */
    check_int(cuts[0], 1);
    limits_free(&limits);
}

static void an_address_has_few_requests_in_hand(void)
{
    struct srv_limits limits = limits_new();
    struct srv_place *places[MOST];
    for (int i = 0; i < MOST; i++) {
        places[i] = tnd_srv_limits_add(&limits, i, i < 3 ? 7 : 8, 0.0);
    }
    CU_ASSERT_TRUE(tnd_srv_limits_enter(&limits, places[0], SRV_BODY, 0.0));
    CU_ASSERT_TRUE(tnd_srv_limits_enter(&limits, places[1], SRV_BODY, 0.0));
    CU_ASSERT_FALSE(tnd_srv_limits_enter(&limits, places[2], SRV_BODY, 0.0));
    CU_ASSERT_TRUE(tnd_srv_limits_enter(&limits, places[3], SRV_BODY, 0.0));
    (void)tnd_srv_limits_enter(&limits, places[0], SRV_WAITS, 1.0);
    CU_ASSERT_TRUE(tnd_srv_limits_enter(&limits, places[2], SRV_BODY, 1.0));
    limits_free(&limits);
}

static void bodies_together_are_bounded(void)
{
    struct srv_limits limits = limits_new();
    struct srv_place *a = tnd_srv_limits_add(&limits, 1, 0, 0.0);
    struct srv_place *b = tnd_srv_limits_add(&limits, 2, 0, 0.0);
    CU_ASSERT_TRUE(tnd_srv_limits_receive(&limits, a, 600));
    CU_ASSERT_FALSE(tnd_srv_limits_receive(&limits, b, 401));
    CU_ASSERT_TRUE(tnd_srv_limits_receive(&limits, b, 400));
    (void)tnd_srv_limits_enter(&limits, a, SRV_COMPUTED, 0.0);
    CU_ASSERT_FALSE(tnd_srv_limits_receive(&limits, b, 1)); /* it waits to be read */
    tnd_srv_limits_release(&limits, a);
    CU_ASSERT_TRUE(tnd_srv_limits_receive(&limits, b, 600));
    limits_free(&limits);
}

static void bodies_of_many_values_are_refused(void)
{
    const size_t n = 2 * (size_t)SRV_BODY_VALUES + 16;
    char *text = malloc(n + 1);
    struct srv_body body;
    memset(text, ',', n);
    text[n] = '\0';
    memcpy(text, "{\"tokens\":[", 11);
    CU_ASSERT_FALSE(tnd_srv_body_read(&body, text, n));
    CU_ASSERT_TRUE(body.is_large);
    check_contains(body.fault, "more than 262144 values");
    tnd_srv_body_free(&body);
    memcpy(text, "{\"prompt\":\"", 11); /* within a text they are none */
    text[n - 2] = '"';
    text[n - 1] = '}';
    CU_ASSERT_TRUE(tnd_srv_body_read(&body, text, n));
    tnd_srv_body_free(&body);
    free(text);
}

static CU_TestInfo tests[] = {
    {"the_oldest_half_open_connection_gives_way", the_oldest_half_open_connection_gives_way},
    {"a_greedy_address_makes_room_itself", a_greedy_address_makes_room_itself},
    {"what_is_in_hand_is_never_cut_off_for_others", what_is_in_hand_is_never_cut_off_for_others},
    {"each_phase_has_its_deadline", each_phase_has_its_deadline},
    {"an_address_has_few_requests_in_hand", an_address_has_few_requests_in_hand},
    {"bodies_together_are_bounded", bodies_together_are_bounded},
    {"bodies_of_many_values_are_refused", bodies_of_many_values_are_refused},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_server_limits[];
CU_SuiteInfo suites_server_limits[] = {
    {"limits", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
