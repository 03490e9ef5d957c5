#pragma once

#include <cstdint>
#include <vector>

#include "recommend/training_data.h"

namespace olrank {

/// A tensor as a list of its entries, by feature, then row, then column.
struct SparseTensor {
  std::vector<std::int32_t> row;
  std::vector<std::int32_t> column;
  std::vector<std::int32_t> feature;
  std::vector<float> value;

  std::int64_t size() const { return std::ssize(value); }
};

/// The three tensors of MTER. Jia, PhD thesis, UVA 2022, §4.1.2. Entries that are 0 in the paper are
/// missing here: they mean "not mentioned".
struct MterTensors {
  SparseTensor preferences;   // X̃: user, item, feature; the last feature is the overall rating
  SparseTensor user_phrases;  // Y^U: user, phrase, feature
  SparseTensor item_phrases;  // Y^I: item, phrase, feature
};

MterTensors make_mter_tensors(const TrainingData& data);

/// X̃_ijk of the sum ŝ of sentiments: 1 + (N − 1)/(1 + e^{−ŝ}). Eq. (4.1.1).
double preference_value(double sentiments, double highest_rating);
/// Y of how often a phrase was used as praise: 1 + (N − 1)(2/(1 + e^{−Γ}) − 1). Eqs. (4.1.6), (4.1.7).
double phrase_value(double uses, double highest_rating);

}  // namespace olrank
