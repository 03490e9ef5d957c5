#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "core/data/letor_reader.h"
#include "core/error.h"
#include "core/feedback/feedback_record.h"
#include "core/io/json.h"
#include "logs/list_features.h"
#include "logs/shown_lists.h"
#include "sim/recorded_feedback.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/promise.h"

namespace olrank::fuzz {

/// A matrix of LETOR text is as wide as the largest feature number says.
inline bool has_wide_features(std::string_view text) {
  for (std::size_t colon = text.find(':'); colon != std::string_view::npos;
       colon = text.find(':', colon + 1)) {
    std::size_t digits = 0;
    while (digits < colon && text[colon - digits - 1] >= '0' && text[colon - digits - 1] <= '9') ++digits;
    if (digits > 4) return true;
  }
  return false;
}

/// A list as `log import` writes it is one that a service reads. `number` is its place.
inline void check_shown_list(ShownListRecord list, std::int64_t features, std::uint64_t number) {
  FeedbackRecord& record = list.record;
  const auto docs = std::ssize(record.docs);
  promise(list.line >= 1 && record.shown() >= 1 && record.shown() <= docs && !record.query.empty());
  promise(std::ssize(list.features) == features * docs && record.rewards.empty());
  for (const float value : list.features) promise(std::isfinite(value));
  std::set<std::string> names;
  for (const DocId& doc : record.docs) names.insert(doc.text);
  promise(std::ssize(names) == docs);
  if (record.impression.empty()) record.impression = fmt::format("imported-{}", number);
  record.round = number;
  record.columns = 1;
  record.inputs.assign(record.docs.size(), 0.5F);
  std::string line = record_line(number, record_body(record));
  promise(line.ends_with('\n'));
  line.pop_back();
  promise(line.find('\n') == std::string::npos && has_valid_check(line));
  FeedbackRecord read;
  promise(!parse_record(line, read) && read == record);
}

/// Lists that other programs have shown: a DataError, or lists that a service reads. The first byte chooses
/// the format and the first rank. What follows a form feed is the file of events.
inline void check_shown_lists(unsigned choice, std::string_view bytes) {
  ShownListSource source;
  source.format = static_cast<ShownListFormat>(choice & 3U);
  source.first_rank = (choice & 4U) != 0 ? 1 : 0;
  if (source.format == ShownListFormat::kLetor && has_wide_features(bytes)) return;
  const std::string_view text = bytes.substr(0, bytes.find('\f'));
  const MemoryFile lists(text);
  const MemoryFile events(bytes.substr(std::min(text.size() + 1, bytes.size())));
  source.lists = lists.path();
  source.events = events.path();
  is_taken<DataError>([&] {
    const std::unique_ptr<ShownLists> read = ShownLists::open(source);
    std::uint64_t number = 0;
    for (ShownListRecord list; read->next(list);) check_shown_list(list, read->features(), ++number);
    promise(read->empty_lists() >= 0 && read->stray_clicks() >= 0);
  });
}

/// Features of documents: a DataError with a place, or finite ones.
inline void check_list_features(std::string_view bytes) {
  const MemoryFile file(bytes);
  is_taken<DataError>([&] {
    const ListFeatures read = ListFeatures::read(file.path(), {});
    promise(read.features() >= 1);
    for (const char* query : {"q", "10", ""}) {
      for (const char* doc : {"d", "7", ""}) {
        const float* const values = read.find(query, doc);
        for (std::int64_t k = 0; values != nullptr && k < read.features(); ++k)
          promise(std::isfinite(values[k]));
      }
    }
  });
}

/// Recorded rounds of some data: a DataError with its place, or rounds that their own lines reproduce.
inline void check_recorded_feedback(std::string_view bytes) {
  static ThreadPool pool(1);
  static const Dataset data = read_letor_bytes(
      "0 qid:10 1:1 # docid = a\n0 qid:10 1:2 # docid = b\n0 qid:10 1:3\n0 qid:q 1:1 # docid = a\n"
      "0 qid:q 1:2 # docid = a\n0 qid:q 1:3 # docid = \xC3\xA9\n",
      "data", {}, pool);
  constexpr std::int64_t kMostBytes = 1 << 16;
  is_taken<DataError>([&] {
    const MemoryFile file(bytes);
    const RecordedFeedback read = RecordedFeedback::read(file.path(), data, kMostBytes);
    promise(read.rounds() >= 1);
    std::string lines;
    for (std::int64_t round = 0; round < read.rounds(); ++round) {
      const RecordedFeedback::Record record = read.at(round);
      promise(record.query >= 0 && record.query < data.queries());
      const std::set<std::int32_t> shown(record.shown.begin(), record.shown.end());
      promise(!shown.empty() && shown.size() == record.shown.size() && *shown.begin() >= 0 &&
              *shown.rbegin() < data.docs_of(record.query));
      promise(record.clicks.size() == shown.size());
      promise(record.rewards.empty() || record.rewards.size() == shown.size());
      for (const std::uint8_t click : record.clicks) promise(click <= 1);
      for (const double reward : record.rewards) promise(std::isfinite(reward) && reward >= 0.0);
      lines +=
          fmt::format("{{\"qid\":{},\"shown\":[{}],\"clicks\":[{}]", json_string(data.qid(record.query)),
                      fmt::join(record.shown, ","), fmt::join(record.clicks, ","));
      if (!record.rewards.empty())
        lines += fmt::format(",\"rewards\":[{}]", fmt::join(record.rewards, ","));
      lines += "}\n";
    }
    const MemoryFile again(lines);
    promise(RecordedFeedback::read(again.path(), data).fingerprint() == read.fingerprint());
  });
}

using std::literals::operator""sv;
inline constexpr Target kTargets[] = {
    {"shown_lists", with_choice<check_shown_lists>, "0123456789{}[]\":,.-eE\\u\n\r\t \f\0\xC3\xFF"sv,
     4'000},
    {"list_features", check_list_features, "0123456789{}[]\":,.-eE\\u\n\r\t \0\xC3\xFF"sv, 4'000},
    {"recorded_feedback", check_recorded_feedback, "0123456789{}[]\":,.-eE\\u\n\r\t \0\xC3\xFF"sv, 4'000}};

}  // namespace olrank::fuzz
