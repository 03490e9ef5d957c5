#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace olrank {

/// A survey says what a feedback log holds: records from round 1 on, and whatever follows the last of them.
struct LogSurvey {
  enum class Rest {
    kNone,
    kNewline,  // the last record is complete but for its newline
    kTorn,     // the beginning of a record, without a newline: a write that a crash interrupted
    kDamage,   // anything else
    kLater,    // what comes after the records that are wanted
  };

  std::uint64_t records = 0;      // valid ones, including one that lacks its newline
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
LogSurvey survey_log(std::string_view text, std::size_t latest,
                     std::uint64_t most = std::numeric_limits<std::uint64_t>::max());

}  // namespace olrank
