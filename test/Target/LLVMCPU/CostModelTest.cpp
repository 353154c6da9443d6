//===- CostModelTest.cpp - Predictions against measurements ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Inputs/schedules holds kernels, and tables of what each of their schedules
// took on one machine, which kf_schedule_benchmark made: see the decision on
// the cost model. A tuner that measures the few schedules that the model ranks
// first has to find the fastest one, or one as good.
//
//===----------------------------------------------------------------------===//

#include "kf/Pipelines/KernelModules.h"
#include "kf/Pipelines/Registration.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/DebugStringHelper.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <filesystem>
#include <set>

using namespace mlir::kf;
namespace fs = std::filesystem;

namespace {

constexpr size_t kMeasured = 8; // of the schedules that are ranked first
constexpr double kNoise = 1.03;

const fs::path folder = KF_SOURCE_DIR "/test/Target/LLVMCPU/Inputs/schedules";

struct Entry {
  double predicted, measured;
  std::string schedule;
};

double numberOf(const llvm::json::Object &object, const char *key) {
  std::optional<double> number = object.getNumber(key);
  EXPECT_TRUE(number) << key;
  return number.value_or(0);
}

class CostModelTest : public testing::TestWithParam<std::string> {
protected:
  CostModelTest() : context(makeRegistry(), kSingleThread) {}

  /// The only kernel of the file, laid out for `target`.
  void open(const std::string &target) {
    auto module = mlir::parseSourceFile<mlir::ModuleOp>(
        (folder / (GetParam() + ".mlir")).string(),
        mlir::ParserConfig(&context));
    ASSERT_TRUE(module);
    CompileOptions options;
    options.target = target;
    ASSERT_FALSE(llvm::errorToBool(
        runPhases(*module, options, Phase::Import, Phase::Program)));
    auto kernels = splitKernels(*module);
    ASSERT_TRUE(bool(kernels)) << llvm::toString(kernels.takeError());
    ASSERT_EQ(kernels->size(), 1u);
    rows = kernels->front().rows;
    auto laid = layOut(kernels->front(), options);
    ASSERT_TRUE(bool(laid)) << llvm::toString(laid.takeError());
    laidOut = std::move(*laid);
    kernel = laidOut->lookupSymbol<KernelOp>(kernels->front().name);
    ASSERT_TRUE(kernel);
  }

  static constexpr auto kSingleThread = mlir::MLIRContext::Threading::DISABLED;
  static mlir::DialectRegistry makeRegistry() {
    mlir::DialectRegistry registry;
    registerDialects(registry);
    return registry;
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> laidOut;
  KernelOp kernel;
  int64_t rows = 0;
};

std::vector<std::string> tables() {
  std::vector<std::string> names;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".json")
      names.push_back(entry.path().stem());
  std::ranges::sort(names);
  return names;
}

TEST_P(CostModelTest, firstEightHoldTheFastest) {
  auto text =
      llvm::MemoryBuffer::getFile((folder / (GetParam() + ".json")).string());
  ASSERT_TRUE(bool(text));
  llvm::Expected<llvm::json::Value> table =
      llvm::json::parse((*text)->getBuffer());
  ASSERT_TRUE(bool(table)) << llvm::toString(table.takeError());
  const llvm::json::Object &object = *table->getAsObject();
  const llvm::json::Object &rates = *object.getObject("machine");
  ::kf::MachineRates machine;
  machine.readBytesPerSecond = numberOf(rates, "read_bytes_per_second");
  machine.f32FlopsPerSecond = numberOf(rates, "f32_flops_per_second");
  machine.i8OpsPerSecond = numberOf(rates, "i8_ops_per_second");
  // Of machines without tiles, tables do not tell.
  machine.bf16FlopsPerSecond =
      rates.getNumber("bf16_flops_per_second").value_or(0);
  machine.threads = static_cast<int64_t>(numberOf(rates, "threads"));
  ASSERT_NO_FATAL_FAILURE(open(object.getString("target")->str()));

  TargetAttrInterface target = getTarget(kernel);
  const auto candidates = target.getScheduleCandidates(kernel, rows);
  std::vector<Entry> entries;
  for (const llvm::json::Value &value : *object.getArray("candidates")) {
    const llvm::json::Object &candidate = *value.getAsObject();
    std::string schedule = candidate.getString("schedule")->str();
    auto parsed = mlir::dyn_cast_if_present<ScheduleAttrInterface>(
        mlir::parseAttribute(schedule, &context));
    ASSERT_TRUE(parsed) << schedule;
    kernel.setScheduleAttr(parsed);
    ASSERT_TRUE(mlir::succeeded(target.verifySchedule(kernel, rows)))
        << schedule << ": measure " << GetParam() << " again";
    entries.push_back({target.predictSeconds(kernel, parsed, rows, machine),
                       numberOf(candidate, "seconds"), schedule});
  }

  // Of another list of candidates a table would say nothing.
  std::set<std::string> listed, measured;
  for (ScheduleAttrInterface candidate : candidates)
    listed.insert(mlir::debugString(candidate));
  for (const Entry &entry : entries)
    measured.insert(entry.schedule);
  EXPECT_EQ(entries.front().schedule, mlir::debugString(candidates.front()))
      << "the default has changed: measure " << GetParam() << " again";
  EXPECT_EQ(measured, listed)
      << "the candidates have changed: measure " << GetParam() << " again";

  std::ranges::sort(entries, {}, &Entry::predicted);
  const Entry best = *std::ranges::min_element(entries, {}, &Entry::measured);
  const Entry found = *std::ranges::min_element(
      entries.begin(), entries.begin() + std::min(entries.size(), kMeasured),
      {}, &Entry::measured);
  EXPECT_LE(found.measured, kNoise * best.measured)
      << "found " << found.schedule << ", the fastest is " << best.schedule;
}

std::string testName(const testing::TestParamInfo<std::string> &info) {
  std::string name = info.param;
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Tables, CostModelTest, testing::ValuesIn(tables()),
                         testName);

} // namespace
