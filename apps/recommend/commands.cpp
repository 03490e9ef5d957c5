#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "apps/command.h"
#include "core/io/atomic_file.h"
#include "core/io/json.h"
#include "core/runtime/log.h"
#include "core/text/message_text.h"
#include "core/text/text_table.h"
#include "core/throw_error.h"
#include "jobs/recommending/recommender_file.h"
#include "jobs/recommending/recommender_run.h"
#include "recommend/ranking_figures.h"
#include "recommend/review_reader.h"
#include "recommend/reviews.h"
#include "recommend/synthetic_reviews.h"
#include "recommend/trees/factor_tree.h"
#include "recommend/trees/interview.h"

namespace olrank {
namespace {

using nlohmann::ordered_json;

class RecommendExplainCommand : public Command {
 public:
  void declare(CLI::App& app) override {
    add_option(app, "--model", model_, "DIR", "folder of 'recommend train', or its model file")->required();
    add_option(app, "--user", user_, "NAME", "user")->required();
    add_option(app, "--item", item_, "NAME", "item")->required();
  }

  int run(const OutputFlags& output) override {
    const LoadedRecommender loaded = read_recommender(model_);
    const std::int64_t user = loaded.user(user_);
    const std::int64_t item = loaded.item(item_);
    const std::optional<Explanation> explanation = loaded.model->explain(user, item, loaded.names);
    if (!explanation) {
      throw_error<InvalidArgument>(
          "A recommender of kind {} learns from ratings alone and has no reasons: train one of kind mter, "
          "efm or fact.",
          name_of(loaded.settings.kind));
    }
    ordered_json json = {{"user", user_},
                         {"item", item_},
                         {"kind", name_of(loaded.settings.kind)},
                         {"sentences", explanation->sentences}};
    json.update(explanation->details);
    std::string text;
    for (const std::string& sentence : explanation->sentences) text += printable(sentence) + "\n";
    return output.print(json, text);
  }

 private:
  std::string model_;
  std::string user_;
  std::string item_;
};

class RecommendStudyCommand : public Command {
 public:
  void declare(CLI::App& app) override {
    add_option(app, "config", request_.file, "FILE",
               "configuration file (TOML) with [recommend] and [recommend_study]")
        ->required();
    add_option(app, "--out", request_.out, "DIR",
               "output folder; what it holds already is not trained again");
    app.add_flag("--dry-run", request_.dry_run, "check the file, say how many trainings it has, and exit");
    add_option(app, "--threads", request_.threads, "N", "CPU threads [default: every core]")
        ->check(CLI::Range(1, 4096));
  }

  int run(const OutputFlags& output) override {
    return run_recommender_study(request_, output.command_line, output.form(), write_output);
  }

 private:
  RecommenderStudyRequest request_;
};

std::string generator_help() {
  std::string text = "NAME or NAME?key=value&…";
  for (const ReviewGenerator& generator : review_generators()) {
    text += fmt::format("; {}: {}, with the keys", generator.name, generator.about);
    for (const std::string& key : generator.schema().keys()) text += " " + key;
  }
  return text;
}

class RecommendSynthCommand : public Command {
 public:
  void declare(CLI::App& app) override {
    add_option(app, "source", source_, "NAME?key=value", generator_help())->required();
    add_output(app, "--out", out_, "FILE", "file of JSON lines; .gz and .zst compress")->required();
    app.add_flag("--force", force_, "overwrite the file");
    add_option(app, "--threads", threads_, "N", "CPU threads [default: every core]")
        ->check(CLI::Range(1, 4096));
  }

  int run(const OutputFlags& output) override {
    if (!force_ && std::filesystem::exists(out_)) {
      throw_error<InvalidArgument>(
          "'{}' already exists; overwrite it with --force, or choose another file.", out_);
    }
    ExecutionContext context(threads_);
    const Reviews reviews = make_synthetic_reviews(context, source_);
    write_reviews(reviews, out_);
    const ReviewCounts counts = counts_of(reviews);
    return output.print(
        {{"file", out_},
         {"users", counts.users},
         {"items", counts.items},
         {"features", counts.features},
         {"phrases", counts.phrases},
         {"reviews", counts.reviews},
         {"mentions", counts.mentions}},
        fmt::format(
            "{}: {} reviews by {} users of {} items, with {} mentions of {} features in {} phrases\n", out_,
            counts.reviews, counts.users, counts.items, counts.mentions, counts.features, counts.phrases));
  }

 private:
  std::string source_;
  std::string out_;
  bool force_ = false;
  int threads_ = available_threads();
};

struct RankedItem {
  std::int32_t item;
  float score;
};

class RecommendRankCommand : public Command {
 public:
  void declare(CLI::App& app) override {
    add_option(app, "--model", model_, "DIR", "folder of 'recommend train', or its model file")->required();
    add_option(app, "--user", users_, "NAME", "user; may be repeated");
    auto* all = app.add_flag("--all-users", all_, "all users with a training review");
    all->excludes("--user");
    add_option(app, "--k", k_, "K", "length of the list [default: 10]")->check(CLI::Range(1, 1'000'000));
    app.add_flag("--trec", trec_, "print a TREC run: user Q0 item rank score olrank");
  }

  int run(const OutputFlags& output) override {
    if (users_.empty() && !all_)
      throw InvalidArgument("No user given: name one with --user, or all with --all-users.");
    if (trec_ && output.json) throw InvalidArgument("--trec and --json exclude each other.");
    const LoadedRecommender loaded = read_recommender(model_);
    std::vector<std::int64_t> numbers;
    for (const std::string& name : users_) numbers.push_back(loaded.user(name));
    for (std::int64_t user = 0; all_ && user < loaded.names.users.size(); ++user) {
      if (loaded.seen.count(user) > 0) numbers.push_back(user);
    }
    ordered_json lists = ordered_json::array();
    for (const std::int64_t user : numbers) {
      const std::vector<RankedItem> list = ranked(loaded, user);
      if (output.json) {
        lists.push_back(list_json(loaded, user, list));
      } else {
        write_output(trec_ ? trec_lines(loaded, user, list) : table(loaded, user, list, output));
      }
    }
    if (output.json) write_output(dump_json(lists.size() == 1 && !all_ ? lists.front() : lists, 2) + "\n");
    return 0;
  }

 private:
  std::vector<RankedItem> ranked(const LoadedRecommender& loaded, std::int64_t user) const {
    std::vector<float> scores(loaded.names.items.size());
    loaded.model->score(user, scores);
    std::vector<RankedItem> list;
    for (const std::int32_t item : best_items(scores, loaded.seen.others_of(user), k_))
      list.push_back({item, scores[item]});
    return list;
  }

  static ordered_json list_json(const LoadedRecommender& loaded, std::int64_t user,
                                const std::vector<RankedItem>& list) {
    ordered_json items = ordered_json::array();
    for (std::size_t place = 0; place < list.size(); ++place)
      items.push_back({{"rank", place + 1},
                       {"item", std::string(loaded.names.items[list[place].item])},
                       {"score", list[place].score}});
    return {{"user", std::string(loaded.names.users[user])}, {"items", items}};
  }

  static std::string trec_lines(const LoadedRecommender& loaded, std::int64_t user,
                                const std::vector<RankedItem>& list) {
    std::string lines;
    for (std::size_t place = 0; place < list.size(); ++place) {
      const std::string_view name = loaded.names.items[list[place].item];
      for (const std::string_view word : {loaded.names.users[user], name}) {
        if (word.empty() || word.find_first_of(" \t\r\n\v\f") != std::string_view::npos) {
          throw_error<InvalidArgument>(
              "A TREC run cannot hold the name '{}', which has blanks: use --json.", word);
        }
      }
      lines += fmt::format("{} Q0 {} {} {} olrank\n", loaded.names.users[user], name, place + 1,
                           list[place].score);
    }
    return lines;
  }

  std::string table(const LoadedRecommender& loaded, std::int64_t user, const std::vector<RankedItem>& list,
                    const OutputFlags& output) const {
    TextTable table({{"rank"}, {"item", true}, {"score"}});
    for (std::size_t place = 0; place < list.size(); ++place)
      table.add({fmt::format("{}", place + 1), std::string(loaded.names.items[list[place].item]),
                 fmt::format("{:.4f}", list[place].score)});
    const std::string head = users_.size() == 1 ? "" : fmt::format("{}\n", loaded.names.users[user]);
    return head + table.fitted(output.columns()).text;
  }

  std::string model_;
  std::vector<std::string> users_;
  bool all_ = false;
  std::int64_t k_ = 10;
  bool trec_ = false;
};

class RecommendInterviewCommand : public Command {
 public:
  void declare(CLI::App& app) override {
    add_option(app, "--model", model_, "DIR", "folder of 'recommend train', or its model file")->required();
    add_option(app, "--k", k_, "K", "length of the list [default: 10]")->check(CLI::Range(1, 1'000));
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
    if (trees_.empty()) {
      ask(loaded, *recommender, output);
    } else {
      write_trees(loaded, *recommender, output);
    }
    return 0;
  }

 private:
  void write_trees(const LoadedRecommender& loaded, const TreeRecommender& recommender,
                   const OutputFlags& output) const {
    const TreeModel& trees = recommender.trees();
    const bool of_items = trees.questions == TreeQuestions::kItems;
    const auto& names = of_items ? loaded.names.items : loaded.names.features;
    const ordered_json json = {
        {"kind", name_of(loaded.settings.kind)},
        {"user_tree", tree_json(trees.user_tree, names)},
        {"item_tree", of_items ? ordered_json() : tree_json(trees.item_tree, names)}};
    write_file_atomically(trees_, dump_json(json) + "\n");
    if (output.json) {
      write_output(dump_json(ordered_json{{"trees", trees_}}) + "\n");
    } else if (!output.quiet) {
      write_output(fmt::format("Wrote {}.\n", trees_));
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
      ordered_json step = {{"node", interview.node()},
                           {"question", interview.question()},
                           {"subject", std::string(interview.subject())}};
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
      write_output(fmt::format(
          fmt::runtime(interview.finished() ? "\nThat was the last question; this is the list (node {}).\n"
                                            : "\nThe interview ended early, at node {}.\n"),
          interview.node()));
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
      list.push_back(
          {{"rank", ++rank},
           {"item", std::string(loaded.names.items[item.item])},
           {"score", item.score},
           {"rank_before", item.rank_before >= 0 ? ordered_json(item.rank_before + 1) : ordered_json()}});
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
  std::string trees_;
  std::int64_t k_ = 10;
};

}  // namespace

const CommandEntry kRecommendExplainCommand{"recommend explain", "say why an item is recommended to a user",
                                            make_command<RecommendExplainCommand>};
const CommandEntry kRecommendStudyCommand{"recommend study",
                                          "train kinds over sources, seeds and values, and compare them",
                                          make_command<RecommendStudyCommand>};
const CommandEntry kRecommendSynthCommand{"recommend synth", "generate reviews with planted preferences",
                                          make_command<RecommendSynthCommand>};
const CommandEntry kRecommendRankCommand{"recommend rank", "list the best items for users",
                                         make_command<RecommendRankCommand>};

const CommandEntry kRecommendInterviewCommand{"recommend interview",
                                              "ask a new user what matters, and show how the list changes",
                                              make_command<RecommendInterviewCommand>};

}  // namespace olrank
