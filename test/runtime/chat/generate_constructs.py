#!/usr/bin/env python3
"""Writes constructs.json: templates, each with what transformers' environment
makes of it. See README.md.  python3 generate_constructs.py > constructs.json"""
import datetime
import json

import transformers.utils.chat_template_utils as chat


class Now(datetime.datetime):
    @classmethod
    def now(cls):
        return cls(2024, 7, 26, 9, 5, 3)


chat.datetime = Now

CONTEXTS = {
    "none": {},
    "data": {
        "t": True, "f": False, "n": None, "i": 7, "m": -3, "r": 2.5,
        "s": "Hello, World", "e": "", "w": "  padded\t\n", "u": "Grüße, 世界 👋 ß",
        "l": [3, 1, 2], "x": [], "names": ["b", "A", "c", "a"],
        "d": {"b": 1, "a": [1, {"k": "v"}], "C": None, "items": "hidden"},
        "msgs": [{"role": "system", "content": "Be brief."},
                 {"role": "user", "content": "Hi"},
                 {"role": "assistant", "content": "Hello!", "tool_calls": []},
                 {"role": "user", "content": "Bye", "n": 3}],
        "nested": {"a": {"b": {"c": [10, 20, 30]}}},
        "q": "it's \"quoted\" \\ back\n\ttab \u00a0\u200b\x07é",
        "tools": [{"type": "function", "function": {
            "name": "get_weather", "description": "Weather <now> & later",
            "parameters": {"type": "object", "properties": {
                "city": {"type": "string", "enum": ["Köln", "Paris"]},
                "days": {"type": "integer", "default": 1.5}},
                "required": ["city"]}}}],
    },
}

EXPRESSIONS = r"""
1 + 2 * 3
(1 + 2) * 3
7 // 2
-7 // 2
7 % 3
-7 % 3
7 % -3
7 / 2
6 / 2
2 ** 10
2 ** -1
2 ** 3 ** 2
-2 ** 2
1.5 + 1
7.5 // 2
-7.5 // 2
-7.5 % 2
7.5 % -2
1e3
1e16
1e15
1.5e-5
0.0001
123456789012345680.0
100000.0 * 10
1 / 3
0.1 + 0.2
-0.0
1_000 + 0x1f + 0b101 + 0o17
10 / 4 * 2
3 - 2 - 1
+i
-i
- -i
-m|abs
true
True
none
None
[1, 'a', none, true, 2.0, [], {}, ()]
(1,)
(1, 2)
()
{'a': 1, 'b': [1, 2], 3: 'c'}
{}
'a' 'b'
"a\tb\nc\\d\x41\u00e9\101"
'it\'s'
'\q'
"a" ~ 1 ~ none ~ true ~ 1.0
'ab' * 3
3 * 'ab'
'ab' * 0
'ab' * -1
[1] * 2
[1] + [2]
(1,) + (2,)
'a' + 'b'
t and 'x'
f and 'x'
f or 'x'
e or n or 'last'
not t
not not t
t and f or t
1 < 2
1 < 2 < 3
1 < 3 < 2
3 > 2 >= 2 != 1
1 == 1.0
true == 1
1 == '1'
'a' < 'b'
'a' < 'B'
[1, 2] < [1, 3]
[1, 2] == [1, 2]
(1, 2) == [1, 2]
{'a': 1} == {'a': 1.0}
none == none
n is none
'a' in 'abc'
'' in 'abc'
'x' not in 'abc'
1 in l
'1' in l
'a' in d
'zz' in d
2 in (1, 2)
1 in undefinedthing
not 1 in l
'a' if t else 'b'
'a' if f else 'b'
'a' if f
('a' if f) is undefined
1 if t else 2 if t else 3
1 if f else 2 if f else 3
missing
missing is defined
missing is undefined
d.missing
d.missing is defined
d['missing'] is defined
d.a
d.a[1].k
d['a'][1]['k']
d.a.1.k
d.items
d['items']
d.items()
d.keys()
d.values()
d.get('b')
d.get('zz')
d.get('zz', 5)
d|length
l[0]
l[-1]
l[5] is defined
l[1:]
l[:2]
l[::-1]
l[-2:]
l[:-1]
l[::2]
l[5:]
l[1:1]
names[3:0:-1]
names[::-2]
s[0]
s[-1]
s[0:5]
s[::-1]
s[100:]
u[0:7]
u[7]
u[-3]
u|length
s|length
w|trim
w|trim|length
'xxhixx'|trim('x')
s|upper
s|lower
u|upper
u|lower
u|title
'ΑΣ ΑΣΑ'|lower
'ǆ ŉ ﬁ'|upper
'ǆ'|capitalize
s|title
'hello wORLD-foo (bar) [x] <y> it\'s'|title
'hello wORLD it\'s'.title()
'hELLO wORLD'|capitalize
'hELLO'.capitalize()
'aBc'.swapcase()
s|replace('l', 'L')
s|replace('l', 'L', 1)
'abc'|replace('', '-')
'abc'.replace('', '-', 2)
''.replace('', 'x')
'abc'.replace('', '-', 4)
5|replace(5, 6)
l|join
l|join(', ')
[1, none, 'a']|join('-')
msgs|map(attribute='role')|join(',')
msgs|join(',', attribute='role')
msgs|map(attribute='n', default='?')|join(',')
msgs|map(attribute='content')|map('upper')|list
names|map('replace', 'a', 'z')|list
msgs|selectattr('role', 'equalto', 'user')|list|length
msgs|selectattr('role', '==', 'user')|map(attribute='content')|list
msgs|rejectattr('role', 'eq', 'user')|map(attribute='role')|list
msgs|selectattr('n')|list
msgs|selectattr('n', 'defined')|list
msgs|rejectattr('n', 'undefined')|map(attribute='n')|first
msgs|selectattr('role', 'in', ['user', 'system'])|list|length
[0, 1, 2, '', none, 'a']|select|list
[0, 1, 2, '', none, 'a']|reject|list
l|select('odd')|list
l|select('gt', 1)|list
l|reject('divisibleby', 3)|list
l|select('in', [1, 2])|list
x|first is defined
x|last is defined
l|first
l|last
s|first
s|last
l|sort
names|sort
names|sort(case_sensitive=true)
l|sort(reverse=true)
msgs|sort(attribute='role')|map(attribute='role')|list
msgs|sort(attribute='role,content')|map(attribute='content')|list
l|reverse|list
s|reverse
names|unique|list
names|unique(case_sensitive=true)|list
[1, 1.0, true, 'a']|unique|list
l|min
l|max
names|min
names|max
x|max is defined
l|sum
l|sum(start=10)
[{'p': 1}, {'p': 2}]|sum(attribute='p')
d|dictsort
d|dictsort(true)
{'x': 2, 'y': 1}|dictsort(by='value')
{'x': 2, 'y': 1}|dictsort(reverse=true)
d|items|list
missing|items|list
d|list
s|list
l|batch(2)|list
l|batch(2, 'x')|list
l|slice(2)|list
l|slice(2, 'x')|list
msgs|groupby('role')|map('first')|list
msgs|groupby('role')|map(attribute='list')|map('length')|list
(msgs|groupby('role'))[0].grouper
missing|default('dflt')
missing|d('dflt')
e|default('dflt')
e|default('dflt', true)
n|default('dflt')
n|default('dflt', boolean=true)
missing|default
'42'|int
'42.7'|int
' 42 '|int
'x'|int
'x'|int(5)
'0x1F'|int(base=16)
'1f'|int(0, 16)
'101'|int(base=2)
3.99|int
-3.99|int
none|int
true|int
'3.5'|float
'x'|float
'x'|float(1.5)
'1e3'|float
'inf'|float
3|float
42.55|round
42.55|round(1)
42.55|round(1, 'floor')
42.55|round(1, 'ceil')
2.5|round
3.5|round
2|round
42|round(1, 'ceil')
2.675|round(2)
1234.5|round(-2)
m|abs
-2.5|abs
5|string
[1, 'a']|string
missing|string
true|string ~ none|string
'<a href="x">\'&'|e
'<a>'|escape
'<a>'|safe
'a\nb\n\nc'|indent
'a\nb\n\nc'|indent(2)
'a\nb\n\nc'|indent(2, true)
'a\nb\n\nc'|indent(2, first=true, blank=true)
'a\nb'|indent('> ')
''|indent
'a\n'|indent
'x'|center(5)
'xy'|center(5)
'foo bar baz qux'|truncate(9)
'foo bar baz qux'|truncate(9, true)
'foo bar baz qux'|truncate(11)
'foo bar baz qux'|truncate(11, false, '...', 0)
'one two, three'|wordcount
'%s and %d and %.2f'|format('a', 5, 2.345)
'%(a)s-%(b)05d'|format(a=1, b=42)
'%5s|%-5s|%05d|%+d|%x|%X|%o|%%|%r|%c' % ('a', 'b', 42, 7, 255, 255, 8, 'q', 'z')
'%s' % 5
'%s' % [1, 2]
'%d' % 3.9
'%e %g %G' % (12345.678, 0.0001, 1e20)
'%.3s|%*d' % ('abcdef', 5, 3)
'%s' % 'x'
'{} {}'.format('a', 1)
'{0} {1} {0}'.format('a', 'b')
'{name}: {v:.2f}'.format(name='n', v=3.14159)
'{:>5}|{:<5}|{:^5}|{:*^7}'.format('a', 'b', 'c', 'd')
'{:05d} {:+d} {:,} {:x} {:b} {:%}'.format(42, 7, 1234567, 255, 5, 0.25)
'{{}} {!r}'.format('a')
'{0[k]} {1.role}'.format({'k': 1}, msgs[0])
'{:.3}'.format('abcdef')
'{:e}'.format(1234.5)
'{}'.format(none)
'{:d}'.format(true)
l|tojson
d|tojson
u|tojson
q|tojson
tools|tojson
tools|tojson(indent=2)
tools[0]|tojson(indent=4)
{'b': 1, 'a': 2}|tojson(sort_keys=true)
{'b': 1, 'a': [1, 2]}|tojson(separators=(',', ':'))
u|tojson(ensure_ascii=true)
[]|tojson(indent=2)
{}|tojson(indent=2)
[1, [], {}]|tojson(indent=2)
[1.0, 1e20, true, none, 'a/b', '\u2028']|tojson
{1: 'a', true: 'b', none: 'c', 1.5: 'd'}|tojson
(1, 2)|tojson
'\x00\x1f\x7f'|tojson
q
[q]
['\u200b\xa0\xad', '\U0001f600', "it's", 'a"b', '\'"']
'a,b,c'.split(',')
'a,b,c'.split(',', 1)
'a,b,c'.rsplit(',', 1)
' a  b c '.split()
' a  b c '.split(none, 1)
' a  b c '.rsplit(none, 1)
'abc'.split('b')[1]
''.split(',')
''.split()
'a\nb\r\nc\x0bd'.splitlines()
'a\nb\n'.splitlines(true)
'  x '.strip()
'  x '.lstrip()
'  x '.rstrip()
'xxaxx'.strip('x')
'\nabc\n'.lstrip('\n')
'\u3000x\u2003'.strip()
'abc'.startswith('ab')
'abc'.startswith(('x', 'a'))
'abc'.endswith('bc')
'abc'.endswith('x')
'abcabc'.find('c')
'abcabc'.find('x')
'abcabc'.rfind('c')
'äbcäbc'.find('b', 2)
'abcabc'.index('b')
'abcabc'.count('b')
'abc'.count('')
'-'.join(['a', 'b'])
','.join('abc')
'a-b-c'.partition('-')
'a-b-c'.rpartition('-')
'abc'.partition('x')
'prefix-x'.removeprefix('prefix-')
'x.txt'.removesuffix('.txt')
'abc'.upper().lower()
'5'.zfill(3)
'-5'.zfill(4)
'a'.ljust(3, '.') ~ '|' ~ 'a'.rjust(3) ~ '|' ~ 'a'.center(4, '*')
'abc'.isalpha(), 'ab1'.isalnum(), '12'.isdigit(), ' '.isspace(), ''.isalpha()
'abc'.islower(), 'ABC'.isupper(), 'Abc'.islower()
'äß'.isalpha(), '²'.isdigit(), '½'.isnumeric(), '世'.isalpha()
l.index(1), l.count(2)
(1, 2, 2).count(2)
'abc' is string, 5 is string
5 is number, 5.0 is number, true is number, 'a' is number
5 is integer, true is integer, 5.0 is integer
5.0 is float, 5 is float
d is mapping, l is mapping
l is sequence, d is sequence, 'a' is sequence, 5 is sequence
l is iterable, 5 is iterable, d.items() is iterable, d.items() is sequence
t is true, 1 is true, f is false, 0 is false
t is boolean, 1 is boolean
n is none, missing is none
5 is odd, 5 is even, 4 is even
6 is divisibleby 3, 6 is divisibleby(4)
5 is eq 5, 5 is equalto(5.0), 5 is ne 4, 5 is sameas 5
5 is lt 6, 5 is le 5, 5 is gt 4, 5 is ge 6
5 is lessthan 6, 5 is greaterthan 6
'a' is in 'abc', 'x' is in ['x'], 'x' is not in ['x']
'abc' is lower, 'ABC' is upper, 'Abc' is lower
5 is not none and 6 is not string
not 5 is string
range is callable, 5 is callable
'upper' is filter, 'nope' is filter, 'odd' is test
5 is defined and missing is not defined
range(5)|list
range(2, 5)|list
range(10, 0, -3)|list
range(5)
range(1, 10, 2)
range(5)[1:3]|list
range(3)|length, range(3)[-1], 2 in range(3)
dict(a=1, b=2)
dict({'a': 1}, b=2)
dict([('a', 1)])
namespace(a=1).a
namespace(a=1).b is defined
strftime_now('%d %b %Y')
strftime_now('%Y-%m-%d %H:%M:%S %A %B %j %y %-d %%')
s.upper
msgs[0].role == 'system'
msgs[0]['role'] == 'system'
msgs[-1].content
msgs[1:]|length
msgs|length > 3 and msgs[0].role == 'system'
(msgs|first).role
msgs|map(attribute='role')|unique|list
nested.a.b.c[1]
nested['a']['b'].c[-1]
[nested]|map(attribute='a.b.c.0')|list
l is string or l is not mapping
'a' ~ 'b' == 'ab'
1 ~ 2 + 3
'%s' % ('a' ~ 'b')
s[:5]|upper ~ '!'
-l[0]
(l|length) - 1
l|length - 1
not l
x or 'none'
(1 if t else 2)|string
d.a[0] + 1
'a' is string and 'b' is string or false
{'a': {'b': 2}}.a.b
[[1, 2], [3, 4]][1][0]
('a', 'b')[1]
"%s" % missing
'x' in d.a
d.C is none
d['C'] is none
d.b is number
w.strip().upper()
u.split(' ')[1]
'a' < 'b' and 'B' < 'a'
1.0 == 1 and 1 in [1.0]
tools[0].function.name
tools[0].function.parameters.properties|length
tools[0].function.parameters.properties.items()|list|length
tools[0]['function']['parameters']['required'][0]
tools is defined and tools is not none and tools|length > 0
l|map('string')|join('+')
[[3, 'c'], [1, 'a']]|sort
[['k', 'v']]|map('last')|list
'a\\nb'
'line1\
line2'
missing ~ 'x'
missing|length
missing|list
missing|join(',')
missing|upper
missing|trim
missing == missing
missing == none
not missing
[missing]
[1,2,][1]
{'a': 1,}.a
l|list == l
"é" == "\u00e9"
loop is defined
1 if missing else 2
msgs|selectattr('tool_calls', 'defined')|list|length
msgs|selectattr('role', 'ne', 'user')|map(attribute='role')|join(' ')
(l|sort)[0]
l|map('float')|list
['1', 'x']|map('int', default=9)|list
"a" "b" ~ 'c'
'abc'[1:][0]
'abc'|list|reverse|join
s.find('World') != -1
s.lower().startswith('hello')
'a=b=c'.split('=', maxsplit=1)
'{"a": 1}'|string
3|string|length
""|length == 0
l[:1] + l[2:]
d.keys()|list|sort
d.values()|list|length
d.get('a', {})[0]
(d.get('zz') or {}).get('y', 'deep')
""", r"""
1 / 0
1 // 0
1 % 0
'a' + 1
1 + 'a'
missing.attr
missing['x']
missing()
missing + 1
'a' + missing
d.missing.more
n.attr.more
5()
'a' < 1
none < 1
1 in 5
5|length
5|list
l|nofilter
l is notest
raise_exception('boom')
raise_exception('boom ' ~ 5)
range(1000000)
range(0)|batch(0)|first|length ~ missing.x
{[]: 1}
{'a': missing}|tojson
missing|tojson
namespace(_a=1)
l.append(1)
d.update({'a': 1})
d.pop('a')
''.__class__.__mro__
s.__class__.x
'{0.__class__.x}'.format(1)
'%d' % 'a'
'%s %s' % 'a'
'%s' % (1, 2)
'{}'.format()
'a'.index('x')
[1, 'a']|sort
[{'a': 1}]|unique|list
s.split('')
msgs|map(attribute='role')|length
msgs|selectattr('role')|last
dict(5)
'a'|int(base=99)|string ~ missing.y
s(1)
loop.index
missing|dictsort
5|items
5|join
missing|abs
missing|int
missing > 1
-missing
-'a'
l|join(missing.x)
'abc' % 5
"""

TEMPLATES = r"""
{% for m in msgs %}{{ loop.index }}/{{ loop.length }}:{{ m.role }}{% if not loop.last %}, {% endif %}{% endfor %}
=====
{% for m in msgs %}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.revindex }}{{ loop.revindex0 }} {% endfor %}
=====
{% for i in l %}{{ loop.previtem }}<{{ i }}>{{ loop.nextitem }} {% endfor %}
=====
{% for i in l %}{{ loop.cycle('odd', 'even') }} {{ loop.changed(i > 1) }} {% endfor %}
=====
{% for i in x %}never{% else %}empty{% endfor %}
=====
{% for i in l if i > 1 %}{{ i }}{{ loop.length }}{% else %}none{% endfor %}
=====
{% for i in l if i > 5 %}{{ i }}{% else %}none{% endfor %}
=====
{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}
=====
{% for k, v in d|dictsort %}{{ k }}{% endfor %}
=====
{% for k in d %}{{ k }}{% endfor %}
=====
{% for c in 'aé👋' %}[{{ c }}]{% endfor %}
=====
{% for a, (b, c) in [(1, (2, 3)), (4, (5, 6))] %}{{ a }}{{ b }}{{ c }} {% endfor %}
=====
{% for i in range(10) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 5 %}{% break %}{% endif %}{{ i }}{% endfor %}
=====
{% for i in range(3) %}{% for j in range(3) %}{% if j == 1 %}{% break %}{% endif %}{{ i }}{{ j }}{{ loop.index }} {% endfor %}{{ loop.index }}{% endfor %}
=====
{% for n in [{'v': 1, 'c': [{'v': 2, 'c': []}]}, {'v': 3, 'c': []}] recursive %}{{ n.v }}({{ loop.depth }}{{ loop(n.c) }}){% endfor %}
=====
{% for i in missing %}x{% else %}undefined is empty{% endfor %}
=====
{% set a = 1 %}{% for i in l %}{% set a = a + i %}{{ a }} {% endfor %}{{ a }}
=====
{% set ns = namespace(n=0, found=false) %}{% for i in l %}{% set ns.n = ns.n + i %}{% if i == 1 %}{% set ns.found = true %}{% endif %}{% endfor %}{{ ns.n }} {{ ns.found }}
=====
{% if t %}{% set a = 1 %}{% else %}{% set a = 2 %}{% endif %}{{ a }}
=====
{% if f %}a{% elif n %}b{% elif i == 7 %}c{% else %}d{% endif %}
=====
{% if f %}a{% elif e %}b{% else %}d{% endif %}
=====
{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set a, b = b, a %}{{ a }}{{ b }}
=====
{% set a = 1, 2 %}{{ a }}
=====
{% set block %}one {{ i }} two{% endset %}[{{ block }}]{{ block|upper }}
=====
{% set block | upper | trim %}  one {{ i }} {% endset %}[{{ block }}]
=====
{% macro hello(name, greeting='Hello', *, end='!') %}{% endmacro %}
=====
{% macro hello(name, greeting='Hello') %}{{ greeting }}, {{ name }}!{% endmacro %}{{ hello('A') }}{{ hello('B', 'Hi') }}{{ hello(greeting='Yo', name='C') }}{{ hello() }}
=====
{% macro f() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1, 2, a=3) }}
=====
{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1, 2) }}
=====
{% macro f(a) %}{{ a }}{% endmacro %}{{ f(b=2) }}
=====
{% macro outer() %}<{{ caller() }}>{% endmacro %}{% call outer() %}inside {{ i }}{% endcall %}
=====
{% macro each(items) %}{% for it in items %}[{{ caller(it) }}]{% endfor %}{% endmacro %}{% call(x) each(l) %}{{ x * 2 }}{% endcall %}
=====
{% macro fact(n) %}{% if n <= 1 %}1{% else %}{{ n }}*{{ fact(n - 1) }}{% endif %}{% endmacro %}{{ fact(5) }}
=====
{% set a = 1 %}{% macro m() %}{{ a }}{% endmacro %}{% set a = 2 %}{{ m() }}
=====
{% macro m(x) %}{% set x = x ~ '!' %}{{ x }}{% endmacro %}{{ m('a') }}{{ x }}
=====
{% macro m(x=i) %}{{ x }}{% endmacro %}{{ m() }}{{ m(x=none) }}
=====
{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}
=====
{% macro m() %}  x  {% endmacro %}[{{ m()|trim }}]{{ m()|length }}
=====
{% filter upper %}abc {{ s }}{% endfilter %}
=====
{% filter replace('a', 'b')|upper %}banana{% endfilter %}
=====
{% with a = 1, b = i %}{{ a }}{{ b }}{% endwith %}{{ a }}
=====
{% with %}{% set q = 5 %}{{ q }}{% endwith %}
=====
{% raw %}{{ not a tag }} {% nor this %}{% endraw %}
=====
  {%- raw -%}  {{ x }}  {%- endraw -%}  end
=====
a {# comment #} b {#- stripped -#} c
=====
{# multi
line #}
text
=====
  {% if t %}
    indented
  {% endif %}
end
=====
  {%+ if t %}kept{% endif +%}
 after
=====
a
  {%- if t -%}
  b
  {%- endif -%}
c
=====
{{- ' x ' -}}   y
=====
x   {{- ' x ' -}}   y
=====
line1
{{ s }}
line3
=====
{% for i in l %}
{{ i }}
{% endfor %}
done
=====
{% for i in l -%}
  {{ i }}
{%- endfor %}
=====
	{% set a = 1 %}	tabbed
=====
text {% if t %}inline{% endif %} text
=====
{{ '{{' }}{{ '}}' }}{{ "%}" }}
=====
{{ {'a': {'b': 1}}['a']['b'] }}
=====
{{ {'a': 1}|tojson }}{{ [{'x': {}}] }}
=====
{% if 'a' in {'a': 1} and 1 not in [2] %}yes{% endif %}
=====
{% generation %}{{ s }}{% endgeneration %}
=====
{% for m in msgs %}{% if m['role'] == 'assistant' %}{% generation %}{{ m.content }}{% endgeneration %}{% else %}{{ m.content }}|{% endif %}{% endfor %}
=====
{% set ns = namespace() %}{% set ns.a = [1] %}{% set ns.a = ns.a + [2] %}{{ ns.a }}{{ ns.b is defined }}
=====
{% set ns = namespace(last=-1) %}{% for m in msgs[::-1] %}{% set index = (msgs|length - 1) - loop.index0 %}{% if m.role == 'user' and ns.last == -1 %}{% set ns.last = index %}{% endif %}{% endfor %}{{ ns.last }}
=====
{% print 'printed', 1 %}
=====
{% print 'printed' %}
=====
{% set d.x = 1 %}
=====
{% unknown %}
=====
{% include 'x' %}
=====
{% if t %}
=====
{{ 1 +
=====
{{ 'a }}
=====
{% for i in l %}{{ i }}{% endif %}
=====
{{ a b }}
=====
{% break %}
=====
{{ [1, 2 }}
=====
{{ 1 is string is string }}
=====
{# open
=====
{% set x %}{{ s }}
=====
{% for a, b in l %}{{ a }}{% endfor %}
=====
{% for a, b in [(1, 2, 3)] %}{{ a }}{% endfor %}
=====
{{ raise_exception('Only "user" & <assistant>: ' ~ msgs|length) }}
=====
{% for m in msgs %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}{% endfor %}
=====
{%- set tool_list = tools | map(attribute='function') | list -%}
{{- tool_list | tojson(indent=2) }}
=====
{%- for tool in tools %}
    {{- "\n" }}
    {{- tool | tojson }}
{%- endfor %}
=====
{%- for tool in tools %}{%- set fn = tool.function %}{{ fn.name }}({% for name, spec in fn.parameters.properties.items() %}{{ name }}: {{ spec.type }}{% if not loop.last %}, {% endif %}{% endfor %}){%- endfor %}
=====
{% macro render(spec, depth=0) -%}
{%- if spec is mapping -%}
{ {%- for k, v in spec|dictsort %} {{ k }}: {{ render(v, depth + 1) }};{% endfor %} }
{%- elif spec is iterable and spec is not string -%}
[{% for v in spec %}{{ render(v, depth + 1) }}{{ ',' if not loop.last }}{% endfor %}]
{%- else -%}
{{ spec }}
{%- endif -%}
{%- endmacro %}{{ render(tools) }}
=====
{% set content = '<think>\nreason\n</think>\n\nanswer' %}{{ content.split('</think>')[-1].lstrip('\n') }}|{{ content.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') }}
=====
{%- if not date_string is defined %}{%- set date_string = strftime_now("%d %b %Y") %}{%- endif %}{{ date_string }}
=====
{% set loop_messages = msgs[1:] if msgs[0].role == 'system' else msgs %}{{ loop_messages|length }}
=====
{{ bos_token }}{{ eos_token }}|
=====
{% for i in [1, 2] %}{% set loop_i = loop.index %}{% for j in [1] %}{{ loop_i }}.{{ loop.index }} {% endfor %}{% endfor %}
=====
{% set a = [] %}{% for i in l %}{% set a = a + [i] %}{% endfor %}{{ a }}
=====
{% for i in l %}{% macro in_loop() %}{{ i }}{% endmacro %}{{ in_loop() }}{% endfor %}
=====
{% set gen = msgs|map(attribute='role') %}{{ gen|list }}{{ gen|list }}
=====
{% set it = l|select('odd') %}{{ it|first }}{{ it|first }}
=====
a{% if t %}

b
{% endif %}

c
=====
windows
line
{% if t %}
x
{% endif %}
=====
{{ "a" if t else "b" }}{{ "c" if f }}
=====
{% if msgs|length is even %}even{% endif %}
=====
{% if loop is defined %}a{% endif %}{% for i in [1] %}{% if loop is defined %}b{% endif %}{% endfor %}
=====
{% for i in range(3) if i is odd %}{{ i }}{% endfor %}
=====
{% for m in msgs if m.role != 'system' %}{{ m.role }}{{ ' ' if not loop.last }}{% endfor %}
=====
{% for a in [1] %}{% else %}no{% endfor %}{% for a in [] %}{% else %}{% set z = 1 %}{{ z }}{% endfor %}{{ z }}
=====
{% set x = namespace(a=1) %}{% set x._b = 2 %}
=====
{% set ns = namespace(a=0) %}{% macro inc() %}{% set ns.a = ns.a + 1 %}{% endmacro %}{{ inc() }}{{ inc() }}{{ ns.a }}
=====
{{ msgs|tojson }}
=====
{% set true = 1 %}
=====
{{ 5 if }}
=====
{{ 'x' is defined if t }}
=====
{{ (missing or d).b }}
=====
{% for i in l %}{% for k in l %}{% if k == 2 %}{% continue %}{% endif %}{{ k }}{% endfor %};{% endfor %}
=====
{% set v %}{% for i in l %}{{ i }}{% if i == 1 %}{% break %}{% endif %}{% endfor %}{% endset %}{{ v }}
=====
{%if t%}tight{%endif%}{{s}}{{-1}}
=====
{{ 1 }}
{#- c #}
{{ 2 }}
=====
{{ '\n' }}
{{ 3 }}
"""


def render(template, context):
    try:
        return chat._cached_compile_jinja_template(template).render(**context)
    except Exception as error:  # what is wrong is the test's business
        import jinja2
        raised = type(error) is jinja2.exceptions.TemplateError
        return {"raised": str(error)} if raised else {"error": str(error)[:80]}


def main():
    good, bad = EXPRESSIONS
    sources = []
    for block in (good, bad):
        # An expression may have a line break behind a backslash.
        for line in block.replace("\\\n", "\0").strip("\n").split("\n"):
            sources.append("{{ " + line.replace("\0", "\\\n") + " }}")
    sources += [t.strip("\n") if not t.startswith("\n\n") else t[1:-1]
                for t in TEMPLATES.split("=====")]
    sources.append("a\r\nb{% if t %}\r\nc\r{% endif %}\r\n")
    sources.append("ends with a line break\n")
    sources.append("ends with two\n\n")
    sources.append("{% if t %}x{% endif %}\n")
    cases = []
    for source in sources:
        result = render(source, CONTEXTS["data"])
        if isinstance(result, str) and " at 0x" in result:
            continue  # an address, which no template can mean
        cases.append([source, result])
    print(json.dumps({"context": CONTEXTS["data"],
                      "now": "2024-07-26 09:05:03",
                      "cases": cases}, ensure_ascii=False, indent=0))


main()
