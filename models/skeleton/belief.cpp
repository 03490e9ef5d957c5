#include "models/skeleton/belief.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/metrics/list_metrics.h"
#include "core/online/retraining.h"

namespace olrank {

void member_count(StateFields& state, std::size_t expected) {
  state.number("members", static_cast<std::int64_t>(expected), [&](std::int64_t saved) {
    if (saved != static_cast<std::int64_t>(expected))
      state.reader().fail(fmt::format("The saved ensemble has {} members, this one {}.", saved, expected));
  });
}

void ScoreModel::find_score_gradient(ExecutionContext& context, std::span<const float> theta,
                                     FeatureMatrix docs, ScoreSlopes find_slopes,
                                     std::span<double> gradient) const {
  Scratch& scratch = context.scratch();
  const Scratch::Frame frame(scratch);
  const auto scores = scratch.take<float>(docs.docs);
  const auto slopes = scratch.take<double>(docs.docs);
  score(context, theta, docs, scores);
  find_slopes(scores, slopes);
  std::fill(gradient.begin(), gradient.end(), 0.0);
  add_gradient(context, theta, docs, slopes, gradient);
}

void order_by_score(ExecutionContext& context, std::span<const float> scores,
                    std::vector<std::int32_t>& by_score) {
  by_score.resize(scores.size());
  const std::int64_t bad = order_by_score(scores, by_score, context.scratch());
  if (bad >= 0) throw_bad_score(bad);
}

Evidence take_votes(Scratch& scratch, std::int64_t members, std::int64_t docs) {
  Evidence evidence;
  evidence.members = members;
  evidence.scores = scratch.take<float>(docs);
  evidence.member_scores = scratch.take<float>(members * docs);
  return evidence;
}

ModelTensors ensemble_tensors(const ScoreModel& model, MemberThetas thetas) {
  ModelTensors all;
  for (std::size_t member = 0; member < thetas.size(); ++member) {
    ModelTensors one = model.tensors(thetas[member]);
    if (member == 0) all.architecture = std::move(one.architecture);
    for (auto& tensor : one.tensors) {
      tensor.name = fmt::format("members.{}.{}", member, tensor.name);
      all.tensors.push_back(std::move(tensor));
    }
  }
  all.architecture.emplace_back("members", fmt::format("{}", thetas.size()));
  return all;
}

}  // namespace olrank
