// Systematic damage to a valid file: each piece gives the right data, or one sentence with file, line and
// column, and then no binary copy stays behind.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/data/dataset_cache.h"
#include "core/error.h"
#include "tests/core/data/letor_support.h"
#include "tests/support/expected_warnings.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

const std::vector<std::string> kLines = {"2 qid:10 1:0.5 2:-3 3:7",  "0 qid:10 1:0.25 2:1 3:4",
                                         "1 qid:11 1:7 2:0 3:1",     "0 qid:11 1:1e-3 2:2 3:9",
                                         "4 qid:12 1:3 2:6 3:0.125", "3 qid:12 1:8 2:11 3:2"};

struct Mutation {
  std::string what;
  std::string bytes;
  std::int64_t wrong_line = 0;  // 0: still right; -1: wrong, at whatever line
  std::string same_as;          // when right: the text that says the same; empty for the original
};

std::string joined_lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::string replaced(std::string line, const std::string& from, const std::string& to) {
  const std::size_t at = line.find(from);
  EXPECT_NE(at, std::string::npos) << line << " lacks " << from;
  return line.replace(at, from.size(), to);
}

std::string grade_replaced(const std::string& line, const std::string& grade) {
  return grade + line.substr(1);
}

/// The line with the first value replaced.
std::string value_replaced(const std::string& line, const std::string& value) {
  const std::size_t begin = line.find(" 1:") + 3;
  return line.substr(0, begin) + value + line.substr(line.find(' ', begin));
}

void add_line_mutations(std::size_t number, std::vector<Mutation>& out) {
  const std::string& line = kLines[number];
  const auto with = [&](const std::string& changed) {
    std::vector<std::string> lines = kLines;
    lines[number] = changed;
    return joined_lines(lines);
  };
  const auto wrong = [&](const std::string& what, const std::string& changed) {
    out.push_back({fmt::format("{} in line {}", what, number + 1), with(changed),
                   static_cast<std::int64_t>(number) + 1, ""});
  };
  const auto right = [&](const std::string& what, const std::string& changed,
                         const std::string& same_as = "") {
    out.push_back({fmt::format("{} in line {}", what, number + 1), with(changed), 0,
                   same_as.empty() ? "" : with(same_as)});
  };
  wrong("bad number", value_replaced(line, "abc"));
  wrong("two points", value_replaced(line, "1.2.3"));
  wrong("hexadecimal", value_replaced(line, "0x10"));
  wrong("decimal comma", value_replaced(line, "0,5"));
  wrong("empty value", value_replaced(line, ""));
  wrong("NaN", value_replaced(line, "NaN"));
  wrong("infinity", value_replaced(line, "inf"));
  wrong("minus infinity", value_replaced(line, "-Infinity"));
  wrong("too large", value_replaced(line, "1e39"));
  wrong("NUL in a value", value_replaced(line, std::string(1, '\0')));
  wrong("missing colon", replaced(line, " 1:", " 1 "));
  wrong("two colons", replaced(line, " 1:", " 1::"));
  wrong("qid absent", line.substr(0, 2) + line.substr(9));
  wrong("qid without colon", replaced(line, "qid:", "qid "));
  wrong("qid empty", line.substr(0, 6) + line.substr(8));
  wrong("NUL in the qid", replaced(line, "qid:", std::string("qid:\0", 5)));
  wrong("feature 0", replaced(line, " 1:", " 0:"));
  wrong("feature -1", replaced(line, " 1:", " -1:"));
  wrong("feature 4294967296", replaced(line, " 1:", " 4294967296:"));
  wrong("feature 4294967297", replaced(line, " 1:", " 4294967297:"));
  wrong("feature over memory", replaced(line, " 3:", " 4294967295:"));
  wrong("feature 1.5", replaced(line, " 1:", " 1.5:"));
  wrong("feature twice", replaced(line, " 3:", " 2:"));
  wrong("negative grade", grade_replaced(line, "-1"));
  wrong("grade 32", grade_replaced(line, "32"));
  wrong("fractional grade", grade_replaced(line, "1.5"));
  wrong("grade NaN", grade_replaced(line, "nan"));
  wrong("no grade", line.substr(2));
  right("CR at the end", line + "\r");
  right("grade as 2.0", grade_replaced(line, line.substr(0, 1) + ".0"));
  right("tabs and blanks", "  " + replaced(replaced(line, " 1:", "\t1:"), " 2:", " \t 2:") + "  ");
  right("a comment", line + " # inc = 1 \x01");
  right("a comment of 1 MB", line + "#" + std::string(1 << 20, 'x'));
  right("1 MB of blanks", replaced(line, " 2:", std::string(1 << 20, ' ') + "2:"));
  right("blank and comment lines around", "\n# a line\n" + line + "\n \t");
  right("a leading plus", replaced(line, "1:", "1:+"));
  right("NULL", value_replaced(line, "NULL"), value_replaced(line, "0"));
  right("underflow", value_replaced(line, "1e-999"), value_replaced(line, "0"));
  right("unsorted",
        line.substr(0, 8) + line.substr(line.find(" 3:")) + line.substr(8, line.find(" 3:") - 8));
}

std::vector<Mutation> mutations() {
  std::vector<Mutation> out;
  for (std::size_t number = 0; number < kLines.size(); ++number) add_line_mutations(number, out);
  const std::string text = joined_lines(kLines);
  out.push_back({"empty file", "", 1, ""});
  out.push_back({"only comments", "# a\n#b\n\n", 1, ""});
  out.push_back({"only blanks", "  \n \t\r\n", 1, ""});
  out.push_back({"a NUL alone", std::string(1, '\0'), 1, ""});
  out.push_back({"BOM", "\xEF\xBB\xBF" + text, 0, ""});
  out.push_back({"BOM of UTF-16", "\xFF\xFE" + text, 1, ""});
  out.push_back({"BOM in the middle", kLines[0] + "\n\xEF\xBB\xBF" + kLines[1] + "\n", 2, ""});
  out.push_back({"no last line end", text.substr(0, text.size() - 1), 0, ""});
  out.push_back({"a line of a Mac", kLines[0] + "\r" + kLines[1] + "\n", 1, ""});
  for (const Compression compression : {Compression::kGzip, Compression::kZstd}) {
    const std::string name = compression == Compression::kGzip ? "gzip" : "zstd";
    const std::string bytes = compressed(text, compression);
    out.push_back({name, bytes, 0, ""});
    out.push_back({name + " twice",
                   compressed(kLines[0] + "\n", compression) + compressed(kLines[1] + "\n", compression), 0,
                   kLines[0] + "\n" + kLines[1] + "\n"});
    out.push_back({name + " and rubbish", bytes + "rubbish", -1, ""});
    for (std::size_t size = 1; size < bytes.size(); size += bytes.size() / 9) {
      out.push_back({fmt::format("{} cut at {}", name, size), bytes.substr(0, size), -1, ""});
    }
  }
  return out;
}

TEST(Mutations, GiveCorrectDataOrAnError) {
  const TemporaryFolder folder;
  ThreadPool pool(2);
  const Dataset original = read_text(joined_lines(kLines));
  const std::vector<Mutation> all = mutations();
  EXPECT_GE(all.size(), 200U);
  for (const Mutation& mutation : all) {
    const ExpectedWarnings missing_values;
    const std::string path = (folder / "data.txt").string();
    const std::filesystem::path copies = folder / "cache";
    write_file(path, mutation.bytes);
    try {
      const Dataset data = DatasetCache(copies).read(path, {.max_bytes = 1'000'000}, pool);
      EXPECT_EQ(mutation.wrong_line, 0) << mutation.what << " was accepted";
      EXPECT_TRUE(same_content(data, mutation.same_as.empty() ? original : read_text(mutation.same_as)))
          << mutation.what;
    } catch (const DataError& error) {
      const std::string said = error.what();
      EXPECT_NE(mutation.wrong_line, 0) << mutation.what << ": " << said;
      EXPECT_GE(error.line(), 1) << mutation.what << ": " << said;
      EXPECT_GE(error.column(), 1) << mutation.what << ": " << said;
      if (mutation.wrong_line > 0) {
        EXPECT_EQ(error.line(), mutation.wrong_line) << mutation.what << ": " << said;
      }
      EXPECT_EQ(said.rfind(fmt::format("{}:{}:{}: ", path, error.line(), error.column()), 0), 0U) << said;
      EXPECT_EQ(said.back(), '.') << said;
      EXPECT_LT(said.size(), path.size() + 400) << said;
      EXPECT_EQ(said.find('\n'), std::string::npos) << said;
      EXPECT_EQ(error.exit_code(), ExitCode::kFailed);
      EXPECT_FALSE(std::filesystem::exists(copies)) << mutation.what << " left a copy behind";
    }
    std::filesystem::remove_all(copies);
  }
}

}  // namespace
}  // namespace olrank
