//===- Pattern.h - Patterns of strings in JSON ------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_GRAMMAR_PATTERN_H
#define KF_RUNTIME_GRAMMAR_PATTERN_H

#include "runtime/grammar/CharacterSet.h"
#include "runtime/grammar/Expressions.h"

#include <string_view>

namespace kf::grammar {

/// One character of a string as JSON writes it: itself, or any escape.
ExprId jsonCharacter(Expressions &expressions);
/// The same, of the characters of a set, in one way each: with an escape, the
/// shortest, only where there has to be one.
ExprId jsonCharacters(const CharacterSet &set, Expressions &expressions);

/// What strings of JSON that a regular expression finds a match in look like
/// between the quotation marks. Groups nest at most `maxDepth` deep. Throws
/// Failure with the character's number, from 1.
ExprId parsePattern(std::string_view pattern, int maxDepth,
                    Expressions &expressions, Fuel &fuel);

/// A pattern that strings of a format match, or "" for formats that are not
/// known.
std::string_view formatPattern(std::string_view format);

} // namespace kf::grammar

#endif // KF_RUNTIME_GRAMMAR_PATTERN_H
