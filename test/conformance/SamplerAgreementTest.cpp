//===- SamplerAgreementTest.cpp - One choice on every device --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// kf.sample as CPU code, for each width of vectors, chooses the tokens that the
// sampler on the host and the reference choose: on rows of all shapes that are
// hard for a filter, with settings from one end of their ranges to the other.
//
//===----------------------------------------------------------------------===//

#include "kf/Pipelines/Compiler.h"
#include "kf/Pipelines/Registration.h"
#include "runtime/engine/ProgramRunner.h"
#include "runtime/engine/Sampler.h"
#include "test/conformance/TestDevice.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

#include <bit>
#include <cmath>
#include <limits>
#include <random>

using namespace kf;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kMost = std::numeric_limits<float>::max();

/// One row of kf.sample, and what it is expected to give.
struct Row {
  std::vector<float> logits;
  SampleSettings settings;
  SamplePenalties penalties;
  std::vector<LogitAdjustment> adjustments;
};

/// A function of kf.sample for `columns` ids and up to 64 rows, with room for
/// `entries` adjustments.
std::string sampleFunction(int64_t columns, int64_t entries) {
  const std::string f32 = "tensor<?xf32>", i32 = "tensor<?xi32>";
  const std::string count = std::to_string(entries);
  const std::vector<std::pair<std::string, std::string>> operands = {
      {"%x", "tensor<?x" + std::to_string(columns) + "xf32>"},
      {"%t", f32},
      {"%k", i32},
      {"%p", f32},
      {"%m", f32},
      {"%s", "tensor<?xi64>"},
      {"%c", i32},
      {"%first", i32},
      {"%count", i32},
      {"%ids", "tensor<" + count + "xi32>"},
      {"%seen", "tensor<" + count + "xi32>"},
      {"%bias", "tensor<" + count + "xf32>"},
      {"%rep", f32},
      {"%pre", f32},
      {"%fre", f32}};
  std::string arguments, types;
  for (const auto &[name, type] : operands) {
    const char *comma = types.empty() ? "" : ", ";
    arguments += comma + name + ": " + type;
    types += comma + type;
  }
  return "func.func @sample(" + arguments + ") -> tensor<?xi32> " +
         R"(attributes {kf.max_tokens = 64 : i64} {
    %0 = kf.sample %x temperature(%t) top_k(%k) top_p(%p) min_p(%m) seed(%s)
        counter(%c) adjustments(%first, %count, %ids, %seen, %bias)
        penalties(%rep, %pre, %fre) : ()" +
         types + R"()
    return %0 : tensor<?xi32>
  })";
}

/// kf.sample on a device.
class CompiledSampler {
public:
  /// `name` as in TestDevice.h.
  CompiledSampler(const std::string &name, int64_t columns, int64_t entries)
      : columns(columns), entries(entries) {
    device = test::openTestDevice(name);
    mlir::DialectRegistry registry;
    mlir::kf::registerDialects(registry);
    mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
    auto module = mlir::parseSourceString<mlir::ModuleOp>(
        sampleFunction(columns, entries), &context);
    mlir::kf::CompileOptions options;
    options.target = test::targetFor(*device, name);
    auto program = mlir::kf::compile(*module, options);
    EXPECT_TRUE(bool(program)) << llvm::toString(program.takeError());
    weights = std::make_unique<WeightStore>(*device, nullptr);
    cache = std::make_unique<KVCache>(*device, 1, kCachePage);
    runner =
        ProgramRunner::create(std::move(*program), *device, *weights, *cache)
            .take();
  }

  std::vector<int32_t> operator()(const std::vector<Row> &rows) {
    const int64_t count = static_cast<int64_t>(rows.size());
    auto zeros = [&](DataType type, std::vector<int64_t> shape) {
      return HostTensor::zeros(type, std::move(shape)).take();
    };
    auto perRow = [&](auto member) {
      using T = decltype(member(rows[0]));
      HostTensor tensor = zeros(sizeof(T) == 8             ? DataType::I64
                                : std::is_same_v<T, float> ? DataType::F32
                                                           : DataType::I32,
                                {count});
      for (int64_t i = 0; i < count; ++i)
        tensor.data<T>()[i] = member(rows[i]);
      return tensor;
    };
    HostTensor logits = zeros(DataType::F32, {count, columns});
    HostTensor first = zeros(DataType::I32, {count});
    HostTensor ids = zeros(DataType::I32, {entries});
    HostTensor seen = zeros(DataType::I32, {entries});
    HostTensor bias = zeros(DataType::F32, {entries});
    int32_t next = 0;
    for (int64_t i = 0; i < count; ++i) {
      std::ranges::copy(rows[i].logits, logits.data<float>() + i * columns);
      first.data<int32_t>()[i] = next;
      for (const LogitAdjustment &entry : rows[i].adjustments) {
        EXPECT_LT(next, entries);
        ids.data<int32_t>()[next] = entry.id;
        seen.data<int32_t>()[next] = entry.seen;
        bias.data<float>()[next++] = entry.bias;
      }
    }
    using R = const Row &;
    auto results = runner->run(std::vector<HostTensor>{
        std::move(logits),
        perRow([](R row) { return row.settings.temperature; }),
        perRow([](R row) { return row.settings.topK; }),
        perRow([](R row) { return row.settings.topP; }),
        perRow([](R row) { return row.settings.minP; }),
        perRow([](R row) { return row.settings.seed; }),
        perRow([](R row) { return row.settings.counter; }), std::move(first),
        perRow([](R row) { return int32_t(row.adjustments.size()); }),
        std::move(ids), std::move(seen), std::move(bias),
        perRow([](R row) { return row.penalties.repetition; }),
        perRow([](R row) { return row.penalties.presence; }),
        perRow([](R row) { return row.penalties.frequency; })});
    EXPECT_TRUE(results.ok()) << results.message();
    if (!results.ok())
      return {};
    const int32_t *tokens = (*results)[0].data<int32_t>();
    return {tokens, tokens + count};
  }

private:
  int64_t columns, entries;
  std::unique_ptr<Device> device;
  std::unique_ptr<WeightStore> weights;
  std::unique_ptr<KVCache> cache;
  std::unique_ptr<ProgramRunner> runner;
};

/// What the host chooses.
int32_t onHost(const Row &row) {
  if (!row.settings.areValid() || !row.penalties.areValid())
    return -1;
  std::vector<float> logits = row.logits;
  for (const LogitAdjustment &entry : row.adjustments)
    if (entry.id >= 0 && static_cast<size_t>(entry.id) < logits.size())
      logits[entry.id] =
          adjustLogit(logits[entry.id], entry.seen, entry.bias, row.penalties);
  return sampleToken(logits, row.settings);
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

class RowMaker {
public:
  /// Rows have less than `mostEntries` adjustments, most of them less than 12.
  RowMaker(int64_t columns, unsigned mostEntries, uint32_t seed)
      : columns(columns), mostEntries(mostEntries), random(seed) {}

  Row make() {
    Row row;
    row.logits = logits();
    row.settings = {
        .temperature = oneOf({0.0f, 0.0f, 1.0f, 1.0f, 0.8f, 1.5f, 0.1f, 1e-3f,
                              1e-40f, 10.0f, 1e4f, 1e30f, kMost}),
        .topK = oneOf({0, 0, 1, 2, 3, 5, 40, 1000, int32_t(columns / 16),
                       int32_t(columns / 2), int32_t(columns - 1),
                       int32_t(columns), int32_t(columns + 1), INT32_MAX}),
        .topP = oneOf({1.0f, 1.0f, 0.95f, 0.9f, 0.5f, 0.1f, 1e-3f, 1e-9f,
                       1e-40f, 0.999999f}),
        .minP = oneOf({0.0f, 0.0f, 0.0f, 0.05f, 0.5f, 1e-9f, 1.0f}),
        .seed = random() * uint64_t(0x9e3779b97f4a7c15),
        .counter = static_cast<uint32_t>(random())};
    if (chance(2))
      adjust(row);
    if (chance(40))
      spoil(row);
    return row;
  }

private:
  template <typename T> T oneOf(std::initializer_list<T> values) {
    return values.begin()[random() % values.size()];
  }
  bool chance(unsigned times) { return random() % times == 0; }
  float normal(float deviation) {
    return std::normal_distribution<float>(0, deviation)(random);
  }

  std::vector<float> logits() {
    std::vector<float> values(columns);
    auto fill = [&](auto next) {
      for (float &value : values)
        value = next();
    };
    switch (random() % 9) {
    case 0: // all equal
      std::ranges::fill(values, oneOf({0.0f, -0.0f, 3.25f, -kMost, kMost}));
      break;
    case 1: // many ties
      fill([&] { return std::round(normal(3)) / 2; });
      break;
    case 2: // zeros of both signs, and numbers next to them
      fill(
          [&] { return oneOf({0.0f, -0.0f, 1e-45f, -1e-45f, 1e-30f, -1.0f}); });
      break;
    case 3: // most are excluded
      fill([&] { return chance(5) ? normal(4) : -kInf; });
      values[random() % columns] = 1;
      break;
    case 4: // as far apart as can be
      fill([&] { return oneOf({1.0f, -1.0f}) * std::exp(normal(40)); });
      for (float &value : values)
        value = std::clamp(value, -kMost, kMost);
      break;
    case 5: // a few stand out
      fill([&] { return chance(50) ? 12 + normal(2) : normal(2); });
      break;
    case 6: // falling and rising
      for (int64_t i = 0; i < columns; ++i)
        values[i] = static_cast<float>(chance(2) ? i : -i) * 0.01f;
      break;
    case 7: // neighbours in the order of floats, below 8 and above it
      fill([&] {
        return std::bit_cast<float>(std::bit_cast<uint32_t>(8.0f) - 32 +
                                    uint32_t(random() % 64));
      });
      break;
    default:
      fill([&] { return normal(3); });
    }
    return values;
  }

  void adjust(Row &row) {
    row.penalties = {oneOf({1.0f, 1.1f, 1.3f, 0.5f, 1e20f, kMost}),
                     oneOf({0.0f, 0.5f, -0.5f, kMost}),
                     oneOf({0.0f, 0.1f, -1.0f, 1e30f})};
    for (unsigned i = random() % (chance(8) ? mostEntries : 12); i > 0; --i)
      row.adjustments.push_back(
          {int32_t(random() % (columns + 2)) - 1,
           oneOf({0, 1, 1, 2, 7, -3, INT32_MAX}),
           oneOf({0.0f, 0.0f, 1.5f, -2.25f, 100.0f, -kInf, kMost, -kMost})});
  }

  /// Makes the row one without a choice, most times.
  void spoil(Row &row) {
    float &logit = row.logits[random() % columns];
    switch (random() % 8) {
    case 0:
      logit = std::numeric_limits<float>::quiet_NaN();
      break;
    case 1:
      logit = -std::numeric_limits<float>::quiet_NaN();
      break;
    case 2:
      logit = kInf;
      break;
    case 3:
      std::ranges::fill(row.logits, -kInf);
      break;
    case 4:
      row.settings.temperature = oneOf({-1.0f, kInf, NAN});
      break;
    case 5:
      row.settings.topP = oneOf({0.0f, 1.5f, NAN});
      break;
    case 6:
      row.settings.topK = -1;
      break;
    default:
      row.penalties.repetition = oneOf({0.0f, kInf, NAN});
    }
  }

  int64_t columns;
  unsigned mostEntries;
  std::mt19937 random;
};

/// On `device`, vocabularies of `columns`, `rows` rows.
struct Case {
  std::string device;
  int64_t columns;
  int rows;
};

class SamplerAgreement : public testing::TestWithParam<Case> {
protected:
  void SetUp() override { KF_REQUIRE_DEVICE(GetParam().device); }
};

TEST_P(SamplerAgreement, WithTheHost) {
  const auto [device, columns, total] = GetParam();
  // Few threads go through many entries so often that Mesa's driver for
  // processors ends their loops (docs/decisions/sampling.md).
  const unsigned mostEntries =
      test::isSlow(device) ? std::max<int64_t>(12, columns / 12) : 150;
  // On a busy machine such a driver takes minutes for a step of many rows, and
  // the device gives it up.
  const size_t batch = test::isSlow(device) ? 8 : 32;
  CompiledSampler compiled(device, columns,
                           static_cast<int64_t>(batch) * mostEntries);
  RowMaker maker(columns, mostEntries, static_cast<uint32_t>(columns));
  int refused = 0, chosen = 0;
  for (int done = 0; done < total; done += static_cast<int>(batch)) {
    std::vector<Row> rows;
    while (rows.size() < batch)
      rows.push_back(maker.make());
    std::vector<int32_t> tokens = compiled(rows);
    ASSERT_EQ(tokens.size(), rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      const SampleSettings &settings = rows[i].settings;
      ASSERT_EQ(tokens[i], onHost(rows[i]))
          << "row " << done + i << ": temperature " << settings.temperature
          << ", top-k " << settings.topK << ", top-p " << settings.topP
          << ", min-p " << settings.minP << ", " << rows[i].adjustments.size()
          << " adjustments";
      ++(tokens[i] < 0 ? refused : chosen);
    }
  }
  // Rows of both kinds were there.
  EXPECT_GT(chosen, total / 2);
  if (total > 500)
    EXPECT_GT(refused, 0);
}

std::vector<Case> cases() {
  std::vector<Case> list;
  for (const char *device :
       {"reference", "cpu", "cuda", "x86-64-v2", "x86-64-v3", "x86-64-v4"})
    for (int64_t columns : {1, 7, 128, 307, 1477})
      list.push_back({device, columns, columns > 1000 ? 512 : 1024});
  for (const char *device : {"cpu", "cuda", "x86-64-v2", "x86-64-v3"})
    list.push_back({device, 32003, 96});
  list.push_back({"cpu", 130000, 64});
  list.push_back({"cuda", 130000, 64});
  // Few rows and columns, for a device may be a processor with barriers.
  for (int64_t columns : {1, 7, 128, 1477})
    list.push_back({"vulkan", columns, 128});
  list.push_back({"vulkan_flushed", 128, 128});
  list.push_back({"reference", 130000, 32});
  return list;
}

INSTANTIATE_TEST_SUITE_P(All, SamplerAgreement, testing::ValuesIn(cases()),
                         [](const testing::TestParamInfo<Case> &info) {
                           std::string device = info.param.device;
                           std::ranges::replace(device, '-', '_');
                           return device + "_" +
                                  std::to_string(info.param.columns);
                         });

/// What a sampler with a history asks a device for is what it does itself.
TEST(SamplerAgreement, OfWholeTexts) {
  constexpr int64_t columns = 307;
  CompiledSampler compiled("cpu", columns, 512);
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0, 2);
  const SamplerOptions options[] = {
      {},
      {.temperature = 1, .repetitionPenalty = 1.2, .seed = 3},
      {.temperature = 0.7,
       .topK = 40,
       .topP = 0.9,
       .presencePenalty = 0.5,
       .frequencyPenalty = 0.25,
       .penaltyWindow = 20,
       .logitBias = {{5, 2}, {6, -kInf}, {7, -1.5}},
       .seed = 4},
      {.temperature = 1.5, .minP = 0.02, .logitBias = {{300, 3}}}};
  for (const SamplerOptions &option : options) {
    Sampler sampler = Sampler::create(option).take();
    for (int step = 0; step < 200; ++step) {
      Row row;
      row.logits.resize(columns);
      for (float &logit : row.logits)
        logit = normal(random);
      row.settings = sampler.settings();
      row.penalties = sampler.penalties();
      row.adjustments = sampler.adjustments();
      auto token = sampler.sample(row.logits);
      ASSERT_TRUE(token.ok()) << token.message();
      ASSERT_EQ(compiled({row})[0], *token) << step;
      sampler.accept(*token);
    }
  }
}

/// The rows of one dispatch draw independently of one another, each by the
/// softmax of its logits.
TEST(SamplerAgreement, DrawsByProbability) {
  constexpr int64_t columns = 40;
  CompiledSampler compiled("cpu", columns, 1);
  Row row;
  row.logits.resize(columns);
  for (int64_t i = 0; i < columns; ++i)
    row.logits[i] = std::sin(static_cast<float>(i)) * 1.5f;
  std::vector<double> counts(columns);
  double draws = 0, total = 0, statistic = 0;
  for (uint32_t counter = 0; counter < 100'000;) {
    std::vector<Row> rows(50, row);
    for (Row &each : rows) {
      each.settings = {.temperature = 0.7f, .seed = 99, .counter = counter++};
      ++draws;
    }
    for (int32_t token : compiled(rows))
      ++counts.at(token);
  }
  for (float logit : row.logits)
    total += std::exp(logit / 0.7);
  for (int64_t i = 0; i < columns; ++i) {
    const double expected = draws * std::exp(row.logits[i] / 0.7) / total;
    statistic += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  // 39 degrees of freedom: exceeded once in ten thousand seeds.
  EXPECT_LT(statistic, 79.0);
}

} // namespace
