//===- KernelRunnerTest.cpp - Tests of running single kernels -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The device under test is a second reference device, whose programs are text:
// a wrong variant is one with other ops.
//
//===----------------------------------------------------------------------===//

#include "runtime/tuning/KernelRunner.h"

#include "runtime/core/Stopwatch.h"
#include "runtime/core/TileRegisters.h"
#include "runtime/devices/HostDevice.h"
#include "runtime/devices/Reference/ReferenceDevice.h"
#include "runtime/tuning/KernelMeasurer.h"
#include "test/runtime/StatusAssertions.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <span>
#include <thread>

#ifdef __linux__
#include <sched.h>
#endif

using namespace kf;
using test::failsWith;
using Role = KernelInput::Role;

namespace {

/// x [?, 32] times a weight of 48 rows, joined from two, in any type.
Executable product(DataType type = DataType::F32) {
  Executable executable;
  executable.target = "reference";
  executable.programName = "product";
  executable.maxTokens = 64;
  executable.kernels = {{"product"}};
  WeightSpec weight;
  weight.names = {"q", "k"};
  weight.type = type;
  weight.shape = {48, 32};
  executable.weights = {weight};
  executable.inputs = {{DataType::F32, {-1, 32}}};
  executable.outputs = {{DataType::F32, {-1, 48}}};
  executable.dispatches = {{0,
                            {{KF_BINDING_INPUT, 0, 0},
                             {KF_BINDING_WEIGHT, 0, 0},
                             {KF_BINDING_OUTPUT, 0, 0}}}};
  executable.binary = R"([
    {"name": "product",
     "arguments": [{"tensor": "f32", "shape": [-1, 32]},
                   {"tensor": ")" +
                      std::string(nameOf(type)) + R"(", "shape": [48, 32]}],
     "ops": [
       {"name": "kf.matmul", "operands": [0, 1],
        "results": [{"id": 2, "type": {"tensor": "f32", "shape": [-1, 48]}}],
        "attributes": {}}],
     "results": [2]}])";
  return executable;
}

/// The same, and then twice the result.
Executable wrongProduct() {
  Executable executable = product();
  std::string &code = executable.binary;
  const std::string last = "\"attributes\": {}}";
  code.replace(code.find(last), last.size(), last + R"(,
       {"name": "arith.addf", "operands": [2, 2],
        "results": [{"id": 3, "type": {"tensor": "f32", "shape": [-1, 48]}}],
        "attributes": {}})");
  code.replace(code.find("\"results\": [2]"), 14, "\"results\": [3]");
  return executable;
}

/// A product with a weight in 8 bits, and a function of it that is about 1
/// where that is large.
Executable scaledProduct(const std::string &function) {
  Executable executable = product(DataType::F8E4M3);
  WeightSpec scales;
  scales.names = {"q_scale", "k_scale"};
  scales.shape = {48};
  executable.weights.push_back(scales);
  executable.dispatches[0].bindings.insert(
      executable.dispatches[0].bindings.begin() + 2, {KF_BINDING_WEIGHT, 1, 0});
  executable.binary = R"([
    {"name": "product",
     "arguments": [{"tensor": "f32", "shape": [-1, 32]},
                   {"tensor": "f8E4M3FN", "shape": [48, 32]},
                   {"tensor": "f32", "shape": [48]}],
     "ops": [
       {"name": "kf.matmul", "operands": [0, 1, 2],
        "results": [{"id": 3, "type": {"tensor": "f32", "shape": [-1, 48]}}],
        "attributes": {"operandSegmentSizes": [1, 1, 0, 0, 0, 1, 0]}},
       {"name": ")" + function +
                      R"(", "operands": [3],
        "results": [{"id": 4, "type": {"tensor": "f32", "shape": [-1, 48]}}],
        "attributes": {}}],
     "results": [4]}])";
  return executable;
}

/// The same as often as one likes, and products of the weight by itself, which
/// take as long with any rows.
Executable products(int times, int ofWeights) {
  Executable executable = product();
  executable.dispatches.assign(times, executable.dispatches[0]);
  executable.kernels.push_back({"square"});
  executable.arenaBytes = 48 * 48 * 4;
  for (int i = 0; i < ofWeights; ++i)
    executable.dispatches.push_back(
        {1, {{KF_BINDING_WEIGHT, 0, 0}, {KF_BINDING_ARENA, 0, 0}}});
  std::string &code = executable.binary;
  code.replace(code.rfind(']'), 1, R"(,
    {"name": "square",
     "arguments": [{"tensor": "f32", "shape": [48, 32]}],
     "ops": [
       {"name": "kf.matmul", "operands": [0, 0],
        "results": [{"id": 1, "type": {"tensor": "f32", "shape": [48, 48]}}],
        "attributes": {}}],
     "results": [1]}])");
  return executable;
}

/// x [?, 8] rounded, and its outliers; `addsOutliers`: and twice these.
Executable roundedRows(bool addsOutliers = false) {
  Executable executable;
  executable.target = "reference";
  executable.programName = "round";
  executable.maxTokens = 64;
  executable.kernels = {{"round"}};
  executable.inputs = {{DataType::F32, {-1, 8}}};
  executable.outputs = {{DataType::F16, {-1, 8}}, {DataType::F32, {-1, 8}}};
  executable.dispatches = {{0,
                            {{KF_BINDING_INPUT, 0, 0},
                             {KF_BINDING_OUTPUT, 0, 0},
                             {KF_BINDING_OUTPUT, 1, 0}}}};
  executable.binary = R"([
    {"name": "round",
     "arguments": [{"tensor": "f32", "shape": [-1, 8]}],
     "ops": [
       {"name": "kf.round_half", "operands": [0],
        "results": [{"id": 1, "type": {"tensor": "f16", "shape": [-1, 8]}},
                    {"id": 2, "type": {"tensor": "f32", "shape": [-1, 8]}}],
        "attributes": {}},
       {"name": "arith.addf", "operands": [2, 2],
        "results": [{"id": 3, "type": {"tensor": "f32", "shape": [-1, 8]}}],
        "attributes": {}}],
     "results": [1, )" +
                      std::string(addsOutliers ? "3" : "2") + "]}]";
  return executable;
}

/// Integers [?] as floats; if `rounds`, those that bf16 has, for a CPU whose
/// products `multiplyPairs` of bf16.
Executable floatsOf(const std::string &target, bool rounds = false,
                    bool multiplyPairs = false) {
  Executable executable;
  executable.target = target;
  executable.programName = "floats";
  executable.maxTokens = 512;
  executable.kernels = {{"floats"}};
  if (multiplyPairs)
    executable.kernels[0].work.emplace().bf16Flops = {.constant = 1};
  executable.inputs = {{DataType::I32, {-1}}};
  executable.outputs = {{DataType::F32, {-1}}};
  executable.dispatches = {
      {0, {{KF_BINDING_INPUT, 0, 0}, {KF_BINDING_OUTPUT, 0, 0}}}};
  auto op = [](const std::string &name, int operand, const std::string &type) {
    return R"({"name": "arith.)" + name + R"(", "operands": [)" +
           std::to_string(operand) + R"(], "results": [{"id": )" +
           std::to_string(operand + 1) + R"(, "type": {"tensor": ")" + type +
           R"(", "shape": [-1]}}], "attributes": {}})";
  };
  executable.binary =
      R"([{"name": "floats", "arguments": [{"tensor": "i32", "shape": [-1]}],
           "ops": [)" +
      op("sitofp", 0, "f32") +
      (rounds ? "," + op("truncf", 1, "bf16") + "," + op("extf", 2, "f32")
              : "") +
      R"(], "results": [)" + (rounds ? "3" : "1") + "]}]";
  return executable;
}

/// The reference by the name of a CPU.
class CpuByReference : public HostDevice {
public:
  std::string name() const override { return "cpu"; }
  std::string description() const override { return "the reference"; }

private:
  Result<std::unique_ptr<LoadedProgram>>
  doLoad(const Executable &executable) override {
    Executable copy = executable;
    copy.target = reference->name();
    return reference->load(copy);
  }

  std::unique_ptr<Device> reference = createReferenceDevice();
};

/// Appends x [?, 1, 2] as key and value, and gives the attention to that.
Executable attention(int64_t keyBlock, const std::string &scale = "0.5") {
  Executable executable;
  executable.target = "reference";
  executable.programName = "attention";
  executable.maxTokens = 16;
  executable.kernels = {{"append"}, {"attend"}};
  executable.caches = {{DataType::F16, 1, 1, 2, keyBlock, 4}};
  executable.inputs = {{DataType::F32, {-1, 1, 2}},
                       {DataType::I32, {-1}},
                       {DataType::I32, {-1}},
                       {DataType::I32, {1, 8}}};
  executable.outputs = {{DataType::F32, {-1, 1, 2}}};
  DispatchSpec append, attend;
  append.bindings = {{KF_BINDING_INPUT, 0, 0},
                     {KF_BINDING_CACHE, 0, 0},
                     {KF_BINDING_INPUT, 1, 0},
                     {KF_BINDING_INPUT, 2, 0},
                     {KF_BINDING_INPUT, 3, 0}};
  attend = append;
  attend.kernel = 1;
  attend.bindings.push_back({KF_BINDING_OUTPUT, 0, 0});
  executable.dispatches = {append, attend};
  const std::string arguments =
      R"("arguments": [
     {"tensor": "f32", "shape": [-1, 1, 2]},
     {"cache": {"layers": 1, "kv_heads": 1, "head_dim": 2, "type": "f16",
                "key_block": )" +
      std::to_string(keyBlock) + R"(, "page": 4}},
     {"tensor": "i32", "shape": [-1]}, {"tensor": "i32", "shape": [-1]},
     {"tensor": "i32", "shape": [1, 8]}],)";
  executable.binary = R"([{"name": "append",)" + arguments + R"(
     "ops": [
       {"name": "kf.kv_append", "operands": [1, 0, 0, 2, 3, 4], "results": [],
        "attributes": {"layer": 0}}],
     "results": []},
    {"name": "attend",)" +
                      arguments + R"(
     "ops": [
       {"name": "kf.attention", "operands": [0, 1, 2, 3, 4],
        "results": [{"id": 5, "type": {"tensor": "f32", "shape": [-1, 1, 2]}}],
        "attributes": {"layer": 0, "scale": )" +
                      scale + R"(}}],
     "results": [5]}])";
  return executable;
}

KernelCase attentionCase() {
  KernelCase kernelCase;
  kernelCase.tokens = 5;
  kernelCase.depth = 9;
  kernelCase.inputs = {
      {}, {Role::Positions}, {Role::Sequences}, {Role::PageTable}};
  return kernelCase;
}

KernelCase rows(int64_t tokens) {
  KernelCase kernelCase;
  kernelCase.tokens = tokens;
  return kernelCase;
}

class KernelRunnerTest : public testing::Test {
protected:
  void create(const Executable &program, const KernelCase &kernelCase,
              const KernelRunnerOptions &options = {}) {
    auto made =
        KernelRunner::create(*device, *reference, program, kernelCase, options);
    ASSERT_TRUE(made.ok()) << made.message();
    runner = made.take();
  }

  std::unique_ptr<KernelVariant> load(const Executable &executable) {
    auto variant = runner->load(executable);
    EXPECT_TRUE(variant.ok()) << variant.message();
    return variant.ok() ? variant.take() : nullptr;
  }

  ResultDifference check(const Executable &executable) {
    auto variant = load(executable);
    if (!variant)
      return {};
    auto difference = variant->check();
    EXPECT_TRUE(difference.ok()) << difference.message();
    return difference.ok() ? difference.take() : ResultDifference();
  }

  std::unique_ptr<Device> device = createReferenceDevice(),
                          reference = createReferenceDevice();
  std::unique_ptr<KernelRunner> runner;
};

TEST_F(KernelRunnerTest, ComparesWithTheReference) {
  create(product(), rows(50));
  const ResultDifference right = check(product());
  EXPECT_TRUE(right.agrees) << right.complaint;
  EXPECT_EQ(right.largest, 0);
  const ResultDifference wrong = check(wrongProduct());
  EXPECT_FALSE(wrong.agrees);
  EXPECT_NE(wrong.complaint.find("result 0, element "), std::string::npos)
      << wrong.complaint;
  EXPECT_NEAR(wrong.relative, 1, 1e-6);
}

/// What kf.round_half gives beside its rounded elements is anything, unless
/// these are infinite: in the rows that the reference runs with, and in all.
TEST_F(KernelRunnerTest, ReadsOutliersOfInfinitiesAlone) {
  KernelCase kernelCase = rows(50);
  kernelCase.outputs = {{}, {.rounded = 0}};
  for (bool areOutliers : {false, true}) {
    SCOPED_TRACE(areOutliers);
    kernelCase.inputs = {areOutliers
                             ? KernelInput{Role::Numbers, 7e4, 1e6, 0}
                             : KernelInput{Role::Numbers, -6e4, 6e4, 0}};
    create(roundedRows(), kernelCase);
    const ResultDifference right = check(roundedRows());
    EXPECT_TRUE(right.agrees) << right.complaint;
    const ResultDifference twice = check(roundedRows(/*addsOutliers=*/true));
    EXPECT_EQ(twice.agrees, !areOutliers) << twice.complaint;
    if (areOutliers)
      EXPECT_NE(twice.complaint.find("result 1, element 0 is "),
                std::string::npos)
          << twice.complaint;
  }
}

/// Those that are compared with results of pairs may be off by as much, but no
/// others that come later. What all rows are compared with is not rounded as
/// soon as one such variant is there.
TEST_F(KernelRunnerTest, WidensNothingForEarlierVariants) {
  device = std::make_unique<CpuByReference>();
  const Executable exact = floatsOf("cpu"),
                   rounded = floatsOf("cpu", /*rounds=*/true),
                   pairs = floatsOf("cpu", true, /*multiplyPairs=*/true);
  // Rows 257, 259 ... are rounded; the reference's are fewer.
  for (bool pairsFirst : {true, false}) {
    SCOPED_TRACE(pairsFirst);
    create(floatsOf("reference"), rows(300));
    for (const Executable &right :
         {pairsFirst ? pairs : exact, pairsFirst ? exact : pairs, exact, pairs})
      EXPECT_TRUE(check(right).agrees);
    const ResultDifference off = check(rounded);
    EXPECT_FALSE(off.agrees);
    EXPECT_EQ(off.complaint,
              "with 300 rows, result 0, element 257 is 256 instead of 257");
  }
}

TEST_F(KernelRunnerTest, WeightsOfAnyType) {
  for (DataType type : {DataType::F16, DataType::BF16, DataType::Q8_0,
                        DataType::Q4_0, DataType::Q4_1}) {
    create(product(type), rows(3));
    EXPECT_TRUE(check(product(type)).agrees) << nameOf(type);
  }
}

/// Sums with weights in 8 bits are no larger than others, so that errors behind
/// them do not vanish.
TEST_F(KernelRunnerTest, WeightsIn8BitsHaveTheirFactors) {
  create(scaledProduct("math.tanh"), rows(3));
  const ResultDifference right = check(scaledProduct("math.tanh"));
  EXPECT_TRUE(right.agrees) << right.complaint;
  const ResultDifference wrong = check(scaledProduct("math.erf"));
  EXPECT_FALSE(wrong.agrees);
  // tanh(x) is about x, erf(x) about 1.13 x.
  EXPECT_NEAR(wrong.relative, 0.13, 0.02);
}

TEST_F(KernelRunnerTest, CachesAreResultsInAnyLayout) {
  create(attention(1), attentionCase());
  for (int64_t keyBlock : {1, 2, 4}) {
    const ResultDifference right = check(attention(keyBlock));
    EXPECT_TRUE(right.agrees) << right.complaint;
  }
  EXPECT_FALSE(check(attention(2, "5.0")).agrees);
  // Attention that finds other keys than the append's differs in the cache.
  Executable lost = attention(2);
  lost.dispatches[0].bindings[0] = {KF_BINDING_INPUT, 0, 0};
  std::string &code = lost.binary;
  code.replace(code.find("[1, 0, 0, 2, 3, 4]"), 18, "[1, 0, 0, 3, 3, 4]");
  const ResultDifference elsewhere = check(lost);
  EXPECT_FALSE(elsewhere.agrees);
}

TEST_F(KernelRunnerTest, MeasuresEachRun) {
  create(product(), rows(50));
  auto variant = load(product());
  ASSERT_NE(variant, nullptr);
  auto seconds = variant->measure(20);
  ASSERT_TRUE(seconds.ok()) << seconds.message();
  EXPECT_EQ(seconds->size(), 20u);
  EXPECT_TRUE(std::ranges::all_of(
      *seconds, [](double value) { return value > 0 && value < 10; }));
  std::atomic<bool> cancelled = true;
  EXPECT_TRUE(variant->measure(3, &cancelled).status().isCancelled());
}

#ifdef __linux__
/// Keeps the calling thread, and those that it makes, to one core, which
/// another thread is at work on.
class BusyCore {
public:
  BusyCore() {
    ::sched_getaffinity(0, sizeof(before), &before);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE && !CPU_COUNT(&one); ++cpu)
      if (CPU_ISSET(cpu, &before))
        CPU_SET(cpu, &one);
    isAlone = ::sched_setaffinity(0, sizeof(one), &one) == 0;
    thread = std::thread([this] {
      while (!done)
        ;
    });
  }
  ~BusyCore() {
    done = true;
    thread.join();
    ::sched_setaffinity(0, sizeof(before), &before);
  }
  bool isAlone = false;

private:
  cpu_set_t before = {};
  std::atomic<bool> done = false;
  std::thread thread;
};

/// The reference as a device that says that it has one worker.
class OneWorker final : public HostDevice {
public:
  std::string name() const override { return "reference"; }
  std::string description() const override { return "one worker"; }
  int workers() const override { return 1; }

private:
  Result<std::unique_ptr<LoadedProgram>>
  doLoad(const Executable &executable) override {
    return reference->load(executable);
  }
  std::unique_ptr<Device> reference = createReferenceDevice();
};

TEST_F(KernelRunnerTest, SeesThatOneThreadHadNoCore) {
  device = std::make_unique<OneWorker>();
  create(product(), rows(64));
  auto variant = load(product());
  ASSERT_NE(variant, nullptr);
  KernelMeasurer measurer(*runner, [](size_t) { return product(); });
  auto verdict = measurer.prepare(0);
  ASSERT_TRUE(verdict.ok()) << verdict.message();
  const BusyCore busy;
  if (!busy.isAlone)
    GTEST_SKIP() << "threads cannot be kept to a core";
  // Long enough for the other one to have its turn.
  const Stopwatch watch;
  bool disturbed = false;
  while (!disturbed && watch.seconds() < 30) {
    ASSERT_TRUE(measurer.measure(0, 0, 200).ok());
    disturbed = measurer.wasDisturbed();
  }
  EXPECT_TRUE(disturbed);
}
#endif

TEST_F(KernelRunnerTest, MeasuresFewerRows) {
  create(product(), rows(64));
  auto variant = load(product());
  ASSERT_NE(variant, nullptr);
  auto leastOf = [&](int64_t tokens) {
    auto seconds = variant->measure(10, nullptr, tokens);
    EXPECT_TRUE(seconds.ok()) << seconds.message();
    return seconds.ok() ? std::ranges::min(*seconds) : 0;
  };
  EXPECT_LT(leastOf(2), leastOf(64) / 2);
  EXPECT_TRUE(failsWith(variant->measure(1, nullptr, 65).status(),
                        "the case has 64 rows, not 65"));
  EXPECT_FALSE(variant->measure(1, nullptr, -1).ok());
}

TEST_F(KernelRunnerTest, RunsGoRoundCopies) {
  create(product(), rows(1));
  load(product());
  EXPECT_EQ(runner->copies(), 1);
  EXPECT_EQ(runner->storedBytes(), 48u * 32 * 4);

  KernelRunnerOptions options;
  options.rotateBytes = 10 * 48 * 32 * 4 - 1;
  create(product(), rows(1), options);
  auto variant = load(product());
  ASSERT_NE(variant, nullptr);
  EXPECT_EQ(runner->copies(), 10);
  EXPECT_EQ(runner->copiedBytes(), 0u);
  // Before the first run, so that none finds what was just copied in a cache.
  EXPECT_TRUE(variant->measure(1).ok());
  EXPECT_EQ(runner->copiedBytes(), 9u * 48 * 32 * 4);
  EXPECT_TRUE(variant->measure(25).ok());
  EXPECT_EQ(runner->copiedBytes(), 9u * 48 * 32 * 4);
  EXPECT_TRUE(variant->check()->agrees);
}

/// Seconds of a search: enough to try a few candidates on a busy machine, and
/// taken whole where other processes disturb its turns.
constexpr double kSearchSeconds = 20;
/// Searches that a test makes at most, and seconds after which it begins none.
constexpr int kMostSearches = 20;
constexpr double kTestSeconds = 240;

SearchOutcome outcomeOf(std::span<const ScheduleCandidate> candidates,
                        KernelMeasurer &measurer) {
  SearchOptions options;
  options.seconds = kSearchSeconds;
  auto outcome = searchSchedules(candidates, measurer, options);
  EXPECT_TRUE(outcome.ok()) << outcome.message();
  return outcome.ok() ? outcome.take() : SearchOutcome();
}

/// What the first search that is good has found, or the last one: what a busy
/// machine had others do meanwhile may be all that was measured of a candidate.
SearchOutcome
searchUntil(const std::function<bool(const SearchOutcome &)> &isGood,
            const std::function<SearchOutcome()> &search) {
  const Stopwatch watch;
  SearchOutcome outcome = search();
  for (int i = 1; i < kMostSearches && watch.seconds() < kTestSeconds &&
                  !isGood(outcome) && !testing::Test::HasFailure();
       ++i)
    outcome = search();
  return outcome;
}

/// A schedule whose code is wrong is never chosen, however fast it is.
TEST_F(KernelRunnerTest, SearchRejectsAPlantedWrongVariant) {
  // Eight times the work, which a busy machine shows as well, a right one, a
  // wrong one, and one that cannot be loaded.
  Executable slow = product();
  slow.dispatches.assign(8, slow.dispatches[0]);
  Executable broken = product();
  broken.binary = "[";
  const Executable programs[] = {slow, product(), wrongProduct(), broken};
  const ScheduleCandidate candidates[] = {
      {"slow"}, {"once"}, {"wrong"}, {"broken"}};
  create(product(), rows(50));
  auto search = [&] {
    KernelMeasurer measurer(
        *runner, [&](size_t i) -> Result<Executable> { return programs[i]; });
    return outcomeOf(candidates, measurer);
  };
  const SearchOutcome outcome = searchUntil(
      [](const SearchOutcome &found) {
        return found.tried.size() == 4 && found.winner != 0; // the default
      },
      search);
  EXPECT_EQ(outcome.winner, 1u);
  ASSERT_EQ(outcome.tried.size(), 4u);
  EXPECT_EQ(outcome.tried[2].schedule, "wrong");
  EXPECT_NE(outcome.tried[2].rejected.find("result 0, element "),
            std::string::npos)
      << outcome.tried[2].rejected;
  EXPECT_GT(outcome.tried[2].error, 0);
  EXPECT_EQ(outcome.tried[2].seconds, 0);
  EXPECT_NE(outcome.tried[3].rejected, "");
  EXPECT_EQ(outcome.tried[0].rejected, "");
}

/// With 64 rows, the work of 16 times 64 rows against 8 times 48 and once 64;
/// with 4 rows, of 16 times 4 against 8 times 48 and once 4.
TEST_F(KernelRunnerTest, SearchRejectsWhatIsSlowWithFewerRows) {
  const Executable programs[] = {products(16, 0), products(1, 8),
                                 products(4, 0)};
  const ScheduleCandidate candidates[] = {{"default"}, {"steady"}, {"good"}};
  auto search = [&](std::vector<int64_t> fewer) {
    KernelMeasurer measurer(
        *runner, [&](size_t i) -> Result<Executable> { return programs[i]; },
        nullptr, fewer);
    return outcomeOf(candidates, measurer);
  };
  create(products(16, 0), rows(64));
  const SearchOutcome outcome = searchUntil(
      [](const SearchOutcome &found) {
        return found.tried.size() == 3 && found.winner == 2 &&
               found.tried[1].rejected.starts_with("slower with ") &&
               found.tried[1].seconds < found.defaultSeconds &&
               found.tried[2].rejected.empty();
      },
      [&] { return search({16, 4}); });
  EXPECT_EQ(outcome.winner, 2u);
  ASSERT_EQ(outcome.tried.size(), 3u);
  EXPECT_TRUE(outcome.tried[1].rejected.starts_with("slower with "))
      << outcome.tried[1].rejected;
  EXPECT_GT(outcome.tried[1].seconds, 0);
  EXPECT_LT(outcome.tried[1].seconds, outcome.defaultSeconds);
  EXPECT_EQ(outcome.tried[2].rejected, "");
  for (const TuningTrial &trial : search({}).tried)
    EXPECT_EQ(trial.rejected, "");
}

TEST_F(KernelRunnerTest, Errors) {
  EXPECT_TRUE(failsWith(
      KernelRunner::create(*device, *reference, product(), rows(65)).status(),
      "kernel 'product': "));
  KernelCase odd = rows(2);
  odd.inputs = {{Role::Positions}};
  EXPECT_TRUE(failsWith(
      KernelRunner::create(*device, *reference, product(), odd).status(),
      "kernel 'product': input 0: "));
  Executable broken = product();
  broken.binary = "[";
  EXPECT_FALSE(KernelRunner::create(*device, *reference, broken, rows(1)).ok());

  create(product(), rows(2));
  Executable other = product();
  other.outputs[0].type = DataType::F16;
  EXPECT_TRUE(failsWith(runner->load(other).status(),
                        "program 'product': it takes or gives other tensors"));
  other = product();
  other.weights[0].shape = {48, 64};
  EXPECT_TRUE(failsWith(runner->load(other).status(), "other weights"));
  other = product();
  other.caches = {{DataType::F32, 1, 1, 2, 1, 4}};
  EXPECT_TRUE(failsWith(runner->load(other).status(), "other caches"));
  other = product();
  other.maxTokens = 1;
  EXPECT_FALSE(runner->load(other).ok());
  EXPECT_FALSE(runner->load(broken).ok());

  Executable twice = product();
  twice.weights.push_back(twice.weights[0]);
  twice.weights[1].shape = {50, 32};
  EXPECT_TRUE(failsWith(
      KernelRunner::create(*device, *reference, twice, rows(1)).status(),
      "weight 'q' is read in two shapes"));
}

} // namespace
