#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tokens/s where weights are larger than all memory together, so that disks read what is missing for
each token: layers in one group a rank, a ring of 2, 4 and 8 groups, and rows. For docs/cluster.md."""

# GB of memory, and GB/s of weights that the CPU multiplies by a token, as `fit` prices 70B in Q4_0
MACHINES = {
    "home": [(15.0, 41.5), (15.0, 62.0), (30.1, 67.0), (6.4, 41.5)],
    "prima.cpp's": [(2.6, 40.0), (4.4, 62.0), (10.4, 41.5), (2.0, 10.0)],
}
LAYERS = 80
LINKS = {"1 Gb/s": (0.38e-3, 0.63e-3), "wireless": (2.9e-3, 7e-3)}  # s of a message and of a sum
CASES = [("home", "1 Gb/s", 2, 70), ("home", "1 Gb/s", 2, 80), ("home", "wireless", 2, 66),
         ("home", "wireless", 2, 70), ("home", "wireless", 2, 80), ("home", "wireless", 5, 80),
         ("home", "wireless", 5, 100), ("prima.cpp's", "wireless", 2, 18),
         ("prima.cpp's", "wireless", 2, 25), ("prima.cpp's", "wireless", 5, 25)]


def layers_s(shares, machines, disk, hop, k):
    """A rank keeps what it can, and reads the rest through what memory is left. With one group, what
    memory lacks when its turn begins is read during its turn, whatever was read ahead. With k groups
    it reads while others compute, as far as one group's part fits into memory."""
    turns, reading = len(machines) * k * hop, 0.0
    for w, (memory, speed) in zip(shares, machines):
        kept = memory if k == 1 else max(0.0, (k * memory - w) / (k - 1))
        kept = w if w <= memory else kept
        late = max(0.0, (w - kept) / k - (memory - kept)) * k
        turns += max(w / speed, late / disk)
        reading = max(reading, (w - kept) / disk)
    return max(turns, reading)


def rows_s(shares, machines, disk, add):
    """All ranks compute and read at the same time."""
    return 2 * LAYERS * add + max(max(w / speed, (w - memory) / disk)
                                  for w, (memory, speed) in zip(shares, machines))


def least(machines, weights, seconds):
    """Of all shares: two machines trade ever smaller parts as long as that saves time."""
    memory = sum(m for m, _ in machines)
    shares, step, n = [weights * m / memory for m, _ in machines], weights / 4, len(machines)
    while step > weights / 1000:
        trades = [[w + step * ((i == b) - (i == a)) for i, w in enumerate(shares)]
                  for a in range(n) for b in range(n) if shares[a] >= step]
        one = min(trades, key=seconds)
        if seconds(one) < seconds(shares):
            shares = one
        else:
            step /= 2
    return seconds(shares)


print("| machines, link, disks | weights, memory, GB | layers | ring of 2, 4, 8 | rows |\n|---|---|---|---|---|")
for name, link, disk, weights in CASES:
    machines, (hop, add) = MACHINES[name], LINKS[link]
    of = [1 / least(machines, weights, lambda s, k=k: layers_s(s, machines, disk, hop, k))
          for k in (1, 2, 4, 8)]
    of.append(1 / least(machines, weights, lambda s: rows_s(s, machines, disk, add)))
    print("| %s, %s, %d GB/s | %d, %.1f | %.2f | %.2f, %.2f, %.2f | %.2f |"
          % (name, link, disk, weights, sum(m for m, _ in machines), *of))
