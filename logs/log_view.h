#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>

#include "core/feedback/feedback_record.h"
#include "core/text/text_table.h"
#include "logs/log_text.h"

namespace olrank {

/// Which records of a log to show; all that are not given are any.
struct LogFilter {
  std::optional<std::uint64_t> from_round;
  std::optional<std::uint64_t> to_round;
  std::optional<std::string> query;
  std::optional<std::string> impression;
  std::optional<bool> clicked;  // whether anything was
  std::optional<std::int64_t> limit;

  bool takes(const FeedbackRecord& record) const;
};

/// Shows records as text, with clicked documents marked by a *, or as their lines without the documents'
/// inputs and the checksum, which covers these.
void show_log(const std::filesystem::path& log, const LogFilter& filter, const OutputForm& form,
              const TextSink& out);

/// Says what a log holds: {"log", "records", "time", "queries", "documents", …}; null where none has it.
nlohmann::ordered_json log_statistics(const std::filesystem::path& log);
std::string log_statistics_text(const nlohmann::ordered_json& statistics, std::int64_t columns);

/// A survey says what a feedback log holds: records from round 1 on, or from the first one that was not
/// dropped, and whatever follows the last of them.
struct LogSurvey {
  enum class Rest {
    kNone,
    kNewline,  // the last record is complete but for its newline
    kTorn,     // the beginning of a record, without a newline: a write that a crash interrupted
    kDamage,   // anything else
    kLater,    // what comes after the records that are wanted
  };

  std::uint64_t records = 0;      // valid ones, including one that lacks its newline and those dropped
  std::uint64_t dropped = 0;      // before the first one
  std::int64_t end = 0;           // just past the last valid record
  std::int64_t latest_begin = 0;  // of the first of the latest records
  Rest rest = Rest::kNone;
  std::int64_t rest_bytes = 0;

  // A damaged log has something wrong with the line after the last valid record, and cutting there would
  // lose so many lines of both sorts.
  std::string fault;
  std::int64_t lost_records = 0;
  std::int64_t lost_lines = 0;  // that are no valid records
};

/// `latest`: how many of the last records latest_begin is to include. No more than `most` records count.
LogSurvey survey_log(const LogText& log, std::size_t latest,
                     std::uint64_t most = std::numeric_limits<std::uint64_t>::max());

}  // namespace olrank
