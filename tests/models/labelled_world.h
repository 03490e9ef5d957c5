#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/online/click_model.h"
#include "tests/models/small_world.h"

namespace olrank {

/// A SmallWorld as a data set, whose grades rankers may be given.
class LabelledWorld : public SmallWorld {
 public:
  LabelledWorld(std::uint64_t seed, std::int64_t queries, std::int64_t docs, std::int64_t features)
      : SmallWorld(seed, queries, docs, features), data_(data_set(*this, docs)) {}

  LabelledQueries labels() const { return LabelledQueries(data_); }
  const Dataset& data() const { return data_; }

 private:
  struct Memory {
    std::vector<float> values;
    std::vector<std::uint8_t> grades;
    std::vector<std::int64_t> offsets = {0};
  };

  static Dataset data_set(const SmallWorld& world, std::int64_t docs) {
    auto memory = std::make_shared<Memory>();
    Dataset::Contents contents;
    for (std::int64_t number = 0; number < world.queries(); ++number) {
      const FeatureMatrix features = world.query(number).features;
      memory->values.insert(memory->values.end(), features.values,
                            features.values + docs * features.features);
      for (std::int32_t doc = 0; doc < docs; ++doc) memory->grades.push_back(world.grade(number, doc));
      memory->offsets.push_back(memory->offsets.back() + docs);
      contents.qids.push_back(std::to_string(number));
    }
    contents.values = memory->values;
    contents.grades = memory->grades;
    contents.offsets = memory->offsets;
    contents.features = world.features();
    contents.memory = memory;
    return Dataset(std::move(contents));
  }

  Dataset data_;
};

/// The same data with weights of queries, as many as there are, over and over.
inline Dataset weighted(const Dataset& data, const std::vector<float>& weights) {
  Dataset::Contents contents = data.contents();
  for (std::int64_t query = 0; query < data.queries(); ++query)
    contents.weights.push_back(weights[static_cast<std::size_t>(query) % weights.size()]);
  return Dataset(std::move(contents));
}

inline QueryDocs query_docs(const LabelledQueries& labels, std::int64_t query) {
  return {query, labels.data().offset(query), labels.data().features_of(query)};
}

}  // namespace olrank
