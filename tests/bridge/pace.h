/* SPDX-License-Identifier: MIT
 * Which threads the bridge computes with, in a machine of numbers. Each is true where the sentence
 * of its name holds. */
#ifndef TESTS_BRIDGE_PACE_H
#define TESTS_BRIDGE_PACE_H

#include <stdbool.h>

bool tokens_are_in_classes_of_doubling_numbers(void);
bool a_calm_machine_keeps_the_fastest_way(void);
bool trying_other_ways_costs_little(void);
bool a_busy_program_moves_it_to_one_thread_and_back(void);
bool a_crowded_host_begins_with_threads_that_sleep(void);
bool without_a_team_it_is_never_chosen(void);
bool pauses_of_the_host_do_not_count(void);
bool measuring_keeps_to_its_time_whatever_a_trial_takes(void);

#endif
