#pragma once

#include <string>

namespace olrank {

/// A page that asks a new user the questions of a tree and shows how the list changes with each answer.
struct InterviewPage {
  std::string title;
  std::string sentence;
  std::string users_note;  // what the questions of the users' tree compare
  /// JSON: {"question": text with {} for the subject, "answers": [3 texts], "items": [names],
  /// "user_tree": [{"rows", "list": [[item, score], …], and of inner nodes "subject", "threshold",
  /// "children": [3 nodes]}, …], "item_tree": [likewise with "examples": [item, …] for a list]}.
  std::string data;
};

/// One self-contained HTML file without network: the interview, and both trees to be opened node by node.
std::string interview_page(const InterviewPage& interview);

}  // namespace olrank
