#include "apps/study_settings.h"

namespace olrank {

const Schema& StudySettings::schema() {
  using S = StudySettings;
  static const Schema schema =
      SchemaBuilder<S>("study", "What `olrank bench covariance` compares; other commands have none.")
          .field("structures", &S::structures,
                 "`full`, `diagonal`, `diagonal-of-inverse`, `none` or `ensemble-N`; each against `full`")
          .flag("structures")
          .field("widths", &S::widths, "widths of the networks")
          .symbol("m")
          .at_least(1)
          .flag("widths")
          .field("depths", &S::depths, "layers of weights")
          .at_least(2)
          .flag("depths")
          .field("noise_variances", &S::noise_variances, "of the ensembles; each with each")
          .symbol("ν²")
          .at_least(0)
          .flag("noise-variances")
          .field(
              "alpha", &S::alpha,
              "the ranker's own α in every structure, or the α at which each is as often wrong as `full`; "
              "also `--alpha matched`")
          .field("calibration_alphas", &S::calibration_alphas, "values that `matched` tries")
          .above(0)
          .field("calibration_rounds", &S::calibration_rounds,
                 "rounds of each try, on queries of the validation part")
          .unit("rounds")
          .at_least(1)
          .field("exact_widths", &S::exact_widths,
                 "keep the full covariance beside the others and compare widths and decisions with it")
          .build();
  return schema;
}

}  // namespace olrank
