//===- EngineFixture.h - An engine of the fake model and texts --*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TEST_RUNTIME_ENGINE_ENGINEFIXTURE_H
#define KF_TEST_RUNTIME_ENGINE_ENGINEFIXTURE_H

#include "FakeModel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kf::test {

/// An engine of the fake model that records which steps it asked for.
struct Fixture {
  /// `shapes`: the only programs that there are. `ranks` leads others.
  explicit Fixture(EngineOptions options = {}, bool shared = true,
                   std::vector<StepShape> shapes = {},
                   RankLeader *ranks = nullptr, int64_t vocabulary = kVocab)
      : device(shared) {
    ModelConfig config = fakeConfig();
    config.vocabSize = vocabulary;
    options.cancelled = &cancelled;
    auto provider = [this,
                     config](const StepShape &shape) -> Result<Executable> {
      asked.push_back(nameOf(shape));
      if (!failure.ok())
        return failure;
      Executable step = fakeStep(shape, config);
      if (change)
        change(step);
      return step;
    };
    model = std::make_unique<Model>(
        config, device, source, provider,
        ModelOptions{"the fake", nullptr, nullptr, std::move(shapes), ranks});
    auto made = Engine::create(*model, options);
    EXPECT_TRUE(made.ok()) << made.message();
    engine = made.take();
  }

  std::unique_ptr<Sequence> sequence() {
    return engine->createSequence().take();
  }
  void runAll() {
    while (engine->step()) {
    }
  }

  FakeModelDevice device;
  FakeSource source;
  std::vector<std::string> asked;
  std::atomic<bool> cancelled{false};
  Status failure; ///< what the provider fails with
  std::function<void(Executable &)> change;
  std::unique_ptr<Model> model;
  std::unique_ptr<Engine> engine;
};

inline std::vector<int32_t> tokens(size_t count, size_t seed = 1) {
  std::vector<int32_t> ids(count);
  for (size_t i = 0; i < count; ++i)
    ids[i] = static_cast<int32_t>((3 * i + i / 5 + seed) % kVocab);
  return ids;
}

/// What became of a reading.
struct Answer {
  std::optional<Reading::Outcome> outcome;

  std::function<void(const Reading::Outcome &)> take() {
    return [this](const Reading::Outcome &given) {
      EXPECT_FALSE(outcome) << "called twice";
      outcome = given;
    };
  }
  bool isDone() const { return outcome.has_value(); }
  std::string error() const { return outcome ? outcome->message() : "none"; }
  int32_t id() const {
    if (!outcome || !outcome->ok() || !**outcome)
      return -1;
    return ***outcome;
  }
};

/// Reads `ids`; a token is chosen where there is a sampler.
inline Status begin(Sequence &sequence, std::span<const int32_t> ids,
                    Answer &answer, const Sampler *sampler = nullptr) {
  answer = {};
  Reading reading;
  reading.ids.assign(ids.begin(), ids.end());
  reading.sampler = sampler;
  reading.done = answer.take();
  return sequence.read(std::move(reading));
}

inline Status readAll(Sequence &sequence, std::span<const int32_t> ids) {
  Answer answer;
  KF_RETURN_IF_ERROR(begin(sequence, ids, answer));
  while (!answer.isDone())
    sequence.engine().step();
  return answer.outcome->status();
}

/// Reads `ids` and checks the logits behind each from number `first` on.
inline Status expectLogits(Sequence &sequence, std::span<const int32_t> ids,
                           size_t first = 0) {
  std::vector<int32_t> all(sequence.tokens().begin(), sequence.tokens().end());
  const size_t before = all.size();
  all.insert(all.end(), ids.begin(), ids.end());
  Reading reading;
  reading.ids.assign(ids.begin(), ids.end());
  reading.firstLogits = first;
  size_t next = first;
  reading.onLogits = [&](size_t index, std::span<const float> logits) {
    EXPECT_EQ(index, next++);
    for (int64_t v = 0; v < kVocab; ++v)
      EXPECT_EQ(logits[v],
                fakeLogit(std::span(all).first(before + index + 1), v));
    return Status();
  };
  Answer answer;
  reading.done = answer.take();
  KF_RETURN_IF_ERROR(sequence.read(std::move(reading)));
  while (!answer.isDone())
    sequence.engine().step();
  if (answer.outcome->ok()) {
    EXPECT_EQ(next, std::max(first, ids.size()));
    EXPECT_TRUE(std::ranges::equal(sequence.tokens(), all));
  }
  return answer.outcome->status();
}

/// Some tokens behind each: less than half of the vocabulary.
class FakeConstraint : public TokenConstraint {
public:
  Result<std::span<const uint32_t>> allowed() override {
    ++asked;
    if (failsAfter == 0)
      return Status::error("the constraint has failed");
    bits = 0;
    for (int32_t i = 0; i < 4; ++i)
      bits |= uint32_t(1) << (last * 3 + i * i + length) % kVocab;
    return std::span<const uint32_t>(&bits, 1);
  }
  Status accept(int32_t id) override {
    KF_ASSIGN_OR_RETURN(const auto mask, allowed());
    if (!(mask[0] >> id & 1))
      return Status::error("a token that is not allowed");
    last = id;
    ++length;
    --failsAfter;
    return Status();
  }
  bool isComplete() const override { return length == completeAt; }

  int32_t length = 0;
  int32_t completeAt = -1, failsAfter = -1; ///< tokens; -1: never
  int asked = 0;

private:
  int32_t last = 0;
  uint32_t bits = 0;
};

/// A text that is continued by `sampler`, one token after the other.
class Text {
public:
  Text(std::unique_ptr<Sequence> sequence, const SamplerOptions &options,
       size_t count, std::unique_ptr<TokenConstraint> constraint = nullptr)
      : sequence(std::move(sequence)), sampler(*Sampler::create(options)),
        constraint(std::move(constraint)), count(count) {}

  Status read(std::vector<int32_t> ids) {
    for (int32_t id : ids)
      sampler.accept(id);
    Reading reading;
    reading.ids = std::move(ids);
    reading.sampler = &sampler;
    reading.constraint = constraint.get();
    reading.goesOn = chosen.size() + 1 < count;
    reading.done = [this](const Reading::Outcome &outcome) { next(outcome); };
    return sequence->read(std::move(reading));
  }
  /// Tokens of the sequence that the sampler has not seen.
  void know(std::span<const int32_t> ids) {
    for (int32_t id : ids)
      sampler.accept(id);
  }
  bool isDone() const { return !error.ok() || chosen.size() == count; }

  std::unique_ptr<Sequence> sequence;
  std::vector<int32_t> chosen;
  Status error;

private:
  void next(const Reading::Outcome &outcome) {
    if (!outcome.ok()) {
      error = outcome.status();
      return;
    }
    chosen.push_back(**outcome);
    if (constraint)
      EXPECT_EQ(constraint->accept(chosen.back()).message(), "");
    if (chosen.size() < count)
      error = read({chosen.back()});
  }

  Sampler sampler;
  std::unique_ptr<TokenConstraint> constraint;
  size_t count;
};

inline SamplerOptions optionsOf(size_t i) {
  SamplerOptions options;
  options.temperature = static_cast<double>(i % 3) * 0.7;
  options.topK = static_cast<int64_t>(i % 4) * 2;
  options.topP = i % 5 ? 1 : 0.8;
  options.seed = i;
  if (i % 2) {
    options.repetitionPenalty = 1.3;
    options.frequencyPenalty = 0.2;
    options.penaltyWindow = static_cast<int64_t>(i % 7) * 9;
  }
  if (i % 3 == 1)
    options.logitBias = {{int64_t(i % kVocab), 4.0}, {3, -INFINITY}};
  return options;
}

/// What the text has to be.
inline std::vector<int32_t> expected(std::vector<int32_t> ids,
                                     const SamplerOptions &options,
                                     size_t count, const FakeBehavior &behavior,
                                     TokenConstraint *constraint = nullptr) {
  Sampler sampler = *Sampler::create(options);
  for (int32_t id : ids)
    sampler.acceptPrompt(id);
  std::vector<int32_t> chosen;
  while (chosen.size() < count) {
    std::vector<float> logits;
    for (int64_t v = 0; v < kVocab; ++v)
      logits.push_back(fakeLogit(ids, v, behavior));
    chosen.push_back(
        *sampler.sample(logits, constraint ? *constraint->allowed()
                                           : std::span<const uint32_t>()));
    sampler.accept(chosen.back());
    if (constraint)
      EXPECT_EQ(constraint->accept(chosen.back()).message(), "");
    ids.push_back(chosen.back());
  }
  return chosen;
}

/// Texts of all lengths beside one another, with rows for few of them and for
/// all: each gets what it would get alone. Those that `isHeld`, by their
/// numbers, have a constraint.
inline void
expectAsAlone(bool runsAhead,
              const std::function<SamplerOptions(size_t)> &optionsOf,
              const std::function<bool(size_t)> &isHeld) {
  for (const int64_t rows : {4, 20, 512}) {
    SCOPED_TRACE(rows);
    Fixture fixture(
        {.parallel = 16, .rowsPerStep = rows, .runsAhead = runsAhead});
    fixture.device.behavior.varies = true;
    auto prompt = [](size_t i) { return tokens(1 + i * 13 % 150, i); };
    auto count = [](size_t i) { return 10 + i * 3 % 17; };
    std::vector<std::unique_ptr<Text>> texts;
    for (size_t i = 0; i < 24; ++i) {
      texts.push_back(std::make_unique<Text>(
          fixture.sequence(), optionsOf(i), count(i),
          isHeld(i) ? std::make_unique<FakeConstraint>() : nullptr));
      EXPECT_TRUE(texts.back()->read(prompt(i)).ok());
    }
    fixture.runAll();
    for (size_t i = 0; i < texts.size(); ++i) {
      EXPECT_EQ(texts[i]->error.message(), "");
      FakeConstraint constraint;
      EXPECT_EQ(texts[i]->chosen, expected(prompt(i), optionsOf(i), count(i),
                                           fixture.device.behavior,
                                           isHeld(i) ? &constraint : nullptr))
          << "text " << i;
    }
  }
}

} // namespace kf::test

#endif // KF_TEST_RUNTIME_ENGINE_ENGINEFIXTURE_H
