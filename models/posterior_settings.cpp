#include "models/posterior_settings.h"

namespace olrank {

const Schema& PosteriorSettings::schema() {
  using S = PosteriorSettings;
  static const Schema schema =
      SchemaBuilder<S>("ranker", "What is known about the parameters: a covariance, or an ensemble.")
          .field("covariance", &S::covariance, "the structure of the covariance")
          .field("form", &S::form,
                 "how the full covariance is kept: by pairs, by parameters, or as it pays")
          .field("shadow", &S::shadow,
                 "`full` keeps the exact covariance beside a network's own, unused, and compares their "
                 "widths (olranknet, ollambdarank with another covariance)")
          .field("lambda", &S::lambda, "weight of the prior in loss and covariance")
          .symbol("λ")
          .above(0)
          .field("members", &S::members, "members of an ensemble")
          .symbol("N")
          .at_least(1)
          .at_most(1024)
          .field("noise_variance", &S::noise_variance, "variance of an ensemble's label noise")
          .symbol("ν²")
          .at_least(0)
          .field("member_schedule", &S::member_schedule,
                 "train members in streams side by side or as one batch, or as measures faster")
          .build();
  return schema;
}

}  // namespace olrank
