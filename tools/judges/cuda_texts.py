# SPDX-License-Identifier: MIT
# Compiles our sources in the CUDA dialect with NVIDIA's run-time compiler (NVRTC) and its PTX compiler
# (ptxas): shared by the judges cuda_*.py. Needs no GPU.
# Needs: nvidia-cuda-nvrtc-cu12, nvidia-cuda-nvcc-cu12, nvidia-cuda-nvdisasm for machine code.
import ctypes
import glob
import os
import re
import subprocess
import sys
import tempfile

KERNELS = "backends/opencl/kernels"


def in_packages(pattern):
    for folder in sys.path:
        found = sorted(glob.glob(os.path.join(folder, "nvidia", pattern)))
        if found:
            return found[0]
    return None


def open_compiler():
    path = in_packages("*/lib/libnvrtc.so*")
    return ctypes.CDLL(path) if path else None


def ptxas_path():
    return in_packages("*/bin/ptxas")


def nvdisasm_path():
    return in_packages("*/bin/nvdisasm")


def flat(name, included=None):
    """A text with its includes put in, each once, as tools/kernel-pack does it."""
    included = included if included is not None else set()
    lines = [f'#line 1 "{name}"']
    with open(os.path.join(KERNELS, name), encoding="utf-8") as file:
        for number, line in enumerate(file, 2):
            found = re.match(r'\s*#\s*include\s+"(.*)"', line)
            if found is None:
                lines.append(line.rstrip("\n"))
                continue
            if found[1] not in included:
                included.add(found[1])
                lines.append(flat(found[1], included))
            lines.append(f'#line {number} "{name}"')
    return "\n".join(lines)


MAIN = b'#include "dialect"\nextern "C" {\n#include "kernels"\n}\n'


def compile_ptx(compiler, text, defines, capability, has_dialect=True):
    """(PTX, None) or (None, what the compiler has against the text)."""
    program = ctypes.c_void_p()
    headers = (ctypes.c_char_p * 2)(flat("dialect_cuda.cl").encode(), text.encode())
    names = (ctypes.c_char_p * 2)(b"dialect", b"kernels")
    options = [f"--gpu-architecture=compute_{capability}", "--std=c++17", "-w"] + defines
    options += ["--device-as-default-execution-space"] if has_dialect else []
    given = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
    main = MAIN if has_dialect else text.encode()
    if compiler.nvrtcCreateProgram(ctypes.byref(program), main, b"main.cu", 2, headers, names) != 0:
        return None, "nvrtcCreateProgram failed"
    failed = compiler.nvrtcCompileProgram(program, len(options), given) != 0
    size = ctypes.c_size_t()
    what = "ProgramLog" if failed else "PTX"
    getattr(compiler, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    said = ctypes.create_string_buffer(size.value + 1)
    getattr(compiler, f"nvrtcGet{what}")(program, said)
    compiler.nvrtcDestroyProgram(ctypes.byref(program))
    told = said.value.decode(errors="replace")
    return (None, told) if failed else (told, None)


def resources(ptx, capability):
    """{kernel: (registers, bytes of spills, bytes of stack, bytes of shared memory)}"""
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(ptx)
        file.flush()
        done = subprocess.run([ptxas_path(), "-v", f"-arch=sm_{capability}", "-o", "/dev/null",
                               file.name], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    found = {}
    name, spills, stack = None, 0, 0
    for line in done.stderr.splitlines():
        entry = re.search(r"Compiling entry function '(\w+)'", line)
        frame = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill",
                          line)
        used = re.search(r"Used (\d+) registers", line)
        if entry:
            name = entry[1]
        elif frame:
            stack, spills = int(frame[1]), int(frame[2]) + int(frame[3])
        elif used and name is not None:
            shared = re.search(r"(\d+) bytes smem", line)
            found[name] = (int(used[1]), spills, stack, int(shared[1]) if shared else 0)
            name = None
    return found


def machine_code(ptx, capability):
    """What nvdisasm prints of the machine code that ptxas makes."""
    with tempfile.TemporaryDirectory() as folder:
        text, cubin = os.path.join(folder, "text.ptx"), os.path.join(folder, "text.cubin")
        with open(text, "w", encoding="utf-8") as file:
            file.write(ptx)
        subprocess.run([ptxas_path(), f"-arch=sm_{capability}", "-o", cubin, text], check=True)
        return subprocess.run([nvdisasm_path(), "-c", cubin], capture_output=True, text=True,
                              check=True).stdout
