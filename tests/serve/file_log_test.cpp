#include "serve/file_log.h"

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "core/error.h"
#include "core/feedback/feedback_record.h"
#include "core/io/atomic_file.h"
#include "logs/log_view.h"
#include "serve/list_import.h"
#include "tests/serve/service_fixture.h"
#include "tests/support/expected_warnings.h"
#include "tests/support/message_of.h"
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

std::string lines_of(std::uint64_t first, std::uint64_t last) {
  std::string lines;
  for (std::uint64_t round = first; round <= last; ++round)
    lines += record_line(round, record_body(record_of(static_cast<int>(round))));
  return lines;
}

// A crash may leave any prefix of the bytes being written. Opening the log changes nothing yet.
TEST(FileLog, CutsOffATornTailAtAnyByte) {
  const TemporaryFolder folder;
  const std::string whole = lines_of(1, 3);
  std::vector<std::size_t> ends = {0, lines_of(1, 1).size(), lines_of(1, 2).size(), whole.size()};
  // Every eleventh size, and every size near the end of a record.
  const auto is_near_an_end = [&](std::size_t size) {
    return std::any_of(ends.begin(), ends.end(),
                       [&](std::size_t end) { return size + 2 >= end && size <= end + 2; });
  };
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    if (size % 11 != 0 && !is_near_an_end(size)) continue;
    const auto path = folder / fmt::format("log-{}", size);
    const std::string torn = whole.substr(0, size);
    write_bytes(path, torn);
    const ExpectedWarnings warnings;
    FileLog log(path, 5);
    ASSERT_EQ(read_file(path), torn);
    log.begin_writing();
    // A record that lacks nothing but its newline is complete.
    const bool lacks_newline = std::find(ends.begin(), ends.end(), size + 1) != ends.end();
    const std::size_t known = lacks_newline ? size + 1 : size;
    const std::size_t records = std::upper_bound(ends.begin(), ends.end(), known) - ends.begin() - 1;
    ASSERT_EQ(log.rounds(), records) << size;
    ASSERT_EQ(log.bytes(), static_cast<std::int64_t>(ends[records]));
    ASSERT_EQ(warnings.messages().size(), size == ends[records] ? 0U : 1U);
    if (size > ends[records]) {
      ASSERT_EQ(read_file(log.cut_to()), torn.substr(ends[records]));
    } else {
      ASSERT_TRUE(log.cut_to().empty());
    }
    ASSERT_EQ(log.append(record_of(9)), records + 1);
    ASSERT_EQ(records_of(log).size(), records + 1);
  }
}

// The file had grown, but its bytes were not on disk when the power failed.
TEST(FileLog, CutsOffZerosAtTheEnd) {
  const TemporaryFolder folder;
  write_bytes(folder / "log", lines_of(1, 2) + "{\"rou" + std::string(5000, '\0'));
  const ExpectedWarnings warnings;
  FileLog log(folder / "log", 5);
  EXPECT_EQ(log.append(record_of(3)), 3U);
  EXPECT_EQ(read_file(folder / "log"), lines_of(1, 3));
  ASSERT_EQ(warnings.messages().size(), 1U);
  EXPECT_TRUE(contains(warnings.messages()[0], "5005 bytes after record 2 were not a valid record"));
}

struct Damage {
  const char* name;
  std::string bytes;
  std::uint64_t records;  // before the damage
  const char* fault;      // what the message says
  const char* loss;
};

std::vector<Damage> damages() {
  const std::string one = lines_of(1, 1);
  const std::string two = lines_of(2, 2);
  const std::string three = lines_of(3, 3);
  std::string flipped = two;
  flipped[flipped.size() / 2] ^= 4;
  std::string crlf;
  for (const char c : one + two + three) crlf += c == '\n' ? std::string("\r\n") : std::string(1, c);
  const char* const followed = "Record 2 is damaged or missing, but 1 valid record follows it";
  const char* const no_log = "not a feedback log";
  const char* const line = "0 valid records and 1 line that is none";
  const char* const record = "1 valid record and 0 lines that are none";
  const char* const both = "1 valid record and 1 line that is none";
  return {
      {"middle", one + flipped + three, 1, followed, both},
      {"further from the end", one + flipped + three + lines_of(4, 4), 1, "but 2 valid records follow it",
       "2 valid records and 1 line that is none"},
      {"last complete line", one + flipped, 1, "Record 2 is damaged: its checksum does not match", line},
      {"missing record", one + three, 1, "begins with {\"round\":3 instead of {\"round\":2,", record},
      {"repeated record", one + one, 1, "begins with {\"round\":1 instead of {\"round\":2,", record},
      {"swapped records", one + three + two, 1, "begins with {\"round\":3 instead of {\"round\":2,",
       "2 valid records and 0 lines that are none"},
      {"lost its beginning", two + three, 0, "begins with {\"round\":2 instead of {\"round\":1,",
       "2 valid records and 0 lines that are none"},
      {"converted to CRLF", crlf, 0, "ends in CR LF", "0 valid records and 3 lines that are none"},
      {"somebody's text", "milk\neggs\n", 0, no_log, "0 valid records and 2 lines that are none"},
      {"somebody's line without an end", "milk", 0, no_log, line},
      {"recorded feedback", "{\"qid\":\"1\",\"shown\":[1],\"clicks\":[0]}\n", 0,
       "learn it with --import-log", line},
      {"blank line", one + "\n" + two, 1, followed, both},
      {"zeros in the middle", one + std::string(4096, '\0') + "\n" + three, 1, "damaged or missing", both},
      {"foreign end", one + "milk", 1, "is not a record", line}};
}

TEST(FileLog, RefusesAnythingButATornEndOrCutsWhatIsToldIfItsLossIsAccepted) {
  for (const Damage& damage : damages()) {
    SCOPED_TRACE(damage.name);
    const TemporaryFolder folder;
    write_bytes(folder / "log", damage.bytes);
    const std::string kept = lines_of(1, damage.records);
    const std::string cut = damage.bytes.substr(kept.size());
    try {
      FileLog log(folder / "log", 5);
      ADD_FAILURE() << "accepted";
    } catch (const DataError& error) {
      EXPECT_EQ(error.line(), static_cast<std::int64_t>(damage.records) + 1);
      EXPECT_TRUE(contains(error.what(), damage.fault));
      EXPECT_TRUE(contains(error.what(), fmt::format("cuts {} bytes ({})", cut.size(), damage.loss)));
    }
    EXPECT_EQ(read_file(folder / "log"), damage.bytes);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);

    const ExpectedWarnings warnings;
    FileLog log(folder / "log", 5, true);
    EXPECT_EQ(read_file(folder / "log"), damage.bytes);
    log.begin_writing();
    EXPECT_EQ(read_file(folder / "log"), kept);
    EXPECT_EQ(read_file(log.cut_to()), cut);
    EXPECT_EQ(log.append(record_of(7)), damage.records + 1);
    ASSERT_EQ(warnings.messages().size(), 1U);
    EXPECT_TRUE(contains(warnings.messages()[0], std::string("--accept-loss ") + "cut "));
  }
}

TEST(FileLog, KeepsEarlierCuts) {
  const TemporaryFolder folder;
  for (const char* torn : {"{", "{\"", "{\"r"}) {
    const ExpectedWarnings warnings;
    write_bytes(folder / "log", torn);
    FileLog log(folder / "log", 5);
    log.begin_writing();
    EXPECT_EQ(read_file(log.cut_to()), torn);
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 4);
}

TEST(FileLog, IsLockedWhileOpen) {
  const TemporaryFolder folder;
  write_bytes(folder / "log", lines_of(1, 2));
  const FileLog log(folder / "log", 5);
  EXPECT_THROW(FileLog(folder / "log", 5), IoError);
}

TEST(FileLog, NoticesThatItsFileIsGone) {
  const TemporaryFolder folder;
  FileLog log(folder / "log", 5);
  log.append(record_of(1));
  std::filesystem::rename(folder / "log", folder / "moved");
  EXPECT_THROW(log.append(record_of(2)), StateLost);
  write_bytes(folder / "log", "");
  EXPECT_THROW(log.append(record_of(2)), StateLost);
  EXPECT_EQ(read_file(folder / "log"), "");
  EXPECT_EQ(read_file(folder / "moved"), lines_of(1, 1));
  // Back in its place, it goes on.
  std::filesystem::rename(folder / "moved", folder / "log");
  EXPECT_EQ(log.append(record_of(2)), 2U);
}

TEST(FileLog, RefusesSymbolicLinksAndFolders) {
  const TemporaryFolder folder;
  write_bytes(folder / "theirs", "");
  std::filesystem::create_symlink(folder / "theirs", folder / "log");
  std::filesystem::create_symlink(folder / "nowhere", folder / "dangling");
  std::filesystem::create_directory(folder / "folder");
  for (const char* name : {"log", "dangling", "folder"}) {
    SCOPED_TRACE(name);
    EXPECT_THROW(FileLog(folder / name, 5).begin_writing(), IoError);
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "nowhere"));
}

TEST(FileLog, GivesConcurrentWritersDistinctRounds) {
  const TemporaryFolder folder;
  FileLog log(folder / "log", 5);
  std::mutex mutex;
  std::set<std::uint64_t> rounds;
  in_threads(8, [&](int writer) {
    for (int number = 0; number < 25; ++number) {
      const std::uint64_t round = log.append(record_of(100 * writer + number));
      // An acknowledged round is already in the file.
      FileLog::Reader reader(log, 0);
      std::uint64_t found = 0;
      for (std::string_view line; reader.next(line);) ++found;
      EXPECT_GE(found, round);
      const std::lock_guard lock(mutex);
      EXPECT_TRUE(rounds.insert(round).second);
    }
  });
  EXPECT_EQ(rounds.size(), 200U);
  EXPECT_EQ(*rounds.rbegin(), 200U);
  std::set<std::string> impressions;
  for (const auto& record : records_of(log)) impressions.insert(record.impression);
  EXPECT_EQ(impressions.size(), 200U);
}

TEST(FileLog, IsReadWithoutAnyChange) {
  const TemporaryFolder folder;
  {
    FileLog log(folder / "log", 5);
    for (int number = 1; number <= 3; ++number) log.append(record_of(number));
  }
  const std::string whole = read_file(folder / "log");
  for (const std::size_t missing : {0, 1, 9}) {
    const std::string bytes = whole.substr(0, whole.size() - missing);
    write_file_atomically(folder / "log", bytes);
    FileLog log(folder / "log", 5, false, FileLog::Access::kRead);
    EXPECT_EQ(records_of(log).size(), missing > 1 ? 2U : 3U);
    EXPECT_EQ(read_file(folder / "log"), bytes);
    const FileLog another(folder / "log", 5, false, FileLog::Access::kRead);
  }
  const FileLog none(folder / "none", 5, false, FileLog::Access::kRead);
  EXPECT_EQ(none.rounds(), 0U);
  EXPECT_FALSE(std::filesystem::exists(folder / "none"));
}

TEST(FileLog, RecoversFromAFullDisk) {
  const TemporaryFolder folder;
  FileLog log(folder / "log", 5);
  log.append(record_of(1));
  const ExpectedWarnings warnings;
  {
    const FullDisk full(static_cast<rlim_t>(log.bytes()) + 20);
    EXPECT_THROW(log.append(record_of(2)), LogFull);
    EXPECT_TRUE(log.is_failing());
    EXPECT_THROW(log.append(record_of(2)), LogFull);
  }
  EXPECT_EQ(log.rounds(), 1U);
  EXPECT_EQ(log.append(record_of(3)), 2U);
  EXPECT_FALSE(log.is_failing());
  EXPECT_EQ(warnings.count("Feedback is rejected until there is space; ranking continues."), 1);
  EXPECT_EQ(warnings.count("Feedback is accepted again; 2 were rejected."), 1);
  const auto records = records_of(log);
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[1].impression, "i-3");
}

/// Small segments, so that a few records make several.
FileLog::Segments small(std::string_view keep = "all") {
  return {2 * std::ssize(lines_of(1, 1)), LogKeep::parse(keep)};
}

/// The names of the files with the log, in order.
std::vector<std::string> files_of(const TemporaryFolder& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

/// A log of so many records, whose segments are all compressed.
void make_segments(const TemporaryFolder& folder, int records) {
  FileLog log(folder / "log", 5);
  for (int number = 1; number <= records; ++number) {
    log.append(record_of(number));
    if (number % 3 == 0) log.compact({});
  }
}

TEST(FileLogSegments, AreReadAsOneLogWhileTheyAreWritten) {
  const TemporaryFolder folder;
  std::vector<std::int64_t> ends = {0};
  {
    FileLog log(folder / "log", 5);
    log.begin_writing();
    log.keep_small(small());
    FileLog::Reader reader(log, 0);
    for (int number = 1; number <= 60; ++number) {
      EXPECT_EQ(log.append(record_of(number)), static_cast<std::uint64_t>(number));
      ends.push_back(log.bytes());
      std::string_view line;
      ASSERT_TRUE(reader.next(line));
      ASSERT_EQ(std::string(line) + "\n", lines_of(number, number));
      ASSERT_EQ(reader.position(), log.bytes());
      ASSERT_EQ(LogText(folder / "log").end(), log.bytes());
    }
    EXPECT_GT(log.text()->segments().size(), 10U);
    EXPECT_EQ(LogText(folder / "log").segments().size(), log.text()->segments().size());
  }
  FileLog log(folder / "log", 20);
  EXPECT_EQ(log.rounds(), 60U);
  EXPECT_EQ(records_of(log, log.latest_begin()).size(), 20U);
  for (int number = 1; number <= 60; ++number) {
    ASSERT_EQ(log.line_before(ends[number]) + "\n", lines_of(number, number));
    ASSERT_EQ(records_of(log, ends[number]).size(), 60U - number);
    ASSERT_EQ(log.line_before(ends[number] - 1), "");
  }
}

TEST(FileLogSegments, AreCompressedAndReadToTheSameLines) {
  const TemporaryFolder folder;
  make_segments(folder, 8);
  FileLog log(folder / "log", 5);
  for (const LogText::Segment& segment : log.text()->segments()) EXPECT_TRUE(segment.compressed);
  EXPECT_EQ(log.text()->segments().size(), 2U);
  EXPECT_EQ(log.bytes(), std::ssize(lines_of(1, 8)));
  EXPECT_EQ(log.append(record_of(9)), 9U);
  EXPECT_EQ(records_of(log).size(), 9U);
  EXPECT_EQ(log.line_before(std::ssize(lines_of(1, 3))) + "\n", lines_of(3, 3));
  EXPECT_EQ(log.line_before(std::ssize(lines_of(1, 5))) + "\n", lines_of(5, 5));
}

/// Bytes of a file's mappings that are in the memory of this process.
std::int64_t resident_bytes(const std::filesystem::path& file) {
  std::ifstream maps("/proc/self/smaps");
  std::int64_t kilobytes = 0;
  bool is_of_file = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find('-') < line.find(':')) is_of_file = line.ends_with(file.string());
    if (is_of_file && line.starts_with("Rss:")) kilobytes += std::stoll(line.substr(4));
  }
  return 1024 * kilobytes;
}

TEST(FileLogSegments, ThatAreCompressedTakeNoMemoryOnceTheyAreRead) {
  const TemporaryFolder folder;
  make_segments(folder, 3);
  const std::filesystem::path segment = LogText::segment_path(folder / "log", 0).string() + ".zst";
  const MappedMemory seen = MappedMemory::of_file(segment);
  [[maybe_unused]] const volatile char read = seen.text().back();
  EXPECT_GT(resident_bytes(segment), 0);  // so that the test would see what the log leaves
  seen.leave_pages();
  FileLog log(folder / "log", 5);
  EXPECT_EQ(records_of(log).size(), 3U);
  EXPECT_EQ(resident_bytes(segment), 0);
}

// A kill may come before the new file has its name, and before the old form of a segment is gone.
TEST(FileLogSegments, AreWholeAfterAKillBetweenAnyTwoSteps) {
  const TemporaryFolder folder;
  write_bytes(folder / "log", lines_of(1, 3));
  const auto require_three = [&](std::vector<std::string> files) {
    FileLog log(folder / "log", 5);
    EXPECT_EQ(log.rounds(), 3U);
    log.begin_writing();
    EXPECT_EQ(records_of(log).size(), 3U);
    EXPECT_EQ(files_of(folder), files);
  };
  const std::string segment = "log-000000000000000";
  std::filesystem::rename(folder / "log", folder / segment);
  require_three({"log", segment});
  { FileLog(folder / "log", 5).compact({}); }
  require_three({"log", segment + ".zst"});
  write_bytes(folder / segment, lines_of(1, 3));
  require_three({"log", segment + ".zst"});
  write_bytes(folder / ("." + segment + ".zst.tmp-1-1"), "half a frame");
  std::filesystem::remove(folder / "log");
  require_three({"." + segment + ".zst.tmp-1-1", "log", segment + ".zst"});
}

TEST(FileLogSegments, AreCutWithTheLog) {
  for (const int kept : {0, 1, 3, 4, 6, 7}) {
    const TemporaryFolder folder;
    make_segments(folder, 7);
    const ExpectedWarnings warnings;
    {
      FileLog log(folder / "log", 5, false, FileLog::Access::kWrite, kept);
      EXPECT_EQ(log.survey().lost_records, 7 - kept);
      log.begin_writing();
      if (kept < 7) {
        EXPECT_EQ(read_file(log.cut_to()), lines_of(kept + 1, 7));
      }
      EXPECT_EQ(log.append(record_of(kept + 1)), kept + 1U);
    }
    FileLog log(folder / "log", 5);
    EXPECT_EQ(records_of(log).size(), kept + 1U);
  }
}

TEST(FileLogSegments, ThatAreDamagedOrMissingAreRefusedUnlessTheirLossIsAccepted) {
  for (const char* damage : {"a byte", "its end", "the file"}) {
    const TemporaryFolder folder;
    make_segments(folder, 7);
    const LogText::Segment second = LogText(folder / "log").segments()[1];
    std::string bytes = read_file(second.path);
    if (damage == std::string_view("a byte")) bytes[bytes.size() / 2] ^= 1;
    if (damage == std::string_view("its end")) bytes.resize(bytes.size() - 1);
    if (damage == std::string_view("the file")) {
      std::filesystem::remove(second.path);
    } else {
      write_bytes(second.path, bytes);
    }
    const std::string message = message_of<DataError>([&] { FileLog(folder / "log", 5); });
    EXPECT_TRUE(contains(message, "Nothing was changed."));
    EXPECT_TRUE(contains(message, "after record 3 and keeps them"));
    const ExpectedWarnings warnings;
    FileLog log(folder / "log", 5, true);
    log.begin_writing();
    EXPECT_EQ(log.append(record_of(4)), 4U);
    EXPECT_EQ(records_of(log).size(), 4U);
    EXPECT_EQ(read_file(log.cut_to()), lines_of(7, 7));
    if (damage != std::string_view("the file")) {
      EXPECT_EQ(read_file(fmt::format("{}.cut-at-{}", second.path.string(), second.begin)), bytes);
    }
  }
}

TEST(FileLogSegments, AreDroppedOnceACheckpointHasLearnedThem) {
  const TemporaryFolder folder;
  make_segments(folder, 12);
  {
    FileLog log(folder / "log", 5);
    const auto dropped = [&](std::uint64_t learned, std::string_view keep) {
      log.allow_dropping(learned);
      log.compact(small(keep));
      return log.dropped();
    };
    EXPECT_EQ(dropped(100, "all"), 0U);
    EXPECT_EQ(dropped(3, "checkpoint"), 0U) << "a start looks at the record of the checkpoint";
    EXPECT_EQ(dropped(100, "1d"), 0U);
    EXPECT_EQ(dropped(100, "9"), 3U);
    EXPECT_EQ(dropped(7, "checkpoint"), 6U);
    EXPECT_EQ(dropped(100, "checkpoint"), 9U) << "the last segment stays";
    EXPECT_EQ(log.append(record_of(13)), 13U);
    EXPECT_EQ(records_of(log, log.begin()).size(), 4U);
  }
  FileLog log(folder / "log", 5);
  EXPECT_EQ(log.dropped(), 9U);
  EXPECT_EQ(log.rounds(), 13U);
  EXPECT_EQ(log.bytes(), std::ssize(lines_of(1, 13)));
  EXPECT_EQ(log.line_before(log.begin()), "");
  EXPECT_TRUE(contains(message_of<InvalidArgument>([&] {
                         const TemporaryFolder copy;
                         std::filesystem::copy(folder.path(), copy / "log",
                                               std::filesystem::copy_options::recursive);
                         FileLog(copy / "log" / "log", 5, false, FileLog::Access::kWrite, 8);
                       }),
                       "has dropped rounds 1 to 9"));
}

TEST(FileLogSegments, StayAsTheyAreWhenTheDiskIsFull) {
  const TemporaryFolder folder;
  FileLog log(folder / "log", 5);
  for (int number = 1; number <= 9; ++number) log.append(record_of(number));
  {
    const FullDisk full(50);
    EXPECT_THROW(log.compact({}), IoError);
  }
  EXPECT_FALSE(log.text()->segments()[0].compressed);
  EXPECT_EQ(log.append(record_of(10)), 10U);
  EXPECT_EQ(records_of(log).size(), 10U);
  log.compact({});
  EXPECT_EQ(files_of(folder).size(), 3U);
  EXPECT_EQ(records_of(log).size(), 10U);
}

TEST(LogKeep, IsRefusedWithWhatItMayBe) {
  EXPECT_EQ(LogKeep::parse("90d").count, 90U);
  EXPECT_EQ(LogKeep::parse("1000").what, LogKeep::What::kLists);
  for (const char* text : {"", "d", "0", "-1", "0d", "9x", "1e6", "200000d", "none"})
    EXPECT_TRUE(contains(message_of<InvalidArgument>([&] { LogKeep::parse(text); }), "--keep must be all"))
        << text;
}

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
  const LogSurvey survey = survey_log(LogText(folder / "copy"), 1);
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
  EXPECT_TRUE(contains(message_of([&] { copy_rounds(folder / "log", 1, 3, folder / "copy"); }), "log:2:1"));
  EXPECT_FALSE(std::filesystem::exists(folder / "copy"));
  EXPECT_EQ(copy_rounds(folder / "log", 3, 3, folder / "copy"), 1U);
}

}  // namespace
}  // namespace olrank
