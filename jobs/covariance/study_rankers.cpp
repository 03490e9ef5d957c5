#include "jobs/covariance/study_rankers.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "core/settings/setting_sources.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"

namespace olrank {
namespace {

constexpr std::string_view kEnsemble = "ensemble-";
constexpr std::string_view kInducingWith = "inducing-";
/// The setting of a study, which takes ensembles, too.
constexpr std::string_view kStructures = "study.structures";

/// "500" of "inducing-500"; empty for any other structure.
std::string_view budget_text(std::string_view structure) {
  return structure.starts_with(kInducingWith) ? structure.substr(kInducingWith.size()) : std::string_view();
}

[[noreturn]] void refuse_structure(const std::string& structure, std::string_view setting) {
  if (const auto dropped = dropped_sentence(structure))
    throw_error<InvalidArgument>("{}: {}", setting, *dropped);
  const bool takes_ensembles = setting == kStructures;
  std::vector<std::string> known;
  known.reserve(std::size(EnumNames<Covariance>::values) + 1);
  for (const auto& [value, name] : EnumNames<Covariance>::values) known.emplace_back(name);
  const std::string covariances = joined(known, ", ");
  if (takes_ensembles) known.emplace_back("ensemble-2");
  throw_error<InvalidArgument>("{}: '{}' must be {}{} inducing-N with N as the budget{}. {}", setting,
                               structure, covariances, takes_ensembles ? "," : ", or",
                               takes_ensembles ? ", or ensemble-N with N of at least 2" : "",
                               did_you_mean(structure, known));
}

void check_structure(const std::string& structure) {
  PosteriorSettings posterior;
  if (members_of(structure) == 0) set_covariance(posterior, structure, kStructures);
}

template <class T>
void check_axis(const std::vector<T>& values, std::string_view key) {
  if (values.empty()) throw_error<InvalidArgument>("study.{} is empty; it needs at least one value.", key);
  if (std::set<T>(values.begin(), values.end()).size() != values.size())
    throw_error<InvalidArgument>("study.{} contains a duplicate.", key);
}

void check_axes(const StudySettings& study) {
  check_axis(study.structures, "structures");
  check_axis(study.widths, "widths");
  check_axis(study.depths, "depths");
  check_axis(study.noise_variances, "noise_variances");
  for (const std::string& structure : study.structures) check_structure(structure);
  const auto& structures = study.structures;
  if (std::find(structures.begin(), structures.end(), kExactStructure) == structures.end()) {
    throw InvalidArgument(
        "study.structures must include 'full', which the other structures are compared with.");
  }
}

StudyRanker covariance_ranker(const std::string& structure, const StudySettings& study,
                              const StudyBase& base, std::int64_t width, std::int64_t depth) {
  StudyRanker ranker{{{}, structure, width, depth, {}, {}, {}}, base.network};
  PosteriorSettings& posterior = ranker.settings.posterior;
  set_covariance(posterior, structure, kStructures);
  const bool is_exact = posterior.covariance == Covariance::kFull;
  posterior.shadow = study.exact_widths && !is_exact ? ShadowCovariance::kFull : ShadowCovariance::kNone;
  if (study.exact_training && is_exact) ranker.settings.trainer.retrain = Retrain::kEveryRound;
  if (posterior.covariance == Covariance::kInducing) ranker.cell.budget = posterior.budget;
  if (has_alpha(ranker.cell)) ranker.cell.alpha = ranker.settings.explore.alpha;
  return ranker;
}

StudyRanker ensemble_ranker(const std::string& structure, const StudyBase& base, std::int64_t width,
                            std::int64_t depth, double noise_variance) {
  StudyRanker ranker{{{}, structure, width, depth, noise_variance, {}, {}}, base.ensemble};
  ranker.settings.posterior.members = members_of(structure);
  ranker.settings.posterior.noise_variance = noise_variance;
  return ranker;
}

void name(StudyRanker& ranker) {
  StudyCell& cell = ranker.cell;
  cell.ranker = fmt::format("{}-m{}-L{}", cell.structure, cell.width, cell.depth);
  if (cell.noise_variance) cell.ranker += fmt::format("-nu{:g}", *cell.noise_variance);
  ranker.settings.name = cell.ranker;
  ranker.settings.network.width = cell.width;
  ranker.settings.network.depth = cell.depth;
}

}  // namespace

std::int64_t members_of(const std::string& structure) {
  if (structure.rfind(kEnsemble, 0) != 0) return 0;
  std::int64_t members = 0;
  const char* end = structure.data() + structure.size();
  const auto [stopped, error] = std::from_chars(structure.data() + kEnsemble.size(), end, members);
  return error == std::errc() && stopped == end && members >= 2 ? members : 0;
}

void set_covariance(PosteriorSettings& posterior, const std::string& structure, std::string_view setting) {
  const std::string_view budget = budget_text(structure);
  const std::string name = budget.empty() ? structure : std::string(name_of(Covariance::kInducing));
  const auto covariance = value_named<Covariance>(name);
  if (!covariance) refuse_structure(structure, setting);
  posterior.covariance = *covariance;
  if (budget.empty()) return;
  assign_setting_text(PosteriorSettings::schema(), &posterior, "budget", budget,
                      fmt::format("{}: '{}'", setting, structure));
}

bool has_ensembles(const StudySettings& study) {
  return std::any_of(study.structures.begin(), study.structures.end(),
                     [](const std::string& structure) { return members_of(structure) > 0; });
}

bool has_alpha(const StudyCell& cell) {
  return members_of(cell.structure) == 0 && cell.structure != name_of(Covariance::kNone);
}

std::vector<StudyRanker> study_rankers(const StudySettings& study, const StudyBase& base) {
  check_axes(study);
  std::vector<StudyRanker> rankers;
  for (const std::int64_t depth : study.depths) {
    for (const std::int64_t width : study.widths) {
      for (const std::string& structure : study.structures) {
        if (members_of(structure) == 0) {
          rankers.push_back(covariance_ranker(structure, study, base, width, depth));
          continue;
        }
        for (const double noise : study.noise_variances)
          rankers.push_back(ensemble_ranker(structure, base, width, depth, noise));
      }
    }
  }
  for (StudyRanker& ranker : rankers) name(ranker);
  return rankers;
}

StudyRanker with_alpha(StudyRanker ranker, double alpha) {
  ranker.cell.alpha = alpha;
  ranker.settings.explore.alpha = alpha;
  ranker.cell.ranker += fmt::format("+alpha={:g}", alpha);
  ranker.settings.name = ranker.cell.ranker;
  return ranker;
}

}  // namespace olrank
