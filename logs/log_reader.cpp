#include "logs/log_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "core/runtime/log.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "logs/log_text.h"

namespace olrank {
namespace {

constexpr std::size_t kLongestRecord = std::size_t{256} << 20;

std::filesystem::path log_file_of(const std::filesystem::path& named) {
  return std::filesystem::is_directory(named) ? named / "feedback.jsonl" : named;
}

/// The beginning of a record, or zeros where a file has grown before its bytes were on disk.
bool may_be_torn(std::string_view line) {
  return (line.front() == '{' || line.front() == '\0') && line.back() != '}';
}

class LoggedClicksReader {
 public:
  explicit LoggedClicksReader(const LoggedClicksRequest& request) : request_(request) {}

  LoggedClicks read() {
    LogReader reader(request_.log);
    FeedbackRecord record;
    while (reader.next(record)) take(record, reader);
    check();
    if (!has_inputs()) {
      log_.docs.columns = 0;
      log_.docs.inputs = {};
    }
    return std::move(log_);
  }

 private:
  void take(const FeedbackRecord& record, const LogReader& reader) {
    if (request_.inputs) check_inputs(record, reader);
    const std::int64_t shown = std::min(record.shown(), request_.ranks);
    if (shown < record.shown()) ++log_.longer_lists;
    const std::int64_t list = log_.lists();
    list_.clear();
    for (std::int64_t rank = 0; rank < shown; ++rank) {
      const std::int32_t doc = number_of(record, rank);
      if (shown_in_[doc] == list) {
        throw_data_error(reader.file(), reader.number(), 1, "Document '{}' is shown twice.",
                         excerpt(record.docs[rank].text));
      }
      shown_in_[doc] = list;
      list_.push_back(doc);
      log_.clicks += record.clicks[rank];
    }
    const std::string identity = record.impression.empty() ? fmt::format("{}", list) : record.impression;
    (is_held_out(identity) ? log_.held_out : log_.fitted)
        .add(list_, std::span(record.clicks).first(static_cast<std::size_t>(shown)));
  }

  std::int32_t number_of(const FeedbackRecord& record, std::int64_t rank) {
    const auto [number, is_new] = numbers_.add(record.query, record.docs[rank].text);
    if (is_new) {
      ++log_.docs.count;
      shown_in_.push_back(-1);
      if (has_inputs()) {
        const auto row = record.inputs.begin() + rank * record.columns;
        log_.docs.inputs.insert(log_.docs.inputs.end(), row, row + record.columns);
      }
    }
    return number;
  }

  void check_inputs(const FeedbackRecord& record, const LogReader& reader) {
    const std::int64_t columns = record.columns;
    if (log_.lists() == 0) {
      log_.docs.columns = columns;
      feature_names_ = record.feature_names;
    } else if (request_.inputs && columns != 0 && record.feature_names != feature_names_) {
      throw DataError(
          reader.file(), reader.number(), 1,
          "The documents have other features than those of earlier lists: give the lists of one schema.");
    }
    if (columns != 0 && log_.docs.columns != 0 && columns != log_.docs.columns) {
      throw_data_error(reader.file(), reader.number(), 1,
                       "The documents have {}, and those of earlier lists {}.", counted(columns, "input"),
                       log_.docs.columns);
    }
    if (columns == 0) inputs_missing_ = true;
  }

  bool has_inputs() const { return request_.inputs && !inputs_missing_; }

  bool is_held_out(std::string_view identity) const {
    const std::uint64_t hash = fingerprint_of(identity).low;
    return static_cast<double>(hash >> 11) * 0x1.0p-53 < request_.holdout;
  }

  void check() const {
    if (log_.lists() == 0) throw_error<InvalidArgument>("{} has no lists.", request_.log);
    if (log_.clicks == 0) {
      throw_error<InvalidArgument>(
          "{} has {} without a click, from which no click model can be fitted: give a log with clicks.",
          request_.log, counted(log_.lists(), "list"));
    }
    if (log_.held_out.size() == 0 || log_.fitted.size() == 0) {
      throw_error<InvalidArgument>("--holdout {} leaves no list to {} of the {} in {}: give a longer log.",
                                   request_.holdout, log_.fitted.size() == 0 ? "fit" : "hold out",
                                   counted(log_.lists(), "list"), request_.log);
    }
  }

  const LoggedClicksRequest& request_;
  LoggedClicks log_;
  ClickDocNumbers numbers_;
  std::vector<std::int64_t> shown_in_;  // by document: the last list that showed it
  std::vector<std::int32_t> list_;
  bool inputs_missing_ = false;
  std::string feature_names_;  // of the first list
};

}  // namespace

TextLines log_lines(const std::filesystem::path& file) {
  if (file.filename() != "feedback.jsonl") return TextLines::of_file(file, kLongestRecord);
  auto text = std::make_shared<const LogText>(file);
  if (text->segments().empty()) return TextLines::of_file(file, kLongestRecord);
  if (text->begin() > 0)
    log_info("{}: The log begins with round {}: earlier ones were dropped.", file.string(),
             round_of(text->lines_at(text->begin())));
  return TextLines::of_stream(log_stream(std::move(text)), file.string(), kLongestRecord);
}

LogReader::LogReader(const std::filesystem::path& log, bool inputs)
    : lines_(log_lines(log_file_of(log))), inputs_(inputs) {}

bool LogReader::next(FeedbackRecord& record) {
  while (lines_.next()) {
    if (lines_.blank() || line().starts_with("{\"config\":")) continue;  // the first line of a trace
    const auto failure = parse_record(line(), record);
    by_version_ = !failure && !record.versions.empty();
    if (by_version_ && inputs_) {
      std::string wrong = documents_ ? documents_->apply(record) : "not read yet";
      if (!wrong.empty()) {  // a service may have stored it since
        documents_.emplace(std::filesystem::path(file()).parent_path() / DocumentVersions::kFile);
        wrong = documents_->apply(record);
      }
      if (!wrong.empty()) throw DataError(file(), number(), 1, wrong);
    }
    if (!failure) {
      ++records_;
      if (record.round == 0) record.round = records_;
      return true;
    }
    const DataError error(file(), number(), failure->column, failure->message);
    if (!may_be_torn(line()) || lines_.next()) throw DataError(error);
    log_info("{}: Left out the last line, which is not complete, as while a service writes it.", file());
  }
  return false;
}

LogDocs::LogDocs(const Dataset& data, bool named) : data_(data), named_(named), finder_(data) {
  for (std::int64_t query = 0; query < data.queries(); ++query) queries_.emplace(data.qid(query), query);
}

std::string LogDocs::find_query(std::string_view name, std::int64_t& query) const {
  const auto found = queries_.find(name);
  if (found == queries_.end()) return fmt::format("The data has no query '{}'.", name);
  query = found->second;
  return "";
}

std::string LogDocs::find(std::int64_t query, std::span<const DocId> ids, std::vector<std::int32_t>& docs) {
  const auto place_of = [](const std::string& text) {
    return text.size() < 9 ? static_cast<std::int32_t>(std::stol(text)) : -1;
  };
  for (const DocId& id : ids) {
    const std::int32_t doc = id.is_number && !named_ ? place_of(id.text) : finder_.by_label(query, id.text);
    if (doc < 0 || doc >= data_.docs_of(query))
      return fmt::format("Query '{}' of the data has no document '{}'.", data_.qid(query), id.text);
    docs.push_back(doc);
  }
  return "";
}

LoggedClicks read_logged_clicks(const LoggedClicksRequest& request) {
  return LoggedClicksReader(request).read();
}

}  // namespace olrank
