//===- TrialReader.h - The trials of a tuning database ----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TUNING_TRIALREADER_H
#define KF_RUNTIME_TUNING_TRIALREADER_H

#include "runtime/core/Json.h"
#include "runtime/tuning/TuningDatabase.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// Builds the document of a tuning database without what its entries' "tried"
/// list, which is most of the file: that goes from the parser straight into
/// trials, and the document's lists are empty.
class TrialReader : public JsonBuilder {
public:
  /// After parse(): what the list of entry `entry` of the document holds, once.
  /// Errors name the trial and its field; numbers and texts are not checked.
  Result<std::vector<TuningTrial>> take(size_t entry);

  bool start_object(std::size_t size) override;
  bool end_object() override;
  bool start_array(std::size_t size) override;
  bool end_array() override;
  bool key(string_t &name) override;
  bool string(string_t &value) override;
  bool number_unsigned(number_unsigned_t value) override;
  bool number_integer(number_integer_t value) override;
  bool number_float(number_float_t value, const string_t &text) override;
  bool null() override;
  bool boolean(bool value) override;

private:
  struct List {
    std::vector<TuningTrial> trials;
    size_t count = 0; ///< with those that are none
    Status problem;   ///< the first one
  };

  bool isEntryNext() const;
  bool isTrialNext() const;
  /// Whether a value is a part of a trial, or one that is none; it then goes no
  /// further.
  bool takes();
  /// The same for an object or an array, of which an object may be a trial:
  /// what the event returns then.
  std::optional<bool> open(bool isTrial);
  bool begin(bool isTrial);
  bool end();
  bool number(double value);
  bool misplaced();
  bool note(const std::string &problem);

  std::vector<List> lists; ///< [entries]
  size_t depth = 0;        ///< open containers, the trial among them
  TuningTrial trial;
  std::string field;     ///< of the trial, whose value comes next
  unsigned seen = 0;     ///< fields, a bit each
  bool isObject = false; ///< whether the trial is one
};

} // namespace kf

#endif // KF_RUNTIME_TUNING_TRIALREADER_H
