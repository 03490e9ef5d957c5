#include "recommend/trees/split_search.h"

#include <algorithm>
#include <array>

#include "core/math/pair_loss.h"

namespace olrank {
namespace {

/// A row of the node that has a value of a feature.
struct Bearer {
  std::int32_t row = 0;
  std::uint8_t reached = 0;
};

/// The rows of a node that have a value, feature by feature.
struct BearersByFeature {
  std::vector<std::int64_t> begin;
  std::vector<Bearer> bearers;

  std::span<const Bearer> of(std::int64_t feature) const {
    return {bearers.data() + begin[feature], bearers.data() + begin[feature + 1]};
  }
};

BearersByFeature bearers_of(const SplitData& data, std::span<const std::int32_t> rows) {
  const Profiles& profiles = *data.profiles;
  BearersByFeature found;
  found.begin.assign(profiles.features + 1, 0);
  for (const std::int32_t row : rows) {
    for (const ProfileEntry& entry : profiles.row(row)) ++found.begin[entry.feature + 1];
  }
  for (std::int64_t feature = 0; feature < profiles.features; ++feature)
    found.begin[feature + 1] += found.begin[feature];
  found.bearers.resize(found.begin.back());
  std::vector<std::int64_t> next(found.begin.begin(), found.begin.end() - 1);
  for (const std::int32_t row : rows) {
    for (std::int64_t entry = profiles.begin[row]; entry < profiles.begin[row + 1]; ++entry)
      found.bearers[next[profiles.entries[entry].feature]++] = {row, data.reached[entry]};
  }
  return found;
}

/// Measures the thresholds of one feature after the other.
class FeatureScreen {
 public:
  FeatureScreen(const SplitData& data, std::span<const std::int32_t> rows, std::span<const double> total,
                std::span<const double> anchor, double lambda)
      : data_(data),
        rows_(std::ssize(rows)),
        total_(total),
        anchor_(anchor),
        lambda_(lambda),
        solver_(data.dimension),
        between_((kMostThresholds + 1) * total.size()),
        above_(total.size()),
        below_(total.size()),
        unknown_(total.size()) {}

  void screen(std::int32_t feature, std::span<const Bearer> bearers, std::vector<SplitCandidate>& found) {
    const std::span<const float> cuts = data_.thresholds->of(feature);
    if (cuts.empty() || bearers.empty()) return;
    gather(bearers, cuts.size());
    std::ranges::copy(total_, unknown_.begin());
    std::ranges::fill(below_, 0.0);
    std::int64_t below_rows = 0;
    for (std::size_t place = 0; place <= cuts.size(); ++place) subtract(unknown_, between(place));
    const std::int64_t unknown_rows = rows_ - std::ssize(bearers);
    const double from_unknown = unknown_rows > 0 ? solver_.reduction(unknown_, lambda_, anchor_) : 0.0;
    for (std::size_t cut = 0; cut < cuts.size(); ++cut) {
      add_sums(below_, between(cut));
      below_rows += counts_[cut];
      const std::int64_t above_rows = std::ssize(bearers) - below_rows;
      if ((above_rows > 0) + (below_rows > 0) + (unknown_rows > 0) < 2) continue;
      std::ranges::fill(above_, 0.0);
      for (std::size_t place = cut + 1; place <= cuts.size(); ++place) add_sums(above_, between(place));
      double reduction = from_unknown;
      if (above_rows > 0) reduction += solver_.reduction(above_, lambda_, anchor_);
      if (below_rows > 0) reduction += solver_.reduction(below_, lambda_, anchor_);
      found.push_back({feature, static_cast<std::int32_t>(cut), cuts[cut], reduction});
    }
  }

 private:
  std::span<double> between(std::size_t place) {
    return std::span(between_).subspan(place * total_.size(), total_.size());
  }

  void gather(std::span<const Bearer> bearers, std::size_t cuts) {
    std::fill_n(between_.begin(), (cuts + 1) * total_.size(), 0.0);
    counts_.fill(0);
    for (const Bearer& bearer : bearers) {
      add_sums(between(bearer.reached), data_.sums_of(bearer.row));
      ++counts_[bearer.reached];
    }
  }

  static void subtract(std::span<double> from, std::span<const double> other) {
    for (std::size_t i = 0; i < from.size(); ++i) from[i] -= other[i];
  }

  const SplitData& data_;
  std::int64_t rows_;
  std::span<const double> total_;
  std::span<const double> anchor_;
  double lambda_;
  RidgeSolver solver_;
  std::vector<double> between_;  // sums of the values between two thresholds, below all and above all
  std::array<std::int64_t, kMostThresholds + 1> counts_{};
  std::vector<double> above_;
  std::vector<double> below_;
  std::vector<double> unknown_;
};

bool is_better(const SplitCandidate& left, const SplitCandidate& right) {
  if (left.reduction != right.reduction) return left.reduction > right.reduction;
  return left.feature != right.feature ? left.feature < right.feature : left.cut < right.cut;
}

/// Adds the term of one row; returns ‖ũ‖².
double add_personal_term(const SplitData& data, std::int32_t row, const PairSource* pairs, double penalty,
                         DescentSettings descent, FactorRows& factors) {
  if (pairs == nullptr) descent.pair_weight = 0.0;
  const std::span<float> factor = factors.row(row);
  const std::vector<double> leaf(factor.begin(), factor.end());
  const std::span<const double> sums = data.sums_of(row);
  const std::uint8_t only_part = 0;
  NodePairs gathered;
  if (descent.pair_weight > 0.0) gathered = pairs->gather({&row, 1}, factors);
  const PartFit fit = fit_parts({std::vector<double>(sums.begin(), sums.end()), {}, {}}, {1, 0, 0}, leaf,
                                leaf, penalty, gathered, {&only_part, 1}, descent);
  double norm_sq = 0.0;
  for (std::size_t k = 0; k < leaf.size(); ++k) {
    norm_sq += squared_distance(fit.factors[0][k], leaf[k]);
    factor[k] = static_cast<float>(fit.factors[0][k]);
  }
  return norm_sq;
}

}  // namespace

std::vector<std::uint8_t> parts_of_rows(const SplitData& data, std::span<const std::int32_t> rows,
                                        std::int32_t feature, std::int32_t cut) {
  std::vector<std::uint8_t> parts(rows.size(), static_cast<std::uint8_t>(TreeBranch::kUnknown));
  for (std::size_t place = 0; place < rows.size(); ++place) {
    const std::span<const ProfileEntry> profile = data.profiles->row(rows[place]);
    const auto entry = std::ranges::lower_bound(profile, feature, {}, &ProfileEntry::feature);
    if (entry == profile.end() || entry->feature != feature) continue;
    const std::int64_t number = data.profiles->begin[rows[place]] + (entry - profile.begin());
    const TreeBranch branch = data.reached[number] > cut ? TreeBranch::kAtLeast : TreeBranch::kBelow;
    parts[place] = static_cast<std::uint8_t>(branch);
  }
  return parts;
}

std::vector<SplitCandidate> best_splits(ExecutionContext& context, const SplitData& data,
                                        std::span<const std::int32_t> rows, std::span<const double> anchor,
                                        double lambda, std::int64_t wanted) {
  const BearersByFeature bearers = bearers_of(data, rows);
  std::vector<double> total(squared_sums_size(data.dimension), 0.0);
  for (const std::int32_t row : rows) add_sums(total, data.sums_of(row));
  // Questions about items are many, so that each task takes several.
  constexpr std::int64_t kFeaturesOfTask = 4;
  const std::int64_t features = data.profiles->features;
  std::vector<std::vector<SplitCandidate>> found((features + kFeaturesOfTask - 1) / kFeaturesOfTask);
  context.for_blocks(features, kFeaturesOfTask, [&](std::int64_t begin, std::int64_t end, int) {
    std::vector<SplitCandidate>& of_task = found[begin / kFeaturesOfTask];
    FeatureScreen screen(data, rows, total, anchor, lambda);
    for (std::int64_t feature = begin; feature < end; ++feature)
      screen.screen(static_cast<std::int32_t>(feature), bearers.of(feature), of_task);
    const auto kept = std::min<std::ptrdiff_t>(wanted, std::ssize(of_task));
    std::partial_sort(of_task.begin(), of_task.begin() + kept, of_task.end(), is_better);
    of_task.resize(kept);
  });
  std::vector<SplitCandidate> best;
  for (const std::vector<SplitCandidate>& of_task : found)
    best.insert(best.end(), of_task.begin(), of_task.end());
  std::ranges::sort(best, is_better);
  best.resize(std::min<std::ptrdiff_t>(wanted, std::ssize(best)));
  return best;
}

double add_user_terms(ExecutionContext& context, const SplitData& data, std::span<const std::int32_t> rows,
                      const PairSource* pairs, double penalty, const DescentSettings& descent,
                      FactorRows& factors) {
  constexpr std::int64_t kRowsOfBlock = 32;
  std::vector<double> norms(rows.size());
  context.for_blocks(std::ssize(rows), kRowsOfBlock, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t place = begin; place < end; ++place)
      norms[place] = add_personal_term(data, rows[place], pairs, penalty, descent, factors);
  });
  double sum = 0.0;
  for (const double norm : norms) sum += norm;
  return penalty * sum;
}

double add_item_terms(const SplitData& data, std::span<const std::int32_t> rows, const PairSource* pairs,
                      double penalty, const DescentSettings& descent, FactorRows& factors) {
  double sum = 0.0;
  for (const std::int32_t row : rows) sum += add_personal_term(data, row, pairs, penalty, descent, factors);
  return penalty * sum;
}

}  // namespace olrank
