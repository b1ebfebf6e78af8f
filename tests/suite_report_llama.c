/* SPDX-License-Identifier: MIT
 * What a user of llama.cpp is told to set. */
#include "tests/support_tune.h"
#include "tools/report/explain_llama.h"

/* 512 is beyond 24, the largest; one shape: the same crossover as above. */
static void llama_cpps_settings_follow_from_the_table(void)
{
    tandem_table *table = tune_parse(tune_example);
    struct tnd_shape shape = {4096, 4096};
    struct tnd_llama_advice advice;
    tnd_explain_llama(table, NULL, TANDEM_TYPE_Q4_0, &shape, 1, 1, &advice);
    CU_ASSERT_TRUE(advice.found && advice.has_other && advice.pays);
    check_int(advice.prompt_m, 24);
    check_int(advice.pays_from, 23);
    check_int(advice.generation_threads, 1);
    CU_ASSERT_DOUBLE_EQUAL(advice.prompt_us, 10948 + 6641, 0.01);
    struct tnd_text text = TND_TEXT_INIT;
    tnd_explain_llama_text(&advice, &text);
    check_contains(tnd_text_string(&text), "pay from M = 23 on");
    tnd_text_fini(&text);
    tnd_explain_llama(table, NULL, TANDEM_TYPE_Q4_0, &shape, 1, 8, &advice);
    check_int(advice.prompt_threads, 8);
    tnd_explain_llama(table, NULL, TANDEM_TYPE_Q8_0, &shape, 1, 8, &advice);
    CU_ASSERT_FALSE(advice.found);
    tandem_table_free(table);
}

static CU_TestInfo tests[] = {
    {"llama_cpps_settings_follow_from_the_table", llama_cpps_settings_follow_from_the_table},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_report_llama[];
CU_SuiteInfo suites_report_llama[] = {
    {"settings of llama.cpp", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
