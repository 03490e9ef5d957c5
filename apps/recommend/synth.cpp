#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/recommend/commands.h"
#include "core/error.h"
#include "core/io/json.h"
#include "core/io/standard_output.h"
#include "recommend/review_reader.h"
#include "recommend/synthetic_reviews.h"
#include "recommend/training_data.h"

namespace olrank {
namespace {

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
  std::string name() const override { return "synth"; }
  std::string summary() const override { return "generate reviews with planted preferences"; }
  void declare(CLI::App& app) override {
    app.add_option("source", source_, generator_help())->type_name("NAME?key=value")->required();
    app.add_option("--out", out_, "file of JSON lines; .gz and .zst compress")
        ->type_name("FILE")
        ->required();
    app.add_flag("--force", force_, "overwrite the file");
    app.add_option("--threads", threads_, "CPU threads [default: every core]")
        ->type_name("N")
        ->check(CLI::Range(1, 4096));
  }

  int run(const OutputFlags& output) override {
    if (!force_ && std::filesystem::exists(out_)) {
      throw InvalidArgument(
          fmt::format("'{}' already exists; overwrite it with --force, or choose another file.", out_));
    }
    ExecutionContext context(threads_);
    const Reviews reviews = make_synthetic_reviews(context, source_);
    write_reviews(reviews, out_);
    const ReviewCounts counts = counts_of(reviews);
    if (output.json) {
      const nlohmann::ordered_json json = {{"file", out_},
                                           {"users", counts.users},
                                           {"items", counts.items},
                                           {"features", counts.features},
                                           {"phrases", counts.phrases},
                                           {"reviews", counts.reviews},
                                           {"mentions", counts.mentions}};
      write_output(dump_json(json, 2) + "\n");
    } else {
      write_output(fmt::format(
          "{}: {} reviews by {} users of {} items, with {} mentions of {} features in {} phrases\n", out_,
          counts.reviews, counts.users, counts.items, counts.mentions, counts.features, counts.phrases));
    }
    return 0;
  }

 private:
  std::string source_;
  std::string out_;
  bool force_ = false;
  int threads_ = available_threads();
};

}  // namespace

std::unique_ptr<Command> make_recommend_synth_command() {
  return std::make_unique<RecommendSynthCommand>();
}

}  // namespace olrank
