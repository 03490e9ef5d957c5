#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/feedback/feedback_record.h"
#include "core/io/fingerprint.h"
#include "core/io/json.h"
#include "serve/api_error.h"
#include "serve/event_window.h"
#include "serve/file_log.h"
#include "serve/impression_file.h"
#include "serve/open_lists.h"
#include "serve/request_head.h"
#include "serve/requests.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/promise.h"

namespace olrank::fuzz {

inline void check_api_error(const ApiError& error) {
  promise(error.status() >= 400 && error.status() < 500);
  const std::string_view sentence = error.what();
  promise(sentence.size() < 1000 && (sentence.ends_with('.') || sentence.ends_with('?')));
  const std::string json = error.json();
  promise(json.ends_with("}}\n"));
  promise(std::none_of(json.begin(), json.end() - 1, [](unsigned char c) { return c < 0x20; }));
}

/// The head of a request, in two pieces cut at the first byte's place: a scanner that sees no difference,
/// and checks that let through only what is not ambiguous and who has the token.
inline void check_request_head(unsigned cut, std::string_view bytes) {
  HeadScanner whole;
  HeadScanner pieces;
  const HeadScanner::Result result = whole.scan(bytes);
  HeadScanner::Result in_two = pieces.scan(bytes.substr(0, cut));
  if (in_two == HeadScanner::kIncomplete && cut < bytes.size()) in_two = pieces.scan(bytes.substr(cut));
  promise(in_two == result);
  if (result != HeadScanner::kComplete) return;
  promise(pieces.size() == whole.size() && whole.size() <= bytes.size());
  std::string_view text = bytes.substr(0, whole.size());
  promise(text.ends_with("\r\n\r\n") && !has_bare_line_feed(text));

  RequestHead head;
  const auto take = [](std::string_view& from, std::string_view end) {
    const std::string_view part = from.substr(0, from.find(end));
    from.remove_prefix(std::min(from.size(), part.size() + end.size()));
    return std::string(part);
  };
  std::string line = take(text, "\r\n");
  std::string_view rest = line;
  head.method = take(rest, " ");
  head.target = take(rest, " ");
  head.http11 = rest != "HTTP/1.0";
  for (line = take(text, "\r\n"); !line.empty(); line = take(text, "\r\n")) {
    rest = line;
    std::string name = take(rest, ":");
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
    head.fields.emplace_back(std::move(name), rest);
  }
  promise(head.path().size() + head.authority().size() <= head.target.size());
  for (const char* token : {"", "secret"}) {
    HttpSettings settings;
    settings.token = token;
    settings.body_bytes = 1000;
    try {
      check_framing(head);
      promise(head.count("Host") <= 1 &&
              head.count("Content-Length") + head.count("Transfer-Encoding") <= 1);
      check_access(head, settings);
      const std::string_view host = head.value("Host");
      if (!settings.token.empty()) {
        promise(is_public(head) || head.value("Authorization").ends_with(" secret"));
      } else {
        promise(head.count("Host") == 0 ||
                std::string_view("lL1[").find(host.at(0)) != std::string_view::npos);
      }
      check_body(head, settings, true);
      promise(head.method != "POST" || head.is_chunked() || content_length(head).value() <= 1000);
    } catch (const ApiError& error) {
      check_api_error(error);
    }
  }
}

inline void check_rank_request(std::string_view bytes, const RequestLimits& limits, bool is_search) {
  RankRequest request;
  (is_search ? parse_rerank_request : parse_rank_request)(bytes, limits, request);
  const std::int64_t docs = std::ssize(request.docs);
  promise(docs >= (is_search ? 0 : 1) && docs <= limits.docs && !request.query.empty() &&
          request.cutoff >= 1);
  promise(request.query.size() <= limits.text_bytes && request.values.size() <= limits.values);
  promise(request.user.size() <= limits.text_bytes &&
          request.incumbent.size() == request.incumbent_docs.size());
  promise(std::ssize(request.values) == docs * limits.features);
  promise(std::ssize(request.groups) == (limits.groups ? docs : 0));
  if (docs == 0) return;
  std::string json = "{\"query\":";
  append_json_string(json, request.query);
  json += fmt::format(",\"k\":{},\"explore\":{},\"docs\":[", request.cutoff, request.explore);
  for (std::int64_t doc = 0; doc < docs; ++doc) {
    json += doc == 0 ? "{\"id\":" : ",{\"id\":";
    append_json_id(json, request.docs[doc]);
    if (limits.groups) json += fmt::format(",\"group\":\"{}\"", letter_of(request.groups[doc]));
    json += ",\"features\":[";
    for (std::int64_t feature = 0; feature < limits.features; ++feature) {
      const float value = request.values[doc * limits.features + feature];
      promise(std::isfinite(value));
      json += fmt::format("{}{:.9g}", feature == 0 ? "" : ",", value);
    }
    json += "]}";
  }
  RankRequest again;
  parse_rank_request(json + "]}", limits, again);
  promise(again.query == request.query && again.docs == request.docs && again.values == request.values);
  promise(again.groups == request.groups && again.cutoff == request.cutoff);
  promise(again.explore == request.explore);
}

inline void check_feedback_request(std::string_view bytes, const RequestLimits& limits) {
  const FeedbackRequest request = parse_feedback_request(bytes, limits);
  promise(!request.impression.empty() && request.impression.size() <= limits.text_bytes);
  promise(std::ssize(request.clicks) <= limits.docs);
  for (const ImpressionStore::Click& click : request.clicks) {
    promise(click.rank >= 0 ? click.doc.empty() : click.rank == -1 && !click.doc.empty());
  }
  promise(limits.window ? std::ssize(request.events) <= limits.docs : request.events.empty());
  for (const ImpressionStore::Event& event : request.events) {
    promise(event.doc.rank >= 0 ? event.doc.doc.empty() : event.doc.rank == -1 && !event.doc.doc.empty());
    promise(!event.type.empty() && event.type.size() <= limits.text_bytes && event.at >= 0);
  }
}

/// The body of a request: an ApiError that JSON can carry, or a request within the limits that its own JSON
/// reproduces. The first byte says which request and which service.
inline void check_request(unsigned choice, std::string_view bytes) {
  RequestLimits limits{.docs = 4, .features = 3, .cutoff = 2, .text_bytes = 32, .values = 9};
  limits.groups = (choice & 2U) != 0;
  limits.most_ranks = (choice & 4U) != 0 ? 5 : 0;
  limits.window = (choice & 8U) != 0;
  if ((choice & 16U) == 0) limits.names = {{"a", 0}, {"b", 1}, {"c", 2}};
  if ((choice & 48U) == 32U) limits.origins = parse_hit_origins({"a=_score", "b=_source.x?"}, limits.names);
  try {
    (choice & 1U) != 0 ? check_feedback_request(bytes, limits)
                       : check_rank_request(bytes, limits, (choice & 64U) != 0);
  } catch (const ApiError& error) {
    check_api_error(error);
    promise((choice & 64U) != 0 || !error.field().empty());
  }
}

/// A line of the log: refused with its column, or a record that its own line reproduces.
inline void check_feedback_record(std::string_view line) {
  has_valid_check(line);
  FeedbackRecord record;
  if (const auto failure = parse_record(line, record)) {
    promise(failure->column >= 1 && failure->column <= std::ssize(line) + 1);
    check_sentence(failure->message);
    return;
  }
  const auto docs = std::ssize(record.docs);
  promise(record.shown() >= 1 && record.shown() <= docs && std::ssize(record.inputs) % docs == 0);
  for (const float value : record.inputs) promise(std::isfinite(value));
  std::set<std::string> names;
  for (const DocId& id : record.docs) names.insert(id.text);
  // A log of other programs has no inputs, and its documents need not be different.
  if (record.columns == 0 && (std::ssize(names) < docs || !record.groups.empty())) return;
  std::string again = record_line(record.round, record_body(record));
  promise(again.ends_with('\n'));
  again.pop_back();
  promise(again.find('\n') == std::string::npos && has_valid_check(again));
  FeedbackRecord reread;
  promise(!parse_record(again, reread) && reread == record);
}

/// The folder of a service whose log has one record.
inline const MemoryFolder& service_folder() {
  static const MemoryFolder folder;
  folder.clear();
  folder.put(
      "feedback.jsonl",
      record_line(1, R"(,"impression":"0123456789abcdef-9","clicks":[1],"qid":"q","time":5,"shown":["a"],)"
                     R"("unshown":[],"inputs":[[1]])"));
  return folder;
}

/// A list whose feedback came is in the log as a record.
inline std::vector<FeedbackRecord> logged_behind_first(const FileLog& log) {
  std::vector<FeedbackRecord> records;
  FileLog::Reader reader(log, 0);
  for (std::string_view line; reader.next(line);) {
    promise(has_valid_check(line) && !parse_record(line, records.emplace_back()));
  }
  promise(!records.empty());
  records.erase(records.begin());
  return records;
}

/// Journals of windows: a DataError, or lists that each start takes up, that take events, and that become
/// records of the log. A form feed ends a journal. With the first byte odd, each line is given without its
/// round and its checksum.
inline void check_event_journal(unsigned choice, std::string_view bytes) {
  const bool complete = choice % 2 != 0;
  const MemoryFolder& folder = service_folder();
  std::vector<std::string> impressions;
  for (int number = 1; !bytes.empty() && number <= 3; ++number) {
    std::string_view journal = bytes.substr(0, bytes.find('\f'));
    bytes.remove_prefix(std::min(journal.size() + 1, bytes.size()));
    std::string text;
    for (std::uint64_t round = 1; !journal.empty(); ++round) {
      const std::string_view line = journal.substr(0, journal.find('\n'));
      const bool ends = line.size() < journal.size();
      journal.remove_prefix(std::min(line.size() + 1, journal.size()));
      text += complete ? record_line(round, line) : std::string(line) + (ends ? "\n" : "");
      if (impressions.size() < 3) impressions.emplace_back(impression_of(line));
    }
    folder.put(fmt::format("events-{:06}.jsonl", number), text);
  }
  FileLog log(folder.path() / "feedback.jsonl", 10);
  std::optional<EventWindow> window;
  const auto start = [&](std::chrono::seconds length) {
    window.reset();
    window.emplace(EventWindow::Settings{length, EventTypes::parse("cart=3"), folder.path(), {}, {}},
                   "fedcba9876543210", log);
    return window->counts().open;
  };
  constexpr std::chrono::seconds kForever{1'000'000'000'000};
  const auto play = [&] {
    const std::size_t open = start(kForever);
    std::set<std::string> clicked;
    for (const std::string& id : impressions) {
      try {
        const ImpressionStore::Event event{{0, ""}, "click", 1};
        if (!window->add(id, {}, std::span(&event, 1)).late) clicked.insert(id);
      } catch (const ApiError& error) {
        check_api_error(error);
      }
    }
    promise(start(std::chrono::seconds(0)) == open);
    const std::size_t closed = window->close_due().size();
    promise(closed + window->counts().open == open && (open > closed || window->counts().bytes == 0));
    const std::vector<FeedbackRecord> records = logged_behind_first(log);
    promise(records.size() == closed);
    for (const FeedbackRecord& record : records)
      promise(record.clicks[0] == 1 || !clicked.contains(record.impression));
    promise(start(kForever) == open - closed);
  };
  is_taken<DataError>([&] { is_taken<InvalidArgument>(play); });
}

/// A file of lists that await feedback: lists that their bytes reproduce, and whose feedback is a record of
/// the log. With the first byte odd, the bytes are one list and get their size and checksum.
inline void check_impression_file(unsigned choice, std::string_view bytes) {
  const bool complete = choice % 2 != 0;
  const MemoryFolder& folder = service_folder();
  std::string head;
  if (complete) {
    const auto size = static_cast<std::uint32_t>(bytes.size());
    const std::uint64_t checksum = fingerprint_of(bytes).low;
    head.append(reinterpret_cast<const char*>(&size), sizeof size);
    head.append(reinterpret_cast<const char*>(&checksum), sizeof checksum);
  }
  folder.put("impressions-000001.bin", head + std::string(bytes));
  FileLog log(folder.path() / "feedback.jsonl", 10);
  const ImpressionFile::Settings file{folder.path(), std::numeric_limits<std::int64_t>::max()};
  FirstAnswers answers({ImpressionLimits{}, "fedcba9876543210", file}, log);
  const std::optional<OpenList> list = ImpressionFile::decoded(bytes);
  if (!complete || !list) return;
  promise(list->shown >= 1 && list->shown <= std::ssize(list->record.docs));
  const std::string& id = list->record.impression;
  const std::string encoded = ImpressionFile::encoded(list->record, list->shown);
  const auto again = ImpressionFile::decoded(ImpressionFile::named(id, encoded));
  promise(again && again->record.impression == id &&
          ImpressionFile::encoded(again->record, again->shown) == encoded);
  try {
    const ImpressionStore::Click click{0, ""};
    if (answers.add(id, std::span(&click, 1), {}).duplicate) return;
  } catch (const ApiError& error) {
    return check_api_error(error);
  }
  const FeedbackRecord record = logged_behind_first(log).at(0);
  promise(record.shown() == list->shown && record.docs == list->record.docs && record.clicks[0] == 1 &&
          record.inputs == list->record.inputs && record.groups == list->record.groups);
}

using std::literals::operator""sv;
inline constexpr std::string_view kJson = "0123456789{}[]\":,.-eE\\u\n \0\xFF"sv;
inline constexpr Target kTargets[] = {
    {"request_head", with_choice<check_request_head>, " \t\r\n:/,;=-?#[]%0\0\xFF"sv},
    {"request", with_choice<check_request>, kJson},
    {"feedback_record", check_feedback_record, kJson},
    {"event_journal", with_choice<check_event_journal>, kJson, 4'000},
    {"impression_file", with_choice<check_impression_file>, "\0\x01\x02\x7F\xFF"sv, 4'000}};

}  // namespace olrank::fuzz
