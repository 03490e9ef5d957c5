#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "core/io/state_archive.h"
#include "models/posterior/observed_pairs.h"

namespace olrank {

/// One of the two exact ways to keep A⁻¹ of the full covariance; FullPosterior owns the history and watches
/// over the numbers.
class FullForm {
 public:
  FullForm() = default;
  virtual ~FullForm() = default;
  FullForm(const FullForm&) = delete;
  FullForm& operator=(const FullForm&) = delete;

  /// m [docs × docs] (lower triangle) = s · G A⁻¹ Gᵀ.
  virtual void gram(ExecutionContext& context, const ObservedPairs& history, TangentFactors docs,
                    double* m) const = 0;
  /// The same, keeping what observing pairs of these very documents can use.
  virtual void look_at(ExecutionContext& context, const ObservedPairs& history, TangentFactors docs,
                       double* m) {
    gram(context, history, docs, m);
  }
  /// This form as it stands now, which no later append changes.
  virtual std::unique_ptr<FullForm> freeze() const = 0;
  /// Takes in the history's pairs from number `first` on, which are `pairs` of these documents.
  /// NumericError where rounding forbids it; the form is then of no use until a rebuild.
  virtual void observe(ExecutionContext& context, const ObservedPairs& history, std::int64_t first,
                       TangentFactors docs, std::span<const PreferencePair> pairs) = 0;
  /// Everything anew from the history.
  virtual void rebuild(ExecutionContext& context, const ObservedPairs& history) = 0;
  /// solution = A⁻¹ v, both [p].
  virtual void solve(ExecutionContext& context, const ObservedPairs& history, std::span<const double> v,
                     std::span<double> solution) const = 0;

  virtual double log_det() const = 0;
  virtual std::string_view name() const = 0;
  virtual std::int64_t bytes() const = 0;
  virtual void save(StateWriter& state) const = 0;
  virtual void load(StateReader& state) = 0;
};

}  // namespace olrank
