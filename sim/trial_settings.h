#pragma once

#include <compare>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/dataset.h"
#include "core/fair/exposure.h"
#include "core/io/fingerprint.h"
#include "core/metrics/metric_options.h"
#include "core/online/click_model.h"
#include "core/protocol.h"
#include "core/random/rng_stream.h"
#include "core/settings/enum_names.h"
#include "core/settings/schema.h"

namespace olrank {

/// Which click model a user follows.
enum class ClickKind { kDependent, kCascade, kPosition, kDynamicBayesian, kUserBrowsing, kChanging };

/// When a user of the dependent click model decides whether to go on.
enum class StopDraw { kAfterClick, kEveryDoc };

/// The simulated users, and their defaults.
struct ClickSettings {
  std::vector<std::string> models = {"perfect", "navigational", "informational"};
  ClickKind kind = ClickKind::kDependent;
  StopDraw stop = StopDraw::kAfterClick;
  double noise = 0.0;
  double position_bias = 1.0;           // η
  double perseverance = 0.9;            // γ
  std::int64_t grades = 0;              // of the built-in tables; 0: follow the data
  std::vector<std::int64_t> grade_map;  // of each grade of the data, that of the built-in tables

  static const Schema& schema();
  static ClickSettings defaults(ProtocolName protocol);
};

template <>
struct EnumNames<ClickKind> {
  static constexpr std::array values =
      names_in_order<ClickKind>("dependent", "cascade", "position", "dbn", "ubm", "changing");
};

template <>
struct EnumNames<StopDraw> {
  static constexpr std::array values = names_in_order<StopDraw>("after-click", "every-doc");
};

/// One [[user]]: a simulated user with a table of its own.
struct UserSettings {
  std::string name;
  ClickKind kind = ClickKind::kDependent;
  std::vector<double> click;        // P(click | grade), by grade
  std::vector<double> stop;         // P(stop | grade), by grade; empty: never stops
  std::vector<double> examination;  // P(examined), by rank; empty: by position_bias
  StopDraw stop_draw = StopDraw::kAfterClick;
  double noise = 0.0;
  double position_bias = 1.0;        // η
  std::vector<double> satisfaction;  // P(satisfied | clicked, grade), by grade; empty: never satisfied
  double perseverance = 0.9;         // γ
  std::vector<double> browsing;      // P(examined), by rank and last click; empty: by `examination`
  std::vector<std::string> intents;  // names of the users that a changing user is, one after another
  std::int64_t change_every = 0;     // rounds
  bool repeat = true;                // from the first intent again

  static const Schema& schema();
  /// [clicks] sets the defaults of every user.
  static UserSettings defaults(const ClickSettings& clicks);
};

/// The protocol settings of a trial.
struct TrialSettings {
  std::int64_t rounds = 0;
  std::int64_t cutoff = 10;       // k
  std::int64_t eval_every = 100;  // E
  double discount = 0.9995;       // γ
  EmptyQueries empty_queries = EmptyQueries::kZero;
  std::vector<NamedMetric> metrics = {};  // offline, beyond NDCG@k
};

/// The linear model that was trained on all labels of a fold's training part.
struct OfflineModel {
  std::vector<float> theta;        // [features]
  std::vector<float> eval_scores;  // of all documents of the evaluated part
};

/// One fold's normalised data: queries are drawn from `train`, the model is evaluated on `eval_set`.
struct TrialData {
  Dataset train;
  Dataset eval_set;
  int max_grade = 0;                                   // of all parts
  std::optional<OfflineModel> offline = std::nullopt;  // if cosines are requested
  std::vector<DocGroup> groups = {};                   // [train docs], where exposure is measured
  std::vector<double> beta = {1.0};                    // β of these groups
};

/// A trial of an experiment's matrix; determines its folder.
struct TrialIdentity {
  std::string ranker;
  std::string user;
  std::int64_t fold = 1;
  std::int64_t seed = 1;

  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes what the default compares with for a pointer
  friend auto operator<=>(const TrialIdentity&, const TrialIdentity&) = default;

  /// trials/<ranker>/<clicks>/fold<k>/seed<s>
  std::filesystem::path path() const;
};

/// The trial whose path() this is; none for anything else.
std::optional<TrialIdentity> identity_of(const std::filesystem::path& path);

/// The trials that have a folder there, finished or not, sorted.
std::vector<TrialIdentity> trials_in(const std::filesystem::path& experiment);

/// The file of a trial's folder that says that the trial is finished.
inline constexpr std::string_view kSummaryFile = "summary.json";
bool is_finished(const std::filesystem::path& experiment, const TrialIdentity& identity);

/// The rounds of a recipe's protocol; 0 without any.
std::int64_t rounds_of(const Recipe& recipe);
/// The recipe but its rounds. Trials that differ in nothing else are the same until the shorter one ends.
Recipe without_rounds(Recipe recipe);

/// The model that each evaluation compares with by cosine.
enum class CosineReference { kNone, kOffline };

template <>
struct EnumNames<CosineReference> {
  static constexpr std::array values = names_in_order<CosineReference>("none", "offline");
};

/// How the rounds of a trial are played and evaluated.
struct ProtocolSettings {
  ProtocolName name = ProtocolName::kRecommended;
  std::int64_t rounds = 2000;
  std::int64_t cutoff = 10;
  std::int64_t eval_every = 100;
  std::vector<std::int64_t> seeds = {1, 2, 3};
  EmptyQueries empty_queries = EmptyQueries::kZero;
  double discount = 0.9995;
  CosineReference cosine = CosineReference::kNone;
  std::vector<std::string> metrics;  // offline, beyond NDCG@cutoff

  static const Schema& schema();
  static ProtocolSettings defaults(ProtocolName name);
};

/// A ranker may know this about a trial's data when it is created. Compact documents come query by query,
/// so that here are none of them.
struct RankerData {
  FeatureMatrix train;                      // all documents of the part whose queries are drawn
  std::int64_t most_docs = 0;               // of one of its queries
  FeatureMatrix eval_docs;                  // all documents to be scored in evaluations
  const LabelledQueries* labels = nullptr;  // for rankers that learn from them
  std::int64_t slot = 0;                    // of the trials in parallel, from 0; chooses the GPU
};

RankerData ranker_data(const TrialData& data, const LabelledQueries* labels = nullptr,
                       std::int64_t slot = 0);

/// Draws a query uniformly in every round.
class UniformQueries : public QuerySource {
 public:
  /// `key` is the trial's key for Purpose::kQuery. Throws InvalidArgument if there are no queries.
  UniformQueries(PhiloxKey key, std::int64_t queries);

  std::int64_t query_of(std::uint32_t round) const override;

 private:
  PhiloxKey key_;
  std::uint32_t queries_;
};

/// Throws InvalidArgument for the first error that is independent of the data: a table that contradicts
/// itself or its kind, a duplicate name, an undefined model.
void check_users(const ClickSettings& clicks, std::span<const UserSettings> users);

/// The user named `name`, built-in, one of `users` or one that the program has registered
/// (sim/external_user.h), for data whose largest grade is `max_grade`. Throws InvalidArgument for an
/// unknown name, or a table that does not cover the grades.
std::unique_ptr<ClickModel> make_user(const std::string& name, const ClickSettings& clicks,
                                      std::span<const UserSettings> users, int max_grade);

/// A one-line description of the same user.
std::string describe_user(const std::string& name, const ClickSettings& clicks,
                          std::span<const UserSettings> users, int max_grade);

}  // namespace olrank
