#include "serve/requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <unordered_set>

#include "core/text/nearest.h"
#include "serve/api_error.h"

namespace olrank {
namespace {

using Json = nlohmann::json;

/// What both requests need of the parser's events: where we are, and a complaint that names it. Values come
/// to text(), number() and flag(); nothing of a request is ever built that it should not hold.
class RequestReader {
 public:
  using number_integer_t = Json::number_integer_t;
  using number_unsigned_t = Json::number_unsigned_t;
  using number_float_t = Json::number_float_t;
  using string_t = Json::string_t;
  using binary_t = Json::binary_t;

  virtual ~RequestReader() = default;

  bool null() { refuse("null is no value here; leave the field out or give it one."); }
  bool boolean(bool value) { return flag(value); }
  bool number_integer(number_integer_t value) { return number(static_cast<double>(value), value); }
  bool number_unsigned(number_unsigned_t value) {
    constexpr auto kLargest = static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max());
    if (value > kLargest) return number(static_cast<double>(value), std::nullopt);
    return number(static_cast<double>(value), static_cast<std::int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t&) { return number(value, std::nullopt); }
  bool string(string_t& value) { return text(value); }
  bool binary(binary_t&) { refuse("Binary values are not known here."); }

  virtual bool start_object(std::size_t) = 0;
  virtual bool key(string_t& name) = 0;
  virtual bool end_object() = 0;
  virtual bool start_array(std::size_t) = 0;
  virtual bool end_array() = 0;

  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception& error) {
    constexpr int kNumberOutOfRange = 406;
    if (error.id == kNumberOutOfRange) refuse("This number is outside what a double holds.");
    const std::string place = field();
    throw ApiError(400, place.empty() ? "body" : place,
                   fmt::format("The body is no valid JSON at byte {}.", position));
  }

  [[noreturn]] void refuse(const std::string& sentence, int status = 422) const {
    const std::string place = field();
    throw ApiError(status, place.empty() ? "body" : place, sentence);
  }

 protected:
  virtual std::string field() const = 0;
  virtual bool text(std::string& value) = 0;
  virtual bool number(double value, std::optional<std::int64_t> whole) = 0;
  virtual bool flag(bool value) = 0;

  /// Which of `names` the key is; unknown ones and repetitions are refused. `parent` is the place of what
  /// has the key, empty or with a dot at its end.
  static int known_key(const std::string& parent, const std::string& name,
                       std::span<const std::string> names, unsigned& seen) {
    const std::string place = parent + excerpt(name);
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      const std::string near = nearest_name(name, std::vector<std::string>(names.begin(), names.end()));
      throw ApiError(422, place.empty() ? "body" : place,
                     fmt::format("This field is unknown; the nearest is '{}'.", near));
    }
    const auto index = static_cast<int>(found - names.begin());
    if ((seen >> index & 1U) != 0) throw ApiError(422, place, "This field is there twice.");
    seen |= 1U << index;
    return index;
  }

  static std::string excerpt(const std::string& name) {
    constexpr std::size_t kShown = 40;
    return name.size() <= kShown ? name : name.substr(0, kShown) + "...";
  }

  void check_text(const std::string& value, std::size_t limit) const {
    if (value.empty()) refuse("This is empty, and a name is needed.");
    if (value.size() > limit)
      refuse(fmt::format("This has {} bytes; {} are allowed.", value.size(), limit));
  }
};

template <class Reader>
void read_body(std::string_view body, Reader& reader) {
  // The parser takes a zero byte for the end.
  if (const std::size_t zero = body.find('\0'); zero != std::string_view::npos)
    throw ApiError(400, "body", fmt::format("The body is no valid JSON at byte {}.", zero + 1));
  Json::sax_parse(body.begin(), body.end(), &reader);
}

class RankReader final : public RequestReader {
 public:
  RankReader(const RequestLimits& limits, RankRequest& request) : limits_(limits), request_(request) {
    request.query.clear();
    request.docs.clear();
    request.values.clear();
    request.cutoff = limits.cutoff;
    request.explore = true;
  }

  void finish() const {
    if ((seen_ >> kQuery & 1U) == 0) throw ApiError(422, "query", "The field is missing: name the query.");
    if ((seen_ >> kDocs & 1U) == 0)
      throw ApiError(422, "docs", "The field is missing: give the documents.");
    if (request_.docs.empty()) throw ApiError(422, "docs", "There is no document to rank.");
    std::unordered_set<std::string_view> ids;
    for (std::size_t doc = 0; doc < request_.docs.size(); ++doc) {
      if (!ids.insert(request_.docs[doc].text).second) {
        throw ApiError(422, fmt::format("docs[{}].id", doc),
                       fmt::format("Document '{}' is there twice.", request_.docs[doc].text));
      }
    }
  }

  bool start_object(std::size_t) override {
    if (place_ == kBody) {
      place_ = kTop;
    } else if (place_ == kDocList) {
      if (static_cast<std::int64_t>(request_.docs.size()) == limits_.docs)
        refuse(fmt::format("A request may hold {} documents.", limits_.docs), 413);
      request_.docs.emplace_back();
      doc_seen_ = 0;
      doc_field_ = -1;
      place_ = kDoc;
    } else if (place_ == kDoc && doc_field_ == kFeatures) {
      const std::size_t begin = request_.values.size();
      request_.values.resize(begin + static_cast<std::size_t>(limits_.features), 0.0F);
      given_.assign(static_cast<std::size_t>(limits_.features), false);
      place_ = kFeatureObject;
    } else {
      refuse("An object stands where none belongs.");
    }
    return true;
  }
  bool key(string_t& name) override {
    if (place_ == kTop) {
      field_ = known_key("", name, kTopNames, seen_);
    } else if (place_ == kDoc) {
      doc_field_ =
          known_key(fmt::format("docs[{}].", request_.docs.size() - 1), name, kDocNames, doc_seen_);
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
      place_ = kDocList;
    } else {
      place_ = kBody;
    }
    return true;
  }
  bool start_array(std::size_t) override {
    if (place_ == kTop && field_ == kDocs) {
      place_ = kDocList;
    } else if (place_ == kDoc && doc_field_ == kFeatures) {
      feature_ = 0;
      place_ = kFeatureList;
    } else {
      refuse("A list stands where none belongs.");
    }
    return true;
  }
  bool end_array() override {
    if (place_ == kFeatureList) {
      if (feature_ != limits_.features) refuse_count(feature_);
      place_ = kDoc;
    } else {
      place_ = kTop;
    }
    return true;
  }

 private:
  enum Place { kBody, kTop, kDocList, kDoc, kFeatureList, kFeatureObject };
  enum TopField { kQuery, kDocs, kCutoff, kExplore };
  enum DocField { kId, kFeatures };
  static inline const std::array<std::string, 4> kTopNames = {"query", "docs", "k", "explore"};
  static inline const std::array<std::string, 2> kDocNames = {"id", "features"};

  std::string field() const override {
    switch (place_) {
      case kBody:
        return "body";
      case kTop:
        return field_ < 0 ? "body" : kTopNames[static_cast<std::size_t>(field_)];
      case kDocList:
        return fmt::format("docs[{}]", request_.docs.size());
      case kDoc:
        if (doc_field_ < 0) return fmt::format("docs[{}]", request_.docs.size() - 1);
        return fmt::format("docs[{}].{}", request_.docs.size() - 1,
                           kDocNames[static_cast<std::size_t>(doc_field_)]);
      case kFeatureList:
        return fmt::format("docs[{}].features[{}]", request_.docs.size() - 1, feature_);
      case kFeatureObject:
        return fmt::format("docs[{}].features.{}", request_.docs.size() - 1, feature_ + 1);
    }
    return "body";
  }

  bool text(std::string& value) override {
    if (place_ == kTop && field_ == kQuery) {
      check_text(value, limits_.text_bytes);
      request_.query = value;
    } else if (place_ == kDoc && doc_field_ == kId) {
      check_text(value, limits_.text_bytes);
      request_.docs.back() = {value, false};
    } else {
      refuse("A text stands where none belongs.");
    }
    return true;
  }
  bool number(double value, std::optional<std::int64_t> whole) override {
    switch (place_) {
      case kFeatureList:
        if (feature_ == limits_.features) refuse_count(feature_ + 1);
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
        if (field_ == kCutoff) return set_cutoff(whole);
        break;
      case kDoc:
        if (doc_field_ == kId && whole) {
          request_.docs.back() = {fmt::format("{}", *whole), true};
          return true;
        }
        break;
      default:
        break;
    }
    refuse("A number stands where none belongs.");
  }
  bool flag(bool value) override {
    if (place_ != kTop || field_ != kExplore) refuse("true and false stand where none belongs.");
    request_.explore = value;
    return true;
  }

  bool set_cutoff(std::optional<std::int64_t> whole) {
    if (!whole || *whole < 1) refuse("k is a whole number of at least 1.");
    request_.cutoff = *whole;
    return true;
  }
  float as_feature(double value) const {
    const auto narrow = static_cast<float>(value);
    if (!std::isfinite(narrow)) refuse("This number is outside what a float holds.");
    return narrow;
  }
  /// Index of a feature called by its number from 1.
  std::int64_t feature_of(const std::string& name) {
    std::int64_t number = 0;
    const auto [rest, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    const std::string place = fmt::format("docs[{}].features.{}", request_.docs.size() - 1, excerpt(name));
    if (error != std::errc{} || rest != name.data() + name.size() || number < 1 ||
        number > limits_.features) {
      throw ApiError(422, place, fmt::format("Features are called 1 to {}.", limits_.features));
    }
    if (given_[static_cast<std::size_t>(number - 1)])
      throw ApiError(422, place, "This feature is there twice.");
    given_[static_cast<std::size_t>(number - 1)] = true;
    return number - 1;
  }
  [[noreturn]] void refuse_count(std::int64_t count) const {
    const std::string more = count > limits_.features ? "at least " : "";
    throw ApiError(422, fmt::format("docs[{}].features", request_.docs.size() - 1),
                   fmt::format("The model takes {} features, and this document has {}{}.", limits_.features,
                               more, count));
  }
  [[noreturn]] void missing(std::string_view name) const {
    throw ApiError(422, fmt::format("docs[{}].{}", request_.docs.size() - 1, name),
                   "The field is missing.");
  }

  const RequestLimits& limits_;
  RankRequest& request_;
  Place place_ = kBody;
  int field_ = -1;  // none yet
  int doc_field_ = -1;
  unsigned seen_ = 0;
  unsigned doc_seen_ = 0;
  std::int64_t feature_ = 0;  // index of the one that comes, or how many came
  std::vector<bool> given_;
};

class FeedbackReader final : public RequestReader {
 public:
  explicit FeedbackReader(const RequestLimits& limits) : limits_(limits) {}

  FeedbackRequest finish() {
    if ((seen_ & 1U) == 0) throw ApiError(422, "impression", "The field is missing: say what is answered.");
    if ((seen_ & 2U) == 0) throw ApiError(422, "clicks", "The field is missing: without a click, give [].");
    return std::move(request_);
  }

  bool start_object(std::size_t) override {
    if (place_ != kBody) refuse("An object stands where none belongs.");
    place_ = kTop;
    return true;
  }
  bool key(string_t& name) override {
    field_ = known_key("", name, kNames, seen_);
    return true;
  }
  bool end_object() override {
    place_ = kBody;
    return true;
  }
  bool start_array(std::size_t) override {
    if (place_ != kTop || field_ != 1) refuse("A list stands where none belongs.");
    place_ = kClicks;
    return true;
  }
  bool end_array() override {
    place_ = kTop;
    return true;
  }

 private:
  enum Place { kBody, kTop, kClicks };
  static inline const std::array<std::string, 2> kNames = {"impression", "clicks"};

  std::string field() const override {
    if (place_ == kBody || field_ < 0) return "body";
    if (place_ == kClicks) return fmt::format("clicks[{}]", request_.clicks.size());
    return kNames[static_cast<std::size_t>(field_)];
  }
  bool text(std::string& value) override {
    check_text(value, limits_.text_bytes);
    if (place_ == kClicks) {
      add({-1, value});
    } else if (place_ == kTop && field_ == 0) {
      request_.impression = value;
    } else {
      refuse("A text stands where none belongs.");
    }
    return true;
  }
  bool number(double, std::optional<std::int64_t> whole) override {
    if (place_ != kClicks) refuse("A number stands where none belongs.");
    if (!whole || *whole < 0) refuse("A click is a rank, counted from 0, or a document's id as a text.");
    add({*whole, ""});
    return true;
  }
  bool flag(bool) override { refuse("true and false stand where none belongs."); }

  void add(Impressions::Click click) {
    if (static_cast<std::int64_t>(request_.clicks.size()) == limits_.docs)
      refuse(fmt::format("A request may hold {} clicks.", limits_.docs), 413);
    request_.clicks.push_back(std::move(click));
  }

  const RequestLimits& limits_;
  FeedbackRequest request_;
  Place place_ = kBody;
  int field_ = -1;
  unsigned seen_ = 0;
};

}  // namespace

void parse_rank_request(std::string_view body, const RequestLimits& limits, RankRequest& request) {
  RankReader reader(limits, request);
  read_body(body, reader);
  reader.finish();
}

FeedbackRequest parse_feedback_request(std::string_view body, const RequestLimits& limits) {
  FeedbackReader reader(limits);
  read_body(body, reader);
  return reader.finish();
}

}  // namespace olrank
