# SPDX-License-Identifier: MIT
# Judges tokenizers independently: the reference libraries train small tokenizers of many kinds and
# encode difficult texts; tandem-llama must return the same ids and the same text, or refuse the file
# by name. Needs: tokenizers, sentencepiece, tiktoken, gguf (tools/judges/run.sh fetches them).
#
# usage: tokenizers.py TANDEM_LLAMA [--data DIR] [--only KIND] [--texts N] [--show N] [--keep DIR]
#        tokenizers.py --write-tests FILE        (makes the offline part, tests/judged-tokenizers-list.h)
import argparse
import base64
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import unicodedata

sys.path.pop(0)  # this file has the name of the library that it imports
import sentencepiece
import tiktoken
import tokenizers
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers,
                        pre_tokenizers, processors, trainers)

SEED = 20261122

# ---- texts ----

SCRIPTS = {  # the first word of Unicode's character names
    "latin": "LATIN", "greek": "GREEK", "cyrillic": "CYRILLIC", "arabic": "ARABIC",
    "hebrew": "HEBREW", "devanagari": "DEVANAGARI", "tibetan": "TIBETAN", "brahmi": "BRAHMI",
    "thai": "THAI", "hangul": "HANGUL", "kana": "HIRAGANA KATAKANA", "bengali": "BENGALI",
    "armenian": "ARMENIAN", "georgian": "GEORGIAN", "mongolian": "MONGOLIAN", "khmer": "KHMER",
    "cherokee": "CHEROKEE",
}
BLANKS = ([" "] * 12 + ["  ", "   ", "\t", "\n", "\r\n", "\n\n", "\r", "\v", "\f", "\x85", "\xa0",
          "\u1680", "\u180e", "\u2003", "\u2028", "\u200b", "\u200c", "\u200d", "\u202f", "\u3000",
          "\ufeff", "    ", " \n ", "\t\t", ""])
MARKS = [chr(c) for c in list(range(0x300, 0x36F)) + [0x483, 0x591, 0x5B0, 0x64B, 0x670, 0x6DF,
         0x93C, 0x94D, 0xE31, 0xE49, 0xF71, 0xF72, 0x1AB0, 0x20D0, 0x20E3, 0x3099, 0xFE0F, 0xFE20,
         0x11038, 0x11046, 0x1D165, 0xE0100]]
DIGITS = list("0123456789" * 3 + "²³¹¼½¾٠١٢٣۴۵०१२३०༠༡༣๐๑๒Ⅷⅷ①⑳㉈一二三０１９𝟘𝟗𑁒𑁦")
EMOJI = ["😀", "👩‍💻", "👨‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪🇫🇷", "👍🏽", "❤️", "☎︎", "1️⃣", "🧑🏿‍🚀", "‼️", "🀄"]
PUNCT = list("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~«»“”‘’—–…‰€£¥§¶†•·。、，！？「」।॥་།؟،؛׃๏\u2581\u0120\u0121")
WORDS = ["don't", "I'LL", "we'Re", "it'\u017f", "y'all've", "HTTPServer2Error", "snake_case_name",
         "3.14159", "1,234,567", "0x1F", "a=b", "x²+y²", "Straße", "ﬁne", "İstanbul", "ΣΊΣΥΦΟΣ", "naïve",
         "<s>", "</s>", "<unk>", "<0x41>", "<|endoftext|>", "<|im_start|>", "[CLS]", "<pad>", "user1", "#tag",
         "Zoë", "e\u0301", "\u212b", "\u01c5", "ǅ", "ÅÅ", "\u1100\u1161\u11a8", "각", "क्षि", "བོད་སྐད",
         "𑀩𑁆𑀭𑀸𑀳𑁆𑀫𑀻", "שָׁלוֹם", "مُحَمَّد", "ที่นี่", "東京都", "한국어", "ｶﾞｷﾞ", "㍿", "℡", "½", "µ", "\u03bc"]


def is_known(char):
    """Whether the reference's normalizer has the character as Unicode has it now."""
    text = "a\u0301\u031c" + char + "\u0334"
    return (normalizers.NFKD().normalize_str(text) == unicodedata.normalize("NFKD", text) and
            normalizers.NFC().normalize_str(text) == unicodedata.normalize("NFC", text))


def script_letters():
    letters = {name: [] for name in SCRIPTS}
    for code in range(0x20, 0x110000):
        char = chr(code)
        name = unicodedata.name(char, "")
        if not name or not is_known(char) or 0x3400 <= code <= 0x9FFF and code % 37:
            continue
        first = name.split(" ", 1)[0]
        for script, wanted in SCRIPTS.items():
            if first in wanted.split() and (script != "hangul" or code < 0x1200 or code % 23 == 0):
                letters[script].append(char)
    letters["cjk"] = [chr(c) for c in range(0x4E00, 0x9FA5, 17)] + [chr(c) for c in range(0x20000, 0x20200, 9)]
    letters["any"] = [chr(c) for c in range(0x21, 0x30000)
                      if unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co") and is_known(chr(c))]
    return letters


def make_texts(rng, n, corpus):
    letters = script_letters()
    texts = ["", " ", "  ", "a", " a", "a ", "\n", "\u180e", "\u2581", "\u0120", "\u2581a", "a\u2581",
             "<unk>", "<s>", "</s> a", "a </s>  b", "x<unk> y", "'", "''s", "\ufffd", "\U0010ffff",
             "\u1100" * 40, "a\u0301\u0323" * 20, "\u0f71\u0f72\u0f74" * 9, "1" * 50, " " * 50, "a" * 300,
             "\u0958\u0929\u09dc", "ﷺ ﷽", "\u0345\u0300\u0345", "\u1e9b\u0323", "ǰ̣", "\u2126\u212a"]
    texts += WORDS + EMOJI
    scripts = sorted(letters)
    while len(texts) < n:
        kind = rng.randrange(10)
        script = scripts[len(texts) % len(scripts)]
        parts = []
        if kind == 0 and corpus:
            parts = [rng.choice(corpus)]
        else:
            for _ in range(rng.randrange(1, 12)):
                pool = letters[script if kind < 7 else rng.choice(scripts)]
                what = rng.randrange(20)
                if what < 11:
                    word = ""
                    for _ in range(rng.randrange(1, 9)):
                        word += rng.choice(pool)
                        if rng.randrange(6) == 0:
                            word += rng.choice(MARKS)
                    parts.append(word)
                elif what < 13:
                    parts.append("".join(rng.choices(DIGITS, k=rng.randrange(1, 8))))
                elif what < 15:
                    parts.append("".join(rng.choices(PUNCT, k=rng.randrange(1, 4))))
                elif what < 17:
                    parts.append(rng.choice(EMOJI))
                else:
                    parts.append(rng.choice(WORDS))
                parts.append(rng.choice(BLANKS))
        text = "".join(parts).replace("\0", "")
        texts.append(text)
    return texts[:n]


# ---- kinds: each returns a Kind ----

class Kind:
    """A tokenizer: the path that ours opens, and what the reference says."""

    def __init__(self, path, encode, decode, special=False, vocabulary=0, avoid=(), may_refuse=False):
        self.path, self.encode, self.decode = path, encode, decode
        self.special = special        # special tokens are recognised in texts
        self.vocabulary = vocabulary  # for random lists of ids
        self.avoid = set(avoid)       # ids of single bytes, of which random lists make no text
        self.may_refuse = may_refuse


KINDS = {}


def kind(function):
    KINDS[function.__name__] = function
    return function


GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
          r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace("{1,3}", "")
GPT4O = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")


class Bench:
    """Where files go and what training reads."""

    def __init__(self, folder, training):
        self.folder, self.training = folder, training
        counts = {}
        for char in "".join(training):
            counts[char] = counts.get(char, 0) + 1
        self.common = ["".join(char for char in text if counts[char] > 20) for text in training]

    def path(self, name):
        return os.path.join(self.folder, name)

    def hf(self, name, tokenizer, **options):
        path = self.path(name + ".json")
        tokenizer.save(path)
        size = tokenizer.get_vocab_size()
        # (a zero byte ends a text of ours)
        avoid = [i for i in range(size) if re.fullmatch("<0x..>|.*\u0100.*", tokenizer.id_to_token(i) or "")]
        return Kind(path, lambda text: tokenizer.encode(text, add_special_tokens=False).ids,
                    lambda ids, skip: tokenizer.decode(ids, skip_special_tokens=skip),
                    special=True, vocabulary=size, avoid=avoid, **options)

    def byte_level(self, name, pre, normalizer=None, specials=("<|endoftext|>", "<|im_start|>"), added=(),
                   vocabulary=1200, **options):
        tokenizer = Tokenizer(models.BPE(**options))
        if normalizer is not None:
            tokenizer.normalizer = normalizer
        tokenizer.pre_tokenizer = pre
        tokenizer.decoder = decoders.ByteLevel()
        tokenizer.train_from_iterator(self.training, trainers.BpeTrainer(
            vocab_size=vocabulary, show_progress=False, special_tokens=list(specials),
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
        tokenizer.add_tokens(list(added))
        return self.hf(name, tokenizer)

    def characters(self, name, pre, decoder, normalizer=None, added=(), vocabulary=1500, limit=400, **options):
        tokenizer = Tokenizer(models.BPE(**options))
        if normalizer is not None:
            tokenizer.normalizer = normalizer
        if pre is not None:
            tokenizer.pre_tokenizer = pre
        tokenizer.decoder = decoder
        specials = ["<unk>", "<s>", "</s>"]
        if options.get("byte_fallback"):
            specials += ["<0x%02X>" % i for i in range(256)]
        tokenizer.train_from_iterator(self.training, trainers.BpeTrainer(
            vocab_size=vocabulary, show_progress=False, special_tokens=specials, limit_alphabet=limit))
        if options.get("byte_fallback"):  # only the first three are special
            state = json.loads(tokenizer.to_str())
            state["added_tokens"] = state["added_tokens"][:3]
            tokenizer = Tokenizer.from_str(json.dumps(state))
        tokenizer.add_tokens(list(added))
        return self.hf(name, tokenizer)

    def unigram(self, name, pre, decoder, normalizer=None, byte_fallback=False):
        tokenizer = Tokenizer(models.Unigram())
        if normalizer is not None:
            tokenizer.normalizer = normalizer
        tokenizer.pre_tokenizer = pre
        tokenizer.decoder = decoder
        training = [text.replace("<unk>", "").replace("<s>", "") for text in self.common]
        tokenizer.train_from_iterator(training, trainers.UnigramTrainer(
            vocab_size=900, show_progress=False, special_tokens=["<unk>", "<s>"], unk_token="<unk>"))
        if byte_fallback:
            state = json.loads(tokenizer.to_str())
            state["model"]["byte_fallback"] = True
            known = {text for text, _ in state["model"]["vocab"]}
            state["model"]["vocab"] += [[text, -15.0] for text in ("<0x%02X>" % i for i in range(256))
                                        if text not in known]
            tokenizer = Tokenizer.from_str(json.dumps(state))
        return self.hf(name, tokenizer)

    def spm(self, name, may_refuse=False, **options):
        prefix = self.path(name)
        settings = dict(vocab_size=900, model_type="unigram", character_coverage=0.995, minloglevel=2,
                        hard_vocab_limit=False, num_threads=1, input_sentence_size=4000)
        settings.update(options)
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(self.common), model_prefix=prefix,
                                                 **settings)
        return self.spm_kind(prefix + ".model", may_refuse)

    def spm_kind(self, path, may_refuse=False):
        model = sentencepiece.SentencePieceProcessor(model_file=path)
        size = model.vocab_size()
        return Kind(path, lambda text: model.encode(text, out_type=int),
                    lambda ids, skip: model.decode(ids) if skip else None, vocabulary=size,
                    avoid=[i for i in range(size) if model.is_byte(i)], may_refuse=may_refuse)


def sequence(*parts):
    return pre_tokenizers.Sequence(list(parts))


def byte_level(prefix=False, regex=True):
    return pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=regex)


def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Split(Regex(pattern), behavior, invert)


@kind
def gpt2(b):
    return b.byte_level("gpt2", byte_level())


@kind
def byte_level_prefix(b):
    return b.byte_level("byte_level_prefix", byte_level(prefix=True))


@kind
def llama3(b):
    return b.byte_level("llama3", sequence(split(LLAMA3), byte_level(regex=False)), ignore_merges=True)


@kind
def qwen2(b):
    return b.byte_level("qwen2", sequence(split(QWEN2), byte_level(regex=False)), normalizers.NFC())


@kind
def gpt4o(b):
    return b.byte_level("gpt4o", sequence(split(GPT4O), byte_level(regex=False)))


@kind
def falcon(b):
    return b.byte_level("falcon", sequence(pre_tokenizers.Punctuation("contiguous"), byte_level(),
                                           pre_tokenizers.Digits(False), split("[0-9][0-9][0-9]")))


@kind
def starcoder(b):
    return b.byte_level("starcoder", sequence(pre_tokenizers.Digits(True), byte_level()))


@kind
def deepseek(b):
    return b.byte_level("deepseek", sequence(
        split(r"[\r\n]"), split(r"\s?\p{L}+"), split(r"\s?\p{P}+"), split("[一-龥ࠀ-一가-퟿]+"),
        pre_tokenizers.Digits(True), byte_level(regex=False)))


@kind
def after_byte_level(b):
    return b.byte_level("after_byte_level", sequence(byte_level(), pre_tokenizers.Whitespace(),
                                                     pre_tokenizers.Digits(True)))


@kind
def bloom(b):
    return b.byte_level("bloom", sequence(split(r" ?[^(\s|[.,!?…。，、।۔،])]+"), byte_level(regex=False)))


@kind
def words_and_scripts(b):
    return b.byte_level("words_and_scripts", sequence(
        split(r"\p{Han}+|\w+|[^\w\s]+|\s+"), split(r"\bder\b|^\d|\W$"), byte_level(regex=False)))


@kind
def nfkc_lower(b):
    return b.byte_level("nfkc_lower", byte_level(), normalizers.Sequence(
        [normalizers.NFKC(), normalizers.Lowercase(), normalizers.Replace(Regex(r"\s+"), " ")]))


@kind
def nfd_strip(b):
    return b.byte_level("nfd_strip", byte_level(), normalizers.Sequence(
        [normalizers.NFD(), normalizers.Strip(), normalizers.Prepend("x")]))


@kind
def added_tokens(b):
    return b.byte_level("added_tokens", byte_level(), normalizers.Lowercase(), added=[
        AddedToken("HTTP", normalized=True), AddedToken("user", normalized=False),
        AddedToken("don't", lstrip=True, normalized=False), AddedToken("<pad>", rstrip=True, normalized=False)])


@kind
def single_word(b):
    made = b.byte_level("single_word", byte_level(), added=[
        AddedToken("user", single_word=True, normalized=False), AddedToken("a", single_word=True)])
    made.may_refuse = True
    return made


@kind
def punctuation_merged(b):
    return b.byte_level("punctuation_merged", sequence(
        pre_tokenizers.Punctuation("merged_with_previous"), split(r"\s", "merged_with_next"),
        split(r"\d", "removed"), byte_level(regex=False)))


@kind
def llama2(b):
    return b.characters(
        "llama2", None, decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(),
                                           decoders.Fuse(), decoders.Strip(" ", 1, 0)]),
        normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]),
        unk_token="<unk>", byte_fallback=True, fuse_unk=True)


@kind
def metaspace(b):
    return b.characters("metaspace", pre_tokenizers.Metaspace(), decoders.Metaspace(), unk_token="<unk>")


@kind
def metaspace_first(b):
    return b.characters("metaspace_first", pre_tokenizers.Metaspace(prepend_scheme="first", split=False),
                        decoders.Metaspace(prepend_scheme="first"), unk_token="<unk>", fuse_unk=True,
                        added=[AddedToken("user", normalized=False)])


@kind
def metaspace_never(b):
    return b.characters("metaspace_never", pre_tokenizers.Metaspace(prepend_scheme="never"),
                        decoders.Metaspace(prepend_scheme="never"), unk_token="<unk>")


@kind
def whitespace(b):
    return b.characters("whitespace", pre_tokenizers.Whitespace(), decoders.Fuse(), normalizers.NFC(),
                        unk_token="<unk>", fuse_unk=True)


@kind
def whitespace_split(b):
    return b.characters("whitespace_split", sequence(pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation()),
                        decoders.Fuse(), normalizers.Lowercase())


@kind
def no_decoder(b):
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.train_from_iterator(b.training, trainers.BpeTrainer(vocab_size=900, show_progress=False,
                                                                  special_tokens=["<unk>"]))
    return b.hf("no_decoder", tokenizer, may_refuse=True)


@kind
def unigram_json(b):
    return b.unigram("unigram_json", pre_tokenizers.Metaspace(), decoders.Metaspace())


@kind
def unigram_json_bytes(b):
    return b.unigram("unigram_json_bytes", pre_tokenizers.Metaspace(prepend_scheme="first"),
                     decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(prepend_scheme="first")]),
                     normalizers.NFKC(), byte_fallback=True)


@kind
def word_piece(b):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.train_from_iterator(b.training, trainers.WordPieceTrainer(
        vocab_size=900, show_progress=False, special_tokens=["[UNK]", "[CLS]"]))
    return b.hf("word_piece", tokenizer, may_refuse=True)


@kind
def word_level(b):
    tokenizer = Tokenizer(models.WordLevel(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.train_from_iterator(b.training, trainers.WordLevelTrainer(
        vocab_size=900, show_progress=False, special_tokens=["<unk>"]))
    return b.hf("word_level", tokenizer, may_refuse=True)


@kind
def word_suffix(b):
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.decoder = decoders.BPEDecoder()
    tokenizer.train_from_iterator(b.training, trainers.BpeTrainer(
        vocab_size=900, show_progress=False, special_tokens=["<unk>"], end_of_word_suffix="</w>"))
    return b.hf("word_suffix", tokenizer, may_refuse=True)


@kind
def spm_unigram(b):
    return b.spm("spm_unigram")


@kind
def spm_unigram_bytes(b):
    return b.spm("spm_unigram_bytes", byte_fallback=True, normalization_rule_name="nfkc_cf")


@kind
def spm_unigram_users(b):
    return b.spm("spm_unigram_users", user_defined_symbols=["user", "<pad>", "東京"], vocab_size=700,
                 add_dummy_prefix=False)


@kind
def spm_unigram_suffix(b):
    return b.spm("spm_unigram_suffix", treat_whitespace_as_suffix=True)


@kind
def spm_unigram_ties(b):
    return b.spm("spm_unigram_ties", vocab_size=450, remove_extra_whitespaces=False, split_by_whitespace=False)


@kind
def spm_bpe(b):
    return b.spm("spm_bpe", model_type="bpe")


@kind
def spm_bpe_llama(b):
    return b.spm("spm_bpe_llama", model_type="bpe", byte_fallback=True, normalization_rule_name="identity",
                 remove_extra_whitespaces=False, split_digits=True, allow_whitespace_only_pieces=True,
                 vocab_size=1200)


@kind
def spm_bpe_users(b):
    return b.spm("spm_bpe_users", model_type="bpe", byte_fallback=True, add_dummy_prefix=False,
                 user_defined_symbols=["user", "<pad>", "  ", "aa"], vocab_size=1200)


@kind
def spm_char(b):
    return b.spm("spm_char", model_type="char", vocab_size=700)


@kind
def spm_word(b):
    return b.spm("spm_word", model_type="word", vocab_size=700, may_refuse=True)


def tiktoken_ranks(b):
    """Ranks as tiktoken wants them, from merges that the tokenizers library trains."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = sequence(split(LLAMA3), byte_level(regex=False))
    tokenizer.train_from_iterator(b.training, trainers.BpeTrainer(
        vocab_size=1400, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    decoder = decoders.ByteLevel()
    table = gpt2_alphabet()
    ranks = {}
    for token, _ in sorted(tokenizer.get_vocab().items(), key=lambda item: item[1]):
        ranks[bytes(table[c] for c in token)] = len(ranks)
    del decoder
    return ranks


def gpt2_alphabet():
    own = list(range(0x21, 0x7F)) + list(range(0xA1, 0xAD)) + list(range(0xAE, 0x100))
    table = {chr(c): c for c in own}
    for i, c in enumerate(c for c in range(256) if c not in own):
        table[chr(256 + i)] = c
    return table


LLAMA3_SPECIALS = (["<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>",
                    "<|reserved_special_token_1|>", "<|finetune_right_pad_id|>", "<|step_id|>",
                    "<|start_header_id|>", "<|end_header_id|>", "<|eom_id|>", "<|eot_id|>", "<|python_tag|>"] +
                   ["<|reserved_special_token_%d|>" % i for i in range(2, 247)])


@kind
def tiktoken_llama3(b):
    ranks = tiktoken_ranks(b)
    path = b.path("tiktoken.model")
    with open(path, "wb") as file:
        for token, rank in ranks.items():
            file.write(base64.b64encode(token) + b" %d\n" % rank)
    specials = {name: len(ranks) + i for i, name in enumerate(LLAMA3_SPECIALS)}
    encoding = tiktoken.Encoding("llama3", pat_str=LLAMA3, mergeable_ranks=ranks, special_tokens=specials)

    def decode(ids, skip):
        if skip:
            ids = [i for i in ids if i < len(ranks)]
        return encoding.decode(ids)
    return Kind(path, lambda text: encoding.encode(text, allowed_special="all"), decode, special=True,
                vocabulary=len(ranks) + len(specials),
                avoid=[rank for token, rank in ranks.items() if b"\0" in token])


@kind
def vocab_and_merges(b):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = byte_level()
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(b.training, trainers.BpeTrainer(
        vocab_size=1300, show_progress=False, special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    folder = b.path("vocab_and_merges")
    os.makedirs(folder, exist_ok=True)
    tokenizer.model.save(folder)
    with open(os.path.join(folder, "tokenizer_config.json"), "w") as file:
        json.dump({"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": False,
                   "eos_token": "<|endoftext|>", "bos_token": "<|endoftext|>"}, file)
    made = b.hf("vocab_and_merges", tokenizer)
    made.path = folder
    return made


def write_gguf(path, model, tokens, scores=None, types=None, merges=None, pre=None, **flags):
    import gguf
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model(model)
    if pre:
        writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    if scores:
        writer.add_token_scores(scores)
    if types:
        writer.add_token_types(types)
    if merges:
        writer.add_token_merges(merges)
    for key, value in flags.items():
        getattr(writer, key)(value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@kind
def gguf_spm(b):
    made = b.spm("gguf_spm", model_type="bpe", byte_fallback=True, normalization_rule_name="identity",
                 remove_extra_whitespaces=False, split_digits=True, vocab_size=1200)
    model = sentencepiece.SentencePieceProcessor(model_file=made.path)
    n = model.vocab_size()
    types = [2 if model.is_unknown(i) else 3 if model.is_control(i) else 6 if model.is_byte(i) else 1
             for i in range(n)]
    made.path = b.path("gguf_spm.gguf")
    write_gguf(made.path, "llama", [model.id_to_piece(i) for i in range(n)],
               [model.get_score(i) for i in range(n)], types, add_add_space_prefix=True, add_bos_token_id=1)
    made.decode = lambda ids, skip: model.decode([i for i in ids if i != 0]) if skip else None
    return made


@kind
def gguf_gpt2(b):
    made = b.byte_level("gguf_gpt2", byte_level(), specials=["<|endoftext|>"])
    return gguf_of(b, made, "gpt-2")


@kind
def gguf_llama3(b):
    made = b.byte_level("gguf_llama3", sequence(split(LLAMA3.replace("(?i:'s|'t|'re|'ve|'m|'ll|'d)",
                        "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])")), byte_level(regex=False)),
                        ignore_merges=True)
    return gguf_of(b, made, "llama-bpe")


def gguf_of(b, made, pre):
    state = json.load(open(made.path))
    vocabulary = sorted(state["model"]["vocab"], key=state["model"]["vocab"].get)
    specials = {token["content"] for token in state["added_tokens"]}
    merges = [m if isinstance(m, str) else " ".join(m) for m in state["model"]["merges"]]
    made.path = made.path.replace(".json", ".gguf")
    write_gguf(made.path, "gpt2", vocabulary, types=[3 if t in specials else 1 for t in vocabulary],
               merges=merges, pre=pre)
    return made


# ---- judging ----

def ours(tool, arguments, data):
    done = subprocess.run([tool, "tokenize", "--null"] + arguments, input=data, capture_output=True, timeout=600)
    return done.returncode, done.stdout, done.stderr.decode(errors="replace").strip()


def shown(text):
    return text if isinstance(text, str) and text.isascii() and text.isprintable() else ascii(text)


class Judge:
    def __init__(self, tool, texts, show):
        self.tool, self.texts, self.show = tool, texts, show
        self.bad_kinds, self.refused, self.checked = [], [], 0

    def differ(self, name, what, text, got, wanted):
        if self.n_shown < self.show:
            self.n_shown += 1
            print("  %s: %s of %s:\n    ours      %s\n    reference %s" %
                  (name, what, shown(text)[:300], str(got)[:400], str(wanted)[:400]))

    def encode(self, name, made):
        wanted = [made.encode(text) for text in self.texts]
        options = ["-t", made.path] + (["--special"] if made.special else [])
        data = b"".join(text.encode("utf-8") + b"\0" for text in self.texts)
        code, out, error = ours(self.tool, options, data)
        if code != 0:
            return None, error, wanted
        got = [[int(i) for i in line.split()] for line in out.decode().split("\n")[:-1]]
        differs = 0
        for text, a, w in zip(self.texts, got, wanted):
            if a != list(w):
                differs += 1
                self.differ(name, "ids", text, a, list(w))
        return differs + abs(len(got) - len(wanted)), "", wanted

    def decode(self, name, made, lists, skip):
        wanted = [made.decode(ids, skip) for ids in lists]
        if any(w is None for w in wanted):
            return 0
        options = ["-t", made.path, "--detokenize"] + ([] if skip else ["--special"])
        data = "".join(" ".join(map(str, ids)) + "\n" for ids in lists).encode()
        code, out, error = ours(self.tool, options, data)
        got = [part.decode("utf-8", errors="replace") for part in out.split(b"\0")[:-1]]
        if code != 0 or len(got) != len(wanted):
            print("  %s: detokenize ended with %d after %d of %d: %s" % (name, code, len(got), len(wanted), error))
            return len(wanted) - len(got)
        differs = 0
        for ids, a, w in zip(lists, got, wanted):
            if a != w:
                differs += 1
                self.differ(name, "text (special %s)" % ("hidden" if skip else "shown"), str(ids),
                            ascii(a), ascii(w))
        return differs

    def convert(self, name, made):
        """The same ids from a GGUF file that has taken the tokenizer along."""
        if made.path.endswith(".gguf"):
            return 0
        with tempfile.TemporaryDirectory() as folder:
            model, out = os.path.join(folder, "model.gguf"), os.path.join(folder, "out.gguf")
            shape = "64,64,1,2,2,%d" % (made.vocabulary + 8)
            subprocess.run([self.tool, "synth", model, "--type", "f32", "--shape", shape], check=True,
                           capture_output=True)
            done = subprocess.run([self.tool, "convert", "-t", made.path, model, out], capture_output=True,
                                  text=True)
            if done.returncode != 0:
                print("%-20s not taken along: %s" % (name, done.stderr.strip()))
                return 0
            how = "as a file" if "no other program" in done.stderr else "by keys"
            differs, error, _ = self.encode(name, Kind(out, made.encode, made.decode, made.special))
            print("%-20s taken along by convert (%s): %s differ" % (name, how, error if differs is None else differs))
            return 1 if differs is None else differs

    def judge(self, name, made):
        self.n_shown = 0
        differs, error, wanted = self.encode(name, made)
        if differs is None:
            print("%-20s refused: %s" % (name, error), flush=True)
            self.refused.append(name)
            if not made.may_refuse:
                self.bad_kinds.append(name)
            return
        rng = random.Random(SEED)
        usable = [i for i in range(made.vocabulary) if i not in made.avoid]
        lists = [list(ids) for ids in wanted]
        lists += [rng.choices(usable + usable[:8] * 20, k=rng.randrange(1, 12)) for _ in range(400)]
        hidden = self.decode(name, made, lists, True)
        visible = self.decode(name, made, lists, False)
        self.checked += 1
        differs += self.convert(name, made)
        print("%-20s ids of %d texts: %d differ; text of %d lists: %d and %d differ" %
              (name, len(self.texts), differs, len(lists), hidden, visible), flush=True)
        if differs or hidden or visible:
            self.bad_kinds.append(name)


def read_corpus(data):
    path = os.path.join(data, "tokenizer", "sentencepiece", "botchan.txt")
    if not os.path.exists(path):
        return []
    return [line for line in open(path, encoding="utf-8").read().split("\n") if line]


# ---- the offline part ----

def small_bpe(texts, merges, specials=(), byte_level_alphabet=False, **options):
    """A BPE model whose vocabulary is what the texts and the merges need."""
    if byte_level_alphabet:
        table = {byte: char for char, byte in gpt2_alphabet().items()}
        texts = ["".join(table[byte] for byte in text.encode()) for text in texts]
    names = list(specials) + sorted(set("".join(texts)))
    names += [left + right for left, right in merges if left + right not in names]
    return models.BPE(vocab={name: i for i, name in enumerate(names)}, merges=merges, **options)


def small_json():
    """(name, tokenizer, texts)"""
    texts = ["a\xb2 34,a", "a.\u0663 5", "\xbd1 \u0f21\u0f22", "abc 12345.", "a \u180e b"]
    made = Tokenizer(small_bpe(texts, [("a", "b"), ("1", "2")], byte_level_alphabet=True))
    made.pre_tokenizer = sequence(pre_tokenizers.Punctuation("contiguous"), byte_level(),
                                  pre_tokenizers.Digits(False), split("[0-9][0-9][0-9]"))
    made.decoder = decoders.ByteLevel()
    yield "steps behind ByteLevel", made, texts

    texts = ["\u0f56\u0f7c\u0f51 \u0f66\u0f90\u0f51", "\U00011013\U00011038x", "a\u0301b\u180ea", "a_b-c z",
             "\u200da\xb2"]
    made = Tokenizer(small_bpe(["".join(texts[:4])], [("a", "\u0301"), ("\u0f56", "\u0f7c")], ["<unk>"],
                               unk_token="<unk>", fuse_unk=True))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.decoder = decoders.Fuse()
    yield "words have marks", made, texts
    made.pre_tokenizer = split(r"\w+|\s", "removed", True)
    yield "words of a Split", made, texts

    texts = ["a b", " a", "a<s>b", "<s> a", "</s>", "\xe9 a", "", "a  b "]
    specials = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % byte for byte in (0xC3, 0xA9, 0x20)]
    llama = dict(normalizer=normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]),
                 decoder=decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(),
                                            decoders.Fuse(), decoders.Strip(" ", 1, 0)]))
    made = Tokenizer(small_bpe(["\u2581ab"], [("\u2581", "a")], specials, unk_token="<unk>", byte_fallback=True))
    made.normalizer, made.decoder = llama["normalizer"], llama["decoder"]
    made.add_special_tokens(["<unk>", "<s>", "</s>"])
    yield "blanks as in Llama 2", made, texts

    made = Tokenizer(small_bpe(["\u2581ab"], [("\u2581", "\u2581"), ("\u2581", "a")], ["<unk>", "<s>", "</s>"],
                               unk_token="<unk>"))
    made.pre_tokenizer, made.decoder = pre_tokenizers.Metaspace(split=False), decoders.Metaspace()
    made.add_special_tokens(["<unk>", "<s>", "</s>"])
    yield "blanks of Metaspace", made, texts + ["  a"]

    made = Tokenizer(small_bpe(["ab"], [("a", "b")], ["<unk>"], unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    yield "no decoder", made, ["a b", "abb a", "c c"]

    made = Tokenizer(small_bpe(["abHTp"], [], ["<unk>"], unk_token="<unk>"))
    made.normalizer, made.decoder = normalizers.Lowercase(), decoders.Fuse()
    made.add_tokens([AddedToken("HTT", normalized=True), AddedToken("Ab", normalized=False)])
    yield "added tokens", made, ["aHTTp", "httb", "Abab AB"]

    scores = [("<unk>", 0.0), ("\u2581", -2.1), ("a", -1.3), ("b", -1.7), ("ab", -3.0000000000000004), ("ba", -3.0),
              ("aba", -4.3), ("bb", -3.3), ("abab", -6.0)]
    made = Tokenizer(models.Unigram(scores, unk_id=0, byte_fallback=False))
    made.pre_tokenizer, made.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    yield "unigram", made, ["abab", "ababab bb", "aabbaabbab", "cc a", "abcab"]


def c_text(data):
    """A literal of C, in lines."""
    out, line = [], ""
    for byte in data:
        char = chr(byte)
        line += "\\" + char if char in '"\\' else char if 32 <= byte < 127 and char != "?" else "\\%03o" % byte
        if len(line) > 80:
            out.append(line)
            line = ""
    return "\n        ".join('"%s"' % part for part in out + [line])


def write_cases(file, name, reader, data, cases):
    rows = []
    for text, ids, hidden, visible in cases:
        rows.append('            {%s,\n        "%s",\n        %s,\n        %s},\n' % (
            c_text(text.encode()), " ".join(map(str, ids)), c_text(hidden.encode()),
            "NULL" if visible is None else c_text(visible.encode())))
    file.write('    {"%s", %s,\n        %s,\n        %d,\n        {\n%s        }},\n' %
               (name, reader, c_text(data), len(data), "".join(rows)))


def write_tests(path):
    with open(path, "w") as file:
        file.write("/* SPDX-License-Identifier: MIT\n"
                   " * Small tokenizers with ids and texts of tokenizers %s, sentencepiece %s and\n"
                   " * tiktoken %s. Made by tools/judges/tokenizers.py --write-tests. */\n" %
                   (tokenizers.__version__, sentencepiece.__version__, tiktoken.__version__))
        for name, made, texts in small_json():
            lists = [made.encode(text, add_special_tokens=False).ids for text in texts]
            data = json.dumps(json.loads(made.to_str())).encode()
            write_cases(file, name, "tnd_tokenizer_json_read", data,
                        [(text, ids, made.decode(ids, skip_special_tokens=True),
                          made.decode(ids, skip_special_tokens=False)) for text, ids in zip(texts, lists)])
        with tempfile.TemporaryDirectory() as folder:
            for name, options in (("unigram of sentencepiece", dict(vocab_size=24)),
                                  ("BPE of sentencepiece", dict(vocab_size=30, model_type="bpe", add_dummy_prefix=False)),
                                  ("characters of sentencepiece", dict(vocab_size=14, model_type="char"))):
                sentencepiece.SentencePieceTrainer.train(
                    sentence_iterator=iter(["a cab", "abba aaab", "cabaab bac bac", "aa bb cc", "zq"] * 20),
                    model_prefix=os.path.join(folder, "m"), normalization_rule_name="identity", minloglevel=2,
                    hard_vocab_limit=False, user_defined_symbols=["zq"], **options)
                model = sentencepiece.SentencePieceProcessor(model_file=os.path.join(folder, "m.model"))
                texts = ["aaaaaaa", "abcabcabc", " a  b", "azqb", "xa \xe9", "<s>b"]
                lists = [model.encode(text) for text in texts]
                write_cases(file, name, "tnd_tokenizer_sentencepiece_read",
                            open(os.path.join(folder, "m.model"), "rb").read(),
                            [(text, ids, model.decode(ids), None) for text, ids in zip(texts, lists)])
        ranks = {bytes([byte]): byte for byte in range(256)}
        for token in (b"ab", b"bc", b"abc", b" a", b" ab", b"12", b"\xc3\xa9"):
            ranks[token] = len(ranks)
        specials = {special: len(ranks) + i for i, special in enumerate(LLAMA3_SPECIALS)}
        model = tiktoken.Encoding("llama3", pat_str=LLAMA3, mergeable_ranks=ranks, special_tokens=specials)
        texts = ["abc ab", "abcbc", "12345", "\xe9a", "<|eot_id|>a", "a\n\n b", "I'LL"]
        lists = [model.encode(text, allowed_special="all") for text in texts]
        write_cases(file, "tokens by rank, of Llama 3", "tnd_tokenizer_tiktoken_read",
                    b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in ranks.items()),
                    [(text, ids, model.decode([i for i in ids if i < len(ranks)]), model.decode(ids))
                     for text, ids in zip(texts, lists)])
    return 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool", nargs="?")
    parser.add_argument("--data", default="../shared/data")
    parser.add_argument("--only", action="append")
    parser.add_argument("--texts", type=int, default=3500)
    parser.add_argument("--show", type=int, default=3)
    parser.add_argument("--keep")
    parser.add_argument("--write-tests")
    options = parser.parse_args()
    if options.write_tests:
        return write_tests(options.write_tests)
    corpus = read_corpus(options.data)
    training = make_texts(random.Random(SEED + 1), 1200, corpus) + corpus[:1500]
    training = [text for text in training if text.strip()]
    folder = options.keep or tempfile.mkdtemp(prefix="judge-tokenizers-")
    os.makedirs(folder, exist_ok=True)
    bench = Bench(folder, training)
    judge = Judge(options.tool, make_texts(random.Random(SEED), options.texts, corpus), options.show)
    names = options.only or list(KINDS)
    print("tokenizers %s, sentencepiece %s, tiktoken %s; %d kinds, %d texts" %
          (tokenizers.__version__, sentencepiece.__version__, tiktoken.__version__, len(names), len(judge.texts)))
    for name in names:
        judge.judge(name, KINDS[name](bench))
    print("%d kinds agree, %d are refused by name (%s), %d fail: %s" %
          (judge.checked - len([k for k in judge.bad_kinds if k not in judge.refused]), len(judge.refused),
           ", ".join(judge.refused), len(judge.bad_kinds), ", ".join(judge.bad_kinds) or "none"))
    if not options.keep:
        import shutil
        shutil.rmtree(folder)
    return 1 if judge.bad_kinds else 0


if __name__ == "__main__":
    sys.exit(main())
