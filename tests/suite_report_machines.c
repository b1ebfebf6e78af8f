/* SPDX-License-Identifier: MIT
 * Lists of machines: what a good one says, and what is refused; plans as people read them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support.h"
#include "tools/report/cluster_report.h"
#include "tools/report/machines_file.h"

static enum tandem_status read_text(const char *text, struct tnd_machines *out,
                                    struct tandem_error *error)
{
    return tnd_machines_read(text, strlen(text), "list", out, error);
}

static void a_list_names_machines_and_links(void)
{
    static const char text[] =
        "{\"note\": [\"computed\"], \"machines\": [{\"name\": \"a\", \"table\": \"a.json\", "
        "\"memory_gib\": 0.5, \"threads\": 4}, {\"name\": \"b\", \"table\": \"/t/b.json\"}, "
        "{\"name\": \"c\", \"table\": \"c\"}], \"one_medium\": true, \"links\": [{\"latency_us\": "
        "100, \"gbit_s\": 1}, {\"from\": \"a\", \"to\": \"c\", \"latency_us\": 5, \"gbit_s\": 8}]}";
    struct tnd_machines machines;
    check_ok(read_text(text, &machines, NULL));
    check_int(machines.n, 3);
    CU_ASSERT_STRING_EQUAL(machines.list[1].table, "/t/b.json");
    check_int(machines.list[0].memory, INT64_C(1) << 29);
    check_int(machines.list[0].threads, 4);
    check_int(machines.list[1].memory, 0);
    CU_ASSERT_TRUE(machines.is_medium);
    /* 125 bytes a microsecond are a gigabit a second. */
    CU_ASSERT_DOUBLE_EQUAL(tnd_cluster_link_us(&machines.links[0 * 3 + 1], 125000), 1100, 0.5);
    CU_ASSERT_DOUBLE_EQUAL(tnd_cluster_link_us(&machines.links[2 * 3 + 0], 125000), 130, 0.5);
    CU_ASSERT_DOUBLE_EQUAL(tnd_cluster_link_us(&machines.links[0 * 3 + 2], 125000), 130, 0.5);
    tnd_machines_fini(&machines);
}

static void lists_that_cannot_be_are_refused(void)
{
#define A "{\"name\": \"a\", \"table\": \"t\"}"
#define B "{\"name\": \"b\", \"table\": \"t\"}"
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"", "list"},
        {"{\"machines\": []}", "no machine in the list"},
        {"{\"machines\": [" A "," A "]}", "two machines have the name 'a'"},
        {"{\"machines\": [" A "," B "]}", "no link between 'a and b'"},
        {"{\"machines\": [{\"name\": \"a\"}]}", "needs a name and a table"},
        {"{\"machines\": [{\"name\": \"a\", \"tabel\": \"t\"}]}", "not 'tabel'"},
        {"{\"machines\": [{\"memory_gib\": -1}]}", "expected 0 to"},
        {"{\"machines\": [{\"threads\": 0}]}", "expected 1 to 1024, got 0 for 'threads'"},
        {"{\"links\": [{\"latency_us\": 1}]}", "a link needs latency_us and gbit_s"},
        {"{\"links\": [{\"gbit_s\": 0}]}", "expected 1e-06"},
        {"{\"machines\": [" A "], \"links\": [{\"from\": \"a\", \"to\": \"a\", \"latency_us\": 1, "
         "\"gbit_s\": 1}]}",
         "not from 'a'"},
        {"{\"machines\": [" A "], \"links\": [{\"from\": \"x\", \"to\": \"a\", \"latency_us\": 1, "
         "\"gbit_s\": 1}]}",
         "not from 'x'"},
        {"{\"speed\": 1}", "got 'speed'"},
        {"{\"machines\": [" A "]} x", "list"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tnd_machines machines;
        struct tandem_error error = {.text = ""};
        check_status(read_text(cases[i].text, &machines, &error), TANDEM_E_FORMAT, cases[i].part,
                     &error);
    }
    char many[65 * 64] = "{\"machines\": [";
    for (int i = 0; i < 65; i++) {
        char one[64];
        snprintf(one, sizeof(one), "%s{\"name\": \"m%d\", \"table\": \"t\"}", i > 0 ? "," : "", i);
        strcat(many, one);
    }
    struct tnd_machines machines;
    struct tandem_error error = {.text = ""};
    check_status(read_text(many, &machines, &error), TANDEM_E_LIMIT, "more than 64", &error);
}

static void a_plan_says_who_computes_what_and_who_is_left_out(void)
{
    static const double count[TND_FIT_PHASES] = {1, 128};
    struct tnd_cluster_plan plans[2];
    struct tnd_text text = TND_TEXT_INIT;
    struct tnd_cluster_link links[4];
    struct tnd_cluster cluster = {
        .n = 2,
        .links = links,
        .model = {.n_layers = 2, .dim = 64, .vocabulary = 100, .prompt_tokens = 10}};
    cluster.ranks = calloc(2, sizeof(cluster.ranks[0]));
    cluster.model.units[TND_FIT_FFN] = 64;
    cluster.model.bytes[TND_FIT_FFN] = INT64_C(1) << 30;
    for (int r = 0; r < 2; r++) {
        strcpy(cluster.ranks[r].name, r == 0 ? "desk" : "lap");
        for (int p = 0; p < TND_CLUSTER_POINTS; p++) {
            cluster.ranks[r].prices[0].curves[TND_FIT_PROMPT][TND_FIT_FFN].us[p] = 1000.0 * p;
            cluster.ranks[r].prices[0].curves[TND_FIT_GENERATION][TND_FIT_FFN].us[p] = 100.0 * p;
        }
    }
    cluster.ranks[1].memory = INT64_C(1) << 29;
    for (int slow = 0; slow < 2; slow++) {
        for (int i = 0; i < 4; i++) {
            links[i] = tnd_cluster_link_of(slow != 0 ? 10000 : 1, 1000);
        }
        const struct tnd_cluster_report report = {&cluster, count, -1, plans,
                                                  tnd_cluster_best(&cluster, count, -1, plans)};
        text.n = 0;
        tnd_cluster_print(&report, &text);
        tnd_cluster_print_choice(&report, &text);
        tnd_cluster_print_json(&report, &text);
        check_contains(text.bytes, slow != 0 ? "* 1 " : "* 2 ");
        check_contains(text.bytes, slow != 0 ? "Left out: lap. With it: prompts 0." : "50.0 %");
        check_contains(text.bytes, slow != 0 ? "plan: 1 of 2 ranks (desk 100 %)" : "plan: 2 of 2");
        check_contains(text.bytes, slow != 0 ? "\"best\": 1" : "\"best\": 2");
        check_contains(text.bytes, "links of a tenth of the latency");
    }
    cluster.ranks[0].memory = 1;
    cluster.ranks[1].memory = 1;
    const struct tnd_cluster_report none = {&cluster, count, -1, plans,
                                            tnd_cluster_best(&cluster, count, -1, plans)};
    text.n = 0;
    tnd_cluster_print(&none, &text);
    check_contains(text.bytes, "does not fit into the memory of");
    check_contains(text.bytes, "no plan");
    tnd_text_fini(&text);
    free(cluster.ranks);
}

static CU_TestInfo tests[] = {
    {"a list names machines and links", a_list_names_machines_and_links},
    {"lists that cannot be are refused", lists_that_cannot_be_are_refused},
    {"a plan says who computes what, and who is left out",
     a_plan_says_who_computes_what_and_who_is_left_out},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_report_machines[];
CU_SuiteInfo suites_report_machines[] = {
    {"machines", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
