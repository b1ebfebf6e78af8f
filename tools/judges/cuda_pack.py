# SPDX-License-Identifier: MIT
# Checks the pack of prebuilt kernels (make ptx): ptxas, which drivers contain, compiles the PTX of
# every program for every compute capability. A product kernel that spills is a failure, and so is a
# missing program. Needs: nvidia-cuda-nvcc-cu12.
#
# usage: cuda_pack.py PACK [--capabilities 60,75,...]
import argparse
import concurrent.futures
import os
import struct
import sys
import zlib

from cuda_texts import ptxas_path, resources
from cuda_variants import PRODUCTS

CAPABILITIES = "60,75,80,86,89,90,120"


def texts(path):
    """What each program was made from, and its PTX."""
    with open(path, "rb") as file:
        pack = file.read()
    if pack[:8] != b"TNDPTX1\n":
        raise ValueError(f"{path}: no pack of version 1")
    for i in range(struct.unpack_from("<I", pack, 32)[0]):
        _, at, n, n_text = struct.unpack_from("<QQQQ", pack, 40 + 32 * i)
        text = pack[at:at + n] if n == n_text else zlib.decompress(pack[at:at + n])
        head, _, ptx = text.decode().partition("\n")
        yield head.removeprefix("//tandem "), ptx


def try_one(program, capability):
    try:
        return None, resources(program[1], capability)
    except RuntimeError as error:
        return f"{program[0]} sm_{capability}: {error}", {}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("pack")
    parser.add_argument("--capabilities", default=CAPABILITIES)
    arguments = parser.parse_args()
    if not os.path.exists(arguments.pack) or ptxas_path() is None:
        print("prebuilt kernels: skipped: no pack (make ptx), or no ptxas in the Python packages")
        return 0
    programs = list(texts(arguments.pack))
    bad = [] if programs else ["the pack is empty"]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for capability in arguments.capabilities.split(","):
            tried = pool.map(lambda p, c=capability: try_one(p, c), programs)
            registers = []
            for program, (complaint, found) in zip(programs, tried):
                bad += [complaint] if complaint else []
                registers += [used[0] for used in found.values()]
                bad += [f"{kernel} of {program[0]} sm_{capability}: {used[1]} bytes of spills"
                        for kernel, used in found.items() if kernel in PRODUCTS and used[1] > 0]
            print(f"prebuilt for sm_{capability}: {len(programs)} programs, {len(registers)} kernels, "
                  f"at most {max(registers, default=0)} registers", flush=True)
    for line in bad[:20]:
        print(line)
    print(f"{len(bad)} complaints")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
