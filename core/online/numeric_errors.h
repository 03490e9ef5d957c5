#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// The NumericErrors that CPU and device rankers throw alike.
namespace olrank {

/// Where the loss of a training that no repeat could save left the finite numbers, or exploded.
struct DivergedTraining {
  std::uint32_t round = 0;
  std::int64_t step = 0;
  double loss = 0.0;
  double learning_rate = 0.0;
  std::optional<double> lambda;  // set if a larger one helps, too
};
[[noreturn]] void throw_diverged(const DivergedTraining& training);

/// A covariance as its errors describe it.
struct CovarianceName {
  std::string_view form;   // "dual", "primal", …
  std::int64_t pairs = 0;  // -1: not known
  double lambda = 0.0;
};
/// "The dual covariance of 7 pairs".
std::string text_of(const CovarianceName& covariance);
/// A rebuild did not help; `what` is a clause: "its residual is 0.1".
[[noreturn]] void throw_lost_precision(const CovarianceName& covariance, std::string_view what);

/// Squared widths of a covariance that cannot be computed afresh are not finite.
[[noreturn]] void throw_lost_widths(std::string_view covariance);
/// So many squared widths of a query's documents are not finite, and no list can be made for them.
[[noreturn]] void throw_lost_list_widths(std::int64_t lost, std::int64_t docs);

/// The score of a query's document `doc` is NaN.
[[noreturn]] void throw_bad_score(std::int64_t doc);

}  // namespace olrank
