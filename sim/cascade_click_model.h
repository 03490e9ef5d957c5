#pragma once

#include <vector>

#include "core/online/click_model.h"

namespace olrank {

/// Cascade model (Craswell, Zoeter, Taylor and Ramsey, "An experimental comparison of click position-bias
/// models", WSDM 2008): scans from the top, clicks with P(click | grade) and stops after the first click.
class CascadeClickModel : public ClickModel {
 public:
  /// `click` is P(click | grade) for every grade of the data; `noise` flips the click of an examined
  /// document.
  CascadeClickModel(std::vector<double> click, double noise);

  void click(QueryGrades grades, std::span<const std::int32_t> shown, PhiloxKey key, std::uint32_t round,
             ClickLog& log) const override;
  std::optional<ExaminationLaw> examination_law(std::int64_t ranks) const override;

 private:
  std::vector<double> click_;
  double noise_;
};

}  // namespace olrank
