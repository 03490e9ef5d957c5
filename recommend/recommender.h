#pragma once

#include <nlohmann/json.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/interface.h"
#include "core/io/state_archive.h"
#include "core/runtime/execution_context.h"
#include "core/settings/enum_names.h"
#include "core/settings/schema.h"
#include "recommend/factors/factor_matrix.h"
#include "recommend/review_reader.h"
#include "recommend/reviews.h"
#include "recommend/trees/factor_tree.h"

namespace olrank {

/// Why an item is recommended: sentences for people, and the same as a value for programs.
struct Explanation {
  std::vector<std::string> sentences;
  nlohmann::ordered_json details = nlohmann::ordered_json::object();
};

struct KnownReview {
  std::int32_t item = 0;
  float rating = 0.0F;
  std::span<const Mention> mentions;
};

/// A trained recommender: a pure function of its parameters, safe to call from several threads.
class Recommender : public Interface {
 public:
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

/// A training, which goes pass by pass. Its bits are equal on any number of threads.
class RecommenderTraining : public Interface, public Stateful {
 public:
  explicit RecommenderTraining(std::int64_t passes) : passes_(passes) {}

  /// Passes that it takes at most.
  std::int64_t passes() const { return passes_; }
  std::int64_t passed() const { return passed_; }
  /// A training may end before its last pass.
  virtual bool finished() const { return passed() >= passes(); }
  virtual TrainingPassReport advance(ExecutionContext& context) = 0;
  virtual const Recommender& model() const = 0;
  virtual nlohmann::ordered_json facts() const { return nlohmann::ordered_json::object(); }
  /// Everything that decides what comes next, model included.
  void fields(StateFields& state) override = 0;

 protected:
  std::int64_t passed_ = 0;

 private:
  std::int64_t passes_;
};

enum class RecommenderKind { kMter, kMterS, kMterSa, kFact, kFmf, kEfm, kBprmf, kNmf, kPopular };
template <>
struct EnumNames<RecommenderKind> {
  static constexpr std::array values = names_in_order<RecommenderKind>(
      "mter", "mter-s", "mter-sa", "fact", "fmf", "efm", "bprmf", "nmf", "popular");
};

/// Which pass's model a training keeps: the last one's, or that of the best validation NDCG.
enum class KeptPass { kBest, kLast };
template <>
struct EnumNames<KeptPass> {
  static constexpr std::array values = names_in_order<KeptPass>("best", "last");
};

/// The gain of a held-out item: 1, or 2^rating − 1.
enum class HeldOutGain { kBinary, kGraded };
template <>
struct EnumNames<HeldOutGain> {
  static constexpr std::array values = names_in_order<HeldOutGain>("binary", "graded");
};

/// The table [recommend]: data, split, training and evaluation of one recommender, and the settings of its
/// kind.
struct RecommendSettings {
  RecommenderKind kind = RecommenderKind::kMter;
  std::string data;
  double scale = 5.0;  // N
  std::int64_t feature_support = 0;
  std::int64_t review_support = 0;
  std::int64_t item_support = 0;
  std::int64_t user_support = 0;
  std::int64_t frequent_features = 0;  // 0: all
  SplitBy split = SplitBy::kReviews;
  double train_share = 0.8;
  double validation_share = 0.1;
  double test_users = 0.05;
  std::int64_t seed = 1;
  std::int64_t passes = 0;  // 0: by kind
  std::int64_t eval_every = 1;
  std::int64_t patience = 0;  // 0: never stop early
  KeptPass keep = KeptPass::kBest;
  std::int64_t cutoff = 50;
  HeldOutGain gain = HeldOutGain::kBinary;
  FactorSettings factors;
  TreeSettings trees;

  static const Schema& schema();
  SplitSettings split_settings() const {
    return {split, train_share, validation_share, test_users, static_cast<std::uint64_t>(seed)};
  }
};

/// Throws InvalidArgument for settings that exclude each other.
void check_recommend_settings(const RecommendSettings& settings);

/// A row is what the program knows about a kind of recommender.
struct RecommenderKindRow {
  RecommenderKind kind = RecommenderKind::kPopular;
  std::string_view about;   // one line
  std::int64_t passes = 1;  // default
  std::span<const std::string_view> keys =
      {};  // of [recommend], that only some kinds read, this one among them
  bool explains = false;
  /// Sets what differs from the defaults of the table.
  void (*set_defaults)(RecommendSettings&) = nullptr;
  /// Bytes of the training beyond the data, at its peak.
  std::int64_t (*plan)(const RecommendSettings&, const ReviewCounts&, int threads) = nullptr;
  /// `settings.passes` is resolved. The data outlives the training.
  std::unique_ptr<RecommenderTraining> (*start)(const RecommendSettings&, const TrainingData&) = nullptr;
  /// Reads what Recommender::save() wrote; throws IoError for anything else.
  std::unique_ptr<Recommender> (*read)(StateReader&, const ReviewCounts&) = nullptr;
};

/// Each of these rows is defined beside its training.
extern const RecommenderKindRow kMterKind, kMterSKind, kMterSaKind, kFactKind, kFmfKind, kEfmKind,
    kBprmfKind, kNmfKind;

template <typename Training>
std::unique_ptr<RecommenderTraining> start_training(const RecommendSettings& settings,
                                                    const TrainingData& data) {
  return std::make_unique<Training>(settings, data);
}

/// The table of kinds. Nothing else in the program tells kinds apart.
std::span<const RecommenderKindRow> recommender_kinds();
const RecommenderKindRow& recommender_kind(RecommenderKind kind);

/// Whether a kind reads a key of [recommend]; keys that no row lists are read by all.
bool kind_reads(RecommenderKind kind, std::string_view key);

RecommendSettings default_settings(RecommenderKind kind);
/// Settings with the kind's number of passes where they say 0.
RecommendSettings resolved(RecommendSettings settings);

}  // namespace olrank
