#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/command.h"
#include "core/io/json.h"
#include "core/runtime/log.h"
#include "core/text/message_text.h"
#include "core/text/text_table.h"
#include "core/throw_error.h"
#include "jobs/recommending/recommender_file.h"
#include "jobs/recommending/recommender_study.h"
#include "recommend/ranking_figures.h"
#include "recommend/review_reader.h"
#include "recommend/reviews.h"
#include "recommend/synthetic_reviews.h"

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
    output.print(json, text);
    return 0;
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
    output.print(
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
    return 0;
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

}  // namespace olrank
