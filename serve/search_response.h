#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/io/json.h"
#include "core/text/message_text.h"
#include "serve/api_error.h"
#include "serve/requests.h"

namespace olrank {

/// SAX handler shared by all requests: passes values to text(), number() and flag(), and rejects with an
/// error that names the current field. Only expected values are ever stored.
class RequestReader : public JsonHandler {
 public:
  bool null() override { reject("null is not allowed; omit the field or give it a value."); }
  bool boolean(bool value) override { return flag(value); }
  bool number_integer(std::int64_t value) override { return number(static_cast<double>(value), value); }
  bool number_unsigned(std::uint64_t value) override {
    constexpr auto kLargest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (value > kLargest) return number(static_cast<double>(value), std::nullopt);
    return number(static_cast<double>(value), static_cast<std::int64_t>(value));
  }
  bool number_float(const JsonNumber& given) override { return real(given.value()); }
  bool real(double value) { return number(value, std::nullopt); }
  bool string(std::string& value) override { return text(value); }

  void invalid(std::size_t byte, Fault fault) override {
    if (fault == Fault::kNumberOutOfRange) reject("The number is out of range.");
    reject(fmt::format("Invalid JSON at byte {}.", byte), 400);
  }

  [[noreturn]] void reject(const std::string& message, int status = 422) const {
    throw ApiError(status, field_or_body(), message);
  }
  [[noreturn]] void reject_type(std::string_view type) const {
    reject(fmt::format("Unexpected {} here.", type));
  }

 protected:
  static constexpr const char* kMissing = "The field is missing.";

  std::string field_or_body() const {
    std::string place = field();
    return place.empty() ? "body" : place;
  }
  virtual std::string field() const = 0;
  virtual bool text(std::string& value) = 0;
  virtual bool number(double value, std::optional<std::int64_t> whole) = 0;
  virtual bool flag(bool value) = 0;

  /// Index of the key in `names`; rejects unknown and repeated keys. parent() makes the path of the key's
  /// object, empty or ending in a dot.
  template <class Parent>
  static int known_key(const Parent& parent, const std::string& name, std::span<const std::string> names,
                       unsigned& seen) {
    const auto place = [&] { return parent() + excerpt(name); };
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      const std::string near = near_name(excerpt(name), names);
      throw ApiError(422, place().empty() ? "body" : place(),
                     near.empty() ? fmt::format("Unknown field. The fields are {}.", joined(names))
                                  : fmt::format("Unknown field. Did you mean '{}'?", near));
    }
    const auto index = static_cast<int>(found - names.begin());
    if ((seen >> index & 1U) != 0) throw ApiError(422, place(), "The field appears twice.");
    seen |= 1U << index;
    return index;
  }

  /// Refuses a feature that is not among `names`, which give the features their places.
  static std::string no_such_feature(const std::string& name,
                                     const std::unordered_map<std::string, std::int64_t>& names) {
    constexpr std::size_t kSearched = 1000;
    std::string near;
    if (names.size() <= kSearched) {
      std::vector<std::string> known(names.size());
      for (const auto& [one, place] : names) known[place] = one;
      near = near_name(excerpt(name), known);
    }
    return fmt::format("This service has no feature '{}'.{}", excerpt(name),
                       near.empty() ? "" : fmt::format(" Did you mean '{}'?", near));
  }

  static std::string excerpt(const std::string& name) {
    constexpr std::size_t kShown = 40;
    return name.size() <= kShown ? name : name.substr(0, kShown) + "...";
  }

  void check_text(const std::string& value, std::size_t limit) const {
    if (value.empty()) reject("The value must not be empty.");
    if (value.size() > limit)
      reject(fmt::format("The value has {} bytes; the limit is {}.", value.size(), limit));
  }
};

/// Reads POST /v1/rerank: passes the fields of a ranking request on to its reader, and the hits of
/// `response` as the documents of such a request. `response` is that of OpenSearch or Elasticsearch with
/// the feature log of their learning-to-rank plugins, hits.hits[]: {_id, fields: {_ltrlog: [{NAME: [{name,
/// value}, …]}]}}, and with the numbers and matched queries of a hit that are the origins of features. All
/// other parts of it are skipped. A feature without a value in the log matched nothing, and is 0.
class SearchResponseReader final : public RequestReader {
 public:
  /// A hit has these keys, as the reader of the ranking request must know them.
  static constexpr const char* kId = "_id";
  static constexpr const char* kFeatures = "fields._ltrlog";

  /// Without names of the service's features, the first hit names them by its order.
  SearchResponseReader(const RequestLimits& limits, RequestReader& rank);

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
  /// The hit has a number at the current path, or a matched query.
  void take(const std::string& place, double value);
  void end_hit();
  std::string hit_place() const { return fmt::format("response.hits.hits[{}]", hits_); }
  std::string log_place() const {
    return fmt::format("{}.{}[0].{}", hit_place(), kFeatures, excerpt(log_));
  }

  const RequestLimits& limits_;
  RequestReader& rank_;
  Place place_ = kBody;
  bool wanted_ = true;    // the next value here
  std::size_t skip_ = 0;  // open objects and arrays of an unwanted value
  std::string key_;       // the latest one that is wanted
  std::int64_t hits_ = 0;
  bool has_list_ = false;
  std::vector<HitOrigins::Kind> kinds_;  // [features]
  std::int64_t from_log_ = 0;            // how many features
  // These belong to the hit.
  std::string log_;  // the name of its log; empty before it
  std::vector<double> values_;
  bool is_followed_ = false;        // the value that is skipped may hold an origin:
  std::string path_;                // where it is in the hit,
  std::vector<std::size_t> marks_;  // and where the paths of the open objects and arrays end
  std::unordered_map<std::string, std::int64_t> named_by_first_;
  // These belong to the hit's log.
  std::vector<bool> given_;
  std::int64_t logged_ = 0;
  // These belong to its latest feature.
  std::optional<std::string> name_;
  double value_ = 0.0;
  bool is_extra_ = false;  // an object in place of a value
};

}  // namespace olrank
