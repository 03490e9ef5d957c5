#include "logs/log_survey.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "core/feedback/feedback_record.h"
#include "core/text/counted.h"

namespace olrank {
namespace {

constexpr std::string_view kRound = "{\"round\":";

/// How the record of a round begins.
std::string beginning(std::uint64_t round) {
  return fmt::format("{}{},", kRound, round);
}

/// A crash leaves the beginning of what was being written, or zeros where the file had grown but its bytes
/// were not yet on disk.
bool is_torn(std::string_view rest, std::uint64_t round) {
  const std::string expected = beginning(round);
  const std::string_view written = rest.substr(0, rest.find('\0'));
  return written.substr(0, expected.size()) == std::string_view(expected).substr(0, written.size());
}

std::string fault_of(std::string_view line, std::uint64_t round, std::int64_t valid_after) {
  const bool carriage_return = !line.empty() && line.back() == '\r';
  if (carriage_return && has_valid_check(line.substr(0, line.size() - 1))) {
    return "The line ends in CR LF, but was written with LF: something converted this file's line ends. "
           "Convert them back (sed -i 's/\\r$//' FILE), and the log is whole again.";
  }
  if (has_valid_check(line)) {
    return fmt::format(
        "The line is a valid record, but begins with {} instead of {}: records are missing, "
        "repeated or in another order.",
        line.substr(0, std::min(line.find(','), std::size_t{40})), beginning(round));
  }
  if (valid_after > 0) {
    return fmt::format("Record {} is damaged or missing, but {} {} it.", round,
                       counted(valid_after, "valid record"), valid_after == 1 ? "follows" : "follow");
  }
  if (line.substr(0, kRound.size()) == kRound)
    return fmt::format("Record {} is damaged: its checksum does not match.", round);
  return round == 1
             ? "The file is not a feedback log: not a single line of it is a record. If it is recorded "
               "feedback, move it elsewhere and learn it with --import-log."
             : "The line is not a record of a feedback log.";
}

void describe_damage(std::string_view rest, LogSurvey& survey) {
  const std::string_view first = rest.substr(0, rest.find('\n'));
  for (std::string_view left = rest; !left.empty();) {
    const std::string_view line = left.substr(0, left.find('\n'));
    left.remove_prefix(std::min(line.size() + 1, left.size()));
    ++(has_valid_check(line) ? survey.lost_records : survey.lost_lines);
  }
  survey.fault = fault_of(first, survey.records + 1, survey.lost_records);
}

}  // namespace

LogSurvey survey_log(std::string_view text, std::size_t latest, std::uint64_t most) {
  LogSurvey survey;
  std::deque<std::int64_t> begins;  // of the latest records
  const auto is_next = [&](std::string_view line) {
    const std::string expected = beginning(survey.records + 1);
    return line.substr(0, expected.size()) == expected && has_valid_check(line);
  };
  const auto add = [&](std::size_t end) {
    begins.push_back(survey.end);
    if (begins.size() > latest) begins.pop_front();
    ++survey.records;
    survey.end = static_cast<std::int64_t>(end);
  };
  for (std::size_t begin = 0; begin < text.size() && survey.records < most;) {
    const std::size_t newline = text.find('\n', begin);
    if (newline == std::string_view::npos || !is_next(text.substr(begin, newline - begin))) break;
    add(newline + 1);
    begin = newline + 1;
  }
  const std::string_view rest = text.substr(survey.end);
  if (!rest.empty() && survey.records == most) {
    survey.rest_bytes = std::ssize(rest);
    survey.rest = LogSurvey::Rest::kLater;
    survey.lost_records = std::count(rest.begin(), rest.end(), '\n');
  } else if (!rest.empty() && rest.find('\n') == std::string_view::npos && is_next(rest)) {
    add(text.size());
    survey.rest = LogSurvey::Rest::kNewline;
  } else if (!rest.empty()) {
    survey.rest_bytes = std::ssize(rest);
    const bool one_line = rest.find('\n') == std::string_view::npos;
    survey.rest =
        one_line && is_torn(rest, survey.records + 1) ? LogSurvey::Rest::kTorn : LogSurvey::Rest::kDamage;
    if (survey.rest == LogSurvey::Rest::kDamage) describe_damage(rest, survey);
  }
  survey.latest_begin = begins.empty() ? survey.end : begins.front();
  return survey;
}

}  // namespace olrank
