/* SPDX-License-Identifier: MIT
 * Main of the graph suites. */
#include "tests/support.h"

extern CU_SuiteInfo suites_graph_conv[];
extern CU_SuiteInfo suites_graph_device[];
extern CU_SuiteInfo suites_graph_elementwise[];
extern CU_SuiteInfo suites_graph_lower[];
extern CU_SuiteInfo suites_graph_net[];
extern CU_SuiteInfo suites_graph_pass[];
extern CU_SuiteInfo suites_graph_affine[];
extern CU_SuiteInfo suites_graph_epilogue[];
extern CU_SuiteInfo suites_graph_print[];
extern CU_SuiteInfo suites_graph_recognise[];
extern CU_SuiteInfo suites_graph_recurrent[];
extern CU_SuiteInfo suites_graph_reduce[];
extern CU_SuiteInfo suites_graph_int8[];
extern CU_SuiteInfo suites_graph_reference[];
extern CU_SuiteInfo suites_graph_store[];
extern CU_SuiteInfo suites_graph_table[];
extern CU_SuiteInfo suites_graph_window[];

int main(int argc, char **argv)
{
    return tnd_suites_run(argc, argv, suites_graph_net, suites_graph_elementwise,
                          suites_graph_reduce, suites_graph_lower, suites_graph_reference,
                          suites_graph_int8, suites_graph_store, suites_graph_table,
                          suites_graph_pass, suites_graph_affine, suites_graph_recognise,
                          suites_graph_epilogue, suites_graph_conv, suites_graph_print,
                          suites_graph_device, suites_graph_window, suites_graph_recurrent, NULL);
}
