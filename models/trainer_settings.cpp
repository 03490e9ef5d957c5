#include "models/trainer_settings.h"

namespace olrank {

const Schema& TrainerSettings::schema() {
  using S = TrainerSettings;
  static const Schema schema =
      SchemaBuilder<S>("ranker", "How parameters follow the collected pairs.")
          .field("optimizer", &S::optimizer, "the rule of a training step")
          .field("loss", &S::loss, "summed over pairs beside mλ/2·‖θ − θ₀‖², or their mean beside λ‖θ‖²")
          .field("learning_rate", &S::learning_rate,
                 "size of a step; of networks with `gd` or `nesterov` a share of the largest stable one, "
                 "at most 1")
          .symbol("η")
          .above(0)
          .field("learning_rate_decay", &S::learning_rate_decay, "factor on the step after each round")
          .above(0)
          .at_most(1)
          .field("steps", &S::steps,
                 "full-batch steps after a round that brought pairs; of linear rankers with confidence, "
                 "the most")
          .symbol("J")
          .at_least(1)
          .field("epochs", &S::epochs, "passes over the history where training goes by mini-batches")
          .at_least(1)
          .field("batch", &S::batch, "pairs of a mini-batch")
          .unit("pairs")
          .at_least(1)
          .field("stop_gradient_norm", &S::stop_gradient_norm,
                 "end a round's training below this gradient norm a pair; 0 takes every step")
          .at_least(0)
          .field("precision", &S::precision,
                 "products of training on a GPU: `tf32` rounds their factors to 10 bits, for speed")
          .build();
  return schema;
}

}  // namespace olrank
