# SPDX-License-Identifier: MIT
# tandem-server judged by OpenAI's own Python client: models, chats and completions whole and as
# streams, stop strings, seeds, log-probabilities, JSON mode, functions, embeddings, and errors as
# exceptions; and by LangChain's tools and structured output, and by LiteLLM, where they are installed.
# Needs: openai. Also: langchain-openai, litellm.
#
# usage: server.py TANDEM_SERVER MODEL TOKENIZER
import json
import os
import re
import subprocess
import sys
import tempfile

import openai

KEY = "secret"


def start(server, model, tokenizer, key_file):
    process = subprocess.Popen(
        [server, model, "-t", tokenizer, "--port", "0", "--table", "none", "--alias", "small",
         "--chat-template", "plain",
         "--api-key-file", key_file], stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        found = re.search(r"http://\S+:(\d+)$", line.strip())
        if found:
            return process, int(found.group(1))
    raise SystemExit("the server did not start")


def check_chat(client):
    question = dict(model="small", max_tokens=24, seed=5, temperature=0.8,
                    messages=[{"role": "system", "content": "Tell a story."},
                              {"role": "user", "content": "Once upon a time"}])
    whole = client.chat.completions.create(**question)
    again = client.chat.completions.create(**question)
    text = whole.choices[0].message.content
    assert whole.choices[0].message.role == "assistant" and text
    assert again.choices[0].message.content == text, "the same seed gives another text"
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens
    assert again.usage.prompt_tokens_details.cached_tokens > 0, "the prompt was computed twice"
    parts, usage, reasons = [], None, []
    for event in client.chat.completions.create(stream=True, stream_options={"include_usage": True},
                                                **question):
        usage = event.usage or usage
        for choice in event.choices:
            parts.append(choice.delta.content or "")
            reasons.append(choice.finish_reason)
    assert "".join(parts) == text, "the stream tells another text"
    assert usage.completion_tokens == whole.usage.completion_tokens
    assert reasons[-1] == whole.choices[0].finish_reason and set(reasons[:-1]) == {None}
    word = text.split()[3]
    stopped = client.chat.completions.create(stop=[word], **question)
    assert stopped.choices[0].message.content == text[:text.index(word)]
    assert stopped.choices[0].finish_reason == "stop"


def check_logprobs(client):
    reply = client.chat.completions.create(
        model="small", max_tokens=8, temperature=0, logprobs=True, top_logprobs=3,
        messages=[{"role": "user", "content": "Once upon a time"}])
    tokens = reply.choices[0].logprobs.content
    assert len(tokens) == 8 and all(len(t.top_logprobs) == 3 for t in tokens)
    assert all(t.top_logprobs[0].token == t.token and t.logprob <= 0 for t in tokens)
    old = client.completions.create(model="small", prompt="Once upon a time", max_tokens=8,
                                    temperature=0, logprobs=2)
    assert "".join(old.choices[0].logprobs.tokens) == old.choices[0].text
    assert len(old.choices[0].logprobs.top_logprobs) == 8


def check_json(client):
    n_complete = 0
    for seed in range(20):
        reply = client.chat.completions.create(
            model="small", max_tokens=200, seed=seed, temperature=9.0,
            response_format={"type": "json_object"},
            messages=[{"role": "user", "content": "Once upon a time"}])
        if reply.choices[0].finish_reason == "stop":
            assert isinstance(json.loads(reply.choices[0].message.content), dict)
            n_complete += 1
    return n_complete


TOOL = {"type": "function", "function": {
    "name": "f", "description": "d",
    "parameters": {"type": "object", "additionalProperties": False, "required": ["n"],
                   "properties": {"n": {"type": "integer", "minimum": 1, "maximum": 9}}}}}


# The small model cannot call functions by itself: a grammar makes it call. It writes many blanks, and
# its context is short: the seed is searched with which the call is complete.
def first_whole(ask):
    for seed in range(40):
        answer = ask(seed)
        if answer is not None:
            return answer
    raise AssertionError("no call was whole")


def check_tools(client):
    say = [{"role": "user", "content": "n"}]
    question = dict(model="small", max_tokens=400, temperature=3.0, tools=[TOOL],
                    tool_choice={"type": "function", "function": {"name": "f"}})

    def ask(seed):
        choice = client.chat.completions.create(messages=say, seed=seed, **question).choices[0]
        return (seed, choice) if choice.finish_reason == "tool_calls" else None
    seed, whole = first_whole(ask)
    call = whole.message.tool_calls[0]
    assert whole.message.content is None and call.id and call.type == "function"
    assert call.function.name == "f" and 1 <= json.loads(call.function.arguments)["n"] <= 9
    name, arguments, reasons = "", "", []
    for event in client.chat.completions.create(messages=say, stream=True, seed=seed, **question):
        reasons.append(event.choices[0].finish_reason)
        for part in event.choices[0].delta.tool_calls or []:
            name += part.function.name or ""
            arguments += part.function.arguments or ""
    assert reasons[-1] == "tool_calls" and name == "f" and arguments == call.function.arguments
    say += [whole.message, {"role": "tool", "tool_call_id": call.id, "content": "1"}]
    after = client.chat.completions.create(model="small", messages=say, tools=[TOOL], max_tokens=8,
                                           temperature=0).choices[0]
    assert after.message.content and not after.message.tool_calls
    refused(openai.BadRequestError, client.chat.completions.create, model="small", messages=say,
            tools=[TOOL], tool_choice={"type": "function", "function": {"name": "g"}})
    assert client.models.retrieve("small").id == "small"
    refused(openai.NotFoundError, client.models.retrieve, model="other")


def check_responses(client):
    question = dict(model="small", input="Once upon a time", instructions="Tell a story.",
                    max_output_tokens=24, temperature=0)
    whole = client.responses.create(**question)
    assert whole.output_text and whole.status == "incomplete"
    assert whole.usage.output_tokens == 24 and whole.id.startswith("resp_")
    parts, kinds, final = [], [], None
    for event in client.responses.create(stream=True, **question):
        kinds.append(event.type)
        if event.type == "response.output_text.delta":
            parts.append(event.delta)
        final = getattr(event, "response", final)
    assert "".join(parts) == whole.output_text == final.output_text
    assert kinds[0] == "response.created" and kinds[-1] == "response.incomplete"

    def called(seed):
        for item in client.responses.create(
                model="small", input="n", max_output_tokens=400, temperature=3.0, tool_choice="required",
                tools=[dict(TOOL["function"], type="function")], extra_body={"seed": seed}).output:
            if item.type == "function_call":
                return item
    call = first_whole(called)
    assert call.name == "f" and 1 <= json.loads(call.arguments)["n"] <= 9
    client.responses.create(model="small", max_output_tokens=4, input=[
        {"role": "user", "content": "n"}, call.model_dump(),
        {"type": "function_call_output", "call_id": call.call_id, "output": "1"}])
    refused(openai.BadRequestError, client.responses.create, model="small", input="a",
            previous_response_id=whole.id)


def check_langchain(port):
    try:
        from langchain_openai import ChatOpenAI
    except ImportError:
        return ""

    def model(seed):
        return ChatOpenAI(model="small", base_url=f"http://127.0.0.1:{port}/v1", api_key=KEY,
                          temperature=3.0, seed=seed, max_tokens=400, max_retries=0)

    def calls(seed):
        return model(seed).bind_tools([TOOL], tool_choice="any").invoke("n").tool_calls or None
    call = first_whole(calls)[0]
    assert call["name"] == "f" and set(call["args"]) == {"n"}

    def streamed(seed):
        parts = None
        for part in model(seed).bind_tools([TOOL], tool_choice="f").stream("n"):
            parts = part if parts is None else parts + part
        return parts.tool_calls or None
    assert first_whole(streamed)[0]["name"] == "f"
    schema = dict(TOOL["function"]["parameters"], title="f", description="d")
    for method in ("function_calling", "json_schema"):
        def structured(seed):
            try:
                return model(seed).with_structured_output(schema, method=method).invoke("n")
            except Exception as fault:  # a text that is cut off is no JSON
                assert "length" in str(fault).lower() or "json" in str(fault).lower(), fault
                return None
        assert set(first_whole(structured)) == {"n"}
    return ", LangChain's tools and structured output"


def check_litellm(port):
    """Of an OpenAI-compatible server: a chat, a stream, a forced call, an embedding."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else it asks the network for prices
    try:
        import litellm
    except ImportError:
        return ""
    server = dict(api_base=f"http://127.0.0.1:{port}/v1", api_key=KEY)
    chat = dict(model="openai/small", max_tokens=12, temperature=0,
                messages=[{"role": "user", "content": "Once upon a time"}], **server)
    text = litellm.completion(**chat).choices[0].message.content
    parts = [part.choices[0].delta.content or "" for part in litellm.completion(stream=True, **chat)]
    assert text and "".join(parts) == text, (text, parts)
    assert len(litellm.completion(n=2, **chat).choices) == 2

    def ask(seed):
        reply = litellm.completion(**{**chat, "max_tokens": 200, "temperature": 9.0}, seed=seed,
                                   tools=[TOOL], tool_choice="required")
        calls = reply.choices[0].message.tool_calls
        return calls if calls and reply.choices[0].finish_reason != "length" else None

    call = first_whole(ask)[0].function
    assert call.name == "f" and 1 <= json.loads(call.arguments)["n"] <= 9, call
    vector = litellm.embedding(model="openai/small", input=["a"], encoding_format="float", **server)
    assert len(vector.data[0]["embedding"]) > 0
    return ", LiteLLM"


def check_rest(client):
    assert [model.id for model in client.models.list()] == ["small"]
    streamed = "".join(event.choices[0].text for event in client.completions.create(
        model="small", prompt="Once upon", max_tokens=12, temperature=0, stream=True)
        if event.choices)
    whole = client.completions.create(model="small", prompt="Once upon", max_tokens=12,
                                      temperature=0)
    assert whole.choices[0].text == streamed and whole.choices[0].finish_reason == "length"
    vector = client.embeddings.create(model="small", input="Once upon",
                                      encoding_format="float").data[0].embedding
    assert abs(sum(x * x for x in vector) - 1.0) < 1e-4
    several = client.embeddings.create(model="small", input=["Tom", "Once upon", [1, 5]])  # base64
    assert [one.index for one in several.data] == [0, 1, 2]
    assert max(abs(x - y) for x, y in zip(several.data[1].embedding, vector)) < 1e-5


def refused(kind, call, **arguments):
    try:
        call(**arguments)
    except kind:
        return
    raise AssertionError(f"{arguments} was not refused with {kind.__name__}")


def check_errors(client, port):
    chat = client.chat.completions.create
    say = [{"role": "user", "content": "Hi"}]
    refused(openai.BadRequestError, chat, model="small", messages=[])
    refused(openai.BadRequestError, chat, model="small", messages=say, n=1000)
    refused(openai.BadRequestError, chat, model="small", messages=say, temperature=-1)
    refused(openai.BadRequestError, chat, model="small",
            messages=[{"role": "user", "content": "word " * 3000}])
    refused(openai.NotFoundError, client.images.generate, prompt="x")
    stranger = openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="wrong",
                             max_retries=0)
    refused(openai.AuthenticationError, stranger.models.list)


def main():
    server, model, tokenizer = sys.argv[1:4]
    with tempfile.NamedTemporaryFile("w") as key_file:
        key_file.write(KEY + "\n")
        key_file.flush()
        process, port = start(server, model, tokenizer, key_file.name)
    client = openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key=KEY, max_retries=0)
    try:
        check_chat(client)
        check_logprobs(client)
        n_json = check_json(client)
        check_tools(client)
        check_responses(client)
        langchain = check_langchain(port) + check_litellm(port)
        check_rest(client)
        check_errors(client, port)
    finally:
        process.terminate()
        code = process.wait(60)
    assert code == 0, f"the server ended with {code}"
    print(f"server: openai {openai.__version__}: chats, streams, log-probabilities, {n_json} of 20 "
          "random JSON answers complete and valid, functions, responses, embeddings, "
          f"errors{langchain}: good")


if __name__ == "__main__":
    main()
