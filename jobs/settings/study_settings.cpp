#include "jobs/settings/study_settings.h"

namespace olrank {

const Schema& StudySettings::schema() {
  using S = StudySettings;
  static const Schema schema =
      SchemaBuilder<S>(
          "study", "The comparison that `olrank bench covariance` makes; other commands refuse this table.")
          .field("structures", &S::structures,
                 "covariances, `inducing-N` with N as the budget, and `ensemble-N`; each is compared with "
                 "`full`")
          .flag("structures")
          .field("widths", &S::widths, "network widths")
          .symbol("m")
          .at_least(1)
          .flag("widths")
          .field("depths", &S::depths, "network depths, in layers of weights")
          .at_least(2)
          .flag("depths")
          .field("noise_variances", &S::noise_variances, "ensemble noise variances; all combinations run")
          .symbol("ν²")
          .at_least(0)
          .flag("noise-variances")
          .field("alpha", &S::alpha,
                 "`given` uses the ranker's own α for every structure; `matched` chooses α so that each "
                 "structure is wrong as often as `full`; also `--alpha matched`")
          .field("calibration_rounds", &S::calibration_rounds,
                 "rounds per value of α, on queries of the validation set")
          .unit("rounds")
          .at_least(1)
          .field(
              "exact_widths", &S::exact_widths,
              "also maintain the full covariance in every trial, and compare widths and decisions with it")
          .field("exact_training", &S::exact_training,
                 "`full` trains on its whole history in every round that brings pairs, whatever `retrain` "
                 "says; the others follow `retrain`")
          .build();
  return schema;
}

}  // namespace olrank
