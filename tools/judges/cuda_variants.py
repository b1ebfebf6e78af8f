# SPDX-License-Identifier: MIT
# The kernels of backends/opencl/kernels as CUDA: NVRTC compiles every variant for every compute
# capability, and ptxas reports registers, spills, stack and shared memory. A product kernel that
# spills is a failure. Needs: nvidia-cuda-nvrtc-cu12, nvidia-cuda-nvcc-cu12.
#
# usage: cuda_variants.py [--capabilities 60,75,...] [--sources matvec,...] [--words WORDS]
#                         [--table FILE]
#        WORDS: only variants whose words have these, as "tensor"; FILE gets the table of
#        docs/cuda.md: products, attention, sampling
import argparse
import concurrent.futures
import os
import sys

from cuda_texts import compile_ptx, flat, open_compiler, ptxas_path, resources

CAPABILITIES = "60,75,80,86,89,90,100,120"
TYPES = "f32 f16 bf16 q4_0 q4_1 q5_0 q5_1 q8_0 q2_k q3_k q4_k q5_k q6_k bcml1".split()
PRODUCTS = {"matvec", "tiled", "experts_matvec", "experts_tiled", "bcml1_matvec", "attention",
            "mul_mat_views"}

WARPS = {"LANES": 64, "ROWS": 2, "USE_SUBGROUPS": 1, "HAVE_SUBGROUPS": 1}
ALIGNED = {"ALIGNED": 1}
TILES = {"TILE_M": 64, "TILE_N": 64, "TILE_K": 32, "ITEM_M": 4, "ITEM_N": 4}
FP64 = {"HAVE_FP64": 1}
MATVECS = {"1 token": WARPS | ALIGNED | {"COLUMNS": 1}, "8 tokens": WARPS | ALIGNED | {"COLUMNS": 8},
           "1 token, no warps": {"LANES": 64, "ROWS": 2, "COLUMNS": 1},
           "8 tokens, unaligned": WARPS | {"COLUMNS": 8}}
# as backends/gpu/gpu_tune.c; f32 and panels have no variant for tensor cores
def mma(m, n, k, item_m, item_n):
    return {"TILE_M": m, "TILE_N": n, "TILE_K": k, "ITEM_M": item_m, "ITEM_N": item_n, "USE_MMA": 1}


MMA_CAPABILITY = 80
MMAS = {"tensor cores, 64 an item": mma(64, 128, 32, 8, 8) | ALIGNED,
        "tensor cores, 32 an item": mma(64, 128, 32, 4, 8) | ALIGNED,
        "tensor cores, 16 an item": mma(64, 64, 32, 4, 4) | ALIGNED,
        "tensor cores, unaligned": mma(64, 128, 32, 8, 8)}
TILED = {"aligned": TILES | ALIGNED, "unaligned": TILES}
# by source: variants with a type, and those without
TYPED = {"matvec": MATVECS, "experts_matvec": MATVECS | {"1 token of its own": MATVECS["1 token"] |
                                                         {"FLAGS": 2}},
         "tiled": TILED | MMAS, "experts_tiled": TILED | MMAS,
         "dequantize": {"float": ALIGNED, "half": ALIGNED | {"TO_HALF": 1}, "unaligned": {}},
         "ops_get_rows": {"": {}},
         "ops_tiles": {"4 rows": {}, "8 rows": {"ROWS": 8}, "16 rows": {"ROWS": 16}}}
PLAIN = {"smoke": {"": {}}, "ops_copy": {"": FP64}, "ops_elementwise": {"": FP64},
         "ops_router": {"": {}}, "ops_rows": {"": FP64}, "experts_group": {"": {}},
         "ops_sample": {"": {}, "small groups": {"GROUP": 64}}}
PANELS = {"TYPE_bcml1": 1, "FLAGS": 1}


def variants():
    """(source, type, words, defines) of all of them"""
    for source, all_words in TYPED.items():
        for kind in TYPES:
            for words, defines in all_words.items():
                if kind != "f32" or "USE_MMA" not in defines:
                    yield source, kind, words, defines | {f"TYPE_{kind}": 1}
    for source, all_words in PLAIN.items():
        for words, defines in all_words.items():
            yield source, "", words, defines
    yield "ops_get_rows", "i32", "", {"TYPE_i32": 1}
    yield "tiled", "bcml1 panels", "aligned", PANELS | TILES | ALIGNED
    yield "bcml1", "bcml1 panels", "", PANELS
    for columns in (1, 2, 4, 8, 16):
        yield "bcml1", "bcml1 panels", f"{columns} tokens", PANELS | {"GROUP": 256,
                                                                      "COLUMNS": columns}


def try_one(compiler, texts, variant, capability):
    source, kind, words, defines = variant
    options = [f"-D{name}={value}" for name, value in sorted(defines.items())]
    ptx, complaint = compile_ptx(compiler, texts[source], options, capability)
    if complaint:
        return f"{source} {kind} {words} sm_{capability}: {complaint.strip()}", {}
    return None, resources(ptx, capability)


def spread(values):
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low} to {high}"


def print_table(rows, capabilities, out):
    """rows: {(kernel, words): {capability: [resources of the types]}}"""
    heads = " | ".join(f"sm_{capability}" for capability in capabilities)
    print(f"| kernel | variant | {heads} | shared memory | stack | spills |", file=out)
    print("|---|---|" + "---|" * (len(capabilities) + 3), file=out)
    for (kernel, words), found in sorted(rows.items()):
        if kernel not in PRODUCTS and not kernel.startswith("sample_"):
            continue
        registers = " | ".join(spread([r[0] for r in found[c]]) if c in found else "-"
                               for c in capabilities)
        every = [r for by_type in found.values() for r in by_type]
        print(f"| `{kernel}` | {words} | {registers} | {spread([r[3] for r in every])} | "
              f"{spread([r[2] for r in every])} | {spread([r[1] for r in every])} |", file=out)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--capabilities", default=CAPABILITIES)
    parser.add_argument("--sources", default="")
    parser.add_argument("--words", default="")
    parser.add_argument("--table")
    arguments = parser.parse_args()
    compiler = open_compiler()
    if compiler is None or ptxas_path() is None:
        print("cuda: skipped: no libnvrtc or no ptxas in the Python packages")
        return 0
    capabilities = arguments.capabilities.split(",")
    wanted = set(filter(None, arguments.sources.split(",")))
    chosen = [v for v in variants() if (not wanted or v[0] in wanted) and arguments.words in v[2]]
    texts = {source: flat(source + ".cl") for source in {v[0] for v in chosen}}
    rows, complaints, spilling = {}, [], []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for capability in capabilities:
            offered = [v for v in chosen
                       if "USE_MMA" not in v[3] or int(capability) >= MMA_CAPABILITY]
            tried = pool.map(lambda v, c=capability: try_one(compiler, texts, v, c), offered)
            n_kernels = 0
            for variant, (complaint, found) in zip(offered, tried):
                complaints += [complaint] if complaint else []
                n_kernels += len(found)
                for kernel, used in found.items():
                    words = variant[2]
                    rows.setdefault((kernel, words), {}).setdefault(capability, []).append(used)
                    if kernel in PRODUCTS and used[1] > 0:
                        spilling.append(f"{kernel} {variant[1]} {words} sm_{capability}: "
                                        f"{used[1]} bytes of spills")
            print(f"sm_{capability}: {len(offered)} variants, {n_kernels} kernels", flush=True)
    for line in complaints[:10] + spilling:
        print(line)
    print(f"{len(complaints)} do not compile, {len(spilling)} kernels of products spill")
    if arguments.table:
        with open(arguments.table, "w", encoding="utf-8") as out:
            print_table(rows, capabilities, out)
    return 1 if complaints or spilling else 0


if __name__ == "__main__":
    sys.exit(main())
