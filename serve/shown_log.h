#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "serve/feedback_record.h"

namespace olrank {

/// A list of a log, with the place of its line for messages.
struct LoggedLine {
  const FeedbackRecord& record;
  const std::string& file;
  std::int64_t number;  // from 1
};

/// Goes over the lists of a log, in its order and in memory that does not grow with it: feedback.jsonl of a
/// service or its state folder, a trace of a trial, or recorded feedback; plain, .gz or .zst. Throws
/// DataError with the line for a log that cannot be read.
void for_each_shown_list(const std::string& log, const std::function<void(const LoggedLine&)>& take);

}  // namespace olrank
