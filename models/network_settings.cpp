#include "models/network_settings.h"

namespace olrank {

const Schema& NetworkSettings::schema() {
  using S = NetworkSettings;
  static const Schema schema =
      SchemaBuilder<S>("ranker", "The shape of the scoring function.")
          .field("network", &S::network, "the form of kinds that have both (pdgd, dbgd, mgd, ranknet)")
          .field("width", &S::width, "units of a hidden layer; even with `ntk`")
          .symbol("m")
          .at_least(1)
          .at_most(65536)
          .field("depth", &S::depth, "layers of weights: 2 is one hidden layer")
          .symbol("L")
          .at_least(2)
          .at_most(16)
          .field(
              "parameterisation", &S::parameterisation,
              "`ntk` scales by √m and starts at f = 0; `standard` has biases and the usual initialisation")
          .field("scaling", &S::scaling,
                 "`width` puts 1/m into the covariance and its widths, and m before λ in the loss; `none` "
                 "puts it nowhere")
          .field("initialisation", &S::initialisation,
                 "`symmetric` lets a `standard` network of even width start at f = 0, too, as two equal "
                 "halves of opposite sign")
          .build();
  return schema;
}

}  // namespace olrank
