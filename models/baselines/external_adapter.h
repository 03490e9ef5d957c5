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
  std::string parameters = {};  // of `own`
};

/// The ranker of a setting `own`; where that is empty, of this name. Throws InvalidArgument if none has it.
RegisteredRanker registered_ranker(const std::string& name, const std::string& own);

std::unique_ptr<OnlineRanker> make_external(const RankerRequest& request);

}  // namespace olrank
