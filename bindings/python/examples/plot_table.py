# SPDX-License-Identifier: MIT
"""Plots a timing table: what each way of computing a product costs over the number of tokens.

usage: plot_table.py [TABLE] [OUT.png]     (default: this machine's own table, table.png)
"""
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

import tandem_infer as ti  # noqa: E402

path = sys.argv[1] if len(sys.argv) > 1 else ti.Table.default_path()
out = sys.argv[2] if len(sys.argv) > 2 else "table.png"

# %% The curves of the largest matrix, on the most threads
table = ti.Table.load(path)
curves = table.curves()
largest = max(curves, key=lambda c: c["n"] * c["k"])
chosen = [c for c in table.curves(largest["type"], largest["n"], largest["k"])
          if c["threads"] in (1, max(o["threads"] for o in curves))]

# %% One line a way: microseconds a token, both axes logarithmic
figure, axes = plt.subplots(figsize=(8, 5))
for curve in chosen:
    axes.loglog(curve["m"], [us / m for m, us in zip(curve["m"], curve["us"])], marker=".",
                label=f"{curve['task']} on {curve['backend']}, {curve['threads']} threads")
axes.set_xlabel("tokens M")
axes.set_ylabel("us a token")
axes.set_title(f"{largest['n']} x {largest['k']}, {largest['type']}: COMPUTE")
axes.grid(True, which="both", alpha=0.3)
axes.legend(fontsize=8)
figure.tight_layout()
figure.savefig(out, dpi=120)
print(f"{out}: {len(chosen)} curves of {path}")
