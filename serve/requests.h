#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "serve/feedback_record.h"
#include "serve/impressions.h"

namespace olrank {

struct RequestLimits {
  std::int64_t docs = 1000;      // of one request
  std::int64_t features = 136;   // each document has exactly so many
  std::int64_t cutoff = 10;      // k where a request does not say
  std::size_t text_bytes = 256;  // of a query's or document's id
};

/// POST /v1/rank. Memory is kept from request to request.
struct RankRequest {
  std::string query;
  std::vector<DocId> docs;
  std::vector<float> values;  // [docs × features], as they came
  std::int64_t cutoff = 0;
  bool explore = true;
};

/// POST /v1/feedback.
struct FeedbackRequest {
  std::string impression;
  std::vector<Impressions::Click> clicks;
};

/// Both throw ApiError, which names the field, for whatever is not as it should be.
void parse_rank_request(std::string_view body, const RequestLimits& limits, RankRequest& request);
FeedbackRequest parse_feedback_request(std::string_view body, const RequestLimits& limits);

}  // namespace olrank
