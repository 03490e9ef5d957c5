#include "models/ranker_settings.h"

namespace olrank {
namespace {

bool is_linear(RankerKind kind) {
  return kind == RankerKind::kPairRank || kind == RankerKind::kP2LinRank;
}

/// Step sizes and radii that the literature gives to the methods without a posterior.
void set_bandit_defaults(RankerSettings& ranker, Interleaving interleaving) {
  switch (ranker.kind) {
    case RankerKind::kPdgd:
      ranker.network.network = NetworkForm::kLinear;
      ranker.trainer.learning_rate = 0.1;
      ranker.trainer.learning_rate_decay = 0.9999977;
      break;
    case RankerKind::kRankNet:
      ranker.network.network = NetworkForm::kLinear;
      ranker.trainer.learning_rate = 0.1;
      break;
    case RankerKind::kDbgd:
    case RankerKind::kMgd:
      ranker.network.network = NetworkForm::kLinear;
      ranker.trainer.learning_rate = 0.01;
      ranker.bandit.candidates = interleaving == Interleaving::kProbabilistic ? 49 : 9;
      break;
    case RankerKind::kLambdaRankLabels:
      // For a network of the default width, after 1,000 rounds of synth:mslr-like: 0.01 is too far.
      ranker.trainer.learning_rate = 0.003;
      break;
    case RankerKind::kRankNetOffline:
      // On synth:mslr-like the best of three for both forms: the decay steadies the last passes.
      ranker.trainer.optimizer = Optimizer::kAdam;
      ranker.trainer.learning_rate = 0.03;
      ranker.trainer.learning_rate_decay = 0.85;
      break;
    default:
      break;
  }
}

/// What the committed sweeps chose where neither papers nor their authors' code say anything:
/// docs/DEFAULTS.md.
void set_tuned_defaults(RankerSettings& ranker) {
  switch (ranker.kind) {
    case RankerKind::kPairRank:
      ranker.explore.alpha = 0.003;
      ranker.explore.c1 = 0.0003;
      ranker.explore.c2 = 0.1;
      ranker.explore.delta = 0.01;
      ranker.posterior.lambda = 100.0;
      break;
    case RankerKind::kP2LinRank:
      ranker.posterior.noise_variance = 0.003;
      ranker.posterior.lambda = 100.0;
      break;
    case RankerKind::kRankNet:
      ranker.trainer.learning_rate = 0.01;
      break;
    case RankerKind::kOlRankNet:
      ranker.explore.alpha = 0.03;
      break;
    case RankerKind::kP2NeurRank:
      ranker.posterior.lambda = 1.0;
      break;
    default:
      break;
  }
}

/// What the authors' published code does where it differs from the papers' text.
void set_reference_defaults(RankerSettings& ranker) {
  ranker.posterior.lambda = 0.1;
  ranker.explore.list = ListRule::kBlocks;
  ranker.explore.refine = true;
  ranker.feedback.pairs = PairRule::kMatched;
  ranker.network.parameterisation = Parameterisation::kStandard;
  ranker.network.scaling = WidthScaling::kNone;
  ranker.trainer.optimizer = Optimizer::kAdam;
  ranker.trainer.loss = LossForm::kMean;
  ranker.trainer.learning_rate = 0.1;
}

}  // namespace

RankerSettings RankerSettings::defaults(RankerKind kind, ProtocolName protocol, Interleaving interleaving) {
  RankerSettings ranker;
  ranker.kind = kind;
  if (is_linear(kind)) {
    ranker.network.network = NetworkForm::kLinear;
    ranker.trainer.steps = 50;
    ranker.trainer.stop_gradient_norm = 1e-6;
  }
  if (protocol == ProtocolName::kReference) set_reference_defaults(ranker);
  set_bandit_defaults(ranker, interleaving);
  if (protocol == ProtocolName::kPaper) set_tuned_defaults(ranker);
  return ranker;
}

const Schema& RankerSettings::schema() {
  using S = RankerSettings;
  static const Schema schema =
      SchemaBuilder<S>("ranker", "A ranker: a method and its settings; any number of these tables.")
          .repeated()
          .field("name", &S::name,
                 "name of the ranker and of the folder of its trials; must be unique; default: the kind")
          .field("kind", &S::kind, "ranking and learning method")
          .flag("ranker")
          .include(&S::network, NetworkSettings::schema())
          .include(&S::posterior, PosteriorSettings::schema())
          .include(&S::explore, ExplorationSettings::schema())
          .include(&S::feedback, PairSettings::schema())
          .include(&S::trainer, TrainerSettings::schema())
          .include(&S::bandit, BanditSettings::schema())
          .build();
  return schema;
}

CertaintyPolicy certainty_policy(const RankerSettings& settings) {
  const ExplorationSettings& explore = settings.explore;
  CertaintyPolicy policy{explore.alpha, explore.slack, std::nullopt};
  if (explore.alpha_schedule == AlphaSchedule::kTheory) {
    policy.theory = {explore.c1, explore.c2, explore.delta, explore.noise_subgaussian,
                     settings.posterior.lambda};
  }
  return policy;
}

}  // namespace olrank
