#include "models/skeleton/network_settings.h"

#include <cmath>

namespace olrank {

const Schema& NetworkSettings::schema() {
  using S = NetworkSettings;
  static const Schema schema =
      SchemaBuilder<S>("ranker", "The shape of the scoring function.")
          .field("network", &S::network,
                 "linear model or neural network, for kinds that support both (pdgd, dbgd, mgd, ranknet); "
                 "`module` is a LibTorch module")
          .field("module", &S::module,
                 "the LibTorch module: relu, residual, layernorm, attention (which reads whole lists), a "
                 "registered name, or a TorchScript file FILE.pt")
          .field("activation", &S::activation, "activation function between the layers of a module")
          .field("width", &S::width, "units per hidden layer; must be even with `ntk` or `symmetric`",
                 {1, 65536})
          .symbol("m")
          .field("depth", &S::depth, "layers of weights; 2 means one hidden layer", {2, 16})
          .symbol("L")
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

NetworkShape network_shape(const NetworkSettings& settings, std::int64_t inputs) {
  if (settings.network == NetworkForm::kLinear) return linear_shape(inputs);
  if (settings.parameterisation == Parameterisation::kNtk) {
    return ntk_shape(inputs, settings.width, settings.depth);
  }
  return standard_shape(inputs, settings.width, settings.depth);
}

double output_scale_of(const NetworkSettings& settings) {
  const bool is_ntk = settings.parameterisation == Parameterisation::kNtk;
  return is_ntk ? std::sqrt(static_cast<double>(settings.width)) : 1.0;
}

Initialisation initialisation_of(const NetworkSettings& settings) {
  const bool symmetric =
      settings.network != NetworkForm::kLinear && (settings.parameterisation == Parameterisation::kNtk ||
                                                   settings.initialisation == FirstDraw::kSymmetric);
  return symmetric ? Initialisation::kSymmetric : Initialisation::kUniform;
}

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
                 "stable step",
                 above(0))
          .symbol("η")
          .field("learning_rate_decay", &S::learning_rate_decay,
                 "factor applied to the step size after each training; for rankers that take one step a "
                 "round, after each round that took one",
                 above(0, 1))
          .field("steps", &S::steps,
                 "full-batch steps after each round that yields pairs; for pairrank and p2linrank, the "
                 "maximum; for lambdarank-labels, mini-batches after each round",
                 {1})
          .symbol("J")
          .field("epochs", &S::epochs, "passes over the history when training uses mini-batches", {1})
          .field("batch", &S::batch,
                 "pairs per mini-batch; queries for rankers that learn from true grades", {1})
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
                 "the whole history",
                 above(0, 1))
          .field("replay_steps", &S::replay_steps,
                 "steps in each round between two trainings on the whole history, on the round's own pairs "
                 "and on pairs drawn from the history; 0 waits for the next training",
                 {0})
          .field("replay", &S::replay, "pairs that each round between two trainings draws from the history",
                 {1})
          .only_flag("replay-pairs")
          .unit("pairs")
          .build();
  return schema;
}

}  // namespace olrank
