#include "models/skeleton/ensemble_model.h"

#include <fmt/format.h>

#include <utility>

namespace olrank {

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
