//===- ChatTemplateTest.cpp - Errors, limits, and the interface -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/chat/ChatTemplate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include <pthread.h>
#include <time.h>

using namespace kf;

namespace {

/// What `source` gives, or "error: " and why it gives nothing.
std::string render(const std::string &source,
                   const std::vector<ChatMessage> &messages = {},
                   const ChatRenderOptions &options = {}) {
  Result<ChatTemplate> parsed = ChatTemplate::parse(source);
  if (!parsed.ok())
    return "error: " + parsed.message();
  Result<std::string> text = parsed->render(messages, options);
  return text.ok() ? *text : "error: " + text.message();
}

std::string repeated(const std::string &text, int count) {
  std::string result;
  for (int i = 0; i < count; ++i)
    result += text;
  return result;
}

TEST(ChatTemplate, KnowsMessagesAndTokens) {
  ChatRenderOptions options;
  options.addGenerationPrompt = true;
  options.bosToken = "<s>";
  options.variables["enable_thinking"] = "false";
  EXPECT_EQ(render("{{ bos_token }}{{ eos_token }}{% for m in messages %}"
                   "[{{ m.role }}:{{ m['content'] }}]{% endfor %}"
                   "{{ add_generation_prompt }}{{ enable_thinking }}"
                   "{{ tools is none }}",
                   {{"user", "hi"}, {"assistant", ""}}, options),
            "<s>[user:hi][assistant:]TrueFalseTrue");
}

TEST(ChatTemplate, KeepsBytesThatAreNoUtf8) {
  EXPECT_EQ(render("{{ messages[0].content | trim }}|"
                   "{{ messages[0].content[1] }}|"
                   "{{ messages[0].content | length }}",
                   {{"user", " \xff\xc3x\n"}}),
            "\xff\xc3x|\xff|5");
}

TEST(ChatTemplate, IsUtf8) {
  EXPECT_EQ(render("caf\xc3\xa9"), "caf\xc3\xa9");
  EXPECT_EQ(
      render("a\n{# caf\xe9 #}"),
      "error: chat template, line 2: byte 9 of the template, 0xE9, begins "
      "no character of UTF-8; save the template in UTF-8");
  EXPECT_EQ(
      render("\xff\xfe{"),
      "error: chat template, line 1: byte 1 of the template, 0xFF, begins "
      "no character of UTF-8; save the template in UTF-8");
  EXPECT_EQ(
      render("caf\xc3"),
      "error: chat template, line 1: byte 4 of the template, 0xC3, begins "
      "no character of UTF-8; save the template in UTF-8");
}

TEST(ChatTemplate, TellsTheTimeGiven) {
  ChatRenderOptions options;
  options.now = std::tm{};
  options.now->tm_year = 99;
  options.now->tm_mday = 2;
  EXPECT_EQ(render("{{ strftime_now('%Y-%m-%d') }}", {}, options),
            "1999-01-02");
}

TEST(ChatTemplate, RaisedTextIsTheError) {
  EXPECT_EQ(render("\n{{ raise_exception('Roles must alternate') }}"),
            "error: Roles must alternate");
  EXPECT_EQ(render("{{ raise_exception('two\nlines') }}"), "error: two lines");
  EXPECT_EQ(render("{{ raise_exception('') }}"),
            "error: the chat template refuses the conversation");
}

TEST(ChatTemplate, ErrorsNameConstructAndLine) {
  const std::pair<const char *, const char *> cases[] = {
      {"a\n{% include 'x' %}",
       "line 2: {% include %} is not supported in chat templates"},
      {"{% frobnicate %}", "line 1: unknown tag {% frobnicate %}"},
      {"\n\n{{ 1 | urlize }}", "line 3: filter 'urlize' is not supported"},
      {"{{ 1 is weird }}", "line 1: test 'weird' is not supported"},
      {"{{ 'a'.encode() }}",
       "line 1: 'encode' of str is not supported in chat templates"},
      {"{{ nothing.here }}", "line 1: 'nothing' is undefined"},
      {"{{ {'a': 1}.b.c }}", "line 1: 'dict object' has no attribute 'b'"},
      {"{% if true %}\nx", "line 2: expected {% endif %} before the end of the "
                           "template"},
      {"{% for x in y %}{% endif %}", "line 1: unknown tag {% endif %}"},
      {"{{ 'abc }}", "line 1: a string without its closing quote"},
      {"x\n{{ (1 }}", "line 2: unexpected '}'"},
      {"{{ 1 ? 2 }}", "line 1: unexpected character '?'"},
      {"{{ 99999999999999999999 }}",
       "line 1: the number 99999999999999999999 is not supported"},
      {"{{ 9223372036854775807 + 1 }}", "line 1: a number is too large"},
      {"{{ messages.append(1) }}",
       "line 1: access to attribute 'append' of 'list' object is unsafe"},
      {"{% raw %}", "line 1: {% raw %} without {% endraw %}"},
      {"{{ '\\ud800' }}",
       "line 1: a string has an escape that is no character"},
      {"{{ '\\N{DASH}' }}",
       "line 1: the escape \\N in a string is not supported"},
  };
  for (auto [source, message] : cases)
    EXPECT_EQ(render(source), "error: chat template, " + std::string(message))
        << source;
}

TEST(ChatTemplate, VariablesAreJson) {
  ChatRenderOptions options;
  options.variables["v"] = "{";
  EXPECT_EQ(render("x", {}, options),
            "error: variable 'v' of the chat template is not JSON");
  options.variables["v"] = R"({"z": [1, -2, 2.5, "\u00e9"], "a": {"b": null},
                               "t": true, "z2": {}, "t": false})";
  EXPECT_EQ(render("{{ v }}|{{ v | tojson }}", {}, options),
            "{'z': [1, -2, 2.5, '\u00e9'], 'a': {'b': None}, 't': False, "
            "'z2': {}}|{\"z\": [1, -2, 2.5, \"\u00e9\"], \"a\": "
            "{\"b\": null}, \"t\": false, \"z2\": {}}");
  options.variables["v"] = "[9223372036854775808]";
  EXPECT_EQ(render("x", {}, options), "error: chat template: a number is too "
                                      "large");
  options.variables["v"] = repeated("[", 2000) + repeated("]", 2000);
  EXPECT_EQ(render("x", {}, options).substr(0, 22), "error: chat template: ");
}

TEST(ChatTemplate, SourceHasALimit) {
  EXPECT_EQ(render(repeated("x", (1 << 20) + 1)),
            "error: the chat template has 1048577 bytes; at most 1 MiB is "
            "supported");
  EXPECT_EQ(render(repeated("x", 1 << 20)).size(), size_t(1) << 20);
}

/// What would take for ever, or all memory, ends with an error.
TEST(ChatTemplate, WorkHasLimits) {
  const std::string steps = "does not end within 20000000 steps";
  const std::string bytes = "makes more than 256 MiB of text and lists";
  const std::string text = "makes a text of more than 16 MiB";
  const std::string many = "{% for a in range(100000) %}";
  const std::pair<std::string, std::string> cases[] = {
      {"{{ range(10 ** 9) }}", "templates may have 100000 at most"},
      {"{{ range(0, 9223372036854775807, 1)|length }}",
       "templates may have 100000 at most"},
      {"{{ range(-9223372036854775807, 9223372036854775807)|length }}",
       "templates may have 100000 at most"},
      {many + many + "{% endfor %}{% endfor %}", "MiB"},
      {many + "{% if " + repeated("1 and ", 150) +
           "1 %}{% endif %}{% endfor %}",
       steps},
      {many + "{% for b in [1] * 1000 %}{{ b }}{% endfor %}{% endfor %}",
       "MiB"},
      {"{{ 'x' * 10 ** 12 }}", text},
      {"{{ 'x' * 9223372036854775807 }}", text},
      {"{{ [1] * 9223372036854775807 }}", "makes a list of"},
      {"{% set ns = namespace(s='x') %}{% for i in range(100) %}"
       "{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
       text},
      {"{% set s = 'x' * 10000000 %}" + many +
           "{% set t = s ~ 'y' %}{% endfor %}",
       bytes},
      {"{{ ('x' * 1000000).replace('x', 'y' * 1000000) }}", text},
      {"{{ ('x ' * 1000000).split(' ')|join('y' * 1000) }}", text},
      {"{{ '%1000000s' % 'x' * 100 }}", text},
      {"{{ '%9999999s' % 'x' }}", "a width or precision in a format"},
      {"{{ '{:1000001}'.format(1) * 100 }}", text},
      {"{{ 'x'.ljust(1000000000) }}", "a width of 1000000000 is too much"},
      {"{{ 'x'|center(1000000000) }}", "a width of 1000000000 is too much"},
      {"{{ [1]|batch(1000000000, 1)|list }}", "makes a list of"},
      {"{{ [1]|slice(1000000000)|list }}", "makes a list of"},
      {"{{ ('x\n' * 1000000)|indent(1000000) }}", text},
      {"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
       "nests calls and expressions more than 800 deep"},
      {"{% macro m() %}{% if caller %}{% endif %}{% call m() %}{% endcall %}"
       "{% endmacro %}{{ m() }}",
       "nests calls and expressions more than 800 deep"},
      {"{% for a in [1] recursive %}{{ loop([1]) }}{% endfor %}",
       "nests calls and expressions more than 800 deep"},
      {"{{ " + repeated("(", 5000) + "1" + repeated(")", 5000) + " }}",
       "the template is nested more than 200 deep"},
      {"{{ " + repeated("[", 5000) + repeated("]", 5000) + " }}",
       "the template is nested more than 200 deep"},
      {"{{ " + repeated("-", 5000) + "1 }}",
       "the template is nested more than 200 deep"},
      {"{{ " + repeated("not ", 5000) + "1 }}",
       "the template is nested more than 200 deep"},
      {"{{ 1" + repeated(" + 1", 5000) + " }}",
       "an expression is nested more than 200 deep"},
      {"{{ x" + repeated(".y", 5000) + " }}",
       "an expression is nested more than 200 deep"},
      {"{{ x" + repeated("|list", 5000) + " }}",
       "an expression is nested more than 200 deep"},
      {"{{ 1" + repeated(" if 1 else 1", 5000) + " }}",
       "the template is nested more than 200 deep"},
      {repeated("{% if 1 %}", 5000), "the template is nested more than 200"},
      {repeated("{% for a in [1] %}", 5000), "nested more than 200 deep"},
      {"{% set " + repeated("(", 5000) + "a" + repeated(")", 5000) + " = 1 %}",
       "nested more than 200 deep"},
      {"{% set ns = namespace(v=[]) %}{% for i in range(200) %}"
       "{% set ns.v = [ns.v] %}{% endfor %}",
       "values are nested more than 100 deep"},
      {"{% set ns = namespace(v=[1]) %}{% for i in range(90) %}"
       "{% set ns.v = [ns.v, ns.v] %}{% endfor %}{{ ns.v }}",
       text},
      {"{% set ns = namespace(v=[1]) %}{% for i in range(90) %}"
       "{% set ns.v = [ns.v, ns.v] %}{% endfor %}"
       "{{ ns.v == [ns.v[0]] * 2 }}",
       steps},
      {"{% set ns = namespace() %}{% set ns.x = [ns] %}{{ ns.x }}",
       "a Namespace has no text"},
      {"{% set ns = namespace() %}{% for i in range(200) %}{% for x in [ns.l] "
       "%}{% set ns.l = loop %}{% endfor %}{% endfor %}",
       "values are nested more than 100 deep"},
      {"{{ 'a'|map(" + repeated("'map', ", 5000) + "'upper')|list }}",
       "nests calls and expressions more than 800 deep"},
      {"{{ strftime_now('%c' * 10000) }}", "longer than 4096 bytes"},
      {"{% set d = {'k' * 16000000: 1} %}" + many +
           "{% set t = loop.cycle(1, **d) %}{% endfor %}",
       steps},
      // Scopes that a macro keeps, with their names.
      {many + "{% set " + repeated("a", 1000) + " = 1 %}{% set " +
           repeated("b", 1000) +
           " = 1 %}{% macro m() %}{% endmacro %}{% endfor %}",
       bytes},
  };
  for (const auto &[source, message] : cases) {
    const std::string result = render(source);
    EXPECT_EQ(result.substr(0, 7), "error: ") << source.substr(0, 100);
    EXPECT_NE(result.find(message), std::string::npos)
        << source.substr(0, 100) << "\n  " << result.substr(0, 300);
    EXPECT_EQ(result.find('\n'), std::string::npos);
  }
}

/// What ends with a scope is not counted for ever.
TEST(ChatTemplate, ScopesThatEndAreFree) {
  EXPECT_EQ(render("{% for a in range(1000) %}{% for b in range(1000) %}"
                   "{% set c = b %}{% endfor %}{% endfor %}done"),
            "done");
}

/// What goes through a text or a container pays for its length, so that no
/// operation is too cheap to be limited. A step covers 64 bytes at most.
TEST(ChatTemplate, WorkCostsItsLength) {
  constexpr int size = 100'000, rounds = 200;
  // s, t: a long text, and one more that is equal but for its end; a: of one
  // letter, n: a needle that is found or not after half of that; l: a list.
  const std::string prelude =
      "{% set s = 'Ab ' * 33333 %}{% set t = s ~ 'z' %}"
      "{% set a = 'a' * 100001 %}{% set n = 'a' * 50000 %}"
      "{% set nb = n ~ 'b' %}{% set bn = 'b' ~ n %}{% set d = '1_' * 50000 %}"
      "{% set u = '\u00c9\u00df' * 25000 %}{% set q = '\x01' * 100000 %}"
      "{% set l = range(10000)|list %}";
  ChatRenderOptions options;
  options.maxSteps = rounds * (size / 64) / 2;
  for (const char *expression :
       {"s|length",
        "s|count",
        "d|int",
        "d|float",
        "s|wordcount",
        "s|upper",
        "s|lower",
        "s|capitalize",
        "s|title",
        "u|upper",
        "u|lower",
        "u|title",
        "s|trim('AbBa \n')",
        "a|trim('a')",
        "s|string",
        "s|safe",
        "s|escape",
        "s|e",
        "s|forceescape",
        "s|replace('x', '')",
        "s|indent",
        "s|indent(s)",
        "s|center(150000)",
        "'x'|center(150000)",
        "'x'|indent(150000)",
        "1|tojson(indent=150000)",
        "s|truncate(150000)",
        "s|truncate(100000)",
        "s|tojson",
        "u|tojson(ensure_ascii=true)",
        "q|tojson",
        "'%s'|format(s)",
        "s|first",
        "s|last",
        "s|list",
        "s|reverse",
        "[s]|join",
        "[s, s]|join(s)",
        "[s]|map('upper')|list",
        "[s]|map('length')|list",
        "[s]|select('upper')|list",
        "[s, t]|sort(case_sensitive=true)",
        "[s, t]|sort",
        "[s, t]|unique|list",
        "[s, t]|min",
        "[s, t]|max",
        "[{'k': s}, {'k': t}]|groupby('k')",
        "{s: 1}|dictsort",
        "[{}]|map(attribute=s, default=1)|list",
        "s is upper",
        "s is lower",
        "s is in t",
        "'z' is in s",
        "s == s ~ ''",
        "s is eq(s ~ '')",
        "s < t",
        "s >= t",
        "s is lt(t)",
        "[s] == [s ~ '']",
        "'z' in s",
        "nb in a",
        "a in nb",
        "n ~ 'b' not in a",
        "s ~ t",
        "s + t",
        "'ab' * 50000",
        "s[90000]",
        "s[-1]",
        "s[1:]",
        "s[::-1]",
        "u[::2]",
        "'%s' % s",
        "'%r' % s",
        "'%10s' % s",
        "'%150000d' % 1",
        "('%%' * 100000) % ()",
        "'{}'.format(s)",
        "'{:150000}'.format(1)",
        "'{!r}'.format(s)",
        "('{{' * 100000).format()",
        "s.upper()",
        "s.lower()",
        "s.capitalize()",
        "s.title()",
        "s.swapcase()",
        "a.strip('a')",
        "a.lstrip('a')",
        "a.rstrip('a')",
        "a.strip(nb)",
        "s.split()",
        "s.split('x')",
        "a.split(nb)",
        "a.rsplit(bn)",
        "s.rsplit(' ', 1) and s.rsplit('x')",
        "s.splitlines()",
        "s.partition('x')",
        "s.rpartition('x')",
        "t.startswith(s)",
        "t.endswith(t ~ '')",
        "t.startswith(('x', s))",
        "t.removeprefix('x')",
        "t.removesuffix(t ~ '')",
        "s.replace('x', 'y')",
        "s.replace('', 'y')",
        "a.replace(nb, '')",
        "s.join(['', ''])",
        "','.join(s)",
        "s.find('x')",
        "a.find(nb)",
        "a.rfind(bn)",
        "a.index(n)",
        "a.rindex(n)",
        "a.count(nb)",
        "s.count('x')",
        "s.count('')",
        "s.find('A', 50000)",
        "s.format()",
        "a.isalnum()",
        "a.isalpha()",
        "a.isascii()",
        "('1' * 100000).isdigit()",
        "('1' * 100000).isnumeric()",
        "(' ' * 100000).isspace()",
        "s.islower()",
        "a.islower()",
        "s.isupper()",
        "s.ljust(150000)",
        "s.rjust(150000)",
        "s.center(150000)",
        "s.zfill(150000)",
        "'x'.ljust(150000)",
        "{s: 1}[s ~ '']",
        "{s: 1}.get(s ~ '')",
        "dict([(s, 1), (s ~ '', 2)])",
        "[t, s] < [t, t]",
        "s ~ '' in [t, s]",
        "[t, s].index(s ~ '')",
        "[s].count(s ~ '')",
        "l|length and l|list",
        "l|last",
        "l|reverse|list",
        "l|sort",
        "l|sum",
        "l|max",
        "l|min",
        "l|join",
        "l|batch(9)|list",
        "l|slice(9)|list",
        "l|map('string')|list",
        "l|map(attribute='x')|list",
        "l|select('odd')|list",
        "l|reject('odd')|list",
        "l|selectattr('x')|list",
        "([{'k': 1}] * 10000)|groupby('k')",
        "l|unique|first",
        "l|tojson",
        "l|string",
        "l == l ~ '' or l == l + []",
        "l < l + [1]",
        "'x' in l",
        "l.index(9999)",
        "l.count(1)",
        "l + l",
        "l * 2",
        "l[::-1]",
        "l[1:]",
        "range(10000)",
        "(l|map('string')|list)|sort",
        "strftime_now('%c' * 2000)",
        "namespace(**dict(l[:100]|map('string')|batch(2)))"}) {
    const std::string source =
        prelude + "{% for i in range(" + std::to_string(rounds) +
        ") %}{% set x = " + expression + " %}{% endfor %}";
    const std::string result = render(source, {}, options);
    // Texts and lists that are kept are bounded, too.
    EXPECT_TRUE(result.find("does not end within") != std::string::npos ||
                result.find("MiB of text and lists") != std::string::npos)
        << expression << ": " << result.substr(0, 200);
  }
}

/// A search takes time in proportion to the lengths, not to their product; so
/// do tuples that hold themselves many times over.
TEST(ChatTemplate, WorkIsNeverTheProductOfLengths) {
  EXPECT_EQ(render("{% set a = 'a' * 4000000 %}{% set n = 'a' * 2000000 %}"
                   "{{ n ~ 'b' in a }} {{ a.find(n ~ 'b') }} "
                   "{{ a.rfind('b' ~ n) }} {{ a.count(n) }} "
                   "{{ a.replace(n, 'x') }} {{ a.split(n ~ 'b')|length }} "
                   "{{ a.rpartition('b' ~ n)[0]|length }} "
                   "{{ ('1_' * 1000000 ~ 'x')|int }}"),
            "False -1 -1 2 xx 1 0 0");
  EXPECT_NE(render("{% set ns = namespace(t=1) %}{% for i in range(90) %}"
                   "{% set ns.t = (ns.t, ns.t) %}{% endfor %}{{ {ns.t: 1} }}")
                .find("does not end within"),
            std::string::npos);
}

TEST(ChatTemplate, EndsWhenItIsCancelled) {
  const std::string endless =
      "{% macro m(x) %}{% if x %}{{ m(x - 1) }}{{ m(x - 1) }}{% endif %}"
      "{% endmacro %}{{ m(100) }}";
  ChatTemplate chat = ChatTemplate::parse(endless).take();
  std::atomic<bool> cancelled{true};
  ChatRenderOptions options;
  options.maxSteps = UINT64_MAX;
  options.cancelled = &cancelled;
  Status status = chat.render({}, options).status();
  EXPECT_TRUE(status.isCancelled()) << status.message();

  // This thread's time goes by in the template, and nowhere else.
  cancelled = false;
  clockid_t clock;
  ASSERT_EQ(pthread_getcpuclockid(pthread_self(), &clock), 0);
  auto used = [clock] {
    timespec time = {};
    clock_gettime(clock, &time);
    return std::chrono::seconds(time.tv_sec) +
           std::chrono::nanoseconds(time.tv_nsec);
  };
  std::thread other([&, before = used()] {
    while (used() < before + std::chrono::milliseconds(20))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    cancelled = true;
  });
  status = chat.render({}, options).status();
  EXPECT_TRUE(status.isCancelled()) << status.message();
  other.join();
}

TEST(ChatTemplate, NamesAreShort) {
  EXPECT_EQ(render("{{ " + std::string(1000, 'x') + " }}"), "");
  EXPECT_EQ(render("\n{{ " + std::string(1001, 'x') + " }}"),
            "error: chat template, line 2: a name has 1001 bytes; at most 1000 "
            "are supported");
  // What a template makes is cut where an error shows it.
  EXPECT_EQ(render("{{ {}['\u00e9' * 1000] + 1 }}"),
            "error: chat template, line 1: 'dict object' has no attribute '" +
                repeated("\u00e9", 40) + "'...");
}

/// Circles through namespaces, macros and loops leave nothing behind; the leak
/// checker of the sanitizers says so.
TEST(ChatTemplate, CirclesEnd) {
  EXPECT_EQ(render("{% set ns = namespace() %}{% set ns.self = ns %}"
                   "{% macro m() %}{% set ns.m = m %}{% endmacro %}{{ m() }}"
                   "{% for i in [1] recursive %}{% set ns.l = loop %}"
                   "{% set kept = ns.l %}{% endfor %}done"),
            "done");
}

/// Scopes of which each has the one before end without nesting.
TEST(ChatTemplate, ChainsOfScopesEnd) {
  EXPECT_NE(render("{% set ns = namespace() %}{% for x in [ns] recursive %}"
                   "{% set x.l = loop %}{% endfor %}"
                   "{% for a in range(1000) %}{% for b in range(1000) %}"
                   "{% set t = ns.l([ns]) %}{% endfor %}{% endfor %}")
                .find("more than 256 MiB"),
            std::string::npos);
}

TEST(ChatTemplate, RendersOnManyThreads) {
  auto parsed = ChatTemplate::parse(
      "{% macro m(x) %}<{{ x }}>{% endmacro %}"
      "{% for t in messages %}{{ m(t.content) }}{% endfor %}");
  ASSERT_TRUE(parsed.ok());
  std::vector<std::thread> threads;
  std::vector<std::string> results(4);
  for (size_t i = 0; i < results.size(); ++i)
    threads.emplace_back([&, i] {
      for (int round = 0; round < 200; ++round) {
        const std::vector<ChatMessage> messages = {{"user", std::to_string(i)}};
        auto text = parsed->render(messages);
        results[i] = text.ok() ? *text : text.message();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  for (size_t i = 0; i < results.size(); ++i)
    EXPECT_EQ(results[i], "<" + std::to_string(i) + ">");
}

} // namespace
