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

#include "lib/Target/LLVMCPU/CostModel.h"
#include "kf/Pipelines/KernelModules.h"
#include "kf/Pipelines/Registration.h"
#include "runtime/measure/MachineRates.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/DebugStringHelper.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <string_view>

using namespace mlir::kf;
namespace fs = std::filesystem;

namespace {

constexpr size_t kMeasured = 8; // of the schedules that are ranked first
constexpr double kNoise = 1.03;

const fs::path folder = KF_SOURCE_DIR "/test/Target/LLVMCPU/Inputs/schedules";

struct Measured {
  VectorScheduleAttr schedule;
  double seconds;
};

double numberOf(const llvm::json::Object &object, const char *key) {
  std::optional<double> number = object.getNumber(key);
  EXPECT_TRUE(number) << key;
  return number.value_or(0);
}

/// A table, and the kernel that it is of.
class Table {
public:
  explicit Table(std::string name)
      : name(std::move(name)), context(makeRegistry(), kSingleThread) {}

  void read() {
    auto text =
        llvm::MemoryBuffer::getFile((folder / (name + ".json")).string());
    ASSERT_TRUE(bool(text));
    llvm::Expected<llvm::json::Value> table =
        llvm::json::parse((*text)->getBuffer());
    ASSERT_TRUE(bool(table)) << llvm::toString(table.takeError());
    const llvm::json::Object &object = *table->getAsObject();
    const llvm::json::Object &read = *object.getObject("machine");
    rates.readBytesPerSecond = numberOf(read, "read_bytes_per_second");
    rates.f32FlopsPerSecond = numberOf(read, "f32_flops_per_second");
    rates.i8OpsPerSecond = numberOf(read, "i8_ops_per_second");
    // Of machines without tiles, tables do not tell.
    rates.bf16FlopsPerSecond =
        read.getNumber("bf16_flops_per_second").value_or(0);
    rates.threads = static_cast<int64_t>(numberOf(read, "threads"));
    ASSERT_NO_FATAL_FAILURE(open(object.getString("target")->str()));
    for (const llvm::json::Value &value : *object.getArray("candidates")) {
      const llvm::json::Object &candidate = *value.getAsObject();
      std::string schedule = candidate.getString("schedule")->str();
      auto parsed = mlir::dyn_cast_if_present<VectorScheduleAttr>(
          mlir::parseAttribute(schedule, &context));
      ASSERT_TRUE(parsed) << schedule;
      kernel.setScheduleAttr(parsed);
      ASSERT_TRUE(
          mlir::succeeded(getTarget(kernel).verifySchedule(kernel, rows)))
          << schedule << ": measure " << name << " again";
      measured.push_back({parsed, numberOf(candidate, "seconds")});
    }
  }

  double predict(VectorScheduleAttr schedule, const CpuCosts &costs) const {
    return predictCpuSeconds(kernel, schedule, getMachine(kernel), rows, rates,
                             costs);
  }

  /// As they are predicted, the fastest first.
  std::vector<Measured> rank(const CpuCosts &costs) const {
    std::vector<std::pair<double, size_t>> predicted;
    for (const Measured &each : measured)
      predicted.emplace_back(predict(each.schedule, costs), predicted.size());
    std::ranges::sort(predicted);
    std::vector<Measured> ranked;
    for (const auto &[seconds, number] : predicted)
      ranked.push_back(measured[number]);
    return ranked;
  }

  Measured best() const {
    return *std::ranges::min_element(measured, {}, &Measured::seconds);
  }

  /// How many have to be measured until one is as fast as the best.
  int64_t place(const CpuCosts &costs) const {
    const double most = kNoise * best().seconds;
    int64_t place = 1;
    for (const Measured &each : rank(costs)) {
      if (each.seconds <= most)
        break;
      ++place;
    }
    return place;
  }

  /// How far predictions are from a multiple of what was measured: a standard
  /// deviation of logarithms.
  double spread(const CpuCosts &costs) const {
    double sum = 0, squares = 0;
    for (const Measured &each : measured) {
      const double log = std::log(predict(each.schedule, costs) / each.seconds);
      sum += log;
      squares += log * log;
    }
    const auto count = static_cast<double>(measured.size());
    return std::sqrt(
        std::max(squares / count - sum * sum / count / count, 0.0));
  }

  std::string name;
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> laidOut;
  KernelOp kernel;
  int64_t rows = 0;
  ::kf::MachineRates rates;
  std::vector<Measured> measured;

private:
  /// The only kernel of the file, laid out for `target`.
  void open(const std::string &target) {
    auto module = mlir::parseSourceFile<mlir::ModuleOp>(
        (folder / (name + ".mlir")).string(), mlir::ParserConfig(&context));
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
};

std::vector<std::string> tables() {
  std::vector<std::string> names;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".json")
      names.push_back(entry.path().stem());
  std::ranges::sort(names);
  return names;
}

class CostModelTest : public testing::TestWithParam<std::string> {};

TEST_P(CostModelTest, firstEightHoldTheFastest) {
  Table table(GetParam());
  ASSERT_NO_FATAL_FAILURE(table.read());
  TargetAttrInterface target = getTarget(table.kernel);
  const auto candidates =
      target.getScheduleCandidates(table.kernel, table.rows);

  // Of another list of candidates a table would say nothing. Ways to ask for
  // lines of the weight are predicted alike, and tables have the default's: the
  // others take places of those that are measured first.
  std::set<std::string> listed, measured;
  const auto first = mlir::cast<VectorScheduleAttr>(candidates.front());
  for (ScheduleAttrInterface candidate : candidates)
    if (auto schedule = mlir::cast<VectorScheduleAttr>(candidate);
        schedule.getPrefetch() == first.getPrefetch())
      listed.insert(mlir::debugString(candidate));
  for (const Measured &each : table.measured) {
    measured.insert(mlir::debugString(each.schedule));
    // What tuners ask.
    EXPECT_EQ(target.predictSeconds(table.kernel, each.schedule, table.rows,
                                    table.rates),
              table.predict(each.schedule, getCpuCosts()));
  }
  EXPECT_EQ(mlir::debugString(table.measured.front().schedule),
            mlir::debugString(candidates.front()))
      << "the default has changed: measure " << GetParam() << " again";
  EXPECT_EQ(measured, listed)
      << "the candidates have changed: measure " << GetParam() << " again";

  std::vector<Measured> ranked = table.rank(getCpuCosts());
  const size_t others = candidates.size() - listed.size();
  ASSERT_LT(others, kMeasured);
  ranked.resize(std::min(ranked.size(), kMeasured - others));
  const Measured found =
      *std::ranges::min_element(ranked, {}, &Measured::seconds);
  EXPECT_LE(found.seconds, kNoise * table.best().seconds)
      << "found " << mlir::debugString(found.schedule) << ", the fastest is "
      << mlir::debugString(table.best().schedule);
}

/// Of all tables: how many schedules have to be measured and, which decides
/// between costs that are as good, how far predictions are off.
std::pair<int64_t, double>
errorOf(const std::vector<std::unique_ptr<Table>> &all, const CpuCosts &costs) {
  int64_t places = 0;
  double spread = 0;
  for (const std::unique_ptr<Table> &table : all) {
    places += table->place(costs);
    spread += table->spread(costs);
  }
  return {places, spread};
}

/// The file of costs is what the tables make of a grid of them;
/// KF_UPDATE_COSTS=1 writes it.
TEST(CpuCostsTest, areThoseThatFitTheTables) {
  std::vector<std::unique_ptr<Table>> all;
  for (const std::string &name : tables()) {
    all.push_back(std::make_unique<Table>(name));
    ASSERT_NO_FATAL_FAILURE(all.back()->read());
  }
  CpuCosts best = getCpuCosts();
  std::pair<int64_t, double> least(std::numeric_limits<int64_t>::max(), 0);
  for (const double spill : {0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0})
    for (const double overlap : {0.0, 0.1, 0.2, 0.3, 0.4, 0.5}) {
      CpuCosts costs = getCpuCosts();
      costs.spill = spill;
      costs.overlap = overlap;
      const auto error = errorOf(all, costs);
      if (std::getenv("KF_UPDATE_COSTS"))
        std::cerr << "spill " << spill << ", overlap " << overlap << ": "
                  << error.first << " in " << all.size() << " tables, off by "
                  << error.second / static_cast<double>(all.size()) << "\n";
      if (error < least) {
        least = error;
        best = costs;
      }
    }
  if (!std::getenv("KF_UPDATE_COSTS")) {
    EXPECT_EQ(best.spill, getCpuCosts().spill)
        << "run this test with KF_UPDATE_COSTS=1";
    EXPECT_EQ(best.overlap, getCpuCosts().overlap)
        << "run this test with KF_UPDATE_COSTS=1";
    return;
  }
  std::ofstream(fs::path(KF_SOURCE_DIR) /
                "lib/Target/LLVMCPU/costs/emeraldrapids.inc")
      << "// What is fitted of CPUs' costs: see CpuCosts. Measured on: "
      << best.machine.str() << ".\n"
      << "// KF_UPDATE_COSTS=1 kf_cost_model_test made it of the tables in\n"
      << "// test/Target/LLVMCPU/Inputs/schedules, each of the commit that\n"
      << "// changed it last.\n"
      << '"' << best.chip.str() << "\", \"" << best.machine.str()
      << "\", /*spill=*/" << best.spill << ", /*overlap=*/" << best.overlap
      << "\n";
}

/// Kernels on a CPU with tiles.
class TileCostTest : public testing::Test {
protected:
  TileCostTest() {
    mlir::DialectRegistry registry;
    registerDialects(registry);
    context.appendDialectRegistry(registry);
  }

  /// Of attention of 32 query heads and 8 KV heads, of `rows` tokens of as many
  /// sequences as the table is for.
  double predict(std::string_view schedule, int64_t rows,
                 std::string_view table) {
    std::string text = R"(
      !layer = !kf.kv_cache<layers = 1, kv_heads = 8, head_dim = 64, type = f16,
                            key_block = 16>
      module attributes {kf.target = #kf.cpu_target<cpu = "sapphirerapids",
                                                    amx = true, workers = 2>} {
        kf.kernel @attention(%q: tensor<?x32x64xf32>, %c: !layer,
                             %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: TABLE)
            -> tensor<?x32x64xf32> attributes {schedule = SCHEDULE} {
          %0 = kf.attention %q, %c, %p, %sp, %pt
              {layer = 0 : i64, scale = 0.125 : f32}
              : tensor<?x32x64xf32>, !layer, tensor<?xi32>, TABLE
          kf.yield %0 : tensor<?x32x64xf32>
        }
      })";
    replaceAll(text, "TABLE", table);
    replaceAll(text, "SCHEDULE", schedule);
    return predictOf(text, rows);
  }

  /// Of a product of `rows` rows of bf16 with 5632 elements.
  double predictProduct(std::string_view schedule, int64_t rows) {
    std::string text = R"(
      !w = tensor<2048x5632x!kf.quant<q4_0>, #kf.layout<panel = 32>>
      module attributes {kf.target = #kf.cpu_target<cpu = "sapphirerapids",
                                                    amx = true, workers = 1>} {
        kf.kernel @product(%x: tensor<?x5632xbf16>, %w: !w) -> tensor<?x2048xf32>
            attributes {schedule = SCHEDULE} {
          %0 = kf.matmul %x, %w wide : tensor<?x5632xbf16>, !w
          kf.yield %0 : tensor<?x2048xf32>
        }
      })";
    replaceAll(text, "SCHEDULE", schedule);
    return predictOf(text, rows);
  }

private:
  double predictOf(const std::string &text, int64_t rows) {
    auto module = mlir::parseSourceString<mlir::ModuleOp>(
        text, mlir::ParserConfig(&context));
    EXPECT_TRUE(module);
    if (!module)
      return std::numeric_limits<double>::quiet_NaN();
    KernelOp kernel = *module->getOps<KernelOp>().begin();
    ScheduleAttrInterface parsed = kernel.getScheduleAttr();
    EXPECT_TRUE(mlir::succeeded(getTarget(kernel).verifySchedule(kernel, rows)))
        << text;
    return getTarget(kernel).predictSeconds(kernel, parsed, rows, {});
  }

  static void replaceAll(std::string &text, std::string_view what,
                         std::string_view by) {
    for (size_t at = text.find(what); at != std::string::npos;
         at = text.find(what, at + by.size()))
      text.replace(at, what.size(), by);
  }

  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
};

constexpr std::string_view kOneSequence = "tensor<1x64xi32>",
                           kFourSequences = "tensor<4x64xi32>";

TEST_F(TileCostTest, tilesAreFasterOfManyRows) {
  const double vectors = predict("#kf.vector<workgroup = [8, 4], tile = [6], "
                                 "reduction = 64, lanes = 16>",
                                 512, kOneSequence);
  const double tiles = predict("#kf.vector<workgroup = [8, 4], tile = [16], "
                               "reduction = 64, lanes = 16, dot = bf16>",
                               512, kOneSequence);
  const double shared = predict("#kf.vector<workgroup = [64, 4], tile = [16], "
                                "reduction = 64, lanes = 16, dot = bf16>",
                                512, kOneSequence);
  EXPECT_LT(tiles, vectors);
  // More rows share what is made of keys and values for tiles.
  EXPECT_LT(shared, 0.8 * tiles);
}

/// A token that is alone in its sequence is not multiplied by tiles.
TEST_F(TileCostTest, tokensAloneCostWhatVectorsDo) {
  const std::string schedule = "#kf.vector<workgroup = [4, 4], tile = [16, 4], "
                               "reduction = 64, lanes = 16";
  EXPECT_EQ(predict(schedule + ", dot = bf16>", 8, kFourSequences),
            predict(schedule + ">", 8, kFourSequences));
  EXPECT_LT(predict(schedule + ", dot = bf16>", 64, kFourSequences),
            predict(schedule + ">", 64, kFourSequences));
}

/// Vectors unpack a panel while tiles multiply the one before, where a part of
/// K is whole turns.
TEST_F(TileCostTest, panelsAreUnpackedMeanwhile) {
  const std::string schedule =
      "#kf.vector<workgroup = [256, 1024], tile = [32, 32], lanes = 16, "
      "dot = bf16, reduction = ";
  EXPECT_LT(predictProduct(schedule + "512>", 512),
            0.95 * predictProduct(schedule + "480>", 512));
  // Workgroups at the end may have fewer rows; what these leave of a panel
  // comes behind them.
  EXPECT_LT(predictProduct(schedule + "512>", 200),
            0.97 * predictProduct(schedule + "480>", 200));
}

std::string testName(const testing::TestParamInfo<std::string> &info) {
  std::string name = info.param;
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Tables, CostModelTest, testing::ValuesIn(tables()),
                         testName);

} // namespace
