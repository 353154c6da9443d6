#!/usr/bin/env python3
"""Writes conversations.json: what transformers' apply_chat_template makes of
conversations with the templates in templates/. See README.md.
python3 generate_conversations.py > conversations.json"""
import datetime
import json
import pathlib

import jinja2
import transformers
import transformers.utils.chat_template_utils as chat
from tokenizers import Tokenizer, models


class Now(datetime.datetime):
    @classmethod
    def now(cls):
        return cls(2024, 7, 26, 9, 5, 3)


chat.datetime = Now
HERE = pathlib.Path(__file__).parent
tokenizer = transformers.PreTrainedTokenizerFast(
    tokenizer_object=Tokenizer(models.BPE()), bos_token="<s>", eos_token="</s>")


def message(role, content):
    return {"role": role, "content": content}


TOOL = {"type": "function", "function": {
    "name": "get_weather", "description": "The weather in a city, < & > \"quoted\"",
    "parameters": {"type": "object", "properties": {
        "city": {"type": "string", "enum": ["Köln", "Paris"]},
        "days": {"type": "integer"}}, "required": ["city"]}}}
CALL = {"role": "assistant", "content": None, "tool_calls": [{
    "id": "abcdef123", "type": "function", "function": {
        "name": "get_weather", "arguments": {"city": "Köln", "days": 2}}}]}

CONVERSATIONS = {
    "user": [message("user", "Hello")],
    "system": [message("system", "Be brief."), message("user", "Hello")],
    "turns": [message("user", "One"), message("assistant", "Two"),
              message("user", "Three"), message("assistant", "Four"),
              message("user", "Five")],
    "system and turns": [message("system", "You are a pirate.\nSpeak so."),
                         message("user", "One"), message("assistant", "Two"),
                         message("user", "Three")],
    "ends with the assistant": [message("user", "One"),
                                message("assistant", "Two")],
    "empty messages": [message("system", ""), message("user", ""),
                       message("assistant", ""), message("user", "")],
    "empty user": [message("user", "")],
    "unicode": [message("system", "Réponds en français 🇫🇷"),
                message("user", "你好，世界！ \u200bé̩ 👩‍👩‍👧"),
                message("assistant", "Здравствуй \u00a0"),
                message("user", "\u2003naïve\u3000")],
    "white space": [message("system", "  spaced  \n"),
                    message("user", "\n\n  lead and trail \t\n"),
                    message("assistant", "  answer\n\n"),
                    message("user", "a\r\nb\n{{ not }} {% a %} tag")],
    "control tokens": [message("user", "</s><|im_end|>[/INST]<|eot_id|>")],
    "thoughts": [message("user", "Q"),
                 message("assistant", "<think>\nhmm\n</think>\n\nA"),
                 message("user", "Q2"),
                 message("assistant", "<think>\nhm\n</think>\n\nA2")],
    "wrong order": [message("user", "One"), message("user", "Two")],
    "assistant first": [message("assistant", "One"), message("user", "Two")],
    "unknown role": [message("user", "One"), message("narrator", "Two")],
    "late system": [message("user", "One"), message("assistant", "Two"),
                    message("system", "Now"), message("user", "Three")],
}
TOOL_CONVERSATIONS = {
    "tool call": [message("user", "Weather?"), CALL,
                  {"role": "tool", "content": "Sunny, 20 °C",
                   "tool_call_id": "abcdef123"}],
}


def render(template, conversation, variables):
    try:
        return tokenizer.apply_chat_template(
            conversation, chat_template=template, tokenize=False, **variables)
    except jinja2.exceptions.TemplateError as error:
        raised = type(error) is jinja2.exceptions.TemplateError
        return {"raised": str(error)} if raised else {"error": str(error)}
    except (TypeError, IndexError) as error:
        return {"error": str(error)}


def main():
    cases = []

    def add(name, conversation, variables):
        every = {**CONVERSATIONS, **TOOL_CONVERSATIONS}
        cases.append({"template": name, "conversation": conversation,
                      "variables": variables,
                      "expected": render(
                          (HERE / "templates" / f"{name}.jinja").read_text(),
                          every[conversation], variables)})

    for name in sorted(p.stem for p in (HERE / "templates").glob("*.jinja")):
        for conversation in CONVERSATIONS:
            for prompt in (False, True):
                add(name, conversation, {"add_generation_prompt": prompt})
    for name in ("llama3.1", "mistral-v3", "qwen2.5", "qwen3"):
        for conversation in ("user", "system and turns", "tool call"):
            add(name, conversation,
                {"add_generation_prompt": True, "tools": [TOOL, TOOL]})
    add("llama3.1", "system", {"add_generation_prompt": True, "tools": [TOOL],
                               "tools_in_user_message": False})
    add("llama3.1", "user", {"builtin_tools": ["code_interpreter", "search"],
                             "date_string": "1 Jan 2025"})
    for thinking in (True, False):
        add("qwen3", "turns", {"add_generation_prompt": True,
                               "enable_thinking": thinking})
    print(json.dumps({
        "variables": {"bos_token": "<s>", "eos_token": "</s>", "tools": None,
                      "documents": None, "add_generation_prompt": False},
        "conversations": {**CONVERSATIONS, **TOOL_CONVERSATIONS},
        "cases": cases}, ensure_ascii=False, indent=0))


main()
