#include "recommend/trees/interview.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "recommend/ranking_figures.h"

namespace olrank {
namespace {

/// Other ways to say each answer.
constexpr std::array<std::array<std::string_view, 8>, kTreeBranches> kOtherWords = {{
    {"≥", ">=", "lot", "a lot", "much", "yes", "y", "like"},
    {"<", "little", "a little", "not much", "no", "n", "dislike", "not"},
    {"?", "", "never", "never think of it", "unknown", "don't know", "u", "skip"},
}};

std::string plain_words(std::string_view text) {
  const auto is_blank = [](char letter) { return letter == ' ' || letter == '\t' || letter == '\r'; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && (is_blank(text.back()) || text.back() == '.')) text.remove_suffix(1);
  std::string words(text);
  for (char& letter : words) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return words;
}

}  // namespace

Interview::Interview(const TreeRecommender& recommender, const ReviewNames& names, std::int64_t list_length)
    : recommender_(recommender), names_(names), list_length_(list_length), list_(best_here()) {}

bool Interview::finished() const {
  return recommender_.trees().user_tree.node(node_).is_leaf();
}

std::string_view Interview::subject() const {
  assert(!finished());
  const TreeModel& trees = recommender_.trees();
  const NameTable& names = trees.questions == TreeQuestions::kItems ? names_.items : names_.features;
  return names[trees.user_tree.node(node_).feature];
}

std::string Interview::question() const {
  return question_text(recommender_.trees().questions, subject());
}

void Interview::answer(TreeBranch branch) {
  assert(!finished());
  node_ = recommender_.trees().user_tree.node(node_).children[static_cast<int>(branch)];
  std::vector<InterviewItem> list = best_here();
  for (InterviewItem& item : list) {
    const auto before = std::ranges::find(list_, item.item, &InterviewItem::item);
    item.rank_before = before == list_.end() ? -1 : before - list_.begin();
  }
  list_ = std::move(list);
}

std::vector<InterviewItem> Interview::best_here() const {
  std::vector<float> scores(recommender_.trees().items.rows());
  recommender_.score_at(node_, scores);
  std::vector<InterviewItem> list;
  for (const std::int32_t item : best_items(scores, {}, list_length_)) list.push_back({item, scores[item]});
  return list;
}

std::array<std::string_view, kTreeBranches> answer_texts(TreeQuestions questions) {
  if (questions == TreeQuestions::kItems) return {"I like it", "I do not like it", "I do not know it"};
  return {"it matters a lot", "it matters a little", "I never think of it"};
}

std::string question_text(TreeQuestions questions, std::string_view subject) {
  if (questions == TreeQuestions::kItems) return fmt::format("How do you like {}?", subject);
  return fmt::format("How much does {} matter to you?", subject);
}

std::optional<TreeBranch> read_answer(std::string_view text, TreeQuestions questions) {
  const std::string words = plain_words(text);
  const auto texts = answer_texts(questions);
  for (int branch = 0; branch < kTreeBranches; ++branch) {
    const auto& others = kOtherWords[branch];
    const bool said = words == plain_words(texts[branch]) || words == std::to_string(branch + 1) ||
                      std::ranges::find(others, words) != others.end();
    if (said) return static_cast<TreeBranch>(branch);
  }
  return std::nullopt;
}

std::string change_text(const InterviewItem& item, std::int64_t rank) {
  if (item.rank_before < 0) return "new";
  if (item.rank_before > rank) return fmt::format("up {}", item.rank_before - rank);
  if (item.rank_before < rank) return fmt::format("down {}", rank - item.rank_before);
  return "";
}

}  // namespace olrank
