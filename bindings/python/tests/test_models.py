# SPDX-License-Identifier: MIT
"""Models, sessions, samplers, tokens, chats."""
import os
from pathlib import Path

import pytest

np = pytest.importorskip("numpy", reason="numpy is not installed")

import layout  # noqa: E402
import tandem_infer as ti  # noqa: E402

DATA = Path(os.environ.get("TANDEM_TEST_DATA", layout.INCLUDE.parents[1] / "shared" / "data"))


@pytest.fixture(scope="module")
def runtime():
    with ti.Runtime(threads=1, table="") as one:
        yield one


@pytest.fixture(scope="module")
def model():
    with ti.Model.synthesize(dim=64, hidden=128, vocabulary=100, context=64) as one:
        yield one


def test_tokens_are_yielded_and_repeat_from_a_saved_state(model, runtime, tmp_path):
    session = ti.Session(model, runtime)
    session.decode([1, 5, 9])
    session.save(tmp_path / "state")
    first = list(session.tokens([7], 10))
    session.load(tmp_path / "state")
    assert list(session.tokens([7], 10)) == first and len(first) == 10
    assert session.logits().shape == (100,)
    assert session.position() == 13 and session.context == 64


def test_greedy_choices_are_the_largest_logits(model, runtime):
    session = ti.Session(model, runtime)
    session.decode([3, 4])
    assert ti.Sampler(100).sample(session) == int(session.logits().argmax())


def test_seeds_repeat(model, runtime):
    texts = []
    for seed in (1, 1, 2):
        session = ti.Session(model, runtime)
        texts.append(list(session.tokens([1], 20, ti.Sampler(100, temperature=1.0, seed=seed))))
    assert texts[0] == texts[1] != texts[2]


def test_sequences_share_a_beginning_and_batches(model, runtime):
    session = ti.Session(model, runtime, sequences=3)
    session.decode([1, 2, 3])
    session.copy(0, 1, 3)
    session.decode_batch([(0, [4]), (1, [4]), (2, [1, 2, 3, 4])])
    np.testing.assert_array_equal(session.logits(0), session.logits(1))
    np.testing.assert_allclose(session.logits(0), session.logits(2), rtol=1e-3, atol=1e-3)
    assert session.rollback(2, sequence=1) == 2 and session.position(1) == 2


def test_batches_that_are_begun_end_in_order(model, runtime):
    session = ti.Session(model, runtime, sequences=2)
    want = ti.Session(model, runtime, sequences=2)
    for one in (0, 1):
        session.begin_batch([(one, [1, 2, 3 + one])])
        want.decode_batch([(one, [1, 2, 3 + one])])
    with pytest.raises(ti.TandemError, match="begun"):
        session.begin_batch([(0, [4])])
    for one in (0, 1):
        session.end_batch()
        np.testing.assert_array_equal(session.logits(one), want.logits(one))
    assert session.batches_in_flight(2) == 1  # this process computes alone
    with pytest.raises(ti.TandemError, match="begun"):
        session.end_batch()


def test_keys_and_values_have_any_type_that_fits(model, runtime):
    exact = ti.Session(model, runtime, context=32)
    planned = ti.Session(model, runtime, context=32, cache_type="auto", cache_memory=1 << 30)
    for session in (exact, planned):
        session.decode([1, 2, 3])
    assert abs(exact.logits() - planned.logits()).max() < 0.05
    with pytest.raises(ValueError):
        ti.Session(model, runtime, cache_type="small")
    with pytest.raises(ti.TandemError, match="no layers that predict ahead"):
        ti.Session(model, runtime, draft="mtp")


def test_drafts_change_nothing_but_the_number_of_batches(model, runtime):
    want = list(ti.Session(model, runtime).tokens([1, 2, 3], 20))
    smaller = ti.Session(model, runtime)
    for draft in ("lookup", smaller):
        session = ti.Session(model, runtime, draft=draft)
        assert list(session.tokens([1, 2, 3], 20)) == want
        found = session.drafts
        assert found["tokens"] == 20 and found["batches"] + found["accepted"] == 20
    assert smaller.drafts is None
    with pytest.raises(ValueError, match="'lookup', 'mtp', a session or None"):
        ti.Session(model, runtime, draft="guess")
    with pytest.raises(ti.TandemError, match="at least 2 sequences"):
        ti.Session(model, runtime, sequences=2, draft=smaller)


def test_faults_are_told(model, runtime):
    session = ti.Session(model, runtime)
    with pytest.raises(ti.TandemError) as caught:
        session.decode([100])
    assert caught.value.status == "ARGUMENT"
    with pytest.raises(ti.TandemError, match="no logits"):
        session.logits()
    with pytest.raises(ti.TandemError, match="/none"):
        ti.Model.load("/none")


def test_owners_close_what_was_made_from_them():
    model = ti.Model.synthesize(dim=64, hidden=128, vocabulary=100, context=32)
    with ti.Runtime(threads=1, table="") as runtime:
        session = ti.Session(model, runtime)
    assert session.closed and not model.closed
    session.close()
    model.close()
    model.close()


@pytest.mark.skipif(not (DATA / "llama" / "stories260K.bin").exists(), reason="no test data")
def test_a_trained_model_tells_a_story(runtime):
    model = ti.Model.load(DATA / "llama" / "stories260K.bin")
    tokenizer = model.tokenizer(DATA / "llama" / "tok512.bin")
    assert tokenizer.decode(tokenizer.encode("Once upon a time")) == "Once upon a time"
    session = ti.Session(model, runtime)
    pieces = list(session.generate("Once upon a time", tokenizer, 60))
    golden = (DATA / "llama" / "golden-t0-n200.txt").read_text()
    assert len(pieces) > 20 and golden.startswith("Once upon a time" + "".join(pieces)[:100])
    loaded = ti.load(DATA / "llama" / "stories260K.bin")
    assert loaded.eval("Once upon a time", len(pieces), tokenizer=tokenizer) == "".join(pieces)


@pytest.mark.skipif(not (DATA / "llama" / "stories260K.bin").exists(), reason="no test data")
def test_chats_stream_and_stop(runtime):
    model = ti.Model.load(DATA / "llama" / "stories260K.bin")
    tokenizer = model.tokenizer(DATA / "llama" / "tok512.bin")
    chat = ti.Chat(ti.Session(model, runtime), tokenizer, template="plain", max_answer=20)
    heard = []
    answer = chat.say("Once upon a time", heard.append)
    assert answer == "".join(heard) != "" and "chatml" in ti.ChatTemplate.names()
    chat.reset()
    assert len(chat.say("Once", lambda piece: False)) < len(answer)
    with pytest.raises(ZeroDivisionError):
        chat.say("more", lambda piece: 1 // 0)


def test_the_bridge_is_found():
    assert Path(ti.ggml_backend_path()).name == "libggml-tandem.so"
