#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# usage: tools/dev/column_splits.py   where splitting a product by columns of W would pay, by the tables of bench-data.
# From X in host memory, with the highest rates of each side at that M, no copies of X and no slow-down beside each
# other, so a bound from above. docs/planning.md "Schedule" tells what follows from it.
import glob
import json
import math
import os

SHAPES = [(8, 4096), (32, 4096), (60, 2048), (64, 4096), (128, 2048), (128, 4096), (128, 14336),
          (256, 4096), (512, 2048), (1024, 4096), (4096, 14336)]
TASKS = ("mul_mat_packed", "mul_mat_q", "node")
JOIN = 8000.0  # bytes/us, TND_SCHEDULE_JOIN_BYTES
STEP = 32      # rows, TND_SCHEDULE_ROWS


def rates(table, backend):
    """Operations a microsecond, by M."""
    best = {}
    for curve in table["curves"]:
        if (curve["op"] == "mul_mat" and curve["type"] == "q4_0" and curve["stage"] == "compute"
                and curve["backend"] == backend and curve["task"] in TASKS):
            for sample in curve["samples"]:
                work = 2 * curve["n"] * curve["k"] * sample["m"]
                m = sample["m"]
                best[m] = max(best.get(m, 0), work / sample["median_us"])
    return best


def times(table, rate, n, k, m):
    """Of one side alone, of the best split by rows, and of the best one by columns."""
    speed = {t["direction"]: t["samples"][-1]["bytes"] / t["samples"][-1]["median_us"]
             for t in table["transfers"]}
    wait = min(t["samples"][0]["median_us"] for t in table["transfers"])
    nearest = [r[min(r, key=lambda x: abs(math.log(x / m)))] for r in rate]
    host, device = (2 * n * k * m / r for r in nearest)
    up = 4 * k * m / speed["upload"]
    down = 4 * n * m / speed["download"]
    join = 4 * n * m / JOIN
    shares = [i / 64 for i in range(1, 64)]
    rows = min(max((1 - s) * host, wait + up + s * device) + wait + s * (down + join)
               for s in shares) if n >= 2 * STEP else math.inf
    columns = min(max((1 - s) * host, wait + s * (up + device)) + wait + down + 2 * join
                  for s in shares)
    return min(host, 2 * wait + up + device + down), rows, columns


for path in sorted(glob.glob("bench-data/*/table.json")):
    with open(path) as file:
        table = json.load(file)
    rate = [rates(table, "cpu"), rates(table, "opencl")]
    if not table.get("transfers") or not all(rate):
        continue
    print(os.path.basename(os.path.dirname(path)))
    for n, k in SHAPES:
        for m in (1, 32, 128, 512):
            single, rows, columns = times(table, rate, n, k, m)
            if columns < 0.98 * min(single, rows):
                print(f"  n{n}:k{k}:m{m}: one side {single:.0f} us, rows {rows:.0f} us, "
                      f"columns {columns:.0f} us, {min(single, rows) / columns:.2f} times as fast")
