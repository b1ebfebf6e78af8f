# SPDX-License-Identifier: MIT
# Judges the bridge with published programs, which load libggml-tandem.so unchanged: xllamacpp
# (llama.cpp, ggml of API version 3) and llama-cpp-python (2). Greedy tokens of random models of
# several types of weights, with and without it: equal, or different at first where the program's
# own best tokens nearly tie. Needs: xllamacpp or llama-cpp-python, gguf, numpy.
#
# usage: bridge.py LIBGGML_TANDEM_SO TANDEM_LLAMA [--types q4_0,q8_0] [--tokens 24]
#        [--hosts xllamacpp,llama_cpp] [--speed ROUNDS [--shapes quick,1.1b] [--threads 1,2]]
import argparse
import ctypes
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

TYPES = "q4_0,q8_0,q4_k,q6_k,f16,f16-experts"
EXPERTS_SHAPE = "512,1024,4,8,4,2048,8,2"
LIBRARY = "libggml-blas-tandem.so"  # the name that programs look for in a folder of backends
# Of log probabilities: allowed difference between activations rounded to 8 and to 16 bits.
TIE_QUANTISED = 0.15
TIE_F16 = 0.02  # with rounding to 8 bits, a token may go to another expert: no bound would hold
LENGTHS = (2, 32, 128, 512)  # of prompts that are timed
PROMPTS = ([1, 300, 301, 302], [1] + [300 + i * 7919 % 900 for i in range(99)])


def add_vocabulary(source, target, n_bytes=256):
    """Copies a model of `tandem-llama synth`, which has no tokens, with some for llama.cpp, among
    them bytes (with those above 127 texts can end within a character)."""
    import gguf
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, "llama")
    for field in reader.fields.values():
        known = ("GGUF.", "tokenizer.", "general.architecture", "llama.vocab_size")
        if not field.name.startswith(known) and field.types[0] != gguf.GGUFValueType.ARRAY:
            writer.add_key_value(field.name, field.contents(), field.types[0])
    n = next(int(t.shape[1]) for t in reader.tensors if t.name == "token_embd.weight")
    tokens = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % i for i in range(n_bytes)]
    tokens += ["\u2581w%d" % i for i in range(n - len(tokens))]
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([-float(i) for i in range(n)])
    writer.add_token_types([2, 3, 3] + [6] * n_bytes + [1] * (n - 3 - n_bytes))
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


def open_xllamacpp(model, library, n_threads):
    """ggml of API version 3, linked into one library; the backend is loaded by its name."""
    import xllamacpp
    if library:
        ggml = ctypes.CDLL(xllamacpp.xllamacpp.__file__)
        ggml.ggml_backend_load.restype = ctypes.c_void_p
        ggml.ggml_backend_load.argtypes = [ctypes.c_char_p]
        if not ggml.ggml_backend_load(library.encode()):
            sys.exit("the program has not loaded " + library)
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.n_ctx = 1024
    params.n_parallel = 1
    params.warmup = False
    params.fit_params = False
    params.verbosity = 4
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = n_threads
    server = xllamacpp.Server(params)

    def complete(prompt, n_tokens, **more):
        answer = server.handle_completions(dict(more, **{
            "prompt": prompt, "n_predict": n_tokens, "temperature": 0.0, "top_k": 1,
            "ignore_eos": True, "cache_prompt": False}))
        return json.loads(answer) if isinstance(answer, str) else answer
    return complete


def be_xllamacpp(model, library, n_tokens):
    complete = open_xllamacpp(model, library, 2)
    found = []
    for prompt in PROMPTS:
        answer = complete(prompt, n_tokens, logprobs=5)
        content = answer["choices"][0]["logprobs"]["content"]
        found.append([[(top["id"], top["logprob"]) for top in one["top_logprobs"]]
                      for one in content])
    return found


def be_llama_cpp(model, library, n_tokens):
    """ggml of API version 2, a library for each part. It finds the backend by itself: by
    GGML_BACKEND_PATH (models of experts), or in the folder of backends."""
    import llama_cpp
    import numpy
    folder = os.path.join(os.path.dirname(llama_cpp.__file__), "lib")
    ggml = ctypes.CDLL(os.path.join(folder, "libggml.so.0"))
    if library and "GGML_BACKEND_PATH" in os.environ:
        ggml.ggml_backend_load_all()
    elif library:
        ggml.ggml_backend_load_all_from_path.argtypes = [ctypes.c_char_p]
        ggml.ggml_backend_load_all_from_path(os.path.dirname(library).encode())
    llama = llama_cpp.Llama(model, n_ctx=512, n_threads=2, n_threads_batch=2, logits_all=True)
    found = []
    for prompt in PROMPTS:
        llama.reset()
        llama.eval(prompt)
        steps = []
        for _ in range(n_tokens):
            logits = numpy.array(llama.scores[llama.n_tokens - 1], dtype=numpy.float64)
            logits -= logits.max() + numpy.log(numpy.exp(logits - logits.max()).sum())
            best = numpy.argsort(-logits, kind="stable")[:5]
            steps.append([(int(token), float(logits[token])) for token in best])
            llama.eval([int(best[0])])
        found.append(steps)
    return found


HOSTS = {"xllamacpp": be_xllamacpp, "llama_cpp": be_llama_cpp}


def be_host(name, model, library, n_tokens):
    """A process of its own: prints a JSON list, for each prompt the list of tokens' best five."""
    found = HOSTS[name](model, library, n_tokens)
    print("FOUND " + json.dumps(found), flush=True)
    os._exit(0)


def ask(arguments, host, model, library, by_path=False):
    env = dict(os.environ, TANDEM_BRIDGE="always", OMP_NUM_THREADS="2")
    if by_path:
        env["GGML_BACKEND_PATH"] = library
    process = subprocess.run(
        [sys.executable, __file__, "--host", host, model, library, str(arguments.tokens)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=env,
        timeout=600)
    place = process.stdout.find("FOUND [")  # its log goes on beside it
    if place < 0:
        raise SystemExit("the program failed:\n" + process.stdout[-2000:])
    splits = re.findall(r"splits = (\d+)", process.stdout)
    if library and max(map(int, splits), default=0) < 2:
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


def be_timed(model, library, n_threads):
    """A process of its own: tokens a second of prompts and of generation, the middle of three
    (long prompts: the better of two)."""
    complete = open_xllamacpp(model, library, n_threads)
    found = {}
    complete(PROMPTS[1], 2)  # packs
    for n in LENGTHS:
        prompt = [1] + [300 + i * 7919 % 900 for i in range(n - 1)]
        times = [complete(prompt, 1)["timings"]["prompt_per_second"]
                 for _ in range(3 if n < 128 else 2)]
        found["prompt %d" % n] = sorted(times)[1]
    times = [complete(PROMPTS[0], 48)["timings"]["predicted_per_second"] for _ in range(3)]
    found["generation"] = sorted(times)[1]
    with open("/proc/self/status") as status:
        found["MiB"] = max(int(line.split()[1]) for line in status if "VmRSS" in line) / 1024
    print("FOUND " + json.dumps(found), flush=True)
    os._exit(0)


def middle(values):
    values = sorted(values)
    return values[len(values) // 2]


def time_model(arguments, shape, folder):
    """With and without in turns; a line for each length: the middle of all, and their range."""
    bare, model = (os.path.join(folder, part) for part in ("bare.gguf", "model.gguf"))
    subprocess.check_call([arguments.tandem_llama, "synth", "--shape", shape, "--type", "q4_0",
                           bare], stdout=subprocess.DEVNULL)
    add_vocabulary(bare, model)
    for n_threads in map(int, arguments.threads.split(",")):
        found = {"": [], arguments.library: []}
        for _ in range(arguments.speed):
            for library in found:
                said = subprocess.run(
                    [sys.executable, __file__, "--timed", model, library, str(n_threads)],
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600,
                    errors="replace").stdout
                place = said.find("FOUND {")
                if place < 0:
                    raise SystemExit("the program failed:\n" + said[-2000:])
                found[library].append(json.JSONDecoder().raw_decode(said, place + 6)[0])
        for what in found[""][0]:
            plain, ours = ([one[what] for one in runs] for runs in found.values())
            print("| %s | %d | %s | %.0f (%.0f - %.0f) | %.0f (%.0f - %.0f) | %.2f |" % (
                shape, n_threads, what, middle(plain), min(plain), max(plain), middle(ours),
                min(ours), max(ours), middle(ours) / middle(plain)), flush=True)


def judge(arguments, host, name, folder):
    """Number of prompts that went wrong. A name is a type, or a type and "experts"."""
    bare, model = (os.path.join(folder, part) for part in ("bare.gguf", "model.gguf"))
    kind, _, experts = name.partition("-")
    shape = EXPERTS_SHAPE if experts else "quick"
    subprocess.check_call([arguments.tandem_llama, "synth", "--shape", shape, "--type", kind,
                           bare], stdout=subprocess.DEVNULL)
    add_vocabulary(bare, model)
    plain = ask(arguments, host, model, "")
    ours = ask(arguments, host, model, os.path.join(folder, LIBRARY), bool(experts))
    bad = 0
    for prompt, a, b in zip(PROMPTS, plain, ours):
        n, worst, gap = compare(a, b)
        tie = TIE_F16 if kind == "f16" else TIE_QUANTISED
        is_good = gap < tie and worst < tie
        bad += not is_good
        print("%-9s %-12s prompt of %3d: %s%d tokens equal, log probabilities within %.4f%s" % (
            host, name, len(prompt), "" if is_good else "WRONG: ", n, worst,
            ", then a tie within %.4f" % gap if n < len(a) else ""), flush=True)
    return bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("tandem_llama")
    parser.add_argument("--types", default=TYPES)
    parser.add_argument("--hosts", default=",".join(HOSTS))
    parser.add_argument("--tokens", type=int, default=24)
    parser.add_argument("--speed", type=int, help="rounds of timing instead of comparing")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--shapes", default="quick,1.1b", help="of models that are timed")
    arguments = parser.parse_args()
    arguments.library = os.path.abspath(arguments.library)
    bad = 0
    for shape in arguments.shapes.split(",") if arguments.speed else []:
        with tempfile.TemporaryDirectory() as folder:
            time_model(arguments, shape, folder)
    if arguments.speed:
        return 0
    judged = 0
    for host in arguments.hosts.split(","):
        if importlib.util.find_spec(host) is None:
            print("%s: skipped: it could not be installed" % host)
            continue
        for name in arguments.types.split(","):
            with tempfile.TemporaryDirectory() as folder:
                shutil.copy(arguments.library, os.path.join(folder, LIBRARY))
                bad += judge(arguments, host, name, folder)
                judged += len(PROMPTS)
    print("bridge: %d of %d wrong" % (bad, judged))
    return 1 if bad else 0


if __name__ == "__main__":
    if len(sys.argv) == 6 and sys.argv[1] == "--host":
        be_host(sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]))
    if len(sys.argv) == 5 and sys.argv[1] == "--timed":
        be_timed(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    sys.exit(main())
