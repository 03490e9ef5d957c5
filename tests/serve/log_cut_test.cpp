#include "serve/list_import.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "core/error.h"
#include "core/feedback/feedback_record.h"
#include "core/io/atomic_file.h"
#include "logs/log_view.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

/// A log whose record n has n documents.
std::string growing_log(std::int64_t records) {
  std::string text;
  for (std::int64_t number = 1; number <= records; ++number) {
    FeedbackRecord record;
    record.impression = fmt::format("i-{}", number);
    record.query = ",\"check\":\"";
    for (std::int64_t doc = 0; doc < number; ++doc) record.docs.push_back({fmt::format("d{}", doc), false});
    record.clicks.assign(number, 1);
    record.columns = 1;
    record.inputs.assign(number, 0.1F);
    text += record_line(static_cast<std::uint64_t>(number), record_body(record));
  }
  return text;
}

TEST(LogCut, CopiesRoundsAsALogOfTheirOwn) {
  const TemporaryFolder folder;
  std::ofstream(folder / "log") << growing_log(5);
  EXPECT_EQ(copy_rounds(folder / "log", 2, 4, folder / "copy"), 3U);
  const std::string copy = read_file(folder / "copy");
  const LogSurvey survey = survey_log(copy, 1);
  EXPECT_EQ(survey.records, 3U);
  EXPECT_EQ(survey.rest, LogSurvey::Rest::kNone);
  FeedbackRecord record;
  EXPECT_FALSE(parse_record(std::string_view(copy).substr(0, copy.find('\n')), record));
  EXPECT_EQ(record.impression, "i-2");
  EXPECT_EQ(record.docs.size(), 2U);
  // All of a log is that log.
  EXPECT_EQ(copy_rounds(folder / "log", 1, std::nullopt, folder / "copy"), 5U);
  EXPECT_EQ(read_file(folder / "copy"), growing_log(5));
}

TEST(LogCut, LeavesNoCopyOfWhatItRefuses) {
  const TemporaryFolder folder;
  std::string text = growing_log(3);
  std::ofstream(folder / "log") << text;
  EXPECT_THROW(copy_rounds(folder / "log", 4, std::nullopt, folder / "copy"), InvalidArgument);
  EXPECT_THROW(copy_rounds(folder / "log", 1, 2, folder / "log"), InvalidArgument);
  text[text.find("i-2") + 2] = '9';
  std::ofstream(folder / "log") << text;
  EXPECT_NE(message_of([&] { copy_rounds(folder / "log", 1, 3, folder / "copy"); }).find("log:2:1"),
            std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder / "copy"));
  EXPECT_EQ(copy_rounds(folder / "log", 3, 3, folder / "copy"), 1U);
}

}  // namespace
}  // namespace olrank
