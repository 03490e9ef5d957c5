#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/explore/certain_orders.h"
#include "core/explore/ranked_list.h"
#include "core/ops/tangent_factors.h"
#include "models/posterior/posterior.h"
#include "models/skeleton/belief.h"

namespace olrank {

/// Compares the widths that decided about the shown documents with exact ones. Memory is kept from list to
/// list.
class ShadowComparison {
 public:
  /// Gathers the scores of the shown documents and their own w² from those of all documents of the query.
  void start(std::span<const std::int32_t> shown, std::span<const float> scores,
             std::span<const double> own_sq);

  /// By rank, [n × n]; to be filled before finish().
  std::span<double> exact_sq() { return exact_sq_; }

  /// Writes width ratios and reversed decisions to the list, which refers to this object from then on.
  void finish(const CertaintyRule& rule, RankedList& list);

 private:
  std::vector<double> scores_;
  std::vector<double> own_sq_;
  std::vector<double> exact_sq_;
  std::vector<double> ratios_;
};

/// A full covariance alongside another one: it observes the same pairs, decides nothing, and gives the
/// exact widths of the shown documents.
class WidthShadow {
 public:
  WidthShadow(const TangentShape& shape, std::unique_ptr<Posterior> posterior);

  /// Compares the widths in `evidence`, which decided by `rule`, and writes the result to `list`.
  void compare(ExecutionContext& context, std::span<const std::int32_t> shown, const Evidence& evidence,
               const CertaintyRule& rule, RankedList& list);
  void observe(ExecutionContext& context, std::span<const std::int32_t> shown, const Evidence& evidence,
               std::span<const PreferencePair> pairs);

  void save(StateWriter& state) const { posterior_->save(state); }
  void load(StateReader& state) { posterior_->load(state); }

 private:
  /// The factors of the shown documents, by rank.
  TangentFactors factors_of(std::span<const std::int32_t> shown, const Evidence& evidence);

  TangentShape shape_;
  std::unique_ptr<Posterior> posterior_;
  ShadowComparison comparison_;
  std::vector<float> shown_factors_;
  std::vector<PreferencePair> shown_pairs_;  // by rank
};

}  // namespace olrank
