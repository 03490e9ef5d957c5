#include "models/skeleton/trainer_settings.h"

namespace olrank {

const Schema& TrainerSettings::schema() {
  using S = TrainerSettings;
  static const Schema schema =
      SchemaBuilder<S>("ranker", "How the parameters are trained on the collected pairs.")
          .field("optimizer", &S::optimizer, "update rule of a training step")
          .field("loss", &S::loss,
                 "`sum`: cross-entropy summed over pairs, plus mλ/2·‖θ − θ₀‖²; `mean`: mean cross-entropy, "
                 "plus λ‖θ‖²")
          .field("restart", &S::restart,
                 "where a training on the whole history starts: `warm` at the current parameters, `first` "
                 "at the first ones, θ₀, `fresh` at new parameters in each round; `lambdarank-labels` "
                 "has the first two")
          .field("learning_rate", &S::learning_rate,
                 "step size; for networks with `gd` or `nesterov`, a fraction (at most 1) of the largest "
                 "stable step")
          .symbol("η")
          .above(0)
          .field("learning_rate_decay", &S::learning_rate_decay,
                 "factor applied to the step size after each training; for rankers that take one step a "
                 "round, after each round that took one")
          .above(0)
          .at_most(1)
          .field("steps", &S::steps,
                 "full-batch steps after each round that yields pairs; for pairrank and p2linrank, the "
                 "maximum; for lambdarank-labels, mini-batches after each round")
          .symbol("J")
          .at_least(1)
          .field("epochs", &S::epochs, "passes over the history when training uses mini-batches")
          .at_least(1)
          .field("batch", &S::batch,
                 "pairs per mini-batch; queries for rankers that learn from true grades")
          .at_least(1)
          .field("training_kernel", &S::training_kernel,
                 "how a GPU takes the steps of full-batch training: `persistent` in one kernel that keeps "
                 "the documents in shared memory, `recorded` as a recorded graph of kernels, `auto` as "
                 "`persistent` wherever that is possible")
          .field("retrain", &S::retrain,
                 "when the ranker trains on its whole history: in every round that brings pairs (an "
                 "ensemble in every round), or once the history has grown by `retrain_growth`, with steps "
                 "on a sample in the rounds between")
          .field("retrain_growth", &S::retrain_growth,
                 "share by which the pairs, or the distinct ones among them, grow between two trainings on "
                 "the whole history")
          .above(0)
          .at_most(1)
          .field("replay_steps", &S::replay_steps,
                 "steps in each round between two trainings on the whole history, on the round's own pairs "
                 "and on pairs drawn from the history; 0 waits for the next training")
          .at_least(0)
          .field("replay", &S::replay, "pairs that each round between two trainings draws from the history")
          .only_flag("replay-pairs")
          .unit("pairs")
          .at_least(1)
          .build();
  return schema;
}

}  // namespace olrank
