#include "serve/requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/io/json_stream.h"
#include "core/text/nearest.h"
#include "serve/api_error.h"

namespace olrank {
namespace {

constexpr const char* kMissing = "The field is missing.";

/// SAX handler shared by both requests: passes values to text(), number() and flag(), and rejects with an
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
  bool number_float(double value, const std::string&) override { return number(value, std::nullopt); }
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
  std::string field_or_body() const {
    std::string place = field();
    return place.empty() ? "body" : place;
  }
  virtual std::string field() const = 0;
  virtual bool text(std::string& value) = 0;
  virtual bool number(double value, std::optional<std::int64_t> whole) = 0;
  virtual bool flag(bool value) = 0;

  /// Index of the key in `names`; rejects unknown and repeated keys. `parent` is the path of the key's
  /// object, empty or ending in a dot.
  static int known_key(const std::string& parent, const std::string& name,
                       std::span<const std::string> names, unsigned& seen) {
    const std::string place = parent + excerpt(name);
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      const std::string near = nearest_name(name, std::vector<std::string>(names.begin(), names.end()));
      throw ApiError(422, place.empty() ? "body" : place,
                     fmt::format("Unknown field. Did you mean '{}'?", near));
    }
    const auto index = static_cast<int>(found - names.begin());
    if ((seen >> index & 1U) != 0) throw ApiError(422, place, "The field appears twice.");
    seen |= 1U << index;
    return index;
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

class RankReader final : public RequestReader {
 public:
  RankReader(const RequestLimits& limits, RankRequest& request) : limits_(limits), request_(request) {
    request.query.clear();
    request.docs.clear();
    request.values.clear();
    request.groups.clear();
    request.cutoff = limits.cutoff;
    request.explore = true;
    request.incumbent.clear();
    request.incumbent_docs.clear();
    request.user.clear();
  }

  void finish() const {
    if ((seen_ >> kQuery & 1U) == 0) throw ApiError(422, "query", kMissing);
    if ((seen_ >> kDocs & 1U) == 0) throw ApiError(422, "docs", kMissing);
    if (request_.docs.empty()) throw ApiError(422, "docs", "At least one document is required.");
    std::unordered_map<std::string_view, std::int32_t> ids;
    for (std::size_t doc = 0; doc < request_.docs.size(); ++doc) {
      if (!ids.emplace(request_.docs[doc].text, static_cast<std::int32_t>(doc)).second) {
        throw ApiError(422, fmt::format("docs[{}].id", doc),
                       fmt::format("Document '{}' appears twice.", request_.docs[doc].text));
      }
    }
    if ((seen_ >> kIncumbent & 1U) != 0) return check_incumbent(ids);
    if (limits_.incumbent)
      throw ApiError(422, "incumbent",
                     "The field is missing: this service has the incumbent order among its --arms.");
  }

  bool start_object() override {
    if (place_ == kBody) {
      place_ = kTop;
    } else if (place_ == kDocList) {
      if (std::ssize(request_.docs) == limits_.docs)
        reject(fmt::format("A request may have at most {} documents.", limits_.docs), 413);
      request_.docs.emplace_back();
      doc_seen_ = 0;
      doc_field_ = -1;
      place_ = kDoc;
    } else if (place_ == kDoc && doc_field_ == kFeatures) {
      const std::size_t begin = request_.values.size();
      if (begin + static_cast<std::size_t>(limits_.features) > limits_.values)
        reject(
            fmt::format("A request may have at most {} features, all documents together.", limits_.values),
            413);
      request_.values.resize(begin + limits_.features, 0.0F);
      given_.assign(limits_.features, false);
      place_ = kFeatureObject;
    } else {
      reject_type("object");
    }
    return true;
  }
  bool key(std::string& name) override {
    if (place_ == kTop) {
      field_ = known_key("", name, kTopNames, seen_);
    } else if (place_ == kDoc) {
      const std::string parent = fmt::format("docs[{}].", request_.docs.size() - 1);
      if (name == kDocNames[kGroup] && limits_.groups == 0)
        throw ApiError(422, parent + name, "This service has no groups; it was started without --groups.");
      const auto names = std::span(kDocNames).first(limits_.groups > 0 ? kGroup + 1 : kGroup);
      doc_field_ = known_key(parent, name, names, doc_seen_);
    } else {
      feature_ = feature_of(name);
    }
    return true;
  }
  bool end_object() override {
    if (place_ == kFeatureObject) {
      place_ = kDoc;
    } else if (place_ == kDoc) {
      if ((doc_seen_ >> kId & 1U) == 0) missing("id");
      if ((doc_seen_ >> kFeatures & 1U) == 0) missing("features");
      if (limits_.groups > 0 && (doc_seen_ >> kGroup & 1U) == 0) missing("group");
      place_ = kDocList;
    } else {
      place_ = kBody;
    }
    return true;
  }
  bool start_array() override {
    if (place_ == kTop && field_ == kDocs) {
      place_ = kDocList;
    } else if (place_ == kDoc && doc_field_ == kFeatures) {
      feature_ = 0;
      place_ = kFeatureList;
    } else if (place_ == kTop && field_ == kIncumbent) {
      place_ = kIncumbentList;
    } else {
      reject_type("array");
    }
    return true;
  }
  bool end_array() override {
    if (place_ == kFeatureList) {
      if (feature_ != limits_.features) reject_count(feature_);
      place_ = kDoc;
    } else {
      place_ = kTop;
    }
    return true;
  }

 private:
  enum Place { kBody, kTop, kDocList, kDoc, kFeatureList, kFeatureObject, kIncumbentList };
  enum TopField { kQuery, kDocs, kCutoff, kExplore, kIncumbent, kUser };
  enum DocField { kId, kFeatures, kGroup };
  static inline const std::array<std::string, 6> kTopNames = {"query",   "docs",      "k",
                                                              "explore", "incumbent", "user"};
  static inline const std::array<std::string, 3> kDocNames = {"id", "features", "group"};

  std::string field() const override {
    switch (place_) {
      case kBody:
        return "body";
      case kTop:
        return field_ < 0 ? "body" : kTopNames[field_];
      case kDocList:
        return fmt::format("docs[{}]", request_.docs.size());
      case kDoc:
        if (doc_field_ < 0) return fmt::format("docs[{}]", request_.docs.size() - 1);
        return fmt::format("docs[{}].{}", request_.docs.size() - 1, kDocNames[doc_field_]);
      case kFeatureList:
        return fmt::format("docs[{}].features[{}]", request_.docs.size() - 1, feature_);
      case kFeatureObject:
        return fmt::format("docs[{}].features.{}", request_.docs.size() - 1, feature_ + 1);
      case kIncumbentList:
        return fmt::format("incumbent[{}]", request_.incumbent.size());
    }
    return "body";
  }

  bool text(std::string& value) override {
    if (place_ == kTop && field_ == kQuery) {
      check_text(value, limits_.text_bytes);
      request_.query = value;
    } else if (place_ == kTop && field_ == kUser) {
      check_text(value, limits_.text_bytes);
      request_.user = value;
    } else if (place_ == kDoc && doc_field_ == kId) {
      check_text(value, limits_.text_bytes);
      request_.docs.back() = {value, false};
    } else if (place_ == kDoc && doc_field_ == kGroup) {
      request_.groups.push_back(as_group(value));
    } else if (place_ == kIncumbentList) {
      add_to_incumbent({value, false});
    } else {
      reject_type("string");
    }
    return true;
  }
  bool number(double value, std::optional<std::int64_t> whole) override {
    switch (place_) {
      case kFeatureList:
        if (feature_ == limits_.features) reject_count(feature_ + 1);
        request_.values.push_back(as_feature(value));
        ++feature_;
        return true;
      case kFeatureObject:
        *(request_.values.end() - limits_.features + feature_) = as_feature(value);
        return true;
      case kTop:
        if (field_ == kQuery && whole) {
          request_.query = fmt::format("{}", *whole);
          return true;
        }
        if (field_ == kUser && whole) {
          request_.user = fmt::format("{}", *whole);
          return true;
        }
        if (field_ == kCutoff) return set_cutoff(whole);
        break;
      case kDoc:
        if (doc_field_ == kId && whole) {
          request_.docs.back() = {fmt::format("{}", *whole), true};
          return true;
        }
        break;
      case kIncumbentList:
        if (!whole) break;
        add_to_incumbent({fmt::format("{}", *whole), true});
        return true;
      default:
        break;
    }
    reject_type("number");
  }
  bool flag(bool value) override {
    if (place_ != kTop || field_ != kExplore) reject_type("boolean");
    request_.explore = value;
    return true;
  }

  void add_to_incumbent(DocId id) {
    check_text(id.text, limits_.text_bytes);
    if (std::ssize(request_.incumbent) == limits_.docs)
      reject(fmt::format("A request may have at most {} documents.", limits_.docs), 413);
    request_.incumbent.push_back(std::move(id));
  }
  /// The IDs become those of the documents, which may be numbers where these are texts.
  void check_incumbent(std::unordered_map<std::string_view, std::int32_t>& left) const {
    for (std::size_t rank = 0; rank < request_.incumbent.size(); ++rank) {
      if (const auto found = left.find(request_.incumbent[rank].text); found != left.end()) {
        request_.incumbent[rank] = request_.docs[found->second];
        request_.incumbent_docs.push_back(found->second);
        left.erase(found);
        continue;
      }
      throw ApiError(422, fmt::format("incumbent[{}]", rank),
                     fmt::format("'{}' is no document of this request, or appears twice.",
                                 request_.incumbent[rank].text));
    }
    if (left.empty()) return;
    throw ApiError(422, "incumbent",
                   fmt::format("The order lacks {} of the {} documents, such as '{}'.", left.size(),
                               request_.docs.size(), left.begin()->first));
  }
  bool set_cutoff(std::optional<std::int64_t> whole) {
    if (!whole || *whole < 1) reject("k must be an integer of at least 1.");
    if (limits_.most_ranks > 0 && *whole > limits_.most_ranks)
      reject(fmt::format("k must be at most {}: this service balances the exposure of no more ranks.",
                         limits_.most_ranks));
    request_.cutoff = *whole;
    return true;
  }
  DocGroup as_group(const std::string& value) const {
    if (const auto group = group_named(value, limits_.groups)) return *group;
    reject(fmt::format("A document's group must be {}.", letters_of(limits_.groups)));
  }
  float as_feature(double value) const {
    const auto narrow = static_cast<float>(value);
    if (!std::isfinite(narrow)) reject("The number is out of range for a 32-bit float.");
    return narrow;
  }
  /// Index of a feature given by its number, from 1.
  std::int64_t feature_of(const std::string& name) {
    std::int64_t number = 0;
    const auto [rest, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    const std::string place = fmt::format("docs[{}].features.{}", request_.docs.size() - 1, excerpt(name));
    if (error != std::errc{} || rest != name.data() + name.size() || number < 1 ||
        number > limits_.features) {
      throw ApiError(422, place, fmt::format("Feature numbers go from 1 to {}.", limits_.features));
    }
    if (given_[number - 1]) throw ApiError(422, place, "The feature appears twice.");
    given_[number - 1] = true;
    return number - 1;
  }
  [[noreturn]] void reject_count(std::int64_t count) const {
    const std::string more = count > limits_.features ? "at least " : "";
    throw ApiError(422, fmt::format("docs[{}].features", request_.docs.size() - 1),
                   fmt::format("The document has {}{} features, but the model expects {}.", more, count,
                               limits_.features));
  }
  [[noreturn]] void missing(std::string_view name) const {
    throw ApiError(422, fmt::format("docs[{}].{}", request_.docs.size() - 1, name), kMissing);
  }

  const RequestLimits& limits_;
  RankRequest& request_;
  Place place_ = kBody;
  int field_ = -1;  // before the first key
  int doc_field_ = -1;
  unsigned seen_ = 0;
  unsigned doc_seen_ = 0;
  std::int64_t feature_ = 0;  // index of the next feature: in a list, how many were read
  std::vector<bool> given_;
};

class FeedbackReader final : public RequestReader {
 public:
  explicit FeedbackReader(const RequestLimits& limits) : limits_(limits) {}

  FeedbackRequest finish() {
    if ((seen_ >> kImpression & 1U) == 0) throw ApiError(422, "impression", kMissing);
    const bool has_clicks = (seen_ >> kClicks & 1U) != 0;
    const bool has_events = (seen_ >> kEvents & 1U) != 0;
    if (has_clicks && has_events) throw ApiError(422, "events", "Send either clicks or events.");
    if (!has_clicks && !has_events)
      throw ApiError(422, "clicks", "The field is missing; send [] if nothing was clicked.");
    if (limits_.window) {
      for (ImpressionStore::Click& click : request_.clicks) request_.events.push_back({std::move(click)});
    }
    return std::move(request_);
  }

  bool start_object() override {
    if (place_ == kBody) {
      place_ = kTop;
    } else if (place_ == kEventList) {
      require_room(request_.events.size(), "events");
      request_.events.emplace_back();
      event_field_ = -1;
      event_seen_ = 0;
      place_ = kEvent;
    } else {
      reject_type("object");
    }
    return true;
  }
  bool key(std::string& name) override {
    if (place_ == kTop) {
      if (name == kNames[kEvents] && !limits_.window)
        throw ApiError(422, name, "This service has no events; it was started without --window.");
      field_ = known_key("", name, std::span(kNames).first(limits_.window ? 3 : 2), seen_);
    } else {
      const std::string parent = fmt::format("events[{}].", request_.events.size() - 1);
      event_field_ = known_key(parent, name, kEventNames, event_seen_);
    }
    return true;
  }
  bool end_object() override {
    if (place_ == kEvent) {
      const unsigned doc = event_seen_ & (1U << kId | 1U << kRank);
      if (doc == 0 || doc == (1U << kId | 1U << kRank))
        throw ApiError(422, fmt::format("events[{}]", request_.events.size() - 1),
                       "An event has either the id or the rank of its document.");
      place_ = kEventList;
    } else {
      place_ = kBody;
    }
    return true;
  }
  bool start_array() override {
    if (place_ != kTop || (field_ != kClicks && field_ != kEvents)) reject_type("array");
    place_ = field_ == kClicks ? kClickList : kEventList;
    return true;
  }
  bool end_array() override {
    place_ = kTop;
    return true;
  }

 private:
  enum Place { kBody, kTop, kClickList, kEventList, kEvent };
  enum TopField { kImpression, kClicks, kEvents };
  enum EventField { kId, kRank, kType, kAt };
  static inline const std::array<std::string, 3> kNames = {"impression", "clicks", "events"};
  static inline const std::array<std::string, 4> kEventNames = {"id", "rank", "type", "at"};

  std::string field() const override {
    if (place_ == kBody || field_ < 0) return "body";
    if (place_ == kClickList) return fmt::format("clicks[{}]", request_.clicks.size());
    if (place_ == kEventList) return fmt::format("events[{}]", request_.events.size());
    if (place_ == kEvent) {
      const std::string event = fmt::format("events[{}]", request_.events.size() - 1);
      return event_field_ < 0 ? event : fmt::format("{}.{}", event, kEventNames[event_field_]);
    }
    return kNames[field_];
  }
  bool text(std::string& value) override {
    check_text(value, limits_.text_bytes);
    if (place_ == kClickList) {
      add({-1, value});
    } else if (place_ == kEvent && event_field_ == kId) {
      request_.events.back().doc = {-1, value};
    } else if (place_ == kEvent && event_field_ == kType) {
      request_.events.back().type = value;
    } else if (place_ == kTop && field_ == kImpression) {
      request_.impression = value;
    } else {
      reject_type("string");
    }
    return true;
  }
  bool number(double, std::optional<std::int64_t> whole) override {
    if (place_ == kClickList) {
      if (!whole || *whole < 0)
        reject("A click must be a rank (integer from 0) or a document ID (string).");
      add({*whole, ""});
    } else if (place_ == kEvent && event_field_ == kRank) {
      if (!whole || *whole < 0) reject("A rank must be an integer from 0.");
      request_.events.back().doc = {*whole, ""};
    } else if (place_ == kEvent && event_field_ == kId && whole) {
      request_.events.back().doc = {-1, fmt::format("{}", *whole)};
    } else if (place_ == kEvent && event_field_ == kAt) {
      if (!whole || *whole < 1) reject("The time must be UTC in milliseconds, an integer.");
      request_.events.back().at = *whole;
    } else {
      reject_type("number");
    }
    return true;
  }
  bool flag(bool) override { reject_type("boolean"); }

  void require_room(std::size_t taken, std::string_view what) const {
    if (std::cmp_equal(taken, limits_.docs))
      reject(fmt::format("A request may have at most {} {}.", limits_.docs, what), 413);
  }
  void add(ImpressionStore::Click click) {
    require_room(request_.clicks.size(), "clicks");
    request_.clicks.push_back(std::move(click));
  }

  const RequestLimits& limits_;
  FeedbackRequest request_;
  Place place_ = kBody;
  int field_ = -1;
  int event_field_ = -1;
  unsigned seen_ = 0;
  unsigned event_seen_ = 0;
};

}  // namespace

void parse_rank_request(std::string_view body, const RequestLimits& limits, RankRequest& request) {
  RankReader reader(limits, request);
  parse_json_events(body, reader);
  reader.finish();
}

FeedbackRequest parse_feedback_request(std::string_view body, const RequestLimits& limits) {
  FeedbackReader reader(limits);
  parse_json_events(body, reader);
  return reader.finish();
}

}  // namespace olrank
