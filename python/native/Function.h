//===- Function.h - A function of kf ops, compiled --------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_PYTHON_NATIVE_FUNCTION_H
#define KF_PYTHON_NATIVE_FUNCTION_H

#include "Messages.h"
#include "OwnProcess.h"

#include "runtime/devices/OpenDevice.h"
#include "runtime/engine/ProgramRunner.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace kf::python {

struct FunctionOptions {
  std::string text; ///< MLIR: functions of kf ops
  std::string name; ///< of the function; empty: the only one
  DeviceChoice device;
  std::string weights;     ///< a safetensors or GGUF file; empty: none
  int64_t maxTokens = 512; ///< the largest `?` to compile for
};

/// A function and the device that it runs on. Any thread, one at a time; others
/// wait. Errors are one line.
class Function {
public:
  explicit Function(FunctionOptions options) : options(std::move(options)) {}
  /// close().
  ~Function() { close(); }
  Function(const Function &) = delete;
  Function &operator=(const Function &) = delete;

  /// Compiles it; once, before anything else is called. Ended by cancelFlag(),
  /// between two passes.
  Status open();
  /// Frees all, once nothing runs any more. In another process than the
  /// function's, it only forgets.
  void close();
  std::atomic<bool> &cancelFlag() { return cancelled; }
  Messages &messages() { return told; }

  // Facts, once it is open.
  /// Valid UTF-8.
  const std::string &name() const { return programName; }
  const std::string &deviceName() const { return deviceText; }
  std::span<const TensorSpec> inputs() const { return inputSpecs; }
  std::span<const TensorSpec> outputs() const { return outputSpecs; }

  /// Runs it. Errors: it is closed, tensors of other types or shapes than the
  /// function's, the device's.
  Result<std::vector<HostTensor>> run(std::span<const HostTensor> tensors);

private:
  Result<Executable> compile();

  const OwnProcess process;
  const FunctionOptions options;
  std::atomic<bool> cancelled = false;
  Messages told;
  std::string programName, deviceText;
  std::vector<TensorSpec> inputSpecs, outputSpecs;

  std::mutex running; ///< of what follows; each needs those before it
  std::unique_ptr<Device> device;
  std::unique_ptr<WeightSource> source; ///< null: no weights
  std::unique_ptr<WeightStore> weights;
  std::unique_ptr<KVCache> cache; ///< of no program: functions have none
  std::unique_ptr<ProgramRunner> runner;
};

} // namespace kf::python

#endif // KF_PYTHON_NATIVE_FUNCTION_H
