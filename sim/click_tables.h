#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace olrank {

/// A user's click and stop probabilities by grade.
struct ClickTable {
  std::vector<double> click;  // P(click | grade)
  std::vector<double> stop;   // P(stop | grade); empty: never stops
};

/// perfect, navigational, informational.
const std::vector<std::string>& built_in_users();
bool is_built_in_user(std::string_view name);

/// The number of grades of a built-in user's table for data whose largest grade is `max_grade`: the
/// smallest of 2, 3 and 5 that covers it, or `stated` unless that is 0. Throws InvalidArgument if the table
/// does not cover the data.
int table_grades(std::string_view user, int max_grade, std::int64_t stated);

/// The table of a built-in user for 2, 3 or 5 grades.
ClickTable built_in_table(std::string_view user, int grades);

}  // namespace olrank
