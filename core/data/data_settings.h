#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/settings/enum_names.h"
#include "core/settings/schema.h"

namespace olrank {

enum class Normalisation { kNone, kQueryMinmax, kZscore, kLog1pZscore };
/// How features lie in memory: with their zeros, without them, or as their number and share of zeros
/// suggest.
enum class FeatureLayout { kAuto, kDense, kSparse };
enum class EvaluationPart { kTest, kVali };

/// Which data a run trains on and is evaluated on.
struct DataSettings {
  std::string source;
  std::string train;
  std::string vali;
  std::string test;
  std::vector<std::int64_t> folds = {1};
  Normalisation normalise = Normalisation::kQueryMinmax;
  EvaluationPart evaluate = EvaluationPart::kTest;
  bool drop_constant = false;
  std::string cache = "auto";
  std::string max_memory = "auto";
  FeatureLayout layout = FeatureLayout::kAuto;
  bool weights = false;  // of the training part are read; no setting of users

  static const Schema& schema();
};

template <>
struct EnumNames<Normalisation> {
  static constexpr std::array values =
      names_in_order<Normalisation>("none", "query-minmax", "zscore", "log1p-zscore");
};

template <>
struct EnumNames<FeatureLayout> {
  static constexpr std::array values = names_in_order<FeatureLayout>("auto", "dense", "sparse");
};

template <>
struct EnumNames<EvaluationPart> {
  static constexpr std::array values = names_in_order<EvaluationPart>("test", "vali");
};

}  // namespace olrank
