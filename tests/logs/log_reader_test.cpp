#include "logs/log_reader.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/error.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

constexpr std::string_view kFirstLine = R"({"round":7,"qid":"q","shown":["a","b"],"clicks":[0,1]})";

/// The rounds of a log with these bytes.
std::vector<std::uint64_t> rounds_in(const std::filesystem::path& file, std::string_view bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
  LogReader log(file);
  std::vector<std::uint64_t> rounds;
  for (FeedbackRecord record; log.next(record);) rounds.push_back(record.round);
  return rounds;
}

TEST(LogReader, TakesTracesAndRecordsWithoutARound) {
  const TemporaryFolder folder;
  const std::string text = std::string(R"({"config":{"a":1}})") + "\n" + std::string(kFirstLine) + "\n\n" +
                           R"({"qid":"q","shown":[3],"clicks":[0]})" + "\n";
  EXPECT_EQ(rounds_in(folder / "log", text), (std::vector<std::uint64_t>{7, 2}));
}

TEST(LogReader, FindsTheLogOfAStateFolder) {
  const TemporaryFolder folder;
  std::ofstream(folder / "feedback.jsonl") << kFirstLine;
  LogReader log(folder / "");
  FeedbackRecord record;
  EXPECT_TRUE(log.next(record));
  EXPECT_EQ(log.line(), kFirstLine);
  EXPECT_FALSE(log.next(record));
}

TEST(LogReader, LeavesOutALastLineThatIsBeingWritten) {
  const TemporaryFolder folder;
  const std::string line(kFirstLine);
  for (std::size_t length = 0; length < line.size(); ++length)
    EXPECT_EQ(rounds_in(folder / "log", line + "\n" + line.substr(0, length)).size(), 1U) << length;
}

TEST(LogReader, RefusesABrokenLineBeforeOthersAndACompleteOneThatIsWrong) {
  const TemporaryFolder folder;
  const std::string line(kFirstLine);
  EXPECT_NE(message_of([&] {
              rounds_in(folder / "log", line + "\n" + line.substr(0, 20) + "\n" + line);
            }).find("log:2:"),
            std::string::npos);
  EXPECT_THROW(rounds_in(folder / "log", R"({"qid":"q","shown":[3],"clicks":[0,1]})"), DataError);
}

}  // namespace
}  // namespace olrank
