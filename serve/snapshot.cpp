#include "serve/snapshot.h"

#include <utility>

#include "core/io/state_archive.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "core/version.h"

namespace olrank {
namespace {

constexpr std::int64_t kSnapshotFormat = 1;  // to be raised with any change of what rankers save for lists

}  // namespace

std::string snapshot_bytes(const OnlineRanker& live, const PublishedRanker& published,
                           const std::optional<ArmLedger>& arms) {
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
  if (arms) arms->save(state);
  return state.bytes();
}

SnapshotReader::SnapshotReader(std::unique_ptr<OnlineRanker> ranker, std::optional<ArmPlan> arms)
    : ranker_(std::move(ranker)), plan_(std::move(arms)) {}

std::shared_ptr<const PublishedRanker> SnapshotReader::read(std::string bytes, const std::string& origin) {
  StateReader state(std::move(bytes), origin, "start the learner again, which publishes another model");
  const auto format = state.get_one<std::int64_t>("snapshot.format");
  const std::string writer = state.get_text("snapshot.version");
  if (format != kSnapshotFormat) {
    throw_error<IoError>(
        "{}: olrank {} made this model in format {}, but this is olrank {}, which reads format {}: run the "
        "same version as the learner.",
        origin, excerpt(writer), format, version(), kSnapshotFormat);
  }
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
