#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace olrank {

/// The bytes of a text with \\, \n and \xHH.
inline std::string unescaped(std::string_view text) {
  std::string bytes;
  while (!text.empty()) {
    const char kind = text.front() == '\\' ? text.at(1) : '\0';
    if (kind == 'x') {
      bytes += static_cast<char>(std::stoi(std::string(text.substr(2, 2)), nullptr, 16));
    } else {
      bytes += kind == 'n' ? '\n' : text.front();
    }
    text.remove_prefix(kind == 'x' ? 4 : kind != '\0' ? 2 : 1);
  }
  return bytes;
}

/// The test files of data lie in the checkout, in which all tests run.
inline std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream file("tests/" + path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

/// Whether `found` is `expected`, where "..." stands for any text.
inline bool is_expected(std::string_view found, std::string_view expected) {
  const std::size_t at = expected.find("...");
  if (at == std::string_view::npos) return found == expected;
  if (!found.starts_with(expected.substr(0, at))) return false;
  for (std::size_t begin = at; begin <= found.size(); ++begin) {
    if (is_expected(found.substr(begin), expected.substr(at + 3))) return true;
  }
  return false;
}

/// Plays a section of a file of cases: below its line "[section]", each line has what `outcome` makes of an
/// input, " <- " and the input.
template <class Outcome>
void expect_cases(const std::string& path, const std::string& section, const Outcome& outcome) {
  int played = 0;
  bool is_inside = false;
  for (const std::string& line : lines_of(path)) {
    const std::size_t arrow = line.find(" <-");
    if (arrow == std::string::npos && line.starts_with("[")) {
      is_inside = line == "[" + section + "]";
    } else if (is_inside && !line.empty()) {
      ASSERT_NE(arrow, std::string::npos) << line << "\n  is no case of " << path;
      const std::string found = outcome(unescaped(line.substr(std::min(arrow + 4, line.size()))));
      EXPECT_TRUE(is_expected(found, unescaped(line.substr(0, arrow)))) << line << "\n  gave " << found;
      ++played;
    }
  }
  EXPECT_GT(played, 0) << path << " has no cases in [" << section << "]";
}

}  // namespace olrank
