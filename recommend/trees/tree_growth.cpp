#include "recommend/trees/tree_growth.h"

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <numeric>
#include <tuple>

#include "core/math/pair_loss.h"
#include "core/throw_error.h"

namespace olrank {
namespace {

/// A row of the node that has a value of a feature.
struct Bearer {
  std::int32_t row = 0;
  std::uint8_t reached = 0;
};

/// The rows of a node that have a value, feature by feature.
Groups<Bearer> bearers_of(const SplitData& data, std::span<const std::int32_t> rows) {
  const Profiles& profiles = *data.profiles;
  return grouped<Bearer>(profiles.features, [&](const auto& add) {
    for (const std::int32_t row : rows) {
      for (std::int64_t entry = profiles.begin[row]; entry < profiles.begin[row + 1]; ++entry)
        add(profiles.entries[entry].feature, Bearer{row, data.reached[entry]});
    }
  });
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
    std::fill_n(between_.begin(), (cuts.size() + 1) * total_.size(), 0.0);
    counts_.fill(0);
    for (const Bearer& bearer : bearers) {
      add_sums(between(bearer.reached), data_.sums_of(bearer.row));
      ++counts_[bearer.reached];
    }
    std::ranges::copy(total_, unknown_.begin());
    std::ranges::fill(below_, 0.0);
    std::int64_t below_rows = 0;
    for (std::size_t place = 0; place <= cuts.size(); ++place)
      std::transform(unknown_.begin(), unknown_.end(), between(place).begin(), unknown_.begin(),
                     std::minus<>());
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
  const Groups<Bearer> bearers = bearers_of(data, rows);
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

double add_personal_terms(ExecutionContext* parallel, const SplitData& data,
                          std::span<const std::int32_t> rows, const PairSource* pairs, double penalty,
                          const DescentSettings& descent, FactorRows& factors) {
  constexpr std::int64_t kRowsOfBlock = 32;
  std::vector<double> norms(rows.size());
  const auto fit = [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t place = begin; place < end; ++place)
      norms[place] = add_personal_term(data, rows[place], pairs, penalty, descent, factors);
  };
  if (parallel != nullptr) {
    parallel->for_blocks(std::ssize(rows), kRowsOfBlock, fit);
  } else {
    fit(0, std::ssize(rows), 0);
  }
  return penalty * std::accumulate(norms.begin(), norms.end(), 0.0);
}

namespace {

double squared_norm(std::span<const double> x, std::span<const double> centre) {
  double sum = 0.0;
  for (std::size_t k = 0; k < x.size(); ++k) sum += squared_distance(x[k], centre[k]);
  return sum;
}

class Grower {
 public:
  Grower(ExecutionContext& context, const SplitData& data, const PairSource* pairs,
         const GrowthSettings& settings)
      : context_(context), data_(data), pairs_(pairs), settings_(settings), zero_(data.dimension, 0.0) {
    grown_.tree = FactorTree(data.dimension);
    grown_.factors = FactorRows(data.profiles->rows(), data.dimension);
    if (pairs_ == nullptr) settings_.descent.pair_weight = 0.0;
  }

  GrownTree grow(std::span<const std::int32_t> rows) {
    start(rows);
    while (!open_.empty()) {
      const Open node = std::move(open_.front());
      open_.pop_front();
      split(node);
    }
    const std::int64_t all = data_.profiles->rows();
    grown_.leaf_of.resize(all);
    for (std::int64_t row = 0; row < all; ++row) {
      grown_.leaf_of[row] = grown_.tree.leaf_of(data_.profiles->row(row));
      std::ranges::copy(grown_.tree.factor(grown_.leaf_of[row]), grown_.factors.row(row).begin());
    }
    return std::move(grown_);
  }

 private:
  using Parts = std::array<std::vector<double>, kTreeBranches>;

  struct Open {
    std::int32_t node = 0;
    std::vector<std::int32_t> rows;
  };

  void start(std::span<const std::int32_t> rows) {
    Open root{0, {rows.begin(), rows.end()}};
    grown_.tree.node(0).rows = std::ssize(rows);
    const std::vector<std::uint8_t> one_part(rows.size(), 0);
    const PartFit fit = fit_parts(sums_of_parts(root.rows, one_part), {std::ssize(rows), 0, 0}, zero_,
                                  zero_, settings_.penalty, gather(root.rows), one_part, settings_.descent);
    set_factor(0, fit.factors[0], root.rows);
    // All rows of the side, so that those without data have a current factor, too.
    for (std::int64_t row = 0; row < grown_.factors.rows(); ++row)
      std::ranges::copy(grown_.tree.factor(0), grown_.factors.row(row).begin());
    grown_.penalty = settings_.penalty * squared_norm(fit.factors[0], zero_);
    open_.push_back(std::move(root));
  }

  void split(const Open& open) {
    const TreeNode& node = grown_.tree.node(open.node);
    if (node.level >= settings_.depth || node.rows < settings_.least_rows) return;
    const std::span<const float> stored = grown_.tree.factor(open.node);
    const std::vector<double> own(stored.begin(), stored.end());
    const std::vector<double>& anchor = settings_.parent_factor ? own : zero_;
    // Nothing is left to ask where all rows have one profile: then no question has two parts.
    const std::int64_t wanted = settings_.descent.pair_weight > 0.0 ? settings_.finalists : 1;
    const std::vector<SplitCandidate> candidates =
        best_splits(context_, data_, open.rows, anchor, settings_.penalty, wanted);
    if (candidates.empty()) return;
    const NodePairs pairs = gather(open.rows);
    std::vector<Finalist> finalists(candidates.size());
    context_.pool().run(std::ssize(candidates), [&](std::int64_t number, int) {
      finalists[number] = fit(open.rows, candidates[number], own, anchor, pairs);
    });
    const double before = objective_unsplit(open.rows, own, anchor, pairs);
    const auto best = std::ranges::min_element(finalists, {}, [](const Finalist& one) {
      return std::tuple(one.fit.objective, one.candidate.feature, one.candidate.cut);
    });
    if (!(best->fit.objective < before)) return;  // no loss gained
    apply(open, *best, own, anchor);
  }

  struct Finalist {
    SplitCandidate candidate;
    std::vector<std::uint8_t> part_of;
    std::array<std::int64_t, kTreeBranches> rows{};
    PartFit fit;
  };

  Finalist fit(std::span<const std::int32_t> rows, const SplitCandidate& candidate,
               std::span<const double> own, std::span<const double> anchor, const NodePairs& pairs) const {
    Finalist made;
    made.candidate = candidate;
    made.part_of = parts_of_rows(data_, rows, candidate.feature, candidate.cut);
    for (const std::uint8_t part : made.part_of) ++made.rows[part];
    made.fit = fit_parts(sums_of_parts(rows, made.part_of), made.rows, anchor, own, settings_.penalty,
                         pairs, made.part_of, settings_.descent);
    return made;
  }

  double objective_unsplit(std::span<const std::int32_t> rows, const std::vector<double>& own,
                           std::span<const double> anchor, const NodePairs& pairs) const {
    const std::vector<std::uint8_t> one_part(rows.size(), 0);
    const Parts sums = sums_of_parts(rows, one_part);
    double objective = squared_error(sums[0], own) + settings_.penalty * squared_norm(own, anchor);
    if (settings_.descent.pair_weight > 0.0)
      objective += settings_.descent.pair_weight * pair_loss_of_parts(pairs, one_part, {own, zero_, zero_});
    return objective;
  }

  void apply(const Open& open, const Finalist& best, const std::vector<double>& own,
             std::span<const double> anchor) {
    grown_.tree.split(open.node, best.candidate.feature, best.candidate.threshold);
    if (!settings_.parent_factor) grown_.penalty -= settings_.penalty * squared_norm(own, zero_);
    for (int part = 0; part < kTreeBranches; ++part) {
      const std::int32_t child = grown_.tree.node(open.node).children[part];
      Open next{child, {}};
      next.rows.reserve(best.rows[part]);
      for (std::size_t place = 0; place < open.rows.size(); ++place) {
        if (best.part_of[place] == part) next.rows.push_back(open.rows[place]);
      }
      grown_.tree.node(child).rows = std::ssize(next.rows);
      if (next.rows.empty()) continue;  // keeps the factor of its parent
      set_factor(child, best.fit.factors[part], next.rows);
      grown_.penalty += settings_.penalty * squared_norm(best.fit.factors[part], anchor);
      open_.push_back(std::move(next));
    }
  }

  void set_factor(std::int32_t node, std::span<const double> values, std::span<const std::int32_t> rows) {
    const std::span<float> factor = grown_.tree.factor(node);
    for (std::size_t k = 0; k < values.size(); ++k) factor[k] = static_cast<float>(values[k]);
    for (const std::int32_t row : rows) std::ranges::copy(factor, grown_.factors.row(row).begin());
  }

  Parts sums_of_parts(std::span<const std::int32_t> rows, std::span<const std::uint8_t> part_of) const {
    Parts sums;
    sums.fill(std::vector<double>(squared_sums_size(data_.dimension), 0.0));
    for (std::size_t place = 0; place < rows.size(); ++place)
      add_sums(sums[part_of[place]], data_.sums_of(rows[place]));
    return sums;
  }

  NodePairs gather(std::span<const std::int32_t> rows) const {
    if (settings_.descent.pair_weight <= 0.0) return {};
    return pairs_->gather(rows, grown_.factors);
  }

  ExecutionContext& context_;
  const SplitData& data_;
  const PairSource* pairs_;
  GrowthSettings settings_;
  std::vector<double> zero_;
  GrownTree grown_;
  std::deque<Open> open_;
};

}  // namespace

GrownTree grow_tree(ExecutionContext& context, const SplitData& data, std::span<const std::int32_t> rows,
                    const PairSource* pairs, const GrowthSettings& settings) {
  return Grower(context, data, pairs, settings).grow(rows);
}

void check_tree_depth(std::string_view key, std::int64_t depth, const RatingRows& ratings,
                      std::string_view what) {
  std::int64_t rows = 0;
  for (std::int64_t row = 0; row < ratings.rows(); ++row) rows += ratings.count(row) > 0 ? 1 : 0;
  const std::int64_t most = std::max<std::int64_t>(rows - 1, 0);
  if (depth <= most) return;
  throw_error<InvalidArgument>(
      "A tree of depth {} is deeper than the data allows, because every question must separate somebody: "
      "of the {}, {} have training reviews; set {} to at most {}.",
      depth, what, rows, key, most);
}

}  // namespace olrank
