#include "models/ranker_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/feedback/preference_pairs.h"
#include "core/text/message_text.h"
#include "models/baselines/baselines.h"
#include "models/clickgp/click_regression.h"
#include "models/linear/linear_belief.h"
#include "models/neural/network_rankers.h"
#include "models/neural/ranker_network.h"

namespace olrank {
namespace {

constexpr double kDouble = sizeof(double);
constexpr double kFloat = sizeof(float);

/// Sizes are computed in double, as p² of a wide network exceeds 64 bits.
std::int64_t whole_bytes(double bytes) {
  constexpr double kMost = 9e18;
  return static_cast<std::int64_t>(std::min(bytes, kMost));
}

/// The most pairs that a round of a rule can bring.
std::int64_t pairs_of_a_round(PairRule rule, std::int64_t cutoff) {
  return rule == PairRule::kAll ? cutoff * cutoff / 4 : cutoff / 2;
}

/// The most pairs that the history of a network takes in all rounds.
double history_pairs(const RankerSettings& settings, const RankerLoad& load) {
  const PairRule rule = settings.feedback.pairs;
  const auto of_a_round = static_cast<double>(
      pairs_of_a_round(rule == PairRule::kExpected ? PairRule::kAll : rule, load.cutoff));
  const auto& debias = settings.feedback.debias;
  const double copies =
      debias.empty() ? 1.0 : std::min(kMostDebiased, 1.0 / *std::min_element(debias.begin(), debias.end()));
  return static_cast<double>(load.rounds) * of_a_round * copies;
}

/// θ, θ₀, gradients and an optimizer's moments, per member; for replays the point that corrects them, its
/// gradient and the correction.
double parameter_bytes(const ModelSize& shape, const RankerSettings& settings) {
  const double bytes = 2.0 * kFloat + 4.0 * kDouble;
  return static_cast<double>(shape.parameters()) *
         (retraining_rule(settings.trainer).replays() ? bytes + kFloat + 2.0 * kDouble : bytes);
}

/// The distinct documents with the arrays of a pass.
double document_bytes(const ModelSize& shape, double docs) {
  return docs * static_cast<double>(shape.inputs + shape.arrays_of_pass()) * kFloat;
}

/// Documents that a pair brings.
double docs_of_pair(const ModelSize& shape, std::int64_t most_docs) {
  return shape.reads_lists ? std::max(2.0, static_cast<double>(most_docs)) : 2.0;
}

/// Documents, terms, observations and lists.
double history_bytes(const RankerSettings& settings, const ModelSize& shape, const RankerLoad& load) {
  const TrainerSettings& trainer = settings.trainer;
  const double pairs = history_pairs(settings, load);
  const auto rounds = static_cast<double>(load.rounds);
  const double shown = rounds * static_cast<double>(load.cutoff);
  const double kept = shape.reads_lists ? rounds * static_cast<double>(load.most_docs) : shown;
  const double docs = std::min(static_cast<double>(load.train_docs), kept);
  double bytes = document_bytes(shape, docs) + pairs * 80.0 + shown * 8.0;
  if (shape.reads_lists)  // the gradients of one list
    bytes += 2.0 * static_cast<double>(load.most_docs * shape.tangents.factors()) * kFloat;
  if (retraining_rule(trainer).replays()) {
    const double drawn = std::min(static_cast<double>(trainer.replay), pairs);
    bytes += std::min(
        drawn * replay_bytes(settings, shape.inputs, load.most_docs) / static_cast<double>(trainer.replay),
        document_bytes(shape, docs) + pairs * 120.0);
    bytes += pairs * 24.0;
  }
  return bytes;
}

/// Mini-batches on a device: the largest batch with the arrays of a pass, and the order of all, as arrays
/// that grow double. The CPU needs less.
double batch_bytes(const RankerSettings& settings, const ModelSize& shape, double pairs) {
  if (settings.trainer.loss != LossForm::kMean) return 0.0;
  const double members =
      row_of(settings.kind).is_ensemble() ? static_cast<double>(settings.posterior.members) : 1.0;
  const double batch = std::min(pairs, static_cast<double>(settings.trainer.batch));
  const double order = static_cast<double>(settings.trainer.epochs) * pairs * 4.0;
  return 2.0 * members *
         (2.0 * batch * static_cast<double>(shape.inputs + shape.tangents.factors()) * kFloat + order);
}

/// The bytes of a covariance in each form.
struct CovarianceBytes {
  double dual = 0.0;
  double primal = 0.0;
  double inducing = 0.0;
  double diagonal = 0.0;

  double best_full() const { return std::min(dual, primal); }
  double of(const PosteriorSettings& settings) const {
    if (settings.covariance == Covariance::kNone) return 0.0;
    if (settings.covariance == Covariance::kDiagonal) return diagonal;
    if (settings.covariance == Covariance::kInducing) return inducing;
    if (settings.covariance == Covariance::kDiagonalOfInverse) return primal;
    if (settings.form == CovarianceForm::kDual) return dual;
    if (settings.form == CovarianceForm::kPrimal) return primal;
    return best_full();  // FormPolicy switches when the dual form grows too large
  }
};

}  // namespace

double replay_bytes(const RankerSettings& settings, std::int64_t features, std::int64_t most_docs) {
  constexpr double kTermBytes = 120.0;  // of a term with its sources
  const ModelSize shape = model_size(settings.network, features);
  return static_cast<double>(settings.trainer.replay) *
         (document_bytes(shape, docs_of_pair(shape, most_docs)) + kTermBytes);
}

/// A matrix for each member, or three with a covariance, next to the history. A model that replays has one
/// more.
RankerMemory memory_of_linear(const RankerSettings& settings, const RankerLoad& load) {
  const bool is_ensemble = row_of(settings.kind).is_ensemble();
  const std::int64_t members = is_ensemble ? settings.posterior.members : 1;
  std::int64_t matrices = is_ensemble ? members : 3;
  if (settings.trainer.retraining().replays()) matrices += members;
  const auto stride = static_cast<double>(padded_features(load.features));
  const double of_a_round = static_cast<double>(pairs_of_a_round(settings.feedback.pairs, load.cutoff));
  const double pairs = static_cast<double>(load.rounds) * of_a_round;
  const double history = pairs * (stride + 8.0) * kDouble;
  return {load.features * members,
          whole_bytes(history + static_cast<double>(matrices) * stride * stride * kDouble),
          {}};
}

RankerMemory memory_of_confident_network(const RankerSettings& settings, const RankerLoad& load) {
  const ModelSize shape = model_size(settings.network, load.features);
  const std::int64_t of_round = pairs_of_a_round(settings.feedback.pairs, load.cutoff);
  const PosteriorLoad posterior{shape.tangents, load.home, load.rounds * of_round, load.most_docs,
                                of_round};
  CovarianceBytes bytes;
  bytes.dual = dual_bytes(posterior).all();
  bytes.primal = primal_bytes(posterior).all();
  bytes.inducing = inducing_bytes(posterior, settings.posterior.budget).all();
  bytes.diagonal = diagonal_bytes(posterior).all();
  const double observed = history_pairs(settings, load);
  double others = parameter_bytes(shape, settings) + history_bytes(settings, shape, load) +
                  batch_bytes(settings, shape, observed);
  if (settings.posterior.has_shadow()) others += bytes.best_full();
  RankerMemory plan{shape.parameters(), whole_bytes(others + bytes.of(settings.posterior)), {}};
  if (settings.posterior.covariance == Covariance::kNone) return plan;
  plan.forms = {{"form = \"dual\"", whole_bytes(others + bytes.dual)},
                {"form = \"primal\"", whole_bytes(others + bytes.primal)},
                {"covariance = \"diagonal\"", whole_bytes(others + bytes.diagonal)}};
  if (load.home == PosteriorHome::kHost)
    plan.forms.insert(plan.forms.end() - 1,
                      {"covariance = \"inducing\"", whole_bytes(others + bytes.inducing)});
  return plan;
}

RankerMemory memory_of_p2neurrank(const RankerSettings& settings, const RankerLoad& load) {
  const ModelSize shape = model_size(settings.network, load.features);
  const std::int64_t members = settings.posterior.members;
  return {shape.parameters() * members,
          whole_bytes(static_cast<double>(members) * parameter_bytes(shape, settings) +
                      history_bytes(settings, shape, load) +
                      batch_bytes(settings, shape, history_pairs(settings, load))),
          {}};
}

RankerMemory memory_of_score_model(const RankerSettings& settings, const RankerLoad& load) {
  const ModelSize shape = model_size(settings.network, load.features);
  // Dueling bandits hold a neighbour of θ for each candidate.
  const auto tried = static_cast<double>(candidates_of(settings));
  const auto p = static_cast<double>(shape.parameters());
  return {shape.parameters(),
          whole_bytes(parameter_bytes(shape, settings) + tried * p * (kFloat + kDouble)),
          {}};
}

RankerMemory memory_of_toprank(const RankerSettings& /*settings*/, const RankerLoad& load) {
  constexpr double kOfPair = 4.0 + 4.0 + 1.0 / 8.0;  // lead and count of half of the pairs, a bit of each
  const auto docs = static_cast<double>(load.train_docs);
  const auto most = static_cast<double>(load.most_docs);
  const double weights = static_cast<double>(load.features) * kFloat;  // all 0
  return {load.features, whole_bytes(weights + docs * most * kOfPair / 2.0), {}};
}

RankerMemory memory_of_clickgp(const RankerSettings& settings, const RankerLoad& load) {
  const auto rounds = static_cast<double>(load.rounds);
  const double docs =
      std::min(static_cast<double>(load.train_docs), rounds * static_cast<double>(load.cutoff));
  double memory = clickgp_bytes(settings, load.features, docs, std::min(docs, rounds));
  if (settings.click.memory_limit > 0.0) memory = std::min(memory, settings.click.memory_limit * 1e6);
  RankerMemory plan;
  double matrices = 0.0;
  for (const ClickFeatures& of_model : click_features_of(settings, load.features)) {
    const auto columns = static_cast<double>(of_model.most_columns());
    plan.parameters += of_model.columns();
    matrices += 4.0 * columns * columns * kDouble;  // Λ, L, the next L, and that of a frozen ranker
    const auto inputs = static_cast<double>(of_model.inputs());
    if (of_model.products() != nullptr) matrices += 2.0 * inputs * inputs * kDouble;  // of all pairs
  }
  constexpr double kRefresh = 96e6;  // features of a pass over all sites
  plan.bytes = whole_bytes(memory + matrices + kRefresh);
  return plan;
}

RankerMemory memory_of_fairco(const RankerSettings& settings, const RankerLoad& load) {
  RankerMemory plan = memory_of_score_model(settings, load);
  const auto features = static_cast<double>(load.features);
  if (settings.network.network == NetworkForm::kLinear) {
    plan.bytes += whole_bytes(2.0 * features * features * kDouble);
  } else {
    const auto shown = static_cast<double>(load.rounds) * static_cast<double>(load.cutoff);
    const double docs = std::min(shown, static_cast<double>(load.train_docs));
    plan.bytes += whole_bytes(docs * features * kFloat + 2.0 * shown * kFloat);
  }
  return plan;
}

RankerMemory memory_of_external(const RankerSettings& /*settings*/, const RankerLoad& /*load*/) {
  return {};  // only the program knows
}

RankerMemory memory_of_ranker(const RankerSettings& settings, const RankerLoad& load) {
  const RankerKindRow& row = row_of(settings.kind);
  return row.plan != nullptr ? row.plan(settings, load) : memory_of_score_model(settings, load);
}

std::string advice_on_memory(const RankerMemory& plan, std::int64_t available) {
  std::string takes;
  std::string fits;
  for (const RankerMemory::Form& form : plan.forms) {
    takes += fmt::format("{}{} takes {}", takes.empty() ? "" : ", ", form.setting,
                         readable_bytes(static_cast<double>(form.bytes)));
    if (form.bytes <= available) fits += fmt::format("{}{}", fits.empty() ? "" : " or ", form.setting);
  }
  if (plan.forms.empty()) return "fewer rounds, features or parameters would fit";
  if (fits.empty()) return takes + "; only fewer rounds or a smaller network would fit";
  return fmt::format("{}; {} would fit", takes, fits);
}

}  // namespace olrank
