#include "serve/search_response.h"

#include <array>
#include <cmath>

#include "core/throw_error.h"

namespace olrank {
namespace {

/// It tells what a place is, and the key under which that holds the next; empty: any, or it is an array.
struct Link {
  bool array;
  std::string_view key;
};
constexpr std::string_view kMatched = "matched:";
constexpr std::string_view kMatchedQueries = "matched_queries";
constexpr std::array<Link, 11> kChain = {{{false, ""},
                                          {false, "response"},
                                          {false, "hits"},
                                          {false, "hits"},
                                          {true, ""},
                                          {false, "fields"},
                                          {false, "_ltrlog"},
                                          {true, ""},
                                          {false, ""},
                                          {true, ""},
                                          {false, ""}}};

}  // namespace

std::size_t find_origin(std::string_view text) {
  std::size_t found = std::string_view::npos;
  for (const std::string_view root : {"=_score", "=_source", "=fields.", "=matched:"}) {
    const std::size_t at = text.find(root);
    found = std::min(found, at);
  }
  return found;
}

HitOrigins parse_hit_origins(const std::vector<std::string>& origins,
                             const std::unordered_map<std::string, std::int64_t>& names) {
  HitOrigins result;
  if (!origins.empty()) result.kinds.assign(names.size(), HitOrigins::kLog);
  for (const std::string& origin : origins) {
    const std::size_t equals = find_origin(origin);
    std::string place = origin.substr(equals + 1);
    const bool is_matched = place.starts_with(kMatched) && place.size() > kMatched.size();
    const bool is_maybe = !is_matched && place.ends_with('?');
    if (is_maybe) place.pop_back();
    const auto is_path = [&](std::string_view root) {
      return place.starts_with(root) && place.size() > root.size();
    };
    if (place.starts_with("fields._ltrlog") ||
        (!is_matched && place != "_score" && !is_path("_source.") && !is_path("fields.")))
      throw_error<InvalidArgument>(
          "--feature-names {}: '{}' is no place of a number in a hit: choose _score, _source.PATH, "
          "fields.PATH or matched:NAME.",
          origin, place);
    const std::int64_t feature = names.at(origin.substr(0, equals));
    if (!result.places.emplace(place, feature).second)
      throw_error<InvalidArgument>("--feature-names {}: Another feature has this origin, too.", origin);
    result.longest = std::max(result.longest, place.size());
    result.kinds[feature] = is_matched || is_maybe ? HitOrigins::kMaybe : HitOrigins::kNumber;
  }
  return result;
}

SearchResponseReader::SearchResponseReader(const RequestLimits& limits, RequestReader& rank)
    : limits_(limits), rank_(rank), kinds_(limits.origins.kinds) {
  kinds_.resize(limits.features, HitOrigins::kLog);
  for (const auto& [name, index] : limits.names) {
    if (limits.counters != nullptr && limits.schema->find(name, false) == nullptr)
      kinds_[index] = HitOrigins::kCounter;
  }
  from_log_ = std::count(kinds_.begin(), kinds_.end(), HitOrigins::kLog);
}

bool SearchResponseReader::key(std::string& name) {
  if (skip_ > 0) {
    if (!is_followed_) return true;
    path_.resize(marks_.back());
    if (path_ == kMatchedQueries) take(fmt::format("{}{}", kMatched, name), 1.0);
    path_ += '.' + name;
    return true;
  }
  wanted_ = place_ == kRequest || place_ == kLog || name == kChain[place_].key ||
            (place_ == kHit && name == kId) || (place_ == kFeature && (name == "name" || name == "value"));
  is_followed_ = !wanted_ && !limits_.origins.places.empty() &&
                 (place_ == kFields ||
                  (place_ == kHit && (name == "_score" || name == "_source" || name == kMatchedQueries)));
  if (is_followed_) path_ = place_ == kFields ? "fields." + name : name;
  if (!wanted_) return true;
  key_ = name;
  return place_ == kRequest || is_passed() ? rank_.key(name) : true;
}

bool SearchResponseReader::start(bool array) {
  if (skip_ > 0 || !wanted_) {
    ++skip_;
    if (is_followed_) marks_.push_back(path_.size());
    return true;
  }
  if (place_ == kFeature && key_ == "value" && !array) {
    is_extra_ = true;
    ++skip_;
    return true;
  }
  if (is_passed()) return array ? rank_.start_array() : rank_.start_object();
  if (place_ == kFeature || array != kChain[place_ + 1].array) reject_type(array ? "array" : "object");
  if (place_ == kLog) begin_log();
  place_ = static_cast<Place>(place_ + 1);
  wanted_ = array;
  if (place_ == kRequest) return rank_.start_object();
  if (place_ == kHitList) {
    has_list_ = true;
    return rank_.start_array();
  }
  if (place_ == kHit) {
    log_.clear();
    values_.assign(limits_.features, 0.0);
    given_.assign(limits_.features, false);
    return rank_.start_object();
  }
  if (place_ == kFeature) {
    name_.reset();
    value_ = 0.0;
    is_extra_ = false;
  }
  return true;
}

bool SearchResponseReader::end() {
  if (skip_ > 0) {
    --skip_;
    if (!is_followed_) return true;
    path_.resize(marks_.back());
    marks_.pop_back();
    return true;
  }
  const Place ended = place_;
  if (ended == kResponse && !has_list_) throw ApiError(422, "response.hits.hits", kMissing);
  if (ended == kHit) end_hit();
  if (ended == kFeature) add_feature();
  if (ended == kLogged) end_log();
  place_ = static_cast<Place>(ended - 1);
  wanted_ = true;
  if (ended == kResponse) key_ = "response";
  if (ended == kRequest || ended == kHit) {
    hits_ += ended == kHit ? 1 : 0;
    return rank_.end_object();
  }
  return ended == kHitList ? rank_.end_array() : true;
}

void SearchResponseReader::begin_log() {
  if (!log_.empty())
    throw ApiError(422, log_place(),
                   fmt::format("The hit has two feature logs, '{}' and '{}': ask for one.", excerpt(log_),
                               excerpt(key_)));
  log_ = key_;
  logged_ = 0;
}

void SearchResponseReader::end_log() {
  if (logged_ == from_log_) return;
  std::string missing;
  for (const auto& [name, index] : limits_.names.empty() ? named_by_first_ : limits_.names) {
    if (kinds_[index] != HitOrigins::kLog) continue;
    if (!given_[index] && (missing.empty() || name < missing)) missing = name;
  }
  throw ApiError(
      422, log_place(),
      fmt::format("The log has {} of the {} features that the model expects{}.", logged_, from_log_,
                  missing.empty() ? "" : fmt::format("; it lacks '{}'", excerpt(missing))));
}

void SearchResponseReader::add_feature() {
  if (!name_) throw ApiError(422, log_place() + fmt::format("[{}].name", logged_), kMissing);
  if (is_extra_) {
    if (*name_ == "extra_logging") return;
    throw ApiError(422, log_place(),
                   fmt::format("Feature '{}' has an object as its value.", excerpt(*name_)));
  }
  const bool is_named = !limits_.names.empty();
  if (!is_named && hits_ == 0 && std::ssize(named_by_first_) < limits_.features)
    named_by_first_.emplace(*name_, std::ssize(named_by_first_));
  const auto& names = is_named ? limits_.names : named_by_first_;
  const auto found = names.find(*name_);
  if (found == names.end())
    throw ApiError(
        422, log_place(),
        is_named ? no_such_feature(*name_, names)
        : hits_ == 0
            ? fmt::format("The log has more than the {} features that the model expects.", limits_.features)
            : fmt::format("Feature '{}' is not in the log of the first hit.", excerpt(*name_)));
  if (kinds_[found->second] != HitOrigins::kLog)
    throw ApiError(422, log_place(),
                   fmt::format("Feature '{}' has another origin in --feature-names, or is a counter.",
                               excerpt(*name_)));
  if (given_[found->second])
    throw ApiError(422, log_place(), fmt::format("Feature '{}' is logged twice.", excerpt(*name_)));
  given_[found->second] = true;
  ++logged_;
  values_[found->second] = value_;
}

void SearchResponseReader::take(const std::string& place, double value) {
  if (place.size() > limits_.origins.longest) return;  // a long key would be hashed for each of its values
  const auto found = limits_.origins.places.find(place);
  if (found == limits_.origins.places.end()) return;
  if (!std::isfinite(static_cast<float>(value)))
    throw ApiError(422, fmt::format("{}.{}", hit_place(), place),
                   "The number is out of range for a 32-bit float.");
  if (given_[found->second] && place.starts_with(kMatched)) return;
  if (given_[found->second])
    throw ApiError(
        422, hit_place(),
        fmt::format("The hit has several values of '{}'; a feature is one number.", excerpt(place)));
  given_[found->second] = true;
  values_[found->second] = value;
}

void SearchResponseReader::end_hit() {
  if (log_.empty() && from_log_ > 0)
    throw ApiError(422, hit_place() + ".fields._ltrlog",
                   "The hit has no feature log: add ext.ltr_log to the search request.");
  for (const auto& [place, feature] : limits_.origins.places) {
    if (given_[feature] || kinds_[feature] != HitOrigins::kNumber) continue;
    throw ApiError(
        422, hit_place(),
        fmt::format(
            "The hit has no number '{0}', which is the feature '{1}': have the search request bring it, or "
            "write {1}={0}? if 0 stands for it.",
            excerpt(place), excerpt(limits_.feature(feature))));
  }
  std::string features = kFeatures;
  rank_.key(features);
  rank_.start_object();
  for (const auto& [name, index] : limits_.names.empty() ? named_by_first_ : limits_.names) {
    if (kinds_[index] == HitOrigins::kCounter) continue;
    std::string known = limits_.names.empty() ? fmt::format("{}", index + 1) : name;
    rank_.key(known);
    rank_.real(values_[index]);
  }
  rank_.end_object();
}

std::string SearchResponseReader::field() const {
  switch (place_) {
    case kBody:
    case kRequest:
      return key_.empty() ? "body" : excerpt(key_);
    case kResponse:
      return "response" + (wanted_ ? ".hits" : std::string());
    case kHits:
      return "response.hits.hits";
    case kHitList:
    case kHit:
      return hit_place();
    case kFields:
    case kLogs:
    case kLog:
      return fmt::format("{}.{}", hit_place(), kFeatures);
    case kLogged:
      return log_place();
    case kFeature:
      return fmt::format("{}[{}].{}", log_place(), logged_, key_);
  }
  return "body";
}

bool SearchResponseReader::null() {
  if (skip_ > 0 || !wanted_) return true;
  if (!is_passed() && (place_ == kHit || place_ == kFields)) return true;  // a hit without fields
  return is_passed() ? rank_.null() : RequestReader::null();
}

bool SearchResponseReader::text(std::string& value) {
  if (skip_ > 0 || !wanted_) {
    if (is_followed_ && path_ == kMatchedQueries) take(fmt::format("{}{}", kMatched, value), 1.0);
    if (is_followed_ && path_.size() <= limits_.origins.longest && limits_.origins.places.contains(path_))
      throw ApiError(422, hit_place() + "." + excerpt(path_),
                     "The value is a string; a feature is a number.");
    return true;
  }
  if (is_passed()) return rank_.string(value);
  if (place_ != kFeature || key_ != "name") reject_type("string");
  check_text(value, limits_.text_bytes);
  name_ = value;
  return true;
}

bool SearchResponseReader::number(double value, std::optional<std::int64_t> whole) {
  if (skip_ > 0 || !wanted_) {
    if (is_followed_) take(path_, value);
    return true;
  }
  if (is_passed()) return whole ? rank_.number_integer(*whole) : rank_.real(value);
  if (place_ != kFeature || key_ != "value") reject_type("number");
  value_ = value;
  return true;
}

bool SearchResponseReader::flag(bool value) {
  if (skip_ > 0 || !wanted_) return number(value ? 1.0 : 0.0, std::nullopt);
  if (is_passed()) return rank_.boolean(value);
  reject_type("boolean");
}

}  // namespace olrank
