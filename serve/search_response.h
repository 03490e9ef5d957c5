#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "serve/request_reader.h"
#include "serve/requests.h"

namespace olrank {

/// Reads POST /v1/rerank: passes the fields of a ranking request on to its reader, and the hits of
/// `response` as the documents of such a request. `response` is that of OpenSearch or Elasticsearch with
/// the feature log of their learning-to-rank plugins, hits.hits[]: {_id, fields: {_ltrlog: [{NAME: [{name,
/// value}, …]}]}}. All other parts of it are skipped. A feature without a value matched nothing, and is 0.
class SearchResponseReader final : public RequestReader {
 public:
  /// Of a hit, as the reader of the ranking request must know them.
  static constexpr const char* kId = "_id";
  static constexpr const char* kFeatures = "fields._ltrlog";

  /// Without names of the service's features, the first hit names them by its order.
  SearchResponseReader(const RequestLimits& limits, RequestReader& rank) : limits_(limits), rank_(rank) {}

  bool null() override;
  bool start_object() override { return start(false); }
  bool start_array() override { return start(true); }
  bool end_object() override { return end(); }
  bool end_array() override { return end(); }
  bool key(std::string& name) override;

 private:
  /// A chain: each is in the one before it.
  enum Place { kBody, kRequest, kResponse, kHits, kHitList, kHit, kFields, kLogs, kLog, kLogged, kFeature };

  std::string field() const override;
  bool text(std::string& value) override;
  bool number(double value, std::optional<std::int64_t> whole) override;
  bool flag(bool value) override;

  /// Whether the reader of the ranking request gets the value.
  bool is_passed() const { return place_ == kRequest ? key_ != "response" : place_ == kHit && key_ == kId; }
  bool start(bool array);
  bool end();
  void begin_log();
  void end_log();
  void add_feature();
  std::string log_place() const;

  const RequestLimits& limits_;
  RequestReader& rank_;
  Place place_ = kBody;
  bool wanted_ = true;    // the next value here
  std::size_t skip_ = 0;  // open objects and arrays of an unwanted value
  std::string key_;       // the latest one that is wanted
  std::int64_t hits_ = 0;
  bool has_list_ = false;
  std::string log_;  // the name of the hit's log; empty before it
  std::unordered_map<std::string, std::int64_t> named_by_first_;
  // Of the hit's log:
  std::vector<bool> given_;
  std::int64_t logged_ = 0;
  // Of its latest feature:
  std::optional<std::string> name_;
  double value_ = 0.0;
  bool is_extra_ = false;  // an object in place of a value
};

}  // namespace olrank
