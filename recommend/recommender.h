#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/runtime/execution_context.h"
#include "recommend/reviews.h"

namespace olrank {

class StateReader;
class StateWriter;

/// Why an item is recommended: sentences for people, and the same as a value for programs.
struct Explanation {
  std::vector<std::string> sentences;
  nlohmann::ordered_json details = nlohmann::ordered_json::object();
};

/// A review of a user who was not in the training.
struct KnownReview {
  std::int32_t item = 0;
  float rating = 0.0F;
  std::span<const Mention> mentions;
};

/// A trained recommender: a pure function of its parameters, safe to call from several threads.
class Recommender {
 public:
  Recommender() = default;
  virtual ~Recommender() = default;
  Recommender(const Recommender&) = delete;
  Recommender& operator=(const Recommender&) = delete;

  /// Scores every item for a user of the training; higher is better. Also those the user has reviewed.
  virtual void score(std::int64_t user, std::span<float> scores) const = 0;

  /// Whether score_new_user() works: for users of whom only some reviews are known, or none.
  virtual bool scores_new_users() const { return false; }
  virtual void score_new_user(std::span<const KnownReview> reviews, std::span<float> scores) const;

  /// Nothing from recommenders that learn from ratings alone.
  virtual std::optional<Explanation> explain(std::int64_t user, std::int64_t item,
                                             const ReviewNames& names) const;

  /// Writes everything that scores and explanations need but the names.
  virtual void save(StateWriter& state) const = 0;
};

/// A training pass reports this. Losses are in a fixed order; "loss" is what is minimised.
struct TrainingPassReport {
  std::int64_t pass = 0;
  std::vector<std::pair<std::string, double>> losses = {};
  std::int64_t entries = 0;  // of tensors, that were drawn
  std::int64_t pairs = 0;    // that were drawn
};

/// A training, which goes pass by pass. The same bits on any number of threads.
class RecommenderTraining {
 public:
  RecommenderTraining() = default;
  virtual ~RecommenderTraining() = default;
  RecommenderTraining(const RecommenderTraining&) = delete;
  RecommenderTraining& operator=(const RecommenderTraining&) = delete;

  /// Passes that it takes at most.
  virtual std::int64_t passes() const = 0;
  /// Passes done.
  virtual std::int64_t passed() const = 0;
  /// A training may end before its last pass.
  virtual bool finished() const { return passed() >= passes(); }
  virtual TrainingPassReport advance(ExecutionContext& context) = 0;
  /// The model as trained so far.
  virtual const Recommender& model() const = 0;
  /// Facts for the summary.
  virtual nlohmann::ordered_json facts() const { return nlohmann::ordered_json::object(); }
  /// Everything that decides what comes next, model included.
  virtual void save(StateWriter& state) const = 0;
  virtual void load(StateReader& state) = 0;
};

}  // namespace olrank
