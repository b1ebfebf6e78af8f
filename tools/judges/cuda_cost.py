# SPDX-License-Identifier: MIT
# Theoretical cost of product kernels: the instructions of their inner loops, counted in the machine
# code of NVIDIA's compilers, against the units of a multiprocessor and the rates of data sheets. Needs
# no GPU, and measures nothing.
# Needs: nvidia-cuda-nvrtc-cu12, nvidia-cuda-nvcc-cu12, nvidia-cuda-nvdisasm.
#
# usage: cuda_cost.py [--counts FILE] [--write] [--no-compile] [--table FILE]
#        counts and says what differs from --counts, by default tools/dev/cuda_counts.txt, which
#        --write replaces and compute_table.sh reads; --no-compile takes it as it is. --table FILE
#        gets the tables of docs/cuda.md
import argparse
import collections
import concurrent.futures
import os
import re
import sys

from cuda_texts import compile_ptx, flat, machine_code, nvdisasm_path, open_compiler, ptxas_path
from cuda_variants import MATVECS, TILED, TILES

COUNTS = "tools/dev/cuda_counts.txt"
TYPES = "q4_0 q4_k q8_0 f16".split()
CAPABILITIES = "80 86 89 90".split()
# The variants that run by default: at M = 1, up to 4, up to 16, beyond (gpu_tiles.c).
KERNELS = {"matvec 1": ("matvec", MATVECS["1 token"], 1),
           "matvec 4": ("matvec", MATVECS["8 tokens"] | {"COLUMNS": 4}, 4),
           "matvec 8": ("matvec", MATVECS["8 tokens"], 8),
           "tiled 64": ("tiled", TILED["aligned"], TILES["TILE_M"])}
GROUP = TILES["TILE_M"] * TILES["TILE_N"] // TILES["ITEM_M"] // TILES["ITEM_N"]

# Threads of a multiprocessor that a unit serves in a clock (CUDA C++ Programming Guide, throughput
# of native arithmetic instructions); "issue": four schedulers with a warp each; "l1": words of 32
# bits of L1 and shared memory, which are one. Conversions: the least that the guide has.
UNITS = ["issue", "fma", "integer", "convert", "l1"]
RATES = {"80": [128, 64, 64, 16, 32], "86": [128, 128, 64, 16, 32], "89": [128, 128, 64, 16, 32],
         "90": [128, 128, 64, 16, 32]}

Gpu = collections.namedtuple("Gpu", "name capability units ghz gbps f32 tensor")
GPUS = [Gpu("H100 SXM", "90", 132, 1.98, 3350, 67, 989),
        Gpu("RTX 4090", "89", 128, 2.52, 1008, 82.6, 165),
        Gpu("RTX 4060 Laptop", "89", 24, 2.37, 256, 14.6, None)]
BYTES = {"q4_0": 18 / 32, "q4_k": 144 / 256, "q8_0": 34 / 32, "f16": 2}  # of a weight
N, K = 4096, 4096
TOKENS = [1, 8, 64, 512]


def unit_of(opcode):
    name = opcode.split(".")[0]
    if name in ("FFMA", "FMUL", "FADD", "IMAD", "HADD2", "HMUL2", "HFMA2"):
        return "fma"
    if name in ("I2F", "F2F", "F2I", "I2I", "MUFU", "POPC", "FLO"):
        return "convert"
    if name in ("LDG", "LDS", "LD", "STS", "STG", "ST", "SHFL", "LDSM"):
        return "l1"
    # the uniform path and control have units of their own, which nothing here keeps busy
    is_other = name in ("BRA", "BAR", "NOP", "EXIT", "BSSY", "BSYNC", "S2R", "WARPSYNC")
    return None if name.startswith("U") or is_other else "integer"


def words_of(opcode):
    """32-bit words of a thread that a load or store moves."""
    return 4 if ".128" in opcode else 2 if ".64" in opcode else 1


def body(listing, kernel):
    """(instructions [(address, opcode)], loops [(first, last address)]) of a kernel"""
    at = listing.index(f"\n.text.{kernel}:")
    instructions, labels, jumps, waiting = [], {}, [], []
    for line in listing[at + 1:].splitlines()[1:]:
        if re.match(r"\s*\.section|//-----", line):
            break
        label = re.match(r"(\.L_\w+):", line)
        found = re.match(r"\s+/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)(.*)", line)
        if label:
            waiting.append(label[1])
        elif found:
            address = int(found[1], 16)
            labels.update((name, address) for name in waiting)
            waiting = []
            instructions.append((address, found[2]))
            target = re.search(r"`\((\.L_\w+)\)", found[3])
            if found[2].split(".")[0] == "BRA" and target:
                jumps.append((address, target[1]))
    last = {}
    for address, target in jumps:
        to = labels.get(target)
        if to is not None and to < address:
            last[to] = max(address, last.get(to, 0))
    return instructions, sorted(last.items())


def count(opcodes):
    units = dict.fromkeys(UNITS, 0)
    units["issue"] = len(opcodes)
    for opcode in opcodes:
        unit = unit_of(opcode)
        if unit is not None:
            units[unit] += words_of(opcode) if unit == "l1" else 1
    return units


def how_many(opcodes, name):
    return sum(opcode.split(".")[0] == name for opcode in opcodes)


def inside(instructions, loop):
    return [opcode for address, opcode in instructions if loop[0] <= address <= loop[1]]


def without_inner(loops):
    return [one for one in loops if not any(o != one and one[0] <= o[0] and o[1] <= one[1]
                                            for o in loops)]


def matvec_counts(instructions, loops, defines, has_lines):
    """What a thread spends on a weight: the innermost loop of most products, which says by them how
    many weights it has; where weights have scales, one more decodes each (weight4)."""
    opcodes = max((inside(instructions, one) for one in without_inner(loops)),
                  key=lambda found: how_many(found, "FFMA"))
    a_weight = defines["COLUMNS"] + (1 if has_lines else 0)
    weights, rest = divmod(how_many(opcodes, "FFMA"), a_weight)
    if weights == 0 or rest != 0:
        raise ValueError(f"{how_many(opcodes, 'FFMA')} FFMA are no multiple of {a_weight}")
    return {unit: value / weights for unit, value in count(opcodes).items()}


def scaled(units, factor):
    return {unit: value * factor for unit, value in units.items()}


def tiled_counts(instructions, loops):
    """The same of the outermost loop (tiled.clh): the loop of products as often as its FFMAs say; the
    two loops that fill shared memory, of W and then of X, at what a store costs in them, without
    what the compiler put in front of them for a rest of their steps; the others' code once."""
    outer = max(loops, key=lambda one: one[1] - one[0])
    inner = without_inner([one for one in loops if outer[0] <= one[0] and one[1] <= outer[1]])
    deep = [inside(instructions, one) for one in inner]
    products = [opcodes for opcodes in deep if how_many(opcodes, "LDS")]
    fills = [opcodes for opcodes in deep if how_many(opcodes, "STS")]
    wanted = TILES["ITEM_M"] * TILES["ITEM_N"] * TILES["TILE_K"]
    if len(products) != 1 or len(fills) != 2 or wanted % how_many(products[0], "FFMA") != 0:
        raise ValueError(f"{len(products)} loops load from shared memory, {len(fills)} store there")
    parts = [scaled(count(products[0]), wanted // how_many(products[0], "FFMA"))]
    for opcodes, rows in zip(fills, (TILES["TILE_N"], TILES["TILE_M"])):
        stores = rows * TILES["TILE_K"] / GROUP
        parts.append(scaled(count(opcodes), stores / how_many(opcodes, "STS")))
    block = []
    for address, opcode in instructions:
        is_plain = outer[0] <= address <= outer[1] and not any(o[0] <= address <= o[1] for o in inner)
        block += [opcode] if is_plain else []
        if opcode.split(".")[0] in ("BRA", "BAR") or not is_plain:
            has_memory = how_many(block, "STS") + how_many(block, "LDG")
            parts += [] if has_memory else [count(block)]
            block = []
    weights = TILES["TILE_N"] * TILES["TILE_K"] / GROUP
    return {unit: sum(part[unit] for part in parts) / weights for unit in UNITS}


def counts_of(compiler, texts, capability, kernel, kind):
    source, defines, _ = KERNELS[kernel]
    options = [f"-D{name}={value}" for name, value in sorted(defines.items())]
    ptx, complaint = compile_ptx(compiler, texts[source], options + [f"-DTYPE_{kind}=1"],
                                 capability)
    if complaint:
        raise ValueError(complaint.strip())
    instructions, loops = body(machine_code(ptx, capability), source)
    if source == "tiled":
        return tiled_counts(instructions, loops)
    return matvec_counts(instructions, loops, defines, kind != "f16")


def count_all(compiler):
    texts = {source: flat(source + ".cl") for source, _, _ in KERNELS.values()}
    wanted = [(c, kernel, kind) for c in CAPABILITIES for kernel in KERNELS for kind in TYPES]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda one: counts_of(compiler, texts, *one), wanted)
        return dict(zip(wanted, found))


def read_counts(path):
    counts = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            words = line.split("#")[0].split()
            if words:
                key = (words[0], f"{words[1]} {words[2]}", words[3])
                counts[key] = dict(zip(UNITS, map(float, words[4:])))
    return counts


def print_counts(counts, out):
    print("# Made by tools/judges/cuda_cost.py: instructions of a thread for a weight and so many\n"
          "# tokens, counted in machine code; nothing is measured. l1: words of 32 bits.\n"
          f"# capability kernel tokens type {' '.join(UNITS)}", file=out)
    for (capability, kernel, kind), units in counts.items():
        print(capability, kernel, kind, " ".join(f"{units[u]:.4g}" for u in UNITS), file=out)


def kernel_at(m):
    return next(kernel for most, kernel in ((1, "matvec 1"), (4, "matvec 4"), (16, "matvec 8"),
                                            (m, "tiled 64")) if m <= most)


def microseconds(gpu, counts, kind, m):
    """{unit or "memory": least time of a product {N, K} with m tokens}"""
    kernel = kernel_at(m)
    passes = -(-m // KERNELS[kernel][2])
    units = counts[gpu.capability, kernel, kind]
    times = {"memory": (N * K * BYTES[kind] + 4 * m * (N + K)) / gpu.gbps / 1e3}
    for unit, rate in zip(UNITS, RATES[gpu.capability]):
        times[unit] = passes * N * K * units[unit] / (rate * gpu.units * gpu.ghz * 1e3)
    return times


def print_tables(counts, out):
    print("| GPU | M | MB | memory | F32 | tensor cores, half | " + " | ".join(UNITS) +
          " | bound of our kernels |", file=out)
    print("|---|" + "---|" * (6 + len(UNITS)), file=out)
    for gpu in GPUS:
        for m in TOKENS:
            times = microseconds(gpu, counts, "q4_0", m)
            flops = 2 * m * N * K / 1e6
            tensor = f"{flops / gpu.tensor:.{2 if m < 8 else 1}f}" if gpu.tensor else "-"
            megabytes = (N * K * BYTES["q4_0"] + 4 * m * (N + K)) / 1e6
            print(f"| {gpu.name} | {m} | {megabytes:.1f} | {times['memory']:.1f} | "
                  f"{flops / gpu.f32:.1f} | {tensor} | " +
                  " | ".join(f"{times[u]:.1f}" for u in UNITS) +
                  f" | {max(times, key=times.get)} |", file=out)
    print("\n| GPU | type | " + " | ".join(f"M = {m}" for m in TOKENS) + " |", file=out)
    print("|---|---|" + "---|" * len(TOKENS), file=out)
    for gpu in GPUS:
        for kind in TYPES:
            cells = []
            for m in TOKENS:
                times = microseconds(gpu, counts, kind, m)
                bound = max(times, key=times.get)
                least = times["memory"]
                cells.append(f"{times[bound]:.1f} {bound}" +
                             (f" ({times[bound] / least:.1f})" if bound != "memory" else ""))
            print(f"| {gpu.name} | {kind.upper()} | " + " | ".join(cells) + " |", file=out)
    print("\n| kernel, tokens | type | " + " | ".join(f"sm_{c}" for c in CAPABILITIES) + " |",
          file=out)
    print("|---|---|" + "---|" * len(CAPABILITIES), file=out)
    for kernel in KERNELS:
        for kind in TYPES:
            print(f"| `{kernel.replace(' ', '`, ')} | {kind.upper()} | " + " | ".join(
                f"{counts[c, kernel, kind]['issue']:.1f}" for c in CAPABILITIES) + " |", file=out)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--counts", default=COUNTS)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--table")
    arguments = parser.parse_args()
    if arguments.no_compile:
        counts = read_counts(arguments.counts)
    else:
        compiler = open_compiler()
        if compiler is None or ptxas_path() is None or nvdisasm_path() is None:
            print("cuda: costs: skipped: no libnvrtc, ptxas or nvdisasm in the Python packages")
            return 0
        try:
            counts = count_all(compiler)
        except ValueError as error:
            print(f"cuda: costs: cannot count: {error}")
            return 1
    if arguments.write:
        with open(arguments.counts, "w", encoding="utf-8") as out:
            print_counts(counts, out)
    before = read_counts(arguments.counts) if os.path.exists(arguments.counts) else {}
    differ = [" ".join(key) for key, units in counts.items()
              if any(abs(before.get(key, {}).get(u, 0) - units[u]) > 0.005 * max(units[u], 1)
                     for u in UNITS)]
    print(f"{len(counts)} loops counted, {len(differ)} differ from {arguments.counts}"
          f"{': ' + ', '.join(differ) if differ else ''}")
    if arguments.table:
        with open(arguments.table, "w", encoding="utf-8") as out:
            print_tables(counts, out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
