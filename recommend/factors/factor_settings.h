#pragma once

#include <cstdint>

#include "core/settings/schema.h"

namespace olrank {

/// Factorisations: mter, mter-s, mter-sa, efm, bprmf and nmf. Which kind reads which is in the table of
/// kinds. Jia, PhD thesis, UVA 2022, prints no values of MTER's; c, d, the cores' step, λ_F and λ_B were
/// chosen by validation on the generator's default reviews, docs/RECOMMEND.md.
struct FactorSettings {
  std::int64_t dimension = 20;
  std::int64_t user_dimension = 15;     // a
  std::int64_t item_dimension = 15;     // b
  std::int64_t feature_dimension = 15;  // c
  std::int64_t phrase_dimension = 15;   // d
  double learning_rate = 0.1;
  double core_learning_rate = 0.0001;
  double factor_penalty = 0.3;        // λ_F
  double core_penalty = 0.01;         // λ_G
  double pair_weight = 2.0;           // λ_B
  std::int64_t batch = 4096;          // entries drawn from each tensor
  std::int64_t pairs = 24576;         // N_BPR
  double penalty = 0.1;               // λ of nmf, efm and bprmf
  double user_feature_weight = 0.05;  // λ_x of efm
  double item_feature_weight = 0.05;  // λ_y of efm
  std::int64_t hidden_dimension = 20;
  std::int64_t matched_features = 15;
  double feature_share = 0.85;

  static const Schema& schema();
};

}  // namespace olrank
