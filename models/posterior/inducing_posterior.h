#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/covariance/dictionary_policy.h"
#include "models/posterior/inducing_covariance.h"
#include "models/posterior/posterior.h"

namespace olrank {

/// The covariance of all observed pairs, each taken in with its part in the span of a dictionary of at most
/// `budget` of them: A = λI + s Σ_s P g_s g_sᵀ P. What the dictionary does not span keeps its prior
/// variance, so that widths err on the careful side, and with every pair in the dictionary they are exact.
/// Cost and memory do not grow with the number of pairs: next to the dictionary the newest pairs are kept,
/// which can enter it and are projected exactly whenever it changes; older ones stay in as an operator on
/// its span.
class InducingPosterior : public Posterior {
 public:
  explicit InducingPosterior(const PosteriorSpec& spec);

  void width_sq(ExecutionContext& context, TangentFactors docs, std::span<double> width_sq) override;
  WidthHealth widths(ExecutionContext& context, TangentFactors docs,
                     std::span<double> width_sq) const override;
  std::shared_ptr<const Posterior> freeze() const override;
  void observe(ExecutionContext& context, TangentFactors docs,
               std::span<const PreferencePair> pairs) override;

  std::int64_t pairs() const override { return state_.roll.pairs(); }
  double log_det() const override { return state_.covariance.log_det(); }
  std::int64_t bytes() const override;
  /// Pairs in the dictionary.
  std::int64_t members() const { return state_.dictionary.members(); }
  /// Their numbers among all observed pairs, ascending.
  std::span<const std::int64_t> numbers() const { return state_.roll.members(); }
  /// How often the dictionary was chosen again because of drift.
  std::int64_t rebuilds() const { return state_.rebuilds; }

  void save(StateWriter& state) const override;
  void load(StateReader& state) override;

 private:
  InducingPosterior(const InducingPosterior& other);

  /// Observing changes this; copies share large arrays.
  struct State {
    explicit State(const PosteriorSpec& spec)
        : roll(DictionaryPolicy(spec.budget)),
          dictionary(spec.shape, spec.scale),
          covariance(spec.lambda),
          window(spec.shape) {}

    DictionaryRoll roll;
    InducingDictionary dictionary;
    InducingCovariance covariance;
    ObservedPairs window;  // the newest pairs
    LowerTriangle left;    // Σ z zᵀ of the pairs before the window
    std::int64_t rebuilds = 0;
  };

  /// The documents of the latest widths, with κ, y = Rκ (fast_columns() of documents in a row, the last
  /// ones zero) and M = s G A⁻¹ Gᵀ (lower triangle).
  struct LatestGram {
    std::int64_t pairs = -1;  // when it was computed; -1: no documents
    std::vector<float> factors;
    AlignedVector<double> kappa;
    AlignedVector<double> y;
    std::vector<double> m;
  };

  void find_gram(ExecutionContext& context, TangentFactors docs, double* kappa, double* y, double* m) const;
  void find_latest(ExecutionContext& context, TangentFactors docs);
  bool is_latest(TangentFactors docs) const;
  WidthHealth widths_for_update(ExecutionContext& context, TangentFactors docs, std::span<double> width_sq);
  /// Throws Error if so many more pairs do not fit into memory.
  void require_room(std::int64_t docs, std::int64_t added) const;
  void take_in(ExecutionContext& context, TangentFactors docs, std::span<const PreferencePair> pairs);
  /// Takes at most kRows pairs. After a NumericError rebuild() is possible; the pairs may count or not.
  void take_in_block(ExecutionContext& context, TangentFactors docs, std::span<const PreferencePair> pairs);
  /// Adds rows to R for at most room() pairs.
  void add_rows(ExecutionContext& context, TangentFactors docs, std::span<const PreferencePair> pairs);
  void keep_up(ExecutionContext& context);
  /// Makes these pairs the dictionary, in ascending order, as far as they are new.
  void choose_again(ExecutionContext& context, std::span<const std::int64_t> chosen);
  /// P S Pᵀ for S = `left` and the projection P from the present dictionary's span to that of `next`.
  LowerTriangle moved(ExecutionContext& context, const InducingDictionary& next) const;
  /// Computes T from `left` and the window, and R from T.
  void project_again(ExecutionContext& context);
  /// Adds z zᵀ of the window's pairs from `first` on to t.
  void add_projections(ExecutionContext& context, std::int64_t first, std::int64_t count,
                       LowerTriangle& t) const;
  /// The pairs that are to leave the window do.
  void trim_window(ExecutionContext& context);
  /// If change() throws, everything is as before.
  template <class Change>
  void all_or_nothing(const Change& change);
  /// Chooses the dictionary again by a stricter policy, and computes everything from it. Throws
  /// NumericError, and then leaves no valid state, if that is not possible.
  void rebuild(ExecutionContext& context, std::string_view why);
  double measured_drift(ExecutionContext& context) const override;
  double error_along(ExecutionContext& context, std::span<const double> v,
                     std::optional<double> width_sq) const;

  State state_;
  LatestGram latest_;
};

}  // namespace olrank
