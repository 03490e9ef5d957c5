#include "serve/feedback_log.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "core/io/atomic_file.h"
#include "tests/support/expected_warnings.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

FeedbackRecord record_of(int number) {
  FeedbackRecord record;
  record.impression = fmt::format("i-{}", number);
  record.query = "q";
  record.docs = {{"a", false}, {"b", false}};
  record.clicks = {1, 0};
  record.columns = 1;
  record.inputs = {static_cast<float>(number), 0.5F};
  return record;
}

std::vector<FeedbackRecord> read_all(const FeedbackLog& log, std::int64_t position = 0) {
  FeedbackLog::Reader reader(log, position);
  std::vector<FeedbackRecord> records;
  for (std::string_view line; reader.next(line);) {
    records.emplace_back();
    EXPECT_FALSE(parse_record(line, records.back()));
  }
  return records;
}

void write_bytes(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

TEST(FeedbackLog, KeepsRecordsInRoundOrder) {
  const TemporaryFolder folder;
  {
    FeedbackLog log(folder / "log", 10);
    EXPECT_EQ(log.recovery().records, 0U);
    for (int number = 1; number <= 5; ++number)
      EXPECT_EQ(log.append(record_of(number)), static_cast<std::uint64_t>(number));
    EXPECT_EQ(log.rounds(), 5U);
  }
  FeedbackLog log(folder / "log", 2);
  EXPECT_EQ(log.recovery().records, 5U);
  ASSERT_EQ(log.recovery().latest.size(), 2U);
  EXPECT_EQ(log.recovery().latest.back().impression, "i-5");
  EXPECT_EQ(log.append(record_of(6)), 6U);
  const auto records = read_all(log);
  ASSERT_EQ(records.size(), 6U);
  for (std::size_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(records[i].round, i + 1);
    EXPECT_EQ(records[i].inputs.front(), static_cast<float>(i + 1));
  }
}

// A crash may leave any prefix of the bytes being written.
TEST(FeedbackLog, CutsOffATornTailAtAnyByte) {
  const TemporaryFolder folder;
  std::string whole;
  std::vector<std::size_t> ends = {0};
  for (std::uint64_t round = 1; round <= 3; ++round) {
    whole += record_line(round, record_body(record_of(static_cast<int>(round))));
    ends.push_back(whole.size());
  }
  // Every eleventh size, and every size near the end of a record.
  const auto is_near_an_end = [&](std::size_t size) {
    return std::any_of(ends.begin(), ends.end(),
                       [&](std::size_t end) { return size + 2 >= end && size <= end + 2; });
  };
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    if (size % 11 != 0 && !is_near_an_end(size)) continue;
    const auto path = folder / fmt::format("log-{}", size);
    write_bytes(path, std::string_view(whole).substr(0, size));
    const ExpectedWarnings warnings;
    FeedbackLog log(path, 5);
    const std::size_t records = std::upper_bound(ends.begin(), ends.end(), size) - ends.begin() - 1;
    ASSERT_EQ(log.recovery().records, records) << size;
    ASSERT_EQ(static_cast<std::size_t>(log.recovery().cut_bytes), size - ends[records]);
    ASSERT_EQ(warnings.messages().size(), size == ends[records] ? 0U : 1U);
    if (size != ends[records]) {
      ASSERT_EQ(read_file(log.recovery().cut_to), whole.substr(ends[records], size - ends[records]));
    }
    ASSERT_EQ(log.append(record_of(9)), records + 1);
    ASSERT_EQ(read_all(log).size(), records + 1);
  }
}

TEST(FeedbackLog, RefusesDamageBeforeValidRecords) {
  const TemporaryFolder folder;
  std::string bytes;
  for (std::uint64_t round = 1; round <= 3; ++round)
    bytes += record_line(round, record_body(record_of(static_cast<int>(round))));
  bytes[bytes.size() / 2] ^= 4;
  write_bytes(folder / "log", bytes);
  EXPECT_THROW(FeedbackLog(folder / "log", 5), DataError);
  EXPECT_EQ(read_file(folder / "log"), bytes);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);

  // Damage in the last record counts as a torn tail.
  bytes.resize(bytes.rfind('\n', bytes.size() - 2) + 1);
  write_bytes(folder / "log", bytes);
  const ExpectedWarnings warnings;
  const FeedbackLog log(folder / "log", 5);
  EXPECT_EQ(log.recovery().records, 1U);
  ASSERT_EQ(warnings.messages().size(), 1U);
  EXPECT_NE(warnings.messages()[0].find("after record 1 were not a valid record"), std::string::npos);
  EXPECT_EQ(static_cast<std::int64_t>(read_file(log.recovery().cut_to).size()), log.recovery().cut_bytes);
}

TEST(FeedbackLog, GivesConcurrentWritersDistinctRounds) {
  const TemporaryFolder folder;
  FeedbackLog log(folder / "log", 5);
  std::mutex mutex;
  std::set<std::uint64_t> rounds;
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 8; ++writer) {
    writers.emplace_back([&, writer] {
      for (int number = 0; number < 25; ++number) {
        const std::uint64_t round = log.append(record_of(100 * writer + number));
        // An acknowledged round is already in the file.
        FeedbackLog::Reader reader(log, 0);
        std::uint64_t found = 0;
        for (std::string_view line; reader.next(line);) ++found;
        EXPECT_GE(found, round);
        const std::lock_guard lock(mutex);
        EXPECT_TRUE(rounds.insert(round).second);
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(rounds.size(), 200U);
  EXPECT_EQ(*rounds.rbegin(), 200U);
  std::set<std::string> impressions;
  for (const auto& record : read_all(log)) impressions.insert(record.impression);
  EXPECT_EQ(impressions.size(), 200U);
}

/// Limits this process's file size, which looks like a full disk.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

TEST(FeedbackLog, RecoversFromAFullDisk) {
  const TemporaryFolder folder;
  FeedbackLog log(folder / "log", 5);
  log.append(record_of(1));
  {
    const FullDisk full(static_cast<rlim_t>(log.bytes()) + 20);
    EXPECT_THROW(log.append(record_of(2)), LogFull);
    EXPECT_THROW(log.append(record_of(2)), LogFull);
  }
  EXPECT_EQ(log.rounds(), 1U);
  EXPECT_EQ(log.append(record_of(3)), 2U);
  const auto records = read_all(log);
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[1].impression, "i-3");
}

}  // namespace
}  // namespace olrank
