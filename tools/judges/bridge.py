# SPDX-License-Identifier: MIT
# The bridge judged by a program that others made: xllamacpp (llama.cpp, ggml of API version 3)
# loads libggml-tandem.so as it is. Greedy tokens of random models of several types of weights, with
# and without it: equal, or different at first where the program's own best tokens nearly tie.
# Needs: xllamacpp, gguf, numpy.
#
# usage: bridge.py LIBGGML_TANDEM_SO TANDEM_LLAMA [--types q4_0,q8_0] [--tokens 24]
import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile

TYPES = "q4_0,q8_0,q4_k,q6_k,f16"
# Of log probabilities: what the two ways of rounding activations, to 8 or to 16 bits, may move.
TIE_QUANTISED = 0.15
TIE_F16 = 0.02
PROMPTS = ([1, 300, 301, 302], [1] + [300 + i * 7919 % 900 for i in range(99)])


def add_vocabulary(source, target):
    """Copies a model of `tandem-llama synth`, which has no tokens, with some for llama.cpp."""
    import gguf
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, "llama")
    for field in reader.fields.values():
        known = ("GGUF.", "tokenizer.", "general.architecture", "llama.vocab_size")
        if not field.name.startswith(known) and field.types[0] != gguf.GGUFValueType.ARRAY:
            writer.add_key_value(field.name, field.contents(), field.types[0])
    n = next(int(t.shape[1]) for t in reader.tensors if t.name == "token_embd.weight")
    tokens = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % i for i in range(256)]
    tokens += ["\u2581w%d" % i for i in range(n - len(tokens))]
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([-float(i) for i in range(n)])
    writer.add_token_types([2, 3, 3] + [6] * 256 + [1] * (n - 259))
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_vocab_size(n)
    for tensor in reader.tensors:
        is_plain = tensor.tensor_type in (gguf.GGMLQuantizationType.F32,
                                          gguf.GGMLQuantizationType.F16)
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type,
                          raw_shape=None if is_plain else tensor.data.shape)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def be_host(model, library, n_tokens):
    """A process of its own: prints a JSON list, for each prompt the list of tokens' best five."""
    import xllamacpp
    if library:
        ggml = ctypes.CDLL(xllamacpp.xllamacpp.__file__)
        ggml.ggml_backend_load.restype = ctypes.c_void_p
        ggml.ggml_backend_load.argtypes = [ctypes.c_char_p]
        if not ggml.ggml_backend_load(library.encode()):
            sys.exit("the program has not loaded " + library)
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.n_ctx = 512
    params.n_parallel = 1
    params.warmup = False
    params.fit_params = False
    params.verbosity = 4
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 2
    server = xllamacpp.Server(params)
    found = []
    for prompt in PROMPTS:
        answer = server.handle_completions({
            "prompt": prompt, "n_predict": n_tokens, "temperature": 0.0, "top_k": 1,
            "logprobs": 5, "ignore_eos": True, "cache_prompt": False})
        if isinstance(answer, str):
            answer = json.loads(answer)
        content = answer["choices"][0]["logprobs"]["content"]
        found.append([[(top["id"], top["logprob"]) for top in one["top_logprobs"]]
                      for one in content])
    print("FOUND " + json.dumps(found), flush=True)
    os._exit(0)


def ask(arguments, model, library):
    env = dict(os.environ, TANDEM_BRIDGE="always", OMP_NUM_THREADS="2")
    process = subprocess.run(
        [sys.executable, __file__, "--host", model, library, str(arguments.tokens)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=env,
        timeout=600)
    place = process.stdout.find("FOUND [")  # its log goes on beside it
    if place < 0:
        raise SystemExit("the program failed:\n" + process.stdout[-2000:])
    if library and "Tandem compute buffer" not in process.stdout:
        raise SystemExit("the program has not used the library")
    return json.JSONDecoder().raw_decode(process.stdout, place + 6)[0]


def compare(plain, ours):
    """(tokens compared, worst difference of their log probabilities, gap where they part)."""
    worst = 0.0
    for i, (a, b) in enumerate(zip(plain, ours)):
        best = dict(map(tuple, a))
        worst = max([worst] + [abs(best[token] - log) for token, log in b if token in best])
        if a[0][0] != b[0][0]:
            return i, worst, a[0][1] - best.get(b[0][0], -1e9)
    return len(plain), worst, 0.0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("tandem_llama")
    parser.add_argument("--types", default=TYPES)
    parser.add_argument("--tokens", type=int, default=24)
    arguments = parser.parse_args()
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.types.split(","):
            bare, model = (os.path.join(folder, part) for part in ("bare.gguf", "model.gguf"))
            subprocess.check_call([arguments.tandem_llama, "synth", "--shape", "quick", "--type",
                                   name, bare], stdout=subprocess.DEVNULL)
            add_vocabulary(bare, model)
            plain = ask(arguments, model, "")
            ours = ask(arguments, model, os.path.abspath(arguments.library))
            for prompt, a, b in zip(PROMPTS, plain, ours):
                n, worst, gap = compare(a, b)
                tie = TIE_F16 if name == "f16" else TIE_QUANTISED
                is_good = gap < tie and worst < tie
                bad += not is_good
                print("%-5s prompt of %3d: %s%d tokens equal, log probabilities within %.4f%s" % (
                    name, len(prompt), "" if is_good else "WRONG: ", n, worst,
                    ", then a tie within %.4f" % gap if n < len(a) else ""))
    print("bridge: %d of %d wrong" % (bad, len(arguments.types.split(",")) * len(PROMPTS)))
    return 1 if bad else 0


if __name__ == "__main__":
    if len(sys.argv) == 5 and sys.argv[1] == "--host":
        be_host(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    sys.exit(main())
