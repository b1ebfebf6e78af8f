# SPDX-License-Identifier: MIT
"""Stand-ins for vocabularies: usage: vocabularies.py FOLDER  (needs tokenizers, sentencepiece, gguf).

Trained on texts of our own by the libraries that others use; these give the ids that tests expect.
Writes FOLDER/gguf-vocab and FOLDER/tokenizer, and prints the hashes for tests/suite_formats_vocab.c.
The tables of normal forms are those of Python's unicodedata; make-stand-ins adds Hangul."""
import io
import json
import os
import random
import sys
import tempfile
import unicodedata

import gguf
import sentencepiece
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers,
                        pre_tokenizers, trainers)

from stories import story

TEXTS = [
    "half past 4, or 4 \u00bd hours", "F\u00fchrung", "", " ", "  ", "   ", "\t", "\n", "\n\n", "\n\n\n",
    "\t\n", "Good day", " Good day", "Good Day", " Good Day", " Good Day!", "Good, day!",
    " this is \U0001f422.c", "w017 9xyzab qrstuv", "\u043d\u0435\u0449\u043e \u043d\u0430 \u0438\u043c\u0435",
    "\u179f\u17bd\u179f\u17d2\u178f\u17b8",
    "\U0001f680 (one) \U0001f636\u200d\U0001f32b\ufe0f (joined) \u2705 (known to nobody)",
    "    four blanks\n    twice", " (", "\n =", "' end", "!!!!!!", "7", "77", "777", "7777", "77777",
    "777777", "7777777", "77777777", "777777777", "Vi\u1ec7t Nam", " cards",
    "y'all're well, aren't you? I'VE 'told you, 'RE we sure? it'S \u60f3\u5728\u8349\u539f12345\u5929\uff5e",
    "3.5 3..5 3...5 ------====== ''''``````\"\"\"\"....!!!!????", "a_b=c+d; x^=~y | z < 3 > 2 $5",
    "\r\n crlf \r\n", "tab\tinside\t\ttwo", "caf\u00e9 cafe\u0301 \u212b", "\u00a0nbsp\u00a0",
    "\u4eca\u65e5\u306f\u732b\u3068\u904a\u3073\u307e\u3057\u305f\u3002", "\u0643\u062a\u0627\u0628 \u062c\u062f\u064a\u062f",
    "Once upon a time, there was a little cat named Mia.", "She said, \"Hello, Ben.\"\nThe end.",
    " \n \n\n \n  \t \t\t  end", "for (int i = 0; i < n; i++) {\n\treturn 0;\n}", "\u2581\u0120",
]
CODE = "for (int i = 0; i < 10; i++) {\n    sum += value[i] * 2;\n}\nreturn sum == 0 ? -1 : sum;\n"
SEPARATOR = "\n__ggml_vocab_test__\n"


def book():
    """A text in normal form C: stories, figures, code, and words of many scripts."""
    rng = random.Random(3)
    parts = []
    for i in range(8):
        parts.append(story(rng))
        parts.append("Chapter %d, %d.%02d %%: %s" % (i + 1, rng.randint(0, 999999), i, CODE))
        parts.append("   ".join(unicodedata.normalize("NFC", text) for text in
                                rng.sample(TEXTS, 12) if "\r" not in text and "\u2581" not in text))
    return "\n".join(parts) + "\n"


def japanese(rng):
    """A sentence: who, where, what."""
    return "%sは%sで%sを%s。" % tuple(rng.choice(words.split()) for words in (
        "猫 犬 鳥 魚 子供 先生 母 父 友達 私", "公園 学校 家 森 川 庭 町 海 山 台所",
        "本 箱 絵 歌 石 船 花 木 水 ご飯 ボール ケーキ", "見ました 作りました 食べました 探しました 読みました 貰いました 運びました"))


# ---- vocabularies in GGUF ----

def write_gguf(path, model, pre, tokens, types, **lists):
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model(model)
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    if "scores" in lists:
        writer.add_token_scores(lists["scores"])
        writer.add_bos_token_id(1)
        writer.add_eos_token_id(2)
    else:
        writer.add_token_merges(lists["merges"])
        writer.add_bos_token_id(0)
        writer.add_eos_token_id(0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_pairs(path, encode):
    with open(path + ".inp", "w", newline="") as out:
        out.write(SEPARATOR.join(TEXTS))
    with open(path + ".out", "w") as out:
        for text in TEXTS:
            out.write(" ".join(map(str, encode(text))) + "\n")


def train_spm(sentences, **settings):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences), model_writer=model, minloglevel=2, num_threads=1,
        hard_vocab_limit=False, **settings)
    return model.getvalue()


def spm_gguf(folder, name, sentences, extra, **settings):
    made = train_spm(sentences, model_type="bpe", byte_fallback=True,
                     normalization_rule_name="identity", remove_extra_whitespaces=False, **settings)
    model = sentencepiece.SentencePieceProcessor(model_proto=made)
    n = model.vocab_size()
    tokens = [model.id_to_piece(i) for i in range(n)] + extra
    types = [2 if model.is_unknown(i) else 3 if model.is_control(i) else 6 if model.is_byte(i)
             else 1 for i in range(n)] + [3] * len(extra)
    scores = [model.get_score(i) for i in range(n)] + [-1000.0] * len(extra)
    path = "%s/gguf-vocab/ggml-vocab-%s.gguf" % (folder, name)
    write_gguf(path, "llama", "default", tokens, types, scores=scores)
    write_pairs(path, model.encode)
    return len(tokens)


def train_bpe(pre, text, size):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator([text], trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<|endoftext|>"], show_progress=False))
    return tokenizer


def bpe_gguf(folder, name, pre, text, size):
    tokenizer = train_bpe(pre, text, size)
    model = json.loads(tokenizer.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    merges = [" ".join(m) if isinstance(m, list) else m for m in model["merges"]]
    path = "%s/gguf-vocab/ggml-vocab-%s.gguf" % (folder, name)
    write_gguf(path, "gpt2", name, tokens, [3] + [1] * (len(tokens) - 1), merges=merges)
    write_pairs(path, lambda text: tokenizer.encode(text, add_special_tokens=False).ids)
    return len(tokens)


# ---- tokenizer.json and sentencepiece models ----

def hash_bytes(data):
    """base/hash.h: FNV-1a, 64 bits, and a last mixing."""
    h = 0xcbf29ce484222325
    for byte in data:
        h = (h ^ byte) * 0x100000001b3 % 2 ** 64
    h = (h ^ h >> 32) * 0xd6e8feb86659fd93 % 2 ** 64
    return h ^ h >> 32


def write_json(folder, text):
    pre = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer = train_bpe(pre, text, 900)
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.add_special_tokens(["<|padding|>"])
    tokenizer.add_tokens([AddedToken(" " * n, normalized=True) for n in range(8, 1, -1)])
    tokenizer.save(folder + "/tokenizer/20B_tokenizer.json", pretty=False)
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    return tokenizer.get_vocab_size(), " ".join(map(str, ids))


def write_spm(path, sentences, lines, **settings):
    with open(path, "wb") as out:
        out.write(train_spm(sentences, **settings))
    model = sentencepiece.SentencePieceProcessor(model_file=path)
    return "".join(" ".join(map(str, model.encode(line))) + "\n" for line in lines)


def write_forms(folder):
    """Lines as sentencepiece's tables have them; Hangul, which is arithmetic, is left out."""
    files = {form: open("%s/%s.tsv" % (folder, form.lower()), "w") for form in ("NFC", "NFD", "NFKD")}
    points = lambda text: " ".join("%X" % ord(c) for c in text)
    for code in range(0x110000):
        c = chr(code)
        if 0xd800 <= code < 0xe000 or 0xac00 <= code < 0xd7a4:
            continue
        for form in ("NFD", "NFKD"):
            after = unicodedata.normalize(form, c)
            if after != c and (form == "NFD" or after != unicodedata.normalize("NFD", c)):
                files[form].write("%s\t%s\n" % (points(c), points(after)))
        before = unicodedata.normalize("NFD", c)
        after = unicodedata.normalize("NFC", before)
        if before != after:
            files["NFC"].write("%s\t%s\n" % (points(before), points(after)))
    for file in files.values():
        file.close()


def main():
    folder = os.path.abspath(sys.argv[1])
    for name in ("gguf-vocab", "tokenizer/sentencepiece"):
        os.makedirs("%s/%s" % (folder, name), exist_ok=True)
    text = book()
    with open(folder + "/tokenizer/sentencepiece/botchan.txt", "w") as out:
        out.write(text)
    lines = text.split("\n")[:-1]
    rng = random.Random(4)
    stories = "\n".join(story(rng) for _ in range(60)).split("\n")
    print("llama-spm", spm_gguf(folder, "llama-spm", stories + lines, [], vocab_size=700))
    print("phi-3", spm_gguf(folder, "phi-3", stories, ["<|user|>", "<|end|>"], vocab_size=500,
                            split_digits=True))
    level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    split = lambda pattern: pre_tokenizers.Split(Regex(pattern), "isolated")
    some = text + "\n".join(stories[:100])
    print("gpt-2", bpe_gguf(folder, "gpt-2", level, some, 700))
    print("falcon", bpe_gguf(folder, "falcon", pre_tokenizers.Sequence(
        [split(r"[\p{P}\$\+<=>\^~\|`]+"), level, split("[0-9][0-9][0-9]")]), some, 600))
    print("starcoder", bpe_gguf(folder, "starcoder", pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(True), level]), CODE + some, 600))
    size, ids = write_json(folder, text)
    print("tokenizer.json", size, "%#x" % hash_bytes(ids.encode()))
    path = folder + "/tokenizer/sentencepiece/"
    rules = "\n".join("%X\t%X" % (0xff01 + i, 0x21 + i) for i in range(94)) + "\nBD\t31 2F 32\n"
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)  # the model keeps the file's name
        with open("rules.tsv", "w") as out:
            out.write(rules)
        ids = write_spm(path + "test_model.model", stories + lines, lines, vocab_size=500,
                        normalization_rule_tsv="rules.tsv")
        os.chdir(path)
    print("test_model", "%#x" % hash_bytes(ids.encode()))
    ids = write_spm(path + "test_ja_model.model", [japanese(rng) for _ in range(800)], lines,
                    vocab_size=150, normalization_rule_name="identity", byte_fallback=False)
    print("test_ja_model", "%#x" % hash_bytes(ids.encode()))
    write_forms(path)


if __name__ == "__main__":
    main()
