# SPDX-License-Identifier: MIT
"""The backend for programs with ggml, in a real one: xllamacpp from the Python index."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import layout
import tandem_infer as ti

JUDGES = layout.INCLUDE.parent / "tools" / "judges"
SYNTH = Path(os.environ.get("TANDEM_LLAMA", JUDGES.parents[1] / "build" / "tandem-llama"))

# What a user writes, and a completion. argv: the model, 1 when Tandem is to be used.
HOST = """
import json
import sys
import xllamacpp
if sys.argv[2] == "1":
    import tandem_infer
    tandem_infer.load_into_ggml()
params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.n_ctx, params.n_parallel, params.warmup, params.fit_params = 256, 1, False, False
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 2
answer = xllamacpp.Server(params).handle_completions({
    "prompt": [1] + list(range(300, 340)), "n_predict": 8, "temperature": 0.0, "top_k": 1,
    "ignore_eos": True, "cache_prompt": False, "logprobs": 1})
answer = json.loads(answer) if isinstance(answer, str) else answer
content = answer["choices"][0]["logprobs"]["content"]
mapped = "libggml-tandem.so" in open("/proc/self/maps").read()
print("FOUND " + json.dumps([[one["id"] for one in content], mapped]))
"""


def test_the_backends_path_is_of_a_file():
    assert os.path.basename(ti.ggml_backend_path()) == "libggml-tandem.so"
    assert os.path.exists(ti.ggml_backend_path())


def test_without_ggml_the_backend_is_not_loaded():
    code = "import tandem_infer as ti\ntry: ti.load_into_ggml()\nexcept ti.TandemError as e: print(e)"
    assert "import it first" in subprocess.check_output([sys.executable, "-c", code], text=True)


def test_a_real_program_computes_the_same_tokens_by_the_backend(tmp_path):
    pytest.importorskip("xllamacpp")
    pytest.importorskip("gguf")
    if not SYNTH.exists():
        pytest.skip("no tandem-llama to make a model with")
    sys.path.insert(0, str(JUDGES))
    import bridge
    bare, model = str(tmp_path / "bare.gguf"), str(tmp_path / "model.gguf")
    subprocess.check_call([str(SYNTH), "synth", "--shape", "quick", "--type", "q8_0", bare],
                          stdout=subprocess.DEVNULL)
    bridge.add_vocabulary(bare, model)
    found = []
    for with_tandem in "01":
        out = subprocess.run([sys.executable, "-c", HOST, model, with_tandem], text=True,
                             env=dict(os.environ, TANDEM_BRIDGE="always"), capture_output=True)
        assert out.returncode == 0, out.stderr[-2000:]
        line = [line for line in out.stdout.splitlines() if line.startswith("FOUND ")][-1]
        found.append(json.loads(line[6:]))
    assert found[0][0] == found[1][0] and [found[0][1], found[1][1]] == [False, True]
