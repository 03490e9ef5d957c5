#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace olrank {

/// A document of a recorded list: an index or a name.
struct ShownDoc {
  std::optional<std::int64_t> index;  // within its query, from 0
  std::string name;                   // without an index
  std::int64_t column = 1;
};

/// One parsed line of recorded feedback, not yet compared with the data. Columns count bytes from
/// 1.
struct FeedbackLine {
  struct Failure {
    std::int64_t column = 1;
    std::string sentence;
  };

  bool blank = false;  // or only a configuration, the first line of a trace: nothing to replay
  std::string qid;
  std::int64_t qid_column = 1;
  std::vector<ShownDoc> shown;
  std::int64_t shown_column = 1;
  std::vector<std::uint8_t> clicks;
  std::int64_t clicks_column = 1;
  std::vector<double> rewards;  // empty: none
  std::int64_t rewards_column = 1;
};

/// Parses {"qid": …, "shown": […], "clicks": […], "rewards": […]} into `line`, reusing its memory; only the
/// last one may be missing. Skips other keys.
/// Returns the first mistake, if any.
std::optional<FeedbackLine::Failure> parse_feedback_line(std::string_view text, FeedbackLine& line);

}  // namespace olrank
