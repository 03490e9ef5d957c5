#pragma once

#include <cstddef>
#include <vector>

#include "core/online/click_model.h"

namespace olrank {

/// Position-based model (Craswell, Zoeter, Taylor and Ramsey, "An experimental comparison of click
/// position-bias models", WSDM 2008): examination depends only on rank, and an examined document is clicked
/// with P(click | grade).
class PositionClickModel : public ClickModel {
 public:
  /// `click` is P(click | grade) for every grade of the data; `noise` flips the click of an examined
  /// document. `examination` is P(examined) by rank, and 0 beyond its end; if it is empty, rank r is
  /// examined with probability (1 / (r + 1))^position_bias.
  PositionClickModel(std::vector<double> click, std::vector<double> examination, double position_bias,
                     double noise);

  void click(QueryGrades grades, std::span<const std::int32_t> shown, PhiloxKey key, std::uint32_t round,
             ClickLog& log) const override;
  std::optional<ExaminationLaw> examination_law(std::int64_t ranks) const override;

 private:
  double examination(std::size_t rank) const;

  std::vector<double> click_;
  std::vector<double> examination_;
  double position_bias_;  // η
  double noise_;
};

}  // namespace olrank
