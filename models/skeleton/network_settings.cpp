#include "models/skeleton/network_settings.h"

namespace olrank {

const Schema& NetworkSettings::schema() {
  using S = NetworkSettings;
  static const Schema schema =
      SchemaBuilder<S>("ranker", "The shape of the scoring function.")
          .field("network", &S::network,
                 "linear model or neural network, for kinds that support both (pdgd, prpo, "
                 "intervention-aware, dbgd, mgd, ranknet); `module` is a LibTorch module")
          .field("module", &S::module,
                 "the LibTorch module: relu, residual, layernorm, attention (which reads whole lists), a "
                 "registered name, or a TorchScript file FILE.pt")
          .field("module_state", &S::module_state,
                 "`refuse` rejects a module that changes its buffers or attributes when it scores; `reset` "
                 "accepts the module and restores its first state before each call")
          .field("activation", &S::activation, "activation function between the layers of a module")
          .field("width", &S::width, "units per hidden layer; must be even with `ntk` or `symmetric`")
          .symbol("m")
          .at_least(1)
          .at_most(65536)
          .field("depth", &S::depth, "layers of weights; 2 means one hidden layer")
          .symbol("L")
          .at_least(2)
          .at_most(16)
          .field("parameterisation", &S::parameterisation,
                 "`ntk` scales the output by √m and starts at f = 0; `standard` has biases and the usual "
                 "initialisation")
          .field("scaling", &S::scaling,
                 "`width` puts the factor 1/m into the covariance and its widths, and m before λ in the "
                 "loss; `none` omits both")
          .field("initialisation", &S::initialisation,
                 "`symmetric` makes a `standard` network of even width start at f = 0, as two equal halves "
                 "of opposite sign")
          .build();
  return schema;
}

}  // namespace olrank
