#pragma once

#include <vector>

#include "core/online/click_model.h"

namespace olrank {

/// P(click), P(satisfied) by grade and P(go on) of a user.
struct DynamicBayesianTable {
  std::vector<double> attraction;    // a: P(click | examined, grade)
  std::vector<double> satisfaction;  // s: P(satisfied | clicked, grade); empty: never satisfied
  double perseverance = 0.9;         // γ: P(next rank examined | not satisfied)
};

/// Dynamic Bayesian network model (Chapelle and Zhang, "A dynamic Bayesian network click model for web
/// search ranking", WWW 2009): scans from the top and clicks what attracts; a clicked document may satisfy,
/// which ends the scan; after any other document the user goes on with probability γ. With γ = 1 this is
/// the dependent click model whose stops follow clicks.
class DynamicBayesianClickModel : public ClickModel {
 public:
  /// `noise` flips the click of an examined document. The table covers every grade of the data.
  DynamicBayesianClickModel(DynamicBayesianTable table, double noise);

  void click(QueryGrades grades, std::span<const std::int32_t> shown, PhiloxKey key, std::uint32_t round,
             ClickLog& log) const override;
  std::optional<ExaminationLaw> examination_law(std::int64_t ranks) const override;

 private:
  DynamicBayesianTable table_;
  double noise_;
};

}  // namespace olrank
