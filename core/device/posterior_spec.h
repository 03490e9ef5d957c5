#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "core/covariance/covariance_checks.h"
#include "core/ops/tangent_shape.h"
#include "core/settings/enum_names.h"

namespace olrank {

/// A posterior keeps one of these of A⁻¹, on the CPU and on a device.
enum class Covariance { kFull, kInducing, kDiagonal, kDiagonalOfInverse, kNone };

/// How a full covariance is kept: by pairs, by parameters, or by an orthonormal basis of the observed
/// gradients, which only the CPU has and no user asks for. Automatic ones are dual until FormPolicy decides
/// otherwise.
enum class CovarianceForm { kAuto, kDual, kPrimal, kOrthonormal };

template <>
struct EnumNames<Covariance> {
  static constexpr std::array values = {
      std::pair{Covariance::kFull, std::string_view("full")},
      std::pair{Covariance::kInducing, std::string_view("inducing")},
      std::pair{Covariance::kDiagonal, std::string_view("diagonal")},
      std::pair{Covariance::kDiagonalOfInverse, std::string_view("diagonal-of-inverse")},
      std::pair{Covariance::kNone, std::string_view("none")}};
};

template <>
struct EnumNames<CovarianceForm> {
  static constexpr std::array values = {
      std::pair{CovarianceForm::kAuto, std::string_view("auto")},
      std::pair{CovarianceForm::kDual, std::string_view("dual")},
      std::pair{CovarianceForm::kPrimal, std::string_view("primal")},
      std::pair{CovarianceForm::kOrthonormal, std::string_view("orthonormal")}};
};

/// Everything that defines A = λI + s Σ_s g_s g_sᵀ over observed pairs, whose gradients have this shape. A
/// posterior's own spec says in which form it is now.
struct PosteriorSpec {
  TangentShape shape;
  Covariance covariance = Covariance::kFull;
  CovarianceForm form = CovarianceForm::kAuto;  // of the full covariance
  std::int64_t budget = 1000;                   // D, of the inducing covariance
  double lambda = 10.0;                         // λ
  double scale = 1.0;                           // s: 1/m in the paper protocol, 1 in the reference protocol
  CovarianceChecks checks;
  std::int64_t memory = 0;  // bytes that it may use on the host; 0: available_memory()
  bool has_shadow = false;  // shadow() observes the same pairs and decides nothing

  bool is_dual() const {
    return covariance == Covariance::kFull &&
           (form == CovarianceForm::kAuto || form == CovarianceForm::kDual);
  }
  /// The name in messages and saved states: that of a full covariance's form, else that of the structure.
  std::string_view name() const {
    if (covariance != Covariance::kFull) return name_of(covariance);
    return name_of(is_dual() ? CovarianceForm::kDual : form);
  }
  /// The full covariance alongside this one.
  PosteriorSpec shadow() const {
    PosteriorSpec full = *this;
    full.covariance = Covariance::kFull;
    full.has_shadow = false;
    return full;
  }
};

}  // namespace olrank
