"""Chat templates for tests: the embedded model's own knows nothing of tools."""

TEMPLATE = """{%- for tool in tools or [] %}{{ tool | tojson }}
{% endfor %}{% for m in messages %}{{ m.role }}:{{ m.content }}
{%- for call in m.tool_calls or [] %}{{ call.function.arguments | tojson }}{% endfor %}
{% endfor %}{{ reasoning_effort }}{{ '<think>' if enable_thinking else '</think>' }}
"""

# By its mark the server knows the form in which a model writes calls.
CALLS_TEMPLATE = TEMPLATE + "{# <tool_call> #}"
