#include "models/posterior/posterior_settings.h"

namespace olrank {

const Schema& PosteriorSettings::schema() {
  using S = PosteriorSettings;
  static const Schema schema =
      SchemaBuilder<S>("ranker", "What is known about the parameters: a covariance or an ensemble.")
          .field("covariance", &S::covariance,
                 "structure of the covariance: `full` is exact, `inducing` exact on `budget` observed "
                 "pairs and careful elsewhere, `diagonal` within each parameter, `none` has no widths; "
                 "docs/BENCHMARKS.md compares them")
          .field("form", &S::form,
                 "representation of the full covariance: `dual` over pairs, `primal` over parameters, "
                 "`auto` whichever is cheaper")
          .one_of({"auto", "dual", "primal"})
          .field("budget", &S::budget, "pairs that stand for all observed ones in the inducing covariance")
          .symbol("D")
          .unit("pairs")
          .at_least(1)
          .at_most(65536)
          .field("shadow", &S::shadow,
                 "`full` also maintains an exact full covariance, which decides nothing, and compares its "
                 "widths with the ranker's (olranknet and ollambdarank with another covariance)")
          .field("observe_at", &S::observe_at,
                 "parameters at which a round's pairs enter the covariance: those `before` the round's "
                 "training, which made the list, or those `after` the training, which cost another pass "
                 "over the query's documents")
          .field("lambda", &S::lambda, "strength of the prior in loss and covariance")
          .symbol("λ")
          .above(0)
          .field("members", &S::members, "ensemble size")
          .symbol("N")
          .at_least(1)
          .at_most(1024)
          .field("noise_variance", &S::noise_variance, "variance of the label noise in an ensemble")
          .symbol("ν²")
          .at_least(0)
          .field(
              "prior_noise", &S::prior_noise,
              "whether a member's prior is perturbed like its labels: its centre is drawn around θ₀ with "
              "variance ν²/(mλ), again for each training on the whole history")
          .build();
  return schema;
}

}  // namespace olrank
