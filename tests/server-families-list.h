/* SPDX-License-Identifier: MIT
 * X(family, format of calls, sign of its templates, mark in front of the answer or NULL, marks of
 * reasoning, form of a call, what a model writes, what is read: "reasoning#content|NAME:ID
 * ARGUMENTS"). After the families' templates on Hugging Face and the format's own description. */
#define ROW_BAR   "\xef\xbd\x9c>"
#define ROW_BLANK "\xe2\x96\x81"
#define ROW_TOOL  "<\xef\xbd\x9ctool" ROW_BLANK
#define ROW_V3                                                                                     \
    ROW_TOOL "calls" ROW_BLANK "begin" ROW_BAR ROW_TOOL "call" ROW_BLANK "begin" ROW_BAR
#define ROW_V3_END                                                                                 \
    ROW_TOOL "call" ROW_BLANK "end" ROW_BAR ROW_TOOL "calls" ROW_BLANK "end" ROW_BAR
#define ROW_SEP ROW_TOOL "sep" ROW_BAR

X("Hermes, Qwen 2.5 and 3, SmolLM3, Granite 4", SRV_CALLS_HERMES, "<tool_call>", NULL,
  "`<think>`", "`<tool_call>{\"name\":..,\"arguments\":{..}}</tool_call>`",
  "<think>\nhm\n</think>\n\nLook.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"n\": 1}}\n"
  "</tool_call>",
  "hm#Look.|f: {\"n\": 1}")
X("Ernie 4.5", SRV_CALLS_HERMES, "<tool_call> <response>", "<response>", "`<think>`",
  "as Qwen 3",
  "<think>\nhm\n</think>\n\n<response>\nLook.\n</response>\n<tool_call>\n{\"name\": \"f\", "
  "\"arguments\": {}}\n</tool_call>",
  "hm#Look.|f: {}")
X("Qwen3-Coder", SRV_CALLS_TAGS, "<tool_call><function=x><parameter=y>", NULL, "`<think>`",
  "`<function=NAME><parameter=KEY>VALUE</parameter></function>`",
  "Well.\n<tool_call>\n<function=f>\n<parameter=s>\n1\n</parameter>\n</function>\n</tool_call>",
  "#Well.|f: {\"s\":\"1\"}")
X("DeepSeek R1, V3", SRV_CALLS_DEEPSEEK, ROW_V3, NULL, "`<think>`",
  "its marks around `function`, a name and a block of JSON",
  "<think>hm</think>" ROW_V3 "function" ROW_SEP "f\n```json\n{\"n\":1}\n```" ROW_V3_END,
  "hm#|f: {\"n\":1}")
X("DeepSeek V3.1", SRV_CALLS_DEEPSEEK, ROW_V3, NULL, "`<think>`",
  "its marks around a name and JSON",
  "<think>hm</think>Look." ROW_V3 "f" ROW_SEP "{\"n\":1}" ROW_V3_END, "hm#Look.|f: {\"n\":1}")
X("Kimi K2", SRV_CALLS_KIMI, "<|tool_calls_section_begin|>", NULL, "`<think>`",
  "`<\\|tool_call_begin\\|>functions.NAME:0<\\|tool_call_argument_begin\\|>{..}`",
  "<think>hm</think><|tool_calls_section_begin|><|tool_call_begin|>functions.f:0"
  "<|tool_call_argument_begin|>{\"n\":1}<|tool_call_end|><|tool_call_begin|>functions.g:1"
  "<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>",
  "hm#|f:functions.f:0 {\"n\":1}|g:functions.g:1 {}")
X("gpt-oss", SRV_CALLS_HARMONY, "<|start|>assistant<|channel|>analysis<|message|>", NULL,
  "channel `analysis`", "channel `commentary to=functions.NAME`",
  "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary to=functions.f "
  "<|constrain|>json<|message|>{\"n\":1}<|call|>",
  "hm#|f: {\"n\":1}")
X("GLM-4.5 to 4.7", SRV_CALLS_GLM, "<tool_call>{name}<arg_key>", NULL, "`<think>`",
  "`<tool_call>NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value></tool_call>`",
  "\n<think>hm</think>\nLook.\n<tool_call>f\n<arg_key>s</arg_key>\n<arg_value>1</arg_value>\n"
  "<arg_key>n</arg_key>\n<arg_value>2</arg_value>\n</tool_call>\n<tool_call>g</tool_call>",
  "hm#Look.|f: {\"s\":\"1\",\"n\":2}|g: {}")
X("GLM-4", SRV_CALLS_GLM4, "<|observation|>", NULL, "", "`NAME`, a line's end, `{..}`",
  "\nf\n{\"n\": 1}", "#|f: {\"n\": 1}")
X("Granite 3", SRV_CALLS_GRANITE, "<|tool_call|> <response>", "<response>", "`<think>`",
  "`<\\|tool_call\\|>[{\"name\":..,\"arguments\":{..}}]`",
  "<think>hm</think>\n<response>Look.</response><|tool_call|>[{\"name\": \"f\", \"arguments\": "
  "{\"n\": 1}}]",
  "hm#Look.|f: {\"n\": 1}")
X("Phi-4-mini", SRV_CALLS_GRANITE, "<|tool|>", NULL, "`<think>`",
  "`functools[{\"name\":..,\"arguments\":{..}}]`, `<\\|tool_call\\|>{..}<\\|/tool_call\\|>`",
  "<|tool_call|>{\"name\":\"f\",\"arguments\":{}}<|/tool_call|>functools[{\"name\": \"g\", "
  "\"arguments\": {\"n\": 1}}]",
  "#|f: {}|g: {\"n\": 1}")
X("Mistral, Ministral, Devstral", SRV_CALLS_MISTRAL, "[TOOL_CALLS]", NULL, "`[THINK]`",
  "`[TOOL_CALLS][{\"name\":..,\"arguments\":{..}}]`, `[TOOL_CALLS]NAME[ARGS]{..}`",
  "[THINK]hm[/THINK]Look.[TOOL_CALLS]f[ARGS]{\"n\": 1}[TOOL_CALLS]g[ARGS]{}",
  "hm#Look.|f: {\"n\": 1}|g: {}")
X("Llama 3.1 to 3.3", SRV_CALLS_LLAMA3, "<|python_tag|>", NULL, "",
  "`{\"name\":..,\"parameters\":{..}}`, `<\\|python_tag\\|>` before it or not",
  "{\"name\": \"f\", \"parameters\": {\"n\": 1}}", "#|f: {\"n\": 1}")
X("Command R7B", SRV_CALLS_COMMAND, "<|START_ACTION|> <|START_RESPONSE|>", "<|START_RESPONSE|>",
  "`<\\|START_THINKING\\|>`",
  "`<\\|START_ACTION\\|>[{\"tool_name\":..,\"parameters\":{..}}]<\\|END_ACTION\\|>`",
  "<|START_THINKING|>hm<|END_THINKING|><|START_ACTION|>[\n    {\"tool_call_id\": \"0\", "
  "\"tool_name\": \"f\", \"parameters\": {\"n\": 1}}\n]<|END_ACTION|>",
  "hm#|f:0 {\"n\": 1}")
X("Command R", SRV_CALLS_COMMAND,
  "Write 'Action:' followed by a json-formatted list of actions that you want to perform", NULL, "",
  "`Action:` and a block of JSON, `[{\"tool_name\":..,\"parameters\":{..}}]`",
  "Action:```json\n[\n    {\n        \"tool_name\": \"f\",\n        \"parameters\": {\"n\": 1}\n"
  "    }\n]```",
  "#|f: {\"n\": 1}")
X("Hunyuan", SRV_CALLS_HUNYUAN, "<tool_calls> <answer>", "<answer>", "`<think>`",
  "`<tool_calls>` around `[{..}]`, or around `<tool_call>NAME` and a block of JSON",
  "<think>\nhm\n</think>\n<answer>\nLook.\n<tool_calls>\n<tool_call>f\n```json\n{\"n\": 1}\n```\n"
  "</tool_call>\n</tool_calls>\n</answer>",
  "hm#Look.|f: {\"n\": 1}")
X("Functionary 3.1", SRV_CALLS_FUNCTIONARY, "<function=example>", NULL, "",
  "`<function=NAME>{..}</function>`", "<function=f>{\"n\": 4}</function>", "#|f: {\"n\": 4}")
X("Gemma, Phi-3, OLMo and all others", SRV_CALLS_GENERIC, "<start_of_turn>", NULL, "`<think>`",
  "`{\"name\":..,\"arguments\":{..}}`, or a list in `tool_calls`",
  " {\"name\": \"f\", \"arguments\": {\"n\": 1}}", "#|f: {\"n\": 1}")

#undef ROW_BAR
#undef ROW_BLANK
#undef ROW_TOOL
#undef ROW_V3
#undef ROW_V3_END
#undef ROW_SEP
