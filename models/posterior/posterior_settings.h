#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "core/device/posterior_spec.h"
#include "core/settings/enum_names.h"
#include "core/settings/schema.h"

namespace olrank {

/// The covariance that is kept alongside the one in use, to compare widths.
enum class ShadowCovariance { kNone, kFull };

/// At which parameters a round's pairs enter the covariance: those that made its list, or those that its
/// training ended at.
enum class ObserveAt { kBefore, kAfter };

/// What is known about the parameters: a covariance, or an ensemble.
struct PosteriorSettings {
  Covariance covariance = Covariance::kFull;
  CovarianceForm form = CovarianceForm::kAuto;
  std::int64_t budget = 1000;
  ShadowCovariance shadow = ShadowCovariance::kNone;
  ObserveAt observe_at = ObserveAt::kBefore;
  double lambda = 10.0;
  std::int64_t members = 2;
  double noise_variance = 0.1;
  bool prior_noise = false;

  /// Whether a full covariance is kept alongside another one.
  bool has_shadow() const { return shadow == ShadowCovariance::kFull && covariance != Covariance::kFull; }

  static const Schema& schema();
};

template <>
struct EnumNames<ObserveAt> {
  static constexpr std::array values = {std::pair{ObserveAt::kBefore, std::string_view("before")},
                                        std::pair{ObserveAt::kAfter, std::string_view("after")}};
};

template <>
struct EnumNames<ShadowCovariance> {
  static constexpr std::array values = {std::pair{ShadowCovariance::kNone, std::string_view("none")},
                                        std::pair{ShadowCovariance::kFull, std::string_view("full")}};
};

}  // namespace olrank
