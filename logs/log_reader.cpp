#include "logs/log_reader.h"

#include "core/error.h"
#include "core/runtime/log.h"

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

}  // namespace

LogReader::LogReader(const std::filesystem::path& log)
    : lines_(TextLines::of_file(log_file_of(log), kLongestRecord)) {}

bool LogReader::next(FeedbackRecord& record) {
  while (lines_.next()) {
    if (lines_.blank() || line().starts_with("{\"config\":")) continue;  // the first line of a trace
    const auto failure = parse_record(line(), record);
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

}  // namespace olrank
