#include "serve/search_response.h"

#include <array>
#include <string_view>

namespace olrank {
namespace {

/// It tells what a place is, and the key under which that holds the next; empty: any, or it is an array.
struct Link {
  bool array;
  std::string_view key;
};
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

bool SearchResponseReader::key(std::string& name) {
  if (skip_ > 0) return true;
  wanted_ = place_ == kRequest || place_ == kLog || name == kChain[place_].key ||
            (place_ == kHit && name == kId) || (place_ == kFeature && (name == "name" || name == "value"));
  if (!wanted_) return true;
  key_ = name;
  return place_ == kRequest || is_passed() ? rank_.key(name) : true;
}

bool SearchResponseReader::start(bool array) {
  if (skip_ > 0 || !wanted_) {
    ++skip_;
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
    return true;
  }
  const Place ended = place_;
  if (ended == kResponse && !has_list_) throw ApiError(422, "response.hits.hits", kMissing);
  if (ended == kHit && log_.empty())
    throw ApiError(422, field() + ".fields._ltrlog",
                   "The hit has no feature log: add ext.ltr_log to the search request.");
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
  given_.assign(limits_.features, false);
  logged_ = 0;
  std::string features = kFeatures;
  rank_.key(features);
  rank_.start_object();
}

void SearchResponseReader::end_log() {
  rank_.end_object();
  if (logged_ == limits_.features) return;
  std::string missing;
  for (const auto& [name, index] : limits_.names.empty() ? named_by_first_ : limits_.names) {
    if (!given_[index] && (missing.empty() || name < missing)) missing = name;
  }
  throw ApiError(
      422, log_place(),
      fmt::format("The log has {} of the {} features that the model expects{}.", logged_, limits_.features,
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
  if (given_[found->second])
    throw ApiError(422, log_place(), fmt::format("Feature '{}' is logged twice.", excerpt(*name_)));
  given_[found->second] = true;
  ++logged_;
  std::string known = is_named ? *name_ : fmt::format("{}", found->second + 1);
  rank_.key(known);
  rank_.real(value_);
}

std::string SearchResponseReader::log_place() const {
  return fmt::format("response.hits.hits[{}].{}[0].{}", hits_, kFeatures, excerpt(log_));
}

std::string SearchResponseReader::field() const {
  switch (place_) {
    case kBody:
    case kRequest:
      return key_.empty() ? "body" : excerpt(key_);
    case kResponse:
      return "response" + (wanted_ ? ".hits" : std::string());
    case kHits:
    case kHitList:
      return place_ == kHits ? "response.hits.hits" : fmt::format("response.hits.hits[{}]", hits_);
    case kHit:
      return fmt::format("response.hits.hits[{}]", hits_);
    case kFields:
    case kLogs:
    case kLog:
      return fmt::format("response.hits.hits[{}].{}", hits_, kFeatures);
    case kLogged:
      return log_place();
    case kFeature:
      return fmt::format("{}[{}].{}", log_place(), logged_, key_);
  }
  return "body";
}

bool SearchResponseReader::null() {
  if (skip_ > 0 || !wanted_) return true;
  return is_passed() ? rank_.null() : RequestReader::null();
}

bool SearchResponseReader::text(std::string& value) {
  if (skip_ > 0 || !wanted_) return true;
  if (is_passed()) return rank_.string(value);
  if (place_ != kFeature || key_ != "name") reject_type("string");
  check_text(value, limits_.text_bytes);
  name_ = value;
  return true;
}

bool SearchResponseReader::number(double value, std::optional<std::int64_t> whole) {
  if (skip_ > 0 || !wanted_) return true;
  if (is_passed()) return whole ? rank_.number_integer(*whole) : rank_.real(value);
  if (place_ != kFeature || key_ != "value") reject_type("number");
  value_ = value;
  return true;
}

bool SearchResponseReader::flag(bool value) {
  if (skip_ > 0 || !wanted_) return true;
  if (is_passed()) return rank_.boolean(value);
  reject_type("boolean");
}

}  // namespace olrank
