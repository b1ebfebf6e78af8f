# SPDX-License-Identifier: MIT
"""Chat templates: how a conversation is written for a model that was trained on it."""
import ctypes
import json
from typing import Any, Dict, List, Optional, Sequence

from . import _native
from ._handle import Handle, turn
from ._native import llama, tandem, told
from .models import Model, Path, Tokenizer

Message = Dict[str, Any]


class ChatTemplate(Handle):
    """A template in the language of Jinja, evaluated as transformers' apply_chat_template does it.
    Any thread.

    Args:
        template: a file, a name of ``names()``, or the template itself (with ``{{`` or ``{%``).
    """

    _what = "chat template"

    def __init__(self, template: Path) -> None:
        is_text = isinstance(template, str) and ("{{" in template or "{%" in template)
        if is_text:
            data = _native.data_of(template, "template")
            self._own(_native.make("chat_template_parse", data, len(data), None),
                      tandem.tandem_chat_template_free)
        else:
            self._own(_native.open_file("chat_template_open", template),
                      tandem.tandem_chat_template_free)

    @classmethod
    def of(cls, model: Model, name: Optional[str] = None) -> "ChatTemplate":
        """The model's own template, or the one of this name ("tool_use"). Raises TandemError
        (NOT_FOUND) for a model without."""
        if not isinstance(model, Model):
            raise TypeError(f"model: {told(model)}, expected a model")
        made = cls.__new__(cls)
        with turn(model._needs):
            made._own(_native.make("chat_template_of_source", llama.tandem_model_source(model), name),
                      tandem.tandem_chat_template_free)
        return made

    @staticmethod
    def names() -> List[str]:
        """Templates that come with the library."""
        found: List[str] = []
        while tandem.tandem_chat_template_name(len(found)):
            found.append(_native.text(tandem.tandem_chat_template_name(len(found))))
        return found

    @property
    def text(self) -> str:
        """The template itself."""
        n = ctypes.c_size_t()
        with turn(self._needs):
            at = tandem.tandem_chat_template_text(self, ctypes.byref(n))
            return ctypes.string_at(at, n.value).decode("utf-8", "replace")

    def _rendered(self, messages: Sequence[Message], tokenizer: Optional[Tokenizer],
                  variables: Dict[str, Any]) -> Any:
        given = dict(variables, messages=list(messages))
        data = json.dumps({name: value for name, value in given.items() if value is not None},
                          ensure_ascii=False).encode("utf-8", "surrogatepass")
        out = _native.filled(_native.Rendered)
        _native.call("chat_template_render", self, data, len(data), tokenizer, 0, ctypes.byref(out))
        return out

    def render(self, messages: Sequence[Message], tokenizer: Optional[Tokenizer] = None,
               tools: Optional[Sequence[Dict[str, Any]]] = None,
               add_generation_prompt: bool = True, **variables: Any) -> str:
        """The conversation as text.

        Args:
            messages: dicts with "role" and "content", as transformers has them.
            tokenizer: gives bos_token and eos_token.
            add_generation_prompt: the answer of the assistant follows.
            variables: whatever else the template asks for, such as enable_thinking=False.
        """
        out = self._rendered(messages, tokenizer, dict(
            variables, tools=tools, add_generation_prompt=add_generation_prompt))
        try:
            return ctypes.string_at(out.text, out.n).decode("utf-8", "replace")
        finally:
            tandem.tandem_rendered_free(ctypes.byref(out))

    def encode(self, messages: Sequence[Message], tokenizer: Tokenizer,
               tools: Optional[Sequence[Dict[str, Any]]] = None,
               add_generation_prompt: bool = True, **variables: Any) -> List[int]:
        """The conversation as tokens. Control tokens that the template writes are single tokens; what
        stands in messages is text, whatever it spells."""
        if not isinstance(tokenizer, Tokenizer):
            raise TypeError(f"tokenizer: {told(tokenizer)}, expected a tokenizer")
        out = self._rendered(messages, tokenizer, dict(
            variables, tools=tools, add_generation_prompt=add_generation_prompt))
        try:
            return _native.encoded("rendered_encode", out.n + 16, tokenizer, ctypes.byref(out))
        finally:
            tandem.tandem_rendered_free(ctypes.byref(out))

