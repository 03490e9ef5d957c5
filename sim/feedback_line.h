#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace olrank {

/// A document as a recorded list calls it.
struct ShownDoc {
  std::optional<std::int64_t> index;  // within its query, from 0
  std::string name;                   // without an index
  std::int64_t column = 1;
};

/// One line of recorded feedback as it stands, before anything is compared with data. Columns count bytes
/// from 1.
struct FeedbackLine {
  struct Failure {
    std::int64_t column = 1;
    std::string sentence;
  };

  bool blank = false;  // or only a configuration, which a trace begins with: nothing to replay
  std::string qid;
  std::int64_t qid_column = 1;
  std::vector<ShownDoc> shown;
  std::int64_t shown_column = 1;
  std::vector<std::uint8_t> clicks;
  std::int64_t clicks_column = 1;
};

/// Reads {"qid": …, "shown": […], "clicks": […]} into `line`, whose memory is kept; passes over other keys.
/// The first mistake comes back, if there is one.
std::optional<FeedbackLine::Failure> parse_feedback_line(std::string_view text, FeedbackLine& line);

}  // namespace olrank
