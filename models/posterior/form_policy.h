#pragma once

#include <algorithm>
#include <cstdint>

#include "core/ops/tangent_shape.h"
#include "models/posterior/posterior_memory.h"
#include "models/posterior/posterior_settings.h"

namespace olrank {

/// Decides when a full covariance switches from the dual to the primal form: one rule, on CPU and device.
///
/// By operations: a round costs dual_operations() or primal_operations(), V the query's documents and
/// kUsualPairs new pairs. What rounds so far cost beyond the primal form is the excess. The switch pays
/// once the excess exceeds its own cost, conversion_operations(): p²n + p³. The total work then is at most
/// twice that of the best moment. The decision depends on the feedback alone, not on which queries were
/// ranked.
///
/// By memory: with n pairs the dual form takes dual_bytes() and the primal form primal_bytes(), all that is
/// allocated included: growth, the pairs' factors, workspaces. The switch frees L⁻¹ first. If the dual form
/// no longer fits, the covariance switches early; if the primal form does not fit either, or `form` is
/// fixed, observing throws.
class FormPolicy {
 public:
  /// The memory of a covariance.
  struct Room {
    std::int64_t bytes = 0;  // that may be used; 0: no limit
    PosteriorHome home = PosteriorHome::kHost;
    std::int64_t most_docs = 0;   // of a query, if that is known
    double beside = 0.0;          // bytes that others take of it
    double beside_per_doc = 0.0;  // likewise, for each document of a pair
    std::int64_t docs = 0;        // that pairs can have
  };

  FormPolicy(const TangentShape& shape, CovarianceForm form, const Room& room)
      : shape_(shape), form_(form), room_(room) {}

  /// To be called while the form is dual, before a query of `docs` documents adds `added` to `pairs`
  /// observed pairs: returns whether they are to be observed in primal form. Throws Error if no form fits.
  bool switches(std::int64_t pairs, std::int64_t added, std::int64_t docs);
  /// Whether the primal form fits with this many pairs.
  bool primal_fits(std::int64_t pairs) const;
  /// Whether so many bytes fit next to what others take.
  bool fits(double bytes, std::int64_t pairs) const { return room_.bytes <= 0 || bytes <= usable(pairs); }

  /// Operations beyond the primal form so far.
  double excess() const { return excess_; }
  void set_excess(double operations) { excess_ = operations; }

 private:
  static constexpr std::int64_t kUsualPairs = 4;

  /// Bytes for the covariance, with so many pairs.
  double usable(std::int64_t pairs) const {
    return static_cast<double>(room_.bytes) - room_.beside -
           room_.beside_per_doc * static_cast<double>(std::min(2 * pairs, room_.docs));
  }
  PosteriorLoad load(std::int64_t pairs, std::int64_t added, std::int64_t docs) const {
    return {shape_, room_.home, pairs, std::max(docs, room_.most_docs), added};
  }

  TangentShape shape_;
  CovarianceForm form_;
  Room room_;
  double excess_ = 0.0;
};

}  // namespace olrank
