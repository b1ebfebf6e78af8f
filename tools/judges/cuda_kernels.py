# SPDX-License-Identifier: MIT
# Kernels that are printed for networks: NVIDIA's compiler for run time (NVRTC, from its Python
# package; no GPU is needed) takes the text of every kernel of the networks of networks.py, as it is
# printed for CUDA, and as it is printed for OpenCL behind our dialect of CUDA.
# Needs: onnx, onnxruntime, numpy, nvidia-cuda-nvrtc-cu12.
#
# usage: cuda_kernels.py TANDEM_GRAPH [--networks mlp,resnet18] [--small]
import argparse
import os
import re
import subprocess
import sys
import tempfile

import onnx

from cuda_texts import compile_ptx, open_compiler
from networks import NETWORKS


def kernels_of(program, path, dialect):
    done = subprocess.run([program, "optimize", path, "--kernels", dialect], capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return [text for text in re.split(r"^// ---- kernel.*\n", done.stdout, flags=re.M)[1:]]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--networks", default=",".join(NETWORKS))
    parser.add_argument("--small", action="store_true")
    arguments = parser.parse_args()
    compiler = open_compiler()
    if compiler is None:
        print("cuda: skipped: no libnvrtc in the Python package")
        return 0
    n_failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.networks.split(","):
            path = os.path.join(folder, f"{name}.onnx")
            onnx.save(NETWORKS[name](arguments.small).model(), path)
            for dialect in ("cuda", "cl"):
                texts = kernels_of(arguments.program, path, dialect)
                different = sorted(set(texts))
                has_dialect = dialect == "cl"
                found = [compile_ptx(compiler, text, [], 80, has_dialect)[1] for text in different]
                wrong = [complaint for complaint in found if complaint]
                n_failed += len(wrong) + (len(texts) == 0)
                print(f"{name}, printed for {dialect}: {len(texts)} kernels, {len(different)} "
                      f"different ones, {len(different) - len(wrong)} compile", flush=True)
                for complaint in wrong[:3]:
                    print(complaint)
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
