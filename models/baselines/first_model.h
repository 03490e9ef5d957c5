#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "core/online/online_ranker.h"
#include "models/skeleton/belief.h"
#include "models/skeleton/ranker_settings.h"

namespace olrank {

/// A scoring function with its first parameters: those of the model to start from, else drawn.
struct FirstModel {
  std::unique_ptr<ScoreModel> model;
  std::vector<float> theta;  // empty: zeros
};

FirstModel first_model(const RankerRequest& request);

/// A ranker that follows a gradient or tries neighbours of θ. `more` are further arguments of its
/// constructor.
template <class Ranker, class... More>
std::unique_ptr<OnlineRanker> make_on_first_model(const RankerRequest& request, const More&... more) {
  FirstModel first = first_model(request);
  return std::make_unique<Ranker>(std::move(first.model), request.settings, request.keys,
                                  std::move(first.theta), more...);
}

}  // namespace olrank
