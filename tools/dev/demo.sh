#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# make demo: the main job in one go. Measures this machine for the shapes of a 1.1B llama, then runs
# such a model (random weights) with the fixed rule, on the CPU alone, and with the tuned plan.
# make demo ARGS=--quick takes a smaller model.
set -eu
cd "$(dirname "$0")/../.."
build/tandem-llama demo "$@"
