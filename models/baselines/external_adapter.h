#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "models/baselines/external_ranker.h"
#include "models/skeleton/ranker_settings.h"

namespace olrank {

/// It stands in model files, which hold nothing of such a ranker but where it comes from; none is read.
constexpr std::string_view kExternalArchitecture = "external";

/// A ranker that a program has registered.
struct RegisteredRanker {
  std::string description;
  ExternalRankerFactory factory;
};

/// Throws InvalidArgument if no ranker has this name.
RegisteredRanker registered_ranker(const std::string& name);

std::unique_ptr<OnlineRanker> make_external(const RankerRequest& request);

}  // namespace olrank
