#include "recommend/factors/factor_settings.h"

namespace olrank {

const Schema& FactorSettings::schema() {
  static const Schema schema =
      SchemaBuilder<FactorSettings>("recommend", "Factorisations.")
          .field("dimension", &FactorSettings::dimension,
                 "length of the latent vectors of nmf, bprmf, mter-s, mter-sa and the trees, and of efm's "
                 "explicit ones")
          .symbol("d")
          .at_least(1)
          .at_most(1024)
          .field("user_dimension", &FactorSettings::user_dimension, "length of a user's vector in mter")
          .symbol("a")
          .at_least(1)
          .at_most(64)
          .field("item_dimension", &FactorSettings::item_dimension, "length of an item's vector in mter")
          .symbol("b")
          .at_least(1)
          .at_most(64)
          .field("feature_dimension", &FactorSettings::feature_dimension,
                 "length of a feature's vector in mter")
          .symbol("c")
          .at_least(1)
          .at_most(64)
          .field("phrase_dimension", &FactorSettings::phrase_dimension,
                 "length of a phrase's vector in mter")
          .symbol("d")
          .at_least(1)
          .at_most(64)
          .field("learning_rate", &FactorSettings::learning_rate, "step of AdaGrad")
          .above(0)
          .at_most(10)
          .field("core_learning_rate", &FactorSettings::core_learning_rate,
                 "step of AdaGrad for mter's cores")
          .at_least(0)
          .at_most(10)
          .field("factor_penalty", &FactorSettings::factor_penalty,
                 "weight of the squared factors, as a mean over their rows")
          .symbol("λ_F")
          .at_least(0)
          .field("core_penalty", &FactorSettings::core_penalty, "weight of the squared cores, as a mean")
          .symbol("λ_G")
          .at_least(0)
          .field("pair_weight", &FactorSettings::pair_weight,
                 "weight of the loss of pairs, as a mean, against the tensors' mean squared errors")
          .symbol("λ_B")
          .at_least(0)
          .field("batch", &FactorSettings::batch, "entries that a step draws from each tensor")
          .at_least(1)
          .at_most(1 << 20)
          .field("pairs", &FactorSettings::pairs, "pairs of items that a step draws")
          .symbol("N_BPR")
          .at_least(1)
          .at_most(1 << 20)
          .field("penalty", &FactorSettings::penalty, "weight of the squared factors of nmf and efm")
          .at_least(0)
          .field("user_feature_weight", &FactorSettings::user_feature_weight,
                 "weight of the features that users mention in efm")
          .symbol("λ_x")
          .at_least(0)
          .field("item_feature_weight", &FactorSettings::item_feature_weight,
                 "weight of the opinions about items in efm")
          .symbol("λ_y")
          .at_least(0)
          .field("hidden_dimension", &FactorSettings::hidden_dimension,
                 "length of efm's latent vectors that explain ratings alone")
          .at_least(0)
          .at_most(1024)
          .field("matched_features", &FactorSettings::matched_features,
                 "number of features by which efm ranks, those that get most of a user's attention")
          .at_least(1)
          .field("feature_share", &FactorSettings::feature_share,
                 "share of the `matched_features` in efm's score; the rest is the predicted rating")
          .at_least(0)
          .at_most(1)
          .build();
  return schema;
}

}  // namespace olrank
