#include "serve/snapshot.h"

#include <utility>

#include "core/io/state_archive.h"
#include "core/version.h"
#include "models/files/snapshot_file.h"
#include "serve/feature_counters.h"

namespace olrank {
std::string snapshot_bytes(const OnlineRanker& live, const PublishedRanker& published,
                           const std::optional<ArmLedger>& arms, const FeatureCounters* counters) {
  StateWriter state;
  state.put("snapshot.format", kSnapshotFormat);
  state.put_text("snapshot.version", version());
  state.put("snapshot.round", published.round);
  state.put("snapshot.pairs", published.pairs);
  state.put("snapshot.skipped", published.skipped);
  state.put("snapshot.figures", std::ssize(published.figures));
  for (const RankerFigure& figure : published.figures) {
    state.put_text("snapshot.figure", figure.name);
    state.put("snapshot.figure_value", figure.value);
  }
  live.save_for_lists(state);
  if (counters != nullptr) counters->save(state);
  if (arms) arms->save(state);
  return state.bytes();
}

std::string followed_bytes(const std::string& identity, const std::string& start_model,
                           const std::string& snapshot) {
  StateWriter state;
  state.put_text("follow.identity", identity);
  // The state of a ranker that went on from a snapshot has all of it.
  state.put_text("follow.model", StateReader::is_state(start_model) ? "" : start_model);
  state.put_text("follow.snapshot", snapshot);
  return state.bytes();
}

std::string limited_snapshot(std::string bytes, const std::string& origin, double megabytes) {
  SnapshotFile file = open_snapshot(bytes, origin);
  if (megabytes <= 0.0) return bytes;
  if (file.names_by_content)
    file.state.fail("Only a service's snapshot can be cut: give the Ranker a memory_limit.");
  file.settings.click.memory_limit = megabytes;
  const std::unique_ptr<OnlineRanker> ranker = file.ranker();
  return followed_bytes(file.identity, file.start_model,
                        snapshot_bytes(*ranker, {.round = file.round}, std::nullopt));
}

SnapshotReader::SnapshotReader(std::unique_ptr<OnlineRanker> ranker, std::optional<ArmPlan> arms,
                               FeatureCounters* counters)
    : ranker_(std::move(ranker)), plan_(std::move(arms)), counters_(counters) {}

std::shared_ptr<const PublishedRanker> SnapshotReader::read(std::string bytes, const std::string& origin) {
  StateReader state(std::move(bytes), origin, "start the learner again, which publishes another model");
  check_snapshot_format(state, origin, "run the same version as the learner");
  auto published = std::make_shared<PublishedRanker>();
  published->round = state.get_one<std::uint64_t>("snapshot.round");
  published->pairs = state.get_one<std::int64_t>("snapshot.pairs");
  published->skipped = state.get_one<std::uint64_t>("snapshot.skipped");
  const auto figures = state.get_one<std::int64_t>("snapshot.figures");
  for (std::int64_t figure = 0; figure < figures; ++figure) {
    std::string name = state.get_text("snapshot.figure");
    published->figures.push_back({std::move(name), state.get_one<double>("snapshot.figure_value")});
  }
  ranker_->load_for_lists(state);
  if (counters_ != nullptr) counters_->load(state);
  if (plan_) {
    ArmLedger arms(*plan_);
    if (!arms.load(state)) state.fail("This model's learner has other arms.");
    published->arms = arms.report();
  }
  if (plan_ || !state.is_next("arms.plan")) state.require_end();  // a follower shows no arms
  published->ranker = ranker_->freeze();
  return published;
}

}  // namespace olrank
