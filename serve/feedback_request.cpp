#include <fmt/format.h>

#include <array>
#include <bit>
#include <span>
#include <utility>

#include "core/io/json.h"
#include "serve/api_error.h"
#include "serve/requests.h"
#include "serve/search_response.h"

namespace olrank {
namespace {

/// Reads feedback, or of a request that deletes documents their IDs alone.
class FeedbackReader final : public RequestReader {
 public:
  FeedbackReader(const RequestLimits& limits, bool ids_alone)
      : limits_(limits), ids_alone_(ids_alone), most_(ids_alone ? 100'000 : limits.docs) {}

  std::vector<std::string> finish_ids() {
    if (seen_ == 0) throw ApiError(422, kNames[kIds], kMissing);
    std::vector<std::string> ids;
    for (ImpressionStore::Click& click : request_.clicks) ids.push_back(std::move(click.doc));
    return ids;
  }

  FeedbackRequest finish() {
    if ((seen_ >> kImpression & 1U) == 0) throw ApiError(422, "impression", kMissing);
    const unsigned given = seen_ & ~(1U << kImpression);
    if (given == 0) throw ApiError(422, "clicks", "The field is missing; send [] if nothing was clicked.");
    if (!std::has_single_bit(given))
      throw ApiError(422, kNames[std::bit_width(given) - 1],
                     fmt::format("Send only one of {}.", joined(names().subspan(kClicks))));
    if (limits_.window) {
      for (ImpressionStore::Click& click : request_.clicks) request_.events.push_back({std::move(click)});
      request_.clicks.clear();
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
      if (!ids_alone_ && name == kNames[kEvents] && !limits_.window)
        throw ApiError(422, name, "This service has no events; it was started without --window.");
      field_ = known_key([] { return std::string(); }, name, names(), seen_) + (ids_alone_ ? kIds : 0);
    } else {
      const auto parent = [&] { return fmt::format("events[{}].", request_.events.size() - 1); };
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
    if (place_ != kTop || field_ < kClicks) reject_type("array");
    place_ = field_ == kEvents ? kEventList : kClickList;
    return true;
  }
  bool end_array() override {
    place_ = kTop;
    return true;
  }

 private:
  enum Place { kBody, kTop, kClickList, kEventList, kEvent };
  enum TopField { kImpression, kClicks, kIds, kRanks, kEvents };  // as in kNames
  enum EventField { kId, kRank, kType, kAt };
  static inline const std::array<std::string, 5> kNames = {"impression", "clicks", "ids", "ranks",
                                                           "events"};
  static inline const std::array<std::string, 4> kEventNames = {"id", "rank", "type", "at"};

  std::span<const std::string> names() const {
    if (ids_alone_) return std::span(kNames).subspan(kIds, 1);
    return std::span(kNames).first(limits_.window ? kNames.size() : std::size_t{kEvents});
  }
  std::string field() const override {
    if (place_ == kBody || field_ < 0) return "body";
    if (place_ == kClickList) return fmt::format("{}[{}]", kNames[field_], request_.clicks.size());
    if (place_ == kEventList) return fmt::format("events[{}]", request_.events.size());
    if (place_ == kEvent) {
      const std::string event = fmt::format("events[{}]", request_.events.size() - 1);
      return event_field_ < 0 ? event : fmt::format("{}.{}", event, kEventNames[event_field_]);
    }
    return kNames[field_];
  }
  bool text(std::string& value) override {
    check_text(value, limits_.text_bytes);
    if (place_ == kClickList && field_ != kRanks) {
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
    if (place_ == kClickList && field_ == kIds) {
      if (!whole) reject("An ID must be a string or an integer.");
      add({-1, fmt::format("{}", *whole)});
    } else if (place_ == kClickList) {
      if (!whole || *whole < 0)
        reject(field_ == kRanks ? "A rank must be an integer from 0."
                                : "A click must be a rank (integer from 0) or a document ID (string).");
      add({*whole, ""});
    } else if (place_ == kEvent && event_field_ == kRank) {
      if (!whole || *whole < 0) reject("A rank must be an integer from 0.");
      request_.events.back().doc = {*whole, "", kNames[kRanks]};
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
    if (std::cmp_equal(taken, most_))
      reject(fmt::format("A request may have at most {} {}.", most_, what), 413);
  }
  void add(ImpressionStore::Click click) {
    require_room(request_.clicks.size(), ids_alone_ ? "IDs" : "clicks");
    click.list = kNames[field_];
    request_.clicks.push_back(std::move(click));
  }

  const RequestLimits& limits_;
  const bool ids_alone_;
  const std::int64_t most_;
  FeedbackRequest request_;
  Place place_ = kBody;
  int field_ = -1;
  int event_field_ = -1;
  unsigned seen_ = 0;
  unsigned event_seen_ = 0;
};

}  // namespace

FeedbackRequest parse_feedback_request(std::string_view body, const RequestLimits& limits) {
  FeedbackReader reader(limits, false);
  parse_json_events(body, reader);
  return reader.finish();
}

std::vector<std::string> parse_document_ids(std::string_view body, const RequestLimits& limits) {
  FeedbackReader reader(limits, true);
  parse_json_events(body, reader);
  return reader.finish_ids();
}

}  // namespace olrank
