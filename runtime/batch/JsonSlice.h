//===- JsonSlice.h - Parts of a JSON text as they stand ---------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A parsed object has its members by name. Where their order matters, as in
// what a model reads of a tool's parameters, the text itself is handed on.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_BATCH_JSONSLICE_H
#define KF_RUNTIME_BATCH_JSONSLICE_H

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kf {

/// The text of the member `key` of `object`, a text that parseJson() accepts;
/// empty where it has none. Of a text that is no JSON, some part or none.
/// Throws std::bad_alloc, as the library does.
std::string_view memberText(std::string_view object, std::string_view key);

/// The names and the texts of all members of `object`, in its order, likewise.
std::vector<std::pair<std::string, std::string_view>>
memberTexts(std::string_view object);

/// The texts of the elements of `array`, likewise.
std::vector<std::string_view> elementTexts(std::string_view array);

} // namespace kf

#endif // KF_RUNTIME_BATCH_JSONSLICE_H
