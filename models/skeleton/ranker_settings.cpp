#include "models/skeleton/ranker_settings.h"

namespace olrank {
namespace {

/// Where the authors' published code differs from the papers' text.
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

RankerKind RankerSettings::default_kind(ProtocolName protocol) {
  return protocol == ProtocolName::kRecommended ? RankerKind::kClickGp : RankerKind::kOlRankNet;
}

RankerSettings RankerSettings::defaults(RankerKind kind, ProtocolName protocol) {
  RankerSettings chosen;
  chosen.kind = kind;
  return defaults(chosen, protocol);
}

RankerSettings RankerSettings::defaults(const RankerSettings& chosen, ProtocolName protocol) {
  RankerSettings ranker;
  ranker.kind = chosen.kind;
  if (protocol == ProtocolName::kReference) set_reference_defaults(ranker);
  const RankerKindRow& row = row_of(chosen.kind);
  // The authors' code draws new parameters at each update.
  if (protocol == ProtocolName::kReference && row.training == Training::kHistory)
    ranker.trainer.restart = Restart::kFresh;
  if (row.forms == ModelForms::kLinear) ranker.network.network = NetworkForm::kLinear;
  if (row.set_defaults != nullptr) row.set_defaults(ranker, {protocol, chosen});
  return ranker;
}

const Schema& RankerSettings::schema() {
  using S = RankerSettings;
  static const Schema schema =
      SchemaBuilder<S>("ranker", "A ranker: a method and its settings; any number of these tables.")
          .repeated()
          .field("name", &S::name,
                 "name of the ranker and of the folder of its trials; must be unique; default: the kind")
          .field("kind", &S::kind,
                 "ranking and learning method; as a flag also several, `--ranker pairrank,pdgd`, where the "
                 "file has no `[[ranker]]`, or the names of those to run where it has them")
          .flag("ranker")
          .field("start_from", &S::start_from,
                 "a model that the ranker starts from: a model file, or the folder of a trial or a "
                 "training; the ranker takes the model's network")
          .field("trust_code", &S::trust_code,
                 "whether the model that the ranker or the service starts from may contain a TorchScript "
                 "module, whose code can read and write your files")
          .field("own", &S::own,
                 "of a program that brings a ranker of its own: its registered name, if that is not "
                 "`name`, and parameters for it, `NAME(PARAMETERS)`")
          .include(&S::network, NetworkSettings::schema())
          .include(&S::posterior, PosteriorSettings::schema())
          .include(&S::explore, ExplorationSettings::schema())
          .include(&S::feedback, PairSettings::schema())
          .include(&S::trainer, TrainerSettings::schema())
          .include(&S::bandit, BanditSettings::schema())
          .include(&S::fair, FairSettings::schema())
          .include(&S::click, ClickGpSettings::schema())
          .build();
  return schema;
}

bool is_left_out_of_recipe(const RankerSettings& ranker, std::string_view key) {
  if (key == "restart") {
    const bool by_batches =
        row_of(ranker.kind).training == Training::kHistory && ranker.trainer.loss == LossForm::kMean;
    return ranker.trainer.restart == (by_batches ? Restart::kFirst : Restart::kWarm);
  }
  if (key == "own") return ranker.own.empty();
  if (key == "observe_at") return ranker.posterior.observe_at == ObserveAt::kBefore;
  if (key == "debias") return ranker.feedback.debias.empty();
  if (key == "examined_after") return ranker.feedback.examined_after == 1;
  if (key == "prior_noise") return !ranker.posterior.prior_noise;
  if (key == "explore_floor") return ranker.click.explore_floor == 0.0;
  if (ClickGpSettings::schema().find(key) != nullptr) return ranker.kind != RankerKind::kClickGp;
  return ranker.fair.fair == Fairness::kNone && FairSettings::schema().find(key) != nullptr;
}

CertaintyPolicy certainty_policy(const RankerSettings& settings) {
  const ExplorationSettings& explore = settings.explore;
  CertaintyPolicy policy{explore.alpha, std::nullopt};
  if (explore.alpha_schedule == AlphaSchedule::kTheory) {
    policy.theory = {explore.c1, explore.c2, explore.delta, settings.posterior.lambda};
  }
  return policy;
}

const Schema& BanditSettings::schema() {
  using S = BanditSettings;
  static const Schema schema =
      SchemaBuilder<S>("ranker", "Exploration of the rankers without a posterior.")
          .field("exploration", &S::exploration, "exploration of `ranknet`")
          .field("epsilon", &S::epsilon,
                 "probability of a random document at each rank of an ε-greedy list; must be above 0 with "
                 "ε-greedy exploration",
                 {0, 1})
          .field("exploration_radius", &S::exploration_radius,
                 "distance of a candidate from the current weights (dbgd, mgd)", above(0))
          .symbol("δ")
          .field("interleaving", &S::interleaving, "how candidates are interleaved (dbgd, mgd)")
          .field("candidates", &S::candidates, "candidates per round (mgd)", {1})
          .build();
  return schema;
}

const Schema& ClickGpSettings::schema() {
  using S = ClickGpSettings;
  static const Schema schema =
      SchemaBuilder<S>("ranker", "The click model of kind clickgp.")
          .field("terms", &S::terms,
                 "the models that explain clicks: `linear` is a linear model alone; `additive` puts an "
                 "additive model beside the linear one and weights both by how well they predict clicks, "
                 "which costs more with many features; `products` adds to the additive model those "
                 "products of two features of which the clicks leave no doubt")
          .field("memory_limit", &S::memory_limit,
                 "memory for the documents that were shown; beyond it, the ranker forgets the queries "
                 "asked least recently and keeps the model that they taught; 0 sets no limit",
                 {0})
          .unit("MB")
          .field("forget", &S::forget,
                 "lists after which clicks count half, for users who change their minds; 0 keeps all", {0})
          .unit("lists")
          .field(
              "explore_floor", &S::explore_floor,
              "probability of a random document at each rank, so that every list has a chance and `olrank "
              "ope` can judge other rankers by the log; 0 leaves exploration to what is uncertain",
              below(0, 1))
          .build();
  return schema;
}

}  // namespace olrank
