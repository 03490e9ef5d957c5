#include "jobs/start_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/data/normaliser_text.h"
#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/io/fingerprint.h"
#include "jobs/saved_trial.h"
#include "models/ranker_kinds.h"

namespace olrank {

void take_network(const LoadedModel& model, const std::string& origin, RankerSettings& ranker) {
  if (ranker.kind == RankerKind::kClickGp) {
    const bool fits =
        model.is_additive() || (model.is_linear() && model.normaliser.kind == Normalisation::kQueryMinmax);
    if (fits) return;
    throw InvalidArgument(
        fmt::format("Ranker '{}' starts from additive models and from linear ones of query-minmax inputs, "
                    "and {} is neither: choose "
                    "another model, or kind = \"{}\".",
                    ranker.name, origin, model.is_linear() ? "ranknet" : "olranknet"));
  }
  if (model.is_additive()) {
    throw InvalidArgument(
        fmt::format("{} holds an additive model, from which only clickgp starts: choose kind = "
                    "\"clickgp\", a linear model or a network.",
                    origin));
  }
  ranker.network.network = model.settings.network;
  if (model.is_linear()) return;
  if (model.module) {
    ranker.network.module = model.settings.module;
    ranker.network.module_state = model.settings.module_state;
    ranker.network.activation = model.settings.activation;
    ranker.network.module_file = model.settings.module_file;
  }
  ranker.network.width = model.settings.width;
  ranker.network.depth = model.settings.depth;
  ranker.network.parameterisation = model.settings.parameterisation;
  ranker.network.initialisation = FirstDraw::kUsual;  // nothing is drawn, so that the width may be odd
  if (model.members.size() > 1) ranker.posterior.members = std::ssize(model.members);
}

std::vector<std::vector<float>> take_start_thetas(LoadedModel& model) {
  std::vector<std::vector<float>> thetas = std::move(model.members);
  for (std::vector<float>& theta : thetas) {
    for (const InputPair pair : model.normaliser.products) theta.push_back(static_cast<float>(pair.first));
    for (const InputPair pair : model.normaliser.products) theta.push_back(static_cast<float>(pair.second));
  }
  return thetas;
}

std::shared_ptr<const StartModel> start_model_of(const RankerSettings& ranker) {
  if (ranker.start_from.empty()) return nullptr;
  const std::filesystem::path file = model_file_of(ranker.start_from);
  const std::string bytes = read_file(file);
  LoadedModel model = parse_model(bytes, file.string(), code_if(ranker.trust_code));
  auto start = std::make_shared<StartModel>();
  start->thetas = take_start_thetas(model);
  if (row_of(ranker.kind).is_ensemble() && start->thetas.size() == 1)
    start->thetas.assign(static_cast<std::size_t>(ranker.posterior.members), start->thetas.front());
  for (const auto& [key, text] : model.metadata) {
    if (key == "normalisation") start->normalisation = text;
  }
  start->fingerprint = fingerprint_of(bytes).hex();
  return start;
}

void check_start_inputs(const RankerSettings& ranker, const StartModel& start,
                        const FittedNormaliser& normaliser) {
  if (start.normalisation.empty()) return;
  const FittedNormaliser there = parse_normaliser(start.normalisation, ranker.start_from).without_terms();
  if (normaliser_text(there) == normaliser_text(normaliser)) return;
  const bool same_kind = there.kind == normaliser.kind;
  throw InvalidArgument(
      fmt::format("Ranker '{}' starts from {}, which expects other inputs: {} features normalised by {}, "
                  "where this data has {} "
                  "by {}{}. Choose the model's data.normalise and features, or another model.",
                  ranker.name, ranker.start_from, there.features, name_of(there.kind), normaliser.features,
                  name_of(normaliser.kind), same_kind ? " with other fitted numbers" : ""));
}

}  // namespace olrank
