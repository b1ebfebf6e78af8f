/* SPDX-License-Identifier: MIT
 * Runs of a machine whose speeds are given: seconds of a run in each way, the host's part with
 * it. */
#include "tests/bridge/pace.h"

#include "bridge/ggml/bridge_budget.h"
#include "bridge/ggml/bridge_pace.h"

struct machine {
    struct tnd_pace pace;
    double now_s;
    double run_s[TND_WAYS]; /* of a run with the host's nodes behind it */
    double in_way_s[TND_WAYS];
};

static void run(struct machine *machine, int class_of_tokens, double for_s)
{
    double end_s = machine->now_s + for_s;
    for (int i = 0; i < TND_WAYS; i++) {
        machine->in_way_s[i] = 0;
    }
    while (machine->now_s < end_s) {
        enum tnd_way way = tnd_pace_way(&machine->pace, class_of_tokens);
        double s = machine->run_s[way];
        tnd_pace_note(&machine->pace, class_of_tokens, machine->now_s, machine->now_s + s * 0.5,
                      1000);
        machine->now_s += s;
        machine->in_way_s[way] += s;
    }
}

/* Each test has one, which takes the place of the last one's. */
static struct machine *new_machine(double team_s, double own_s, double alone_s, bool has_team,
                                   bool is_crowded)
{
    static struct machine machine;
    tnd_pace_fini(&machine.pace);
    machine = (struct machine){.run_s = {team_s, own_s, alone_s}};
    tnd_pace_init(&machine.pace, has_team, is_crowded);
    return &machine;
}

static struct machine *calm(void)
{
    return new_machine(0.001, 0.004, 0.002, true, false);
}

bool tokens_are_in_classes_of_doubling_numbers(void)
{
    return tnd_pace_class_of(1) == 0 && tnd_pace_class_of(2) == 1 && tnd_pace_class_of(3) == 1 &&
           tnd_pace_class_of(4) == 2 && tnd_pace_class_of(63) == 5 && tnd_pace_class_of(64) == 6 &&
           tnd_pace_class_of(INT64_C(1) << 40) == TND_PACE_CLASSES - 1;
}

bool a_calm_machine_keeps_the_fastest_way(void)
{
    struct machine *machine = calm();
    run(machine, 0, 60);
    bool is_team = machine->in_way_s[TND_WAY_TEAM] > 0.97 * 60;
    machine = calm();
    machine->run_s[TND_WAY_ALONE] = 0.0005; /* a tiny model */
    run(machine, 0, 60);
    return is_team && machine->in_way_s[TND_WAY_ALONE] > 0.95 * 60;
}

bool trying_other_ways_costs_little(void)
{
    struct machine *machine = calm();
    machine->run_s[TND_WAY_OWN] = 0.02;
    run(machine, 0, 60);
    double lost = machine->in_way_s[TND_WAY_OWN] * (1 - 0.001 / 0.02) +
                  machine->in_way_s[TND_WAY_ALONE] * (1 - 0.001 / 0.002);
    return lost > 0 && lost < 0.008 * 60;
}

bool a_busy_program_moves_it_to_one_thread_and_back(void)
{
    struct machine *machine = calm();
    run(machine, 0, 10);
    machine->run_s[TND_WAY_TEAM] = 0.006;
    machine->run_s[TND_WAY_OWN] = 0.005;
    run(machine, 0, 1); /* it learns */
    run(machine, 0, 10);
    bool is_alone = machine->in_way_s[TND_WAY_ALONE] > 0.93 * 10;
    machine->run_s[TND_WAY_TEAM] = 0.001;
    run(machine, 0, 20);
    run(machine, 0, 10);
    return is_alone && machine->in_way_s[TND_WAY_TEAM] > 0.95 * 10;
}

bool a_crowded_host_begins_with_threads_that_sleep(void)
{
    struct machine *machine = new_machine(0.004, 0.001, 0.002, true, true);
    bool begins = tnd_pace_way(&machine->pace, 3) == TND_WAY_OWN;
    run(machine, 3, 30);
    return begins && machine->in_way_s[TND_WAY_OWN] > 0.95 * 30;
}

bool without_a_team_it_is_never_chosen(void)
{
    struct machine *machine = new_machine(0.0001, 0.004, 0.002, false, false);
    run(machine, 0, 30);
    return machine->in_way_s[TND_WAY_TEAM] == 0 && machine->in_way_s[TND_WAY_ALONE] > 0.9 * 30;
}

bool pauses_of_the_host_do_not_count(void)
{
    struct machine *machine = calm();
    run(machine, 0, 10);
    int n_team = 0;
    for (int i = 0; i < 1000; i++) {
        machine->now_s += 5; /* a user thinks */
        run(machine, 0, 0.02);
        n_team += tnd_pace_way(&machine->pace, 0) == TND_WAY_TEAM;
        tnd_pace_pause(&machine->pace);
    }
    return n_team > 950;
}

/* Kinds of products are measured one after the other, each in rounds of equal length, 6 at most of
 * each of 3 numbers of tokens. */
bool measuring_keeps_to_its_time_whatever_a_trial_takes(void)
{
    for (double round_s = 1e-4; round_s < 1; round_s *= 1.3) {
        struct tnd_bridge_budget budget = {.left_s = 3};
        double now_s = 100;
        int n_kinds = 0;
        for (; n_kinds < 50 && tnd_budget_is_left(&budget); n_kinds++) {
            tnd_budget_begin(&budget, now_s);
            for (int i = 0; i < 18; i++) {
                now_s += i == 0 || tnd_budget_allows(&budget, now_s, round_s) ? round_s : 0;
            }
            tnd_budget_end(&budget, now_s);
        }
        const bool is_quick = 18 * round_s * 50 < 3;
        if (now_s > 103 + 1e-9 || n_kinds == 0 || (is_quick && n_kinds < 50)) {
            return false;
        }
    }
    return true;
}
