/* SPDX-License-Identifier: MIT
 * The commands of mulmat-tune; argv[0] is the command's name. Each returns the exit status: 0 done,
 * 1 failed, 2 wrong usage. */
#ifndef MULMAT_TUNE_COMMANDS_H
#define MULMAT_TUNE_COMMANDS_H

int tnd_cmd_bench(int argc, char **argv);
int tnd_cmd_analyze(int argc, char **argv);
int tnd_cmd_explain(int argc, char **argv);
int tnd_cmd_simulate(int argc, char **argv);
int tnd_cmd_advise(int argc, char **argv);
int tnd_cmd_test(int argc, char **argv);
int tnd_cmd_table(int argc, char **argv);
int tnd_cmd_devices(int argc, char **argv);
int tnd_cmd_tune_device(int argc, char **argv);
int tnd_cmd_profiles(int argc, char **argv);

#endif
