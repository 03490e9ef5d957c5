#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "recommend/trees/tree_model.h"

namespace olrank {

/// An item of a list, and where it was in the list before the last answer.
struct InterviewItem {
  std::int32_t item = 0;
  float score = 0.0F;
  std::int64_t rank_before = -1;  // from 0; −1: it was not in the list, or there was none
};

/// Asks a new user the questions of the users' tree, node by node, and keeps the list of the best items for
/// what is known so far. Jia, Toward Reliable Decision-making in Information Systems, PhD thesis, UVA 2022,
/// §4.2.3.
class Interview {
 public:
  /// Recommender and names outlive this.
  Interview(const TreeRecommender& recommender, const ReviewNames& names, std::int64_t list_length);

  std::int32_t node() const { return node_; }
  bool finished() const;
  /// Returns what the node asks about; a finished interview has no such node.
  std::string_view subject() const;
  std::string question() const;
  void answer(TreeBranch branch);
  const std::vector<InterviewItem>& list() const { return list_; }

 private:
  std::vector<InterviewItem> best_here() const;

  const TreeRecommender& recommender_;
  const ReviewNames& names_;
  std::int64_t list_length_;
  std::int32_t node_ = 0;
  std::vector<InterviewItem> list_;
};

/// The words for each answer, in the order of TreeBranch.
std::array<std::string_view, kTreeBranches> answer_texts(TreeQuestions questions);
std::string question_text(TreeQuestions questions, std::string_view subject);

/// Reads the words of an answer that somebody typed, its first word, or ≥, < and ?, whatever the case.
std::optional<TreeBranch> read_answer(std::string_view text, TreeQuestions questions);

/// "new", "up 2", "down 1" or "" for an item that stayed at `rank`.
std::string change_text(const InterviewItem& item, std::int64_t rank);

}  // namespace olrank
