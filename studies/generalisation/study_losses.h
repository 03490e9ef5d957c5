#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/ops/list_loss.h"
#include "core/random/rng_stream.h"

namespace olrank {

/// W of experiments A, B and C.
inline constexpr double kStudyRadius = 5.0;

/// Every draw of the study is for one of these; it is part of the key.
enum class StudyDraw : std::uint64_t {
  kSample = 1,
  kTwin = 2,
  kHeldOut = 3,
  kRealLists = 4,
  kPopulation = 5,
  kChoice = 6,
  kOrder = 7,
};

/// Lists of all lengths share their draws: the first documents of a long list are the short one's.
PhiloxKey study_key(std::int64_t seed, StudyDraw draw);

struct StudyLoss {
  std::string name;  // "ranksvm-mean" is divided by the query's pairs, "smooth-dcg-10" is at k = 10
  ListLossForm form;
};

/// By name; throws for an unknown one.
StudyLoss study_loss(const std::string& name, int most_grade);
/// The losses of experiments A and B.
std::vector<StudyLoss> list_length_losses(int most_grade);

}  // namespace olrank
