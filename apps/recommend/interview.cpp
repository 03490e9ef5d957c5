#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "apps/command.h"
#include "core/io/atomic_file.h"
#include "core/io/json.h"
#include "core/runtime/log.h"
#include "core/throw_error.h"
#include "jobs/recommending/recommender_file.h"
#include "recommend/trees/factor_tree.h"
#include "recommend/trees/interview.h"
#include "report/interview_page.h"

namespace olrank {
namespace {

using nlohmann::ordered_json;

class RecommendInterviewCommand : public Command {
 public:
  void declare(CLI::App& app) override {
    add_option(app, "--model", model_, "DIR", "folder of 'recommend train', or its model file")->required();
    add_option(app, "--k", k_, "K", "length of the list [default: 10]")->check(CLI::Range(1, 1'000));
    add_output(app, "--html", html_, "FILE",
               "write a page with both trees and the interview, and ask nothing here");
    add_output(app, "--trees", trees_, "FILE", "write both trees as JSON, and ask nothing here");
  }

  int run(const OutputFlags& output) override {
    const LoadedRecommender loaded = read_recommender(model_);
    const auto* recommender = dynamic_cast<const TreeRecommender*>(loaded.model.get());
    if (recommender == nullptr) {
      throw_error<InvalidArgument>(
          "A recommender of kind {} has no tree of questions: train one of kind fact or fmf.",
          name_of(loaded.settings.kind));
    }
    if (!html_.empty()) write_page(loaded, *recommender, output);
    if (!trees_.empty()) write_trees(loaded, *recommender, output);
    if (html_.empty() && trees_.empty()) ask(loaded, *recommender, output);
    return 0;
  }

 private:
  void write_page(const LoadedRecommender& loaded, const TreeRecommender& recommender,
                  const OutputFlags& output) const {
    const TreeModel& trees = recommender.trees();
    InterviewPage page;
    page.title = fmt::format("Interview of {}", name_of(loaded.settings.kind));
    page.sentence = fmt::format(
        "{} items, {} users; the users' tree has {} nodes on {} levels. Answer questions, or open the "
        "trees.",
        trees.items.rows(), trees.users.rows(), trees.user_tree.size(), trees.user_tree.depth());
    page.users_note = trees.questions == TreeQuestions::kItems
                          ? "Each question splits users by their rating of an item."
                          : "Each question splits users by a feature's share of their mentions.";
    page.data = dump_json(interview_data(recommender, loaded.names, k_));
    write_file_atomically(html_, interview_page(page));
    report_file("page", html_, output);
  }

  void write_trees(const LoadedRecommender& loaded, const TreeRecommender& recommender,
                   const OutputFlags& output) const {
    const TreeModel& trees = recommender.trees();
    ordered_json json;
    json["kind"] = name_of(loaded.settings.kind);
    if (trees.questions == TreeQuestions::kItems) {
      json["user_tree"] = tree_json(trees.user_tree, loaded.names.items);
      json["item_tree"] = nullptr;
    } else {
      json["user_tree"] = tree_json(trees.user_tree, loaded.names.features);
      json["item_tree"] = tree_json(trees.item_tree, loaded.names.features);
    }
    write_file_atomically(trees_, dump_json(json) + "\n");
    report_file("trees", trees_, output);
  }

  static void report_file(const char* what, const std::string& file, const OutputFlags& output) {
    if (output.json) {
      write_output(dump_json(ordered_json{{what, file}}) + "\n");
    } else if (!output.quiet) {
      write_output(fmt::format("Wrote {}.\n", file));
    }
  }

  void ask(const LoadedRecommender& loaded, const TreeRecommender& recommender,
           const OutputFlags& output) const {
    Interview interview(recommender, loaded.names, k_);
    const TreeQuestions questions = recommender.trees().questions;
    const auto answers = answer_texts(questions);
    ordered_json steps = ordered_json::array();
    const ordered_json first = list_json(loaded, interview);
    if (!output.json) {
      write_output("The list for somebody of whom nothing is known:\n" + list_text(loaded, interview) +
                   fmt::format("\nAnswer 1 ({}), 2 ({}) or 3 ({}); 'quit' ends the interview.\n",
                               answers[0], answers[1], answers[2]));
    }
    while (!interview.finished()) {
      if (!output.json) {
        write_output(fmt::format("\n{} ", interview.question()));
        flush_output();
      }
      const std::optional<TreeBranch> branch = read_branch(questions, output.json);
      if (!branch) break;
      ordered_json step;
      step["node"] = interview.node();
      step["question"] = interview.question();
      step["subject"] = std::string(interview.subject());
      interview.answer(*branch);
      step["answer"] = name_of(*branch);
      step["list"] = list_json(loaded, interview);
      if (!output.json) {
        write_output(fmt::format("{}: the list is now\n{}", answers[static_cast<int>(*branch)],
                                 list_text(loaded, interview)));
      }
      steps.push_back(std::move(step));
    }
    if (output.json) {
      write_output(dump_json(ordered_json{{"kind", name_of(loaded.settings.kind)},
                                          {"before", first},
                                          {"steps", steps},
                                          {"node", interview.node()},
                                          {"finished", interview.finished()},
                                          {"list", list_json(loaded, interview)}},
                             2) +
                   "\n");
    } else {
      write_output(
          interview.finished()
              ? fmt::format("\nThat was the last question; this is the list (node {}).\n", interview.node())
              : fmt::format("\nThe interview ended early, at node {}.\n", interview.node()));
    }
  }

  /// Nothing at the end of the input, or when asked to quit.
  static std::optional<TreeBranch> read_branch(TreeQuestions questions, bool strict) {
    const auto answers = answer_texts(questions);
    std::string line;
    while (std::getline(std::cin, line)) {
      if (line == "quit" || line == "q") return std::nullopt;
      if (const auto branch = read_answer(line, questions)) return branch;
      const std::string again =
          fmt::format("'{}' is no answer: give 1 or ≥ ({}), 2 or < ({}), 3 or ? ({}), or 'quit'.", line,
                      answers[0], answers[1], answers[2]);
      if (strict) throw InvalidArgument(again);
      write_output("\n" + again + " ");
      flush_output();
    }
    return std::nullopt;
  }

  static ordered_json list_json(const LoadedRecommender& loaded, const Interview& interview) {
    ordered_json list = ordered_json::array();
    std::int64_t rank = 0;
    for (const InterviewItem& item : interview.list()) {
      ordered_json json = {
          {"rank", rank + 1}, {"item", std::string(loaded.names.items[item.item])}, {"score", item.score}};
      if (item.rank_before >= 0) {
        json["rank_before"] = item.rank_before + 1;
      } else {
        json["rank_before"] = nullptr;
      }
      list.push_back(std::move(json));
      ++rank;
    }
    return list;
  }

  static std::string list_text(const LoadedRecommender& loaded, const Interview& interview) {
    const bool changed = interview.node() != 0;
    std::string text;
    std::int64_t rank = 0;
    for (const InterviewItem& item : interview.list()) {
      text +=
          fmt::format("  {:>3}  {}  {:.4f}{}\n", rank + 1, loaded.names.items[item.item], item.score,
                      changed && !change_text(item, rank).empty() ? "  " + change_text(item, rank) : "");
      ++rank;
    }
    return text;
  }

  std::string model_;
  std::string html_;
  std::string trees_;
  std::int64_t k_ = 10;
};

}  // namespace

const CommandEntry kRecommendInterviewCommand{"recommend interview",
                                              "ask a new user what matters, and show how the list changes",
                                              make_command<RecommendInterviewCommand>};

}  // namespace olrank
