#pragma once

#include "core/online/click_model.h"
#include "sim/click_settings.h"
#include "sim/click_tables.h"

namespace olrank {

/// Dependent click model (Guo, Liu and Wang, "Efficient multiple-click models in web search", WSDM 2009) in
/// the form used in online learning to rank: scans from the top, clicks with P(click | grade), and stops
/// with P(stop | grade) after a click, or after every document.
class DependentClickModel : public ClickModel {
 public:
  /// `noise` flips the click of an examined document. The table covers every grade of the data.
  DependentClickModel(ClickTable table, StopDraw stop_draw, double noise);

  void click(QueryGrades grades, std::span<const std::int32_t> shown, PhiloxKey key, std::uint32_t round,
             ClickLog& log) const override;
  std::optional<ExaminationLaw> examination_law(std::int64_t ranks) const override;

 private:
  ClickTable table_;
  StopDraw stop_draw_;
  double noise_;
};

}  // namespace olrank
