#include "sim/protocol_settings.h"

namespace olrank {

const Schema& ProtocolSettings::schema() {
  using S = ProtocolSettings;
  static const Schema schema =
      SchemaBuilder<S>("protocol", "How the rounds of a trial are played and evaluated.")
          .field("name", &S::name,
                 "the papers' text, or their authors' code; sets the defaults of other keys")
          .flag("protocol")
          .field("rounds", &S::rounds, "rounds of a trial")
          .symbol("T")
          .at_least(0)
          .at_most(4294967295.0)
          .flag("rounds")
          .field("cutoff", &S::cutoff, "documents shown in a round, and the k of NDCG@k")
          .symbol("k")
          .at_least(1)
          .flag("cutoff")
          .field("eval_every", &S::eval_every, "rounds between evaluations")
          .symbol("E")
          .unit("rounds")
          .at_least(1)
          .field("seeds", &S::seeds, "one trial for each, of each ranker, user and fold")
          .at_least(0)
          .flag("seeds")
          .field("empty_queries", &S::empty_queries,
                 "what a query without a relevant document counts in offline figures")
          .field("discount", &S::discount, "factor of the online figure from round to round")
          .symbol("γ")
          .above(0)
          .at_most(1)
          .field("cosine", &S::cosine,
                 "what evaluations compare the model with: nothing, or a linear RankNet trained on all "
                 "labels of the fold")
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
