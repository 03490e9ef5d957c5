#include "sim/protocol_settings.h"

namespace olrank {

const Schema& ProtocolSettings::schema() {
  using S = ProtocolSettings;
  static const Schema schema =
      SchemaBuilder<S>("protocol", "How trials are run and evaluated.")
          .field("name", &S::name,
                 "`recommended` has the settings that serve best, `paper` follows the papers' text, "
                 "`reference` their authors' code; sets the defaults of other keys")
          .flag("protocol")
          .field("rounds", &S::rounds, "rounds per trial")
          .symbol("T")
          .at_least(0)
          .at_most(4294967295.0)
          .flag("rounds")
          .field("cutoff", &S::cutoff, "documents shown per round; also the k of NDCG@k")
          .symbol("k")
          .at_least(1)
          .flag("cutoff")
          .field("eval_every", &S::eval_every, "rounds between evaluations")
          .symbol("E")
          .unit("rounds")
          .at_least(1)
          .flag("eval-every")
          .field("seeds", &S::seeds, "seeds; one trial per seed, ranker, user and fold")
          .at_least(0)
          .flag("seeds")
          .field(
              "empty_queries", &S::empty_queries,
              "how queries without relevant documents count in offline metrics: as 0, as 1, or not at all")
          .field("discount", &S::discount, "discount factor per round of the online metric, cNDCG")
          .symbol("γ")
          .above(0)
          .at_most(1)
          .field("cosine", &S::cosine,
                 "`offline` reports the model's cosine similarity to a linear RankNet trained on all "
                 "labels of the fold")
          .field("metrics", &S::metrics,
                 "further offline metrics of every evaluation: `ndcg@K`, `dcg@K`, `err@K`, `p@K`, `map`, "
                 "`map@K`, `mrr`, `mrr@K`, `arp`, `pair_accuracy`")
          .flag("metrics")
          .build();
  return schema;
}

ProtocolSettings ProtocolSettings::defaults(ProtocolName name) {
  ProtocolSettings settings;
  settings.name = name;
  if (name == ProtocolName::kReference) settings.empty_queries = EmptyQueries::kSkip;
  return settings;
}

}  // namespace olrank
