//===- Expressions.cpp - Regular expressions of bytes ---------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/grammar/Expressions.h"

#include <algorithm>
#include <cassert>

using namespace kf;
using namespace kf::grammar;

/// Calls of derive() within one another.
static constexpr int kMaxDepth = 200;

ByteSet ByteSet::operator|(const ByteSet &other) const {
  ByteSet result;
  for (int i = 0; i < 4; ++i)
    result.words[i] = words[i] | other.words[i];
  return result;
}

ByteSet ByteSet::operator&(const ByteSet &other) const {
  ByteSet result;
  for (int i = 0; i < 4; ++i)
    result.words[i] = words[i] & other.words[i];
  return result;
}

Expressions::Expressions(size_t maxSize) : maxSize(maxSize) {
  add({.kind = Kind::Nothing});
  add({.kind = Kind::Empty, .nullable = true});
  add({.kind = Kind::Complement,
       .nullable = true,
       .depth = 1,
       .a = kNothing,
       .first = ByteSet::all()});
}

ExprId Expressions::add(Node node, const std::vector<ExprId> *list) {
  spend(1 + (list ? list->size() / 8 : 0));
  uint64_t hash = mixHash(uint64_t(node.kind), node.least);
  hash = mixHash(hash, node.most);
  if (list) {
    for (ExprId part : *list)
      hash = mixHash(hash, part);
  } else {
    hash = mixHash(mixHash(hash, node.a), node.b);
    if (node.kind == Kind::Bytes)
      for (uint64_t word : node.first.words)
        hash = mixHash(hash, word);
  }
  const uint32_t found = table.find(hash, [&](uint32_t number) {
    const Node &other = nodes[number];
    if (other.kind != node.kind || other.least != node.least ||
        other.most != node.most)
      return false;
    if (list)
      return std::equal(list->begin(), list->end(), lists.begin() + other.a,
                        lists.begin() + other.a + other.b);
    return other.a == node.a && other.b == node.b &&
           (node.kind != Kind::Bytes || other.first == node.first);
  });
  if (found != InternTable::kNone)
    return found;
  if (entries() >= maxSize)
    fail("the grammar's expressions are larger than the limit", codeOfLimit);
  if (node.depth > kMaxDepth)
    fail("the grammar's expressions are nested too deep");
  if (list) {
    node.a = static_cast<uint32_t>(lists.size());
    node.b = static_cast<uint32_t>(list->size());
    lists.insert(lists.end(), list->begin(), list->end());
  }
  const auto number = static_cast<ExprId>(nodes.size());
  nodes.push_back(node);
  table.add(hash, number);
  return number;
}

ExprId Expressions::bytes(const ByteSet &set) {
  return set.empty() ? kNothing : add({.kind = Kind::Bytes, .first = set});
}

ExprId Expressions::byte(uint8_t value) {
  return bytes(ByteSet::range(value, value));
}

ExprId Expressions::literal(std::string_view text) {
  ExprId result = kEmpty;
  for (size_t i = text.size(); i-- > 0;)
    result = concat(byte(static_cast<uint8_t>(text[i])), result);
  return result;
}

ExprId Expressions::literals(std::vector<std::string> texts, Fuel &fuel) {
  std::ranges::sort(texts);
  texts.erase(std::ranges::unique(texts).begin(), texts.end());
  if (texts.empty())
    return kNothing;
  const Payer payer(*this, fuel);
  // What may follow each beginning of the last text; the whole text is last.
  std::vector<std::vector<ExprId>> open(1);
  std::string_view before;
  auto closeTo = [&](size_t depth) {
    while (open.size() > depth + 1) {
      const ExprId rest = either(std::move(open.back()));
      open.pop_back();
      open.back().push_back(
          concat(byte(static_cast<uint8_t>(before[open.size() - 1])), rest));
    }
  };
  for (const std::string &text : texts) {
    fuel.spend(1 + text.size());
    closeTo(std::ranges::mismatch(before, text).in1 - before.begin());
    open.resize(text.size() + 1);
    open.back().push_back(kEmpty);
    before = text;
  }
  closeTo(0);
  return either(std::move(open.front()));
}

ExprId Expressions::concat(std::initializer_list<ExprId> parts) {
  ExprId result = kEmpty;
  for (size_t i = parts.size(); i-- > 0;)
    result = concat(parts.begin()[i], result);
  return result;
}

ExprId Expressions::concat(ExprId a, ExprId b) {
  if (a == kNothing || b == kNothing)
    return kNothing;
  if (b == kEmpty)
    return a;
  // (x y) b is x (y b).
  std::vector<ExprId> heads;
  for (; nodes[a].kind == Kind::Concat; a = nodes[a].b) {
    spend(1);
    heads.push_back(nodes[a].a);
  }
  if (a != kEmpty)
    heads.push_back(a);
  for (size_t i = heads.size(); i-- > 0;) {
    const Node &head = nodes[heads[i]];
    const Node &tail = nodes[b];
    Node node{.kind = Kind::Concat,
              .nullable = head.nullable && tail.nullable,
              .uncertain = head.uncertain || tail.uncertain,
              .depth = static_cast<uint16_t>(head.depth + 1),
              .a = heads[i],
              .b = b,
              .first = head.first};
    if (head.nullable) {
      node.first = node.first | tail.first;
      // The derivative goes along the parts of a Concat in a loop.
      node.depth = std::max<uint16_t>(
          node.depth, tail.kind == Kind::Concat ? tail.depth : tail.depth + 1);
    }
    b = add(node);
  }
  return b;
}

/// Sorted, each once.
static void normalize(std::vector<ExprId> &parts) {
  std::ranges::sort(parts);
  parts.erase(std::ranges::unique(parts).begin(), parts.end());
}

ExprId Expressions::either(std::vector<ExprId> parts) {
  spend(parts.size() / 4);
  normalize(parts); // lists of equal parts are looked at once
  std::vector<ExprId> flat;
  ByteSet set;
  bool empty = false;
  auto take = [&](ExprId part) {
    const Node &node = nodes[part];
    if (node.kind == Kind::Bytes)
      set = set | node.first;
    else if (part == kEmpty)
      empty = true;
    else if (part != kNothing)
      flat.push_back(part);
  };
  for (ExprId part : parts) {
    const Node &node = nodes[part];
    if (node.kind != Kind::Either) {
      take(part);
      continue;
    }
    spend(1 + node.b / 4);
    for (uint32_t i = 0; i < node.b; ++i)
      take(lists[node.a + i]);
  }
  if (!set.empty())
    flat.push_back(bytes(set));
  normalize(flat);
  if (std::ranges::binary_search(flat, kAnything))
    return kAnything;
  bool nullable = std::ranges::any_of(
      flat, [&](ExprId part) { return nodes[part].nullable; });
  if (empty && !nullable) {
    flat.insert(flat.begin(), kEmpty);
    nullable = true;
  }
  if (flat.empty())
    return kNothing;
  if (flat.size() == 1)
    return flat[0];
  Node node{.kind = Kind::Either, .nullable = nullable};
  for (ExprId part : flat) {
    node.first = node.first | nodes[part].first;
    node.uncertain |= nodes[part].uncertain;
    node.depth = std::max<uint16_t>(node.depth, nodes[part].depth + 1);
  }
  return add(node, &flat);
}

ExprId Expressions::both(std::vector<ExprId> parts) {
  spend(parts.size() / 4);
  normalize(parts);
  std::vector<ExprId> flat;
  for (ExprId part : parts) {
    const Node &node = nodes[part];
    if (part == kNothing)
      return kNothing;
    if (node.kind == Kind::Both) {
      spend(1 + node.b / 4);
      flat.insert(flat.end(), lists.begin() + node.a,
                  lists.begin() + node.a + node.b);
    } else if (part != kAnything) {
      flat.push_back(part);
    }
  }
  normalize(flat);
  if (flat.empty())
    return kAnything;
  if (flat.size() == 1)
    return flat[0];
  Node node{.kind = Kind::Both,
            .nullable = true,
            .uncertain = true,
            .first = ByteSet::all()};
  for (ExprId part : flat) {
    node.nullable &= nodes[part].nullable;
    node.first = node.first & nodes[part].first;
    node.depth = std::max<uint16_t>(node.depth, nodes[part].depth + 1);
  }
  if (node.first.empty())
    return node.nullable ? kEmpty : kNothing;
  return add(node, &flat);
}

ExprId Expressions::complement(ExprId a) {
  const Node &node = nodes[a];
  if (node.kind == Kind::Complement)
    return node.a;
  return add({.kind = Kind::Complement,
              .nullable = !node.nullable,
              .uncertain = true,
              .depth = static_cast<uint16_t>(node.depth + 1),
              .a = a,
              .first = ByteSet::all()});
}

ExprId Expressions::repeat(ExprId a, uint32_t least, uint32_t most) {
  assert(least <= most && "no number of times");
  if (most == 0 || a == kEmpty || (a == kNothing && least == 0))
    return kEmpty;
  if (a == kNothing)
    return kNothing;
  if (least == 1 && most == 1)
    return a;
  const Node &node = nodes[a];
  if (node.nullable)
    least = 0;
  return add({.kind = Kind::Repeat,
              .nullable = least == 0,
              .uncertain = node.uncertain,
              .depth = static_cast<uint16_t>(node.depth + 1),
              .a = a,
              .least = least,
              .most = most,
              .first = node.first});
}

ExprId Expressions::multiple(uint32_t divisor, uint32_t remainder) {
  Node node{.kind = Kind::Multiple,
            .nullable = remainder == 0,
            .uncertain = true,
            .depth = 1,
            .a = divisor,
            .b = remainder,
            .first = ByteSet::range('0', '9')};
  node.first.add('.');
  return add(node);
}

ExprId Expressions::derivative(ExprId id, uint8_t byte, Fuel &fuel) {
  const Payer payer(*this, fuel);
  return derive(id, byte, fuel);
}

/// Goes as deep as the node's depth.
ExprId Expressions::derive(ExprId id, uint8_t byte, Fuel &fuel) {
  fuel.spend();
  const Node node = nodes[id]; // what is added moves the nodes
  if (!node.first.has(byte))
    return kNothing;
  switch (node.kind) {
  case Kind::Nothing:
  case Kind::Empty:
    return kNothing;
  case Kind::Bytes:
    return kEmpty;
  case Kind::Concat: {
    std::vector<ExprId> parts;
    for (ExprId rest = id;; rest = nodes[rest].b) {
      if (nodes[rest].kind != Kind::Concat) {
        parts.push_back(derive(rest, byte, fuel));
        break;
      }
      const ExprId head = nodes[rest].a;
      const ExprId after = derive(head, byte, fuel);
      parts.push_back(concat(after, nodes[rest].b));
      if (!nodes[head].nullable)
        break;
      fuel.spend();
    }
    return parts.size() == 1 ? parts[0] : either(std::move(parts));
  }
  case Kind::Either:
  case Kind::Both: {
    std::vector<ExprId> parts;
    fuel.spend(node.b / 8);
    for (uint32_t i = 0; i < node.b; ++i) {
      const ExprId part = lists[node.a + i];
      if (nodes[part].first.has(byte))
        parts.push_back(derive(part, byte, fuel));
    }
    return node.kind == Kind::Either ? either(std::move(parts))
                                     : both(std::move(parts));
  }
  case Kind::Complement:
    return complement(derive(node.a, byte, fuel));
  case Kind::Repeat: {
    const ExprId after = derive(node.a, byte, fuel);
    const uint32_t most = node.most == kUnbounded ? kUnbounded : node.most - 1;
    return concat(after, repeat(node.a, node.least ? node.least - 1 : 0, most));
  }
  case Kind::Multiple:
    return byte == '.'
               ? id
               : multiple(node.a,
                          static_cast<uint32_t>(
                              (uint64_t(node.b) * 10 + (byte - '0')) % node.a));
  }
  return kNothing;
}

bool Expressions::matches(ExprId id, std::string_view text, Fuel &fuel) {
  const Payer payer(*this, fuel);
  for (char c : text)
    id = derive(id, static_cast<uint8_t>(c), fuel);
  return nullable(id);
}

bool Expressions::isLive(ExprId id, const std::vector<uint8_t> &bytes,
                         Fuel &fuel) {
  const Payer payer(*this, fuel);
  return findIsLive(id, bytes, fuel);
}

bool Expressions::findIsLive(ExprId id, const std::vector<uint8_t> &bytes,
                             Fuel &fuel) {
  // What is a sequence is live if all of its parts are.
  for (;; id = nodes[id].b) {
    fuel.spend();
    const Node &node = nodes[id];
    if (id == kNothing)
      return false;
    if (!node.uncertain || node.nullable)
      return true;
    if (node.kind != Kind::Concat)
      return findLife(id, bytes, fuel);
    // As deep as the node's depth.
    if (nodes[node.a].uncertain && !findIsLive(node.a, bytes, fuel))
      return false;
  }
}

/// Whether any text matches what is no sequence, and not certain.
bool Expressions::findLife(ExprId id, const std::vector<uint8_t> &bytes,
                           Fuel &fuel) {
  if (nodes[id].kind == Kind::Repeat)
    return findIsLive(nodes[id].a, bytes, fuel);
  lives.resize(std::max<size_t>(lives.size(), nodes.size()));
  if (lives[id] != Life::Unknown)
    return lives[id] == Life::Live;

  // Depth first for a text; what was seen without one has none, if none is
  // found at all.
  struct Step {
    ExprId id;
    size_t next; ///< byte to try
  };
  std::vector<Step> path{{id, 0}};
  std::vector<ExprId> seen{id};
  auto forget = [&] {
    for (ExprId other : seen)
      lives[other] = Life::Unknown;
  };
  lives[id] = Life::Dead;
  try {
    while (!path.empty()) {
      Step &top = path.back();
      if (top.next == bytes.size()) {
        path.pop_back();
        continue;
      }
      const ExprId after = derive(top.id, bytes[top.next++], fuel);
      lives.resize(std::max<size_t>(lives.size(), nodes.size()));
      if (after == kNothing || lives[after] == Life::Dead)
        continue;
      if (!nodes[after].uncertain || nodes[after].nullable ||
          lives[after] == Life::Live) {
        forget();
        for (const Step &step : path)
          lives[step.id] = Life::Live;
        return true;
      }
      seen.push_back(after);
      lives[after] = Life::Dead;
      path.push_back({after, 0});
    }
  } catch (...) { // no fuel: nothing is known
    forget();
    throw;
  }
  return false;
}

std::optional<Expressions::Repetition>
Expressions::repetition(ExprId id) const {
  const Node &node = nodes[id];
  if (node.kind != Kind::Repeat)
    return std::nullopt;
  return Repetition{node.a, node.least, node.most};
}

ExprId Expressions::relaxed(ExprId id, uint32_t bytes, Fuel &fuel) {
  const Payer payer(*this, fuel);
  return relax(id, bytes, fuel, 0);
}

ExprId Expressions::relax(ExprId id, uint32_t bytes, Fuel &fuel, int depth) {
  // What is nested deeper stays as it is, which is right, too.
  static constexpr int kDeepest = 8;
  fuel.spend();
  const Node node = nodes[id];
  // Whether an intersection matches anything may depend on a bound, however far
  // away.
  if (node.uncertain || depth > kDeepest)
    return id;
  switch (node.kind) {
  case Kind::Repeat:
    return repeat(node.a, std::min(node.least, bytes + 1),
                  node.most > bytes ? kUnbounded : node.most);
  case Kind::Concat:
    return concat(relax(node.a, bytes, fuel, depth + 1),
                  relax(node.b, bytes, fuel, depth + 1));
  case Kind::Either: {
    std::vector<ExprId> parts;
    for (uint32_t i = 0; i < node.b; ++i)
      parts.push_back(relax(lists[node.a + i], bytes, fuel, depth + 1));
    return either(std::move(parts));
  }
  default:
    return id;
  }
}

size_t Expressions::memory() const {
  // Of what is used: tables double, and by that the first expression that is
  // added to a large set would count as much as all others. Each has 2 to 4
  // slots of `table`, of 16 bytes.
  static constexpr size_t kSlotBytes = 48;
  return nodes.size() * (sizeof(Node) + kSlotBytes) +
         lists.size() * sizeof(ExprId) + lives.size();
}

std::array<uint8_t, 256> Expressions::byteClasses() const {
  std::array<uint8_t, 256> classes{};
  int count = 1;
  auto split = [&](const ByteSet &set) {
    // The bytes of each class that are in the set become a new class, unless
    // all are.
    std::array<int, 256> inside, outside, renamed;
    inside.fill(0), outside.fill(0), renamed.fill(-1);
    for (int byte = 0; byte < 256; ++byte)
      ++(set.has(static_cast<uint8_t>(byte)) ? inside : outside)[classes[byte]];
    for (int byte = 0; byte < 256; ++byte) {
      const int old = classes[byte];
      if (!set.has(static_cast<uint8_t>(byte)) || !outside[old])
        continue;
      if (renamed[old] < 0)
        renamed[old] = count++;
      classes[byte] = static_cast<uint8_t>(renamed[old]);
    }
  };
  for (const Node &node : nodes) {
    if (count == 256)
      break;
    if (node.kind == Kind::Bytes)
      split(node.first);
    else if (node.kind == Kind::Multiple)
      for (int digit = '0'; digit <= '9'; ++digit)
        split(ByteSet::range(digit, digit));
    if (node.kind == Kind::Multiple)
      split(ByteSet::range('.', '.'));
  }
  return classes;
}

void Expressions::copyFrom(const Expressions &from,
                           const std::vector<ExprId> &ids, size_t common,
                           std::vector<ExprId> &copied, Fuel &fuel) {
  const Payer payer(*this, fuel);
  fuel.spend(1 + from.nodes.size() / 32);
  // Parts have lower numbers than what they are part of.
  std::vector<bool> wanted(from.nodes.size());
  std::vector<ExprId> todo;
  auto want = [&](ExprId id) {
    if (id >= common && !wanted[id]) {
      wanted[id] = true;
      todo.push_back(id);
    }
  };
  for (ExprId id : ids)
    want(id);
  while (!todo.empty()) {
    const Node &node = from.nodes[todo.back()];
    todo.pop_back();
    fuel.spend();
    switch (node.kind) {
    case Kind::Concat:
      want(node.a);
      want(node.b);
      break;
    case Kind::Either:
    case Kind::Both:
      fuel.spend(node.b / 8);
      for (uint32_t i = 0; i < node.b; ++i)
        want(from.lists[node.a + i]);
      break;
    case Kind::Complement:
    case Kind::Repeat:
      want(node.a);
      break;
    default:
      break;
    }
  }
  std::vector<ExprId> moved(from.nodes.size(), kNothing);
  for (size_t id = 0; id < common; ++id)
    moved[id] = static_cast<ExprId>(id);
  for (size_t id = common; id < from.nodes.size(); ++id) {
    if (!wanted[id])
      continue;
    const Node &node = from.nodes[id];
    std::vector<ExprId> parts;
    if (node.kind == Kind::Either || node.kind == Kind::Both)
      for (uint32_t i = 0; i < node.b; ++i)
        parts.push_back(moved[from.lists[node.a + i]]);
    switch (node.kind) {
    case Kind::Nothing:
    case Kind::Empty:
      break;
    case Kind::Bytes:
      moved[id] = bytes(node.first);
      break;
    case Kind::Concat:
      moved[id] = concat(moved[node.a], moved[node.b]);
      break;
    case Kind::Either:
      moved[id] = either(std::move(parts));
      break;
    case Kind::Both:
      moved[id] = both(std::move(parts));
      break;
    case Kind::Complement:
      moved[id] = complement(moved[node.a]);
      break;
    case Kind::Repeat:
      moved[id] = repeat(moved[node.a], node.least, node.most);
      break;
    case Kind::Multiple:
      moved[id] = multiple(node.a, node.b);
      break;
    }
  }
  copied.clear();
  for (ExprId id : ids)
    copied.push_back(moved[id]);
}
