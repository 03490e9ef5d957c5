#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/data/dataset.h"
#include "core/metrics/metric_options.h"
#include "core/runtime/execution_context.h"

namespace olrank {

/// What `olrank eval` was asked: a ranking made elsewhere, to be judged on one part of a data set.
struct EvalRequest {
  std::string data;  // as the user named it
  std::int64_t fold = 1;
  std::string part = "test";
  std::filesystem::path scores;  // one of these two
  std::filesystem::path run;
  std::filesystem::path per_query;  // empty: none
  Convention convention = Convention::kOlrank;
  std::vector<std::string> overrides;  // flags that departed from the convention
  MetricOptions metrics;
};

/// Reads the ranking, judges it on `data`, writes the file of single queries if one is asked for, and
/// returns the table for people or, with `json`, one JSON object.
std::string answer_eval(const EvalRequest& request, const Dataset& data, bool json,
                        ExecutionContext& context);

}  // namespace olrank
