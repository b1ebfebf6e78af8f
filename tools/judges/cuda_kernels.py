# SPDX-License-Identifier: MIT
# Kernels that are printed as CUDA C: NVIDIA's compiler for run time (NVRTC, from its Python package;
# no GPU is needed) takes the text of every generated kernel of the networks of networks.py.
# Needs: onnx, onnxruntime, numpy, nvidia-cuda-nvrtc-cu12.
#
# usage: cuda_kernels.py TANDEM_GRAPH [--networks mlp,resnet18] [--small]
import argparse
import ctypes
import glob
import os
import re
import subprocess
import sys
import tempfile

import onnx

from networks import NETWORKS


def open_compiler():
    for folder in sys.path:
        found = glob.glob(os.path.join(folder, "nvidia/cuda_nvrtc/lib/libnvrtc.so*"))
        if found:
            return ctypes.CDLL(found[0])
    return None


def complaint(compiler, text):
    """What the compiler has against a text; None: nothing."""
    program = ctypes.c_void_p()
    options = (ctypes.c_char_p * 1)(b"--gpu-architecture=compute_80")
    if compiler.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None,
                                   None) != 0:
        return "nvrtcCreateProgram failed"
    failed = compiler.nvrtcCompileProgram(program, 1, options) != 0
    n = ctypes.c_size_t()
    compiler.nvrtcGetProgramLogSize(program, ctypes.byref(n))
    log = ctypes.create_string_buffer(n.value + 1)
    compiler.nvrtcGetProgramLog(program, log)
    compiler.nvrtcDestroyProgram(ctypes.byref(program))
    return log.value.decode(errors="replace") if failed else None


def kernels_of(program, path):
    done = subprocess.run([program, "optimize", path, "--kernels", "cuda"], capture_output=True,
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
            texts = kernels_of(arguments.program, path)
            different = sorted(set(texts))
            wrong = [found for found in (complaint(compiler, text) for text in different) if found]
            n_failed += len(wrong) + (len(texts) == 0)
            print(f"{name}: {len(texts)} kernels, {len(different)} different ones, "
                  f"{len(different) - len(wrong)} compile", flush=True)
            for found in wrong[:3]:
                print(found)
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
