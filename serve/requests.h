#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/fair/exposure.h"
#include "core/feedback/feedback_record.h"
#include "serve/document_store.h"
#include "serve/feature_counters.h"
#include "serve/feature_schema.h"
#include "serve/impression_file.h"

namespace olrank {

/// Where a hit of a search answer has the features that do not come from its feature log.
struct HitOrigins {
  /// The path of a number in a hit, such as _source.price, or matched: and a query's name, with the
  /// feature.
  std::unordered_map<std::string, std::int64_t> places;
  /// kMaybe is 0 where the hit does not have it, and no hit has a kCounter.
  enum Kind : char { kLog, kNumber, kMaybe, kCounter };
  std::vector<Kind> kinds;  // [features]; empty: the log has them all
  std::size_t longest = 0;  // path
};
/// Returns where the = before the origin stands in NAME=ORIGIN; npos for a name alone, which may have one.
std::size_t find_origin(std::string_view text);
/// Reads `origins`, NAME=ORIGIN each, for features with these indices. Throws InvalidArgument for another
/// origin than _score, _source.PATH, fields.PATH, each maybe with a question mark behind it, and
/// matched:NAME.
HitOrigins parse_hit_origins(const std::vector<std::string>& origins,
                             const std::unordered_map<std::string, std::int64_t>& names);

struct RequestLimits {
  std::int64_t docs = 1000;      // most per request
  std::int64_t features = 136;   // exact count per document
  std::int64_t cutoff = 10;      // default k
  std::size_t text_bytes = 256;  // longest query or document ID
  /// Most features of all documents together. Without it, a sparse document of ten bytes would take the
  /// memory of all features.
  std::size_t values = 8'000'000;
  std::size_t groups = 0;       // of which each document has one; 0: none
  std::int64_t most_ranks = 0;  // largest k; 0: any
  bool incumbent = false;       // each request has the caller's own order
  bool window = false;          // feedback may have events
  bool normalise_query = false;
  std::unordered_map<std::string, std::int64_t>
      names{};  // of the features, with their indices; may be empty
  HitOrigins origins{};
  std::shared_ptr<const FeatureSchema> schema{};  // what requests send in place of features; may be null
  const DocumentStore* documents = nullptr;       // that requests may name by their IDs alone
  /// Tells the schema that takes the place of this one, or had its place before; requests may be written
  /// for it.
  std::function<std::shared_ptr<const FeatureSchema>()> other_schema{};
  const FeatureCounters* counters = nullptr;  // of a schema that has some

  /// Names a feature as requests may: its number, from 1, if it has no name.
  std::string feature(std::int64_t index) const;
};

/// POST /v1/rank and /v1/rerank. Reused between requests to keep its memory.
struct RankRequest {
  std::string query;
  std::vector<DocId> docs;
  std::vector<float> values;     // [docs × features], raw
  std::vector<float> fields;     // [docs × width] of a schema, and
  std::vector<float> of_query;   // [width] of its query
  std::vector<DocGroup> groups;  // [docs], if the service has groups
  /// [docs]: the stored version whose numbers the document has where the request gives no others; null
  /// without one. Empty: the request has all numbers itself.
  std::vector<std::shared_ptr<const StoredDocument>> stored;
  std::int64_t time = 0;  // when it came, UTC in ms
  std::int64_t cutoff = 0;
  bool explore = true;
  bool certainty = false;                    // of each two shown documents in a long answer, too
  std::vector<DocId> incumbent;              // the caller's own order of all documents; empty: not given
  std::vector<std::int32_t> incumbent_docs;  // the same as indices of `docs`
  std::string list;                          // the path of the documents in the request, for messages
  std::string user;                          // whose lists are of one arm; empty: not given
};

/// POST /v1/feedback.
struct FeedbackRequest {
  std::string impression;
  std::vector<ImpressionStore::Click> clicks;
  std::vector<ImpressionStore::Event> events;  // in a service with a window, clicks among them
};

/// They throw an ApiError that names the invalid field.
void parse_rank_request(std::string_view body, const RequestLimits& limits, RankRequest& request);
/// The documents and their features come from a search response, whose order is that of the incumbent.
void parse_rerank_request(std::string_view body, const RequestLimits& limits, RankRequest& request);
/// PUT /v1/docs: one document, or one on each line.
std::vector<StoredDocument> parse_documents(std::string_view body, const RequestLimits& limits);
/// A stored document as such a line.
std::string document_json(const StoredDocument& document, const RequestLimits& limits);
/// DELETE /v1/docs: {"ids": […]}.
std::vector<std::string> parse_document_ids(std::string_view body, const RequestLimits& limits);
FeedbackRequest parse_feedback_request(std::string_view body, const RequestLimits& limits);

/// A query's text, which is UTF-8, as people mean it: without white space at its ends, with single spaces
/// within, in lower case, and with letters and their accents as one character (NFC). This knows the letters
/// of Latin (without its African and phonetic extensions), Greek (without the ancient accents) and
/// Cyrillic, and puts no marks in another order; others stay as they are.
std::string normalised_query(std::string_view text);

}  // namespace olrank
