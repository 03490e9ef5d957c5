#include "recommend/trees/tree_growth.h"

#include <algorithm>
#include <array>
#include <deque>

#include "core/math/pair_loss.h"
#include "core/throw_error.h"

namespace olrank {
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
    const auto best = std::ranges::min_element(finalists, [](const Finalist& left, const Finalist& right) {
      if (left.fit.objective != right.fit.objective) return left.fit.objective < right.fit.objective;
      const SplitCandidate& a = left.candidate;
      const SplitCandidate& b = right.candidate;
      return a.feature != b.feature ? a.feature < b.feature : a.cut < b.cut;
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
