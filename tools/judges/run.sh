#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: run.sh [JOB...]      (make judges JOBS="models tokenizers"; `run.sh list` names the jobs)
# Independent judges: established libraries are fetched from the Python index into an environment of
# their own, build/judges/JOB, and compared with ours. Without a network a job says
# `skipped`. Not part of `make check`, whose suites keep a small part of each judge.
# BUILD: where libraries and tools are (build/release); ARGS: options of the judge.
set -u
cd "$(dirname "$0")/../.."
build=${BUILD:-build/release}

# What a job fetches (`also`: it can do without; `lean`: without what it
# depends on), and how it is called.
packages_models="transformers safetensors numpy filelock sympy networkx jinja2 fsspec typing_extensions setuptools"
lean_models="torch" # without the 3 GB of NVIDIA's libraries that it asks for
also_models="gguf xllamacpp>=2026.10" # of the next job
command_models() { "$python" tools/judges/models.py "$build" ${ARGS:-}; }
# Models that llama.cpp's converter writes, and those that ours writes, in llama.cpp and here.
home_converted=models # whose environment it shares
command_converted() {
    local folder=build/judges/models/llama.cpp
    if [ ! -d "$folder/conversion" ]; then # of 77 MB that hold its source, the converter
        "$python" -m pip download -q --no-deps --no-binary :all: -d build/judges/models \
            llama-cpp-python==0.3.36 >>build/judges/models.log 2>&1 && mkdir -p "$folder" &&
            tar xzf build/judges/models/llama_cpp_python-*.tar.gz -C "$folder" --strip-components=3 \
                --wildcards '*/vendor/llama.cpp/conversion' '*/vendor/llama.cpp/gguf-py' ||
            { echo "converted: skipped: no llama-cpp-python (build/judges/models.log)"; return 0; }
    fi
    "$python" tools/judges/converted.py "$build" "$folder" ${ARGS:-}
}
packages_tokenizers="tokenizers sentencepiece tiktoken gguf"
command_tokenizers() { "$python" tools/judges/tokenizers.py "$build/tandem-llama" ${ARGS:-}; }
packages_quants="numpy gguf"
command_quants() { "$python" tools/judges/quants.py "$build/libtandem.so" ${ARGS:-}; }
packages_trained="numpy jax gguf"
command_trained() {
    "$python" tools/judges/trained.py "$build/libtandem.so" build/judges/trained/model ${ARGS:-}
}
packages_types="xllamacpp>=2026.10 gguf numpy"
command_types() {
    TANDEM_INFER_LIBRARY=$PWD/$build TANDEM_THREADS=1 PYTHONPATH=$PWD/bindings/python \
        "$python" tools/judges/type_errors.py "$build/tandem-llama" ${ARGS:-}
}
packages_bridge="xllamacpp>=2026.10 gguf numpy"
also_bridge="llama-cpp-python==0.3.36" # compiles llama.cpp: 20 minutes on two cores
command_bridge() {
    "$python" tools/judges/bridge.py "$build/libggml-tandem.so" "$build/tandem-llama" ${ARGS:-}
}
# The wheel that users install, in an environment where nothing else of this tree can be imported.
packages_python="numpy pytest matplotlib mypy setuptools>=70.1"
also_python="xllamacpp>=2026.10 gguf onnxruntime" # a program with ggml, a judge of InferenceSession
command_python() {
    local wheels=build/judges/python/wheels
    rm -rf "$wheels"
    TANDEM_BUILD=$PWD/$build "$python" -m pip wheel -q --no-build-isolation --no-deps -w "$wheels" \
        bindings/python || return 1
    rm -rf bindings/python/build bindings/python/*.egg-info
    "$python" -m pip install -q --force-reinstall --no-deps "$wheels"/*.whl || return 1
    ls "$wheels"
    (cd / && env -i "$python" -I -c 'import tandem_infer; print(tandem_infer.__file__)') || return 1
    (cd bindings/python && ../../build/judges/python/bin/python -m mypy --cache-dir=/dev/null tandem_infer) &&
        "$python" -m pytest -q -p no:cacheprovider bindings/python/tests ${ARGS:-} || return 1
    # What a call of a tiny graph costs; the smoke test prints it.
    TANDEM_INFER_LIBRARY=$PWD/$build "$python" bindings/python/tests/smoke.py
}
# The test cases of the ONNX project, and networks with random weights against ONNX Runtime.
packages_onnx="onnx==1.23.2 onnxruntime numpy<2"
command_onnx() {
    "$python" tools/judges/mel.py "$build/tandem-graph" &&
        "$python" tools/judges/onnx_cases.py "$build/tandem-graph" &&
        "$python" tools/judges/networks.py "$build/tandem-graph" ${ARGS:-}
}
# Programs for ONNX Runtime with tandem_infer in its place.
packages_sessions="onnx onnxruntime numpy"
command_sessions() {
    TANDEM_INFER_LIBRARY=$PWD/$build "$python" tools/judges/sessions.py 2>build/judges/sessions.err
}
# Networks published in Python packages (400 MB of wheels), against ONNX Runtime.
packages_published="onnxruntime numpy"
command_published() {
    TANDEM_INFER_LIBRARY=$PWD/$build TANDEM_THREADS=1 PYTHONPATH=bindings/python \
        "$python" tools/judges/published.py build/judges/published/data ${ARGS:-}
}
# Our kernels in CUDA's dialect and those that are printed, through NVIDIA's compilers. No GPU is
# needed.
packages_cuda="onnx==1.18.0 onnxruntime numpy nvidia-cuda-nvrtc-cu12 nvidia-cuda-nvcc-cu12"
also_cuda="nvidia-cuda-nvdisasm" # counts instructions
command_cuda() {
    local pack=$build/tandem-cuda-kernels.pack
    [ "$build" != build/release ] || pack=build/tandem-cuda-kernels.pack
    "$python" tools/judges/cuda_pack.py "$pack" || return 1
    "$python" tools/judges/cuda_variants.py ${ARGS:-} && "$python" tools/judges/cuda_cost.py &&
        "$python" tools/judges/cuda_kernels.py "$build/tandem-graph"
}
packages_server="openai"
also_server="langchain-openai litellm"
command_server() {
    local data=${TANDEM_TEST_DATA:-../shared/data}
    [ -e "$data/llama/stories260K.bin" ] || { echo "server: skipped: no $data/llama"; return 0; }
    "$python" tools/judges/server.py "$build/tandem-server" "$data/llama/stories260K.bin" \
        "$data/llama/tok512.bin" ${ARGS:-}
}

jobs=$(compgen -A function | sed -n 's/^command_//p' | tr '\n' ' ')
[ "${1:-}" != list ] || { echo "$jobs"; exit 0; }

# Makes the environment of a job; false with a word why where that cannot be.
prepare() { # JOB
    local packages=packages_$1 folder=build/judges/$1
    python=$PWD/$folder/bin/python
    [ ! -e "$folder/ready" ] || return 0
    mkdir -p build/judges
    if ! python3 -m venv "$folder" >"build/judges/$1.log" 2>&1; then
        echo "$1: skipped: no python3 with venv"
        return 1
    fi
    if ! "$python" -m pip install -q ${!packages} >>"build/judges/$1.log" 2>&1; then
        echo "$1: skipped: no network, or no packages for this machine (build/judges/$1.log)"
        return 1
    fi
    local lean=lean_$1
    if [ -n "${!lean:-}" ] && ! { "$python" -m pip install -q --no-deps ${!lean} &&
        "$python" tools/judges/torch_alone.py; } >>"build/judges/$1.log" 2>&1; then
        echo "$1: skipped: no ${!lean} for this machine (build/judges/$1.log)"
        return 1
    fi
    local also=also_$1
    if [ -n "${!also:-}" ] && ! "$python" -m pip install -q ${!also} >>"build/judges/$1.log" 2>&1; then
        echo "$1: without ${!also} (build/judges/$1.log)"
    fi
    touch "$folder/ready"
}

failed=0
for job in ${*:-$jobs}; do
    if ! declare -F "command_$job" >/dev/null; then
        echo "no judge is called $job; there are: $jobs"
        exit 2
    fi
    home=home_$job
    prepare "${!home:-$job}" || continue
    echo "== $job"
    "command_$job" || failed=1
done
exit "$failed"
