#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/bench/commands.h"
#include "apps/setting_flags.h"
#include "core/error.h"
#include "core/io/standard_output.h"
#include "core/settings/value.h"
#include "core/text/message_text.h"
#include "studies/generalisation/generalisation_run.h"

namespace olrank {
namespace {

const std::vector<std::string> kExperimentNames = {"A", "B", "C", "D", "E", "F"};
const std::vector<std::string> kSizeNames = {"small", "full"};

class BenchGeneralisationCommand : public Command {
 public:
  std::string name() const override { return "generalisation"; }
  std::string summary() const override {
    return "study: the effect of list length, norms and noise on the generalisation of losses of lists";
  }
  void declare(CLI::App& app) override {
    app.add_option("--experiments", experiments_,
                   "which of A to F: list length, slopes, algorithms, norms, noise, rankings [default: "
                   "A,B,C,D,E, and F with --data]")
        ->delimiter(',')
        ->type_name("LIST");
    app.add_option("--seeds", seeds_, "such as 1-20 [default: 1-20, or 1-3 with --size small]")
        ->type_name("LIST");
    app.add_option("--size", size_, "small or full; the next flags change single sizes [default: full]");
    app.add_option("--lengths", lengths_, "documents of a query, m, in A and B")->type_name("LIST");
    app.add_option("--queries", queries_, "training queries, n, in A")->type_name("LIST");
    app.add_option("--online-queries", online_, "training queries, n, in C and E")->type_name("LIST");
    app.add_option("--widths", widths_, "features, d, in D")->type_name("LIST");
    app.add_option("--held-out", held_out_, "held-out queries of A at most")
        ->type_name("N")
        ->check(CLI::Range(100, 1000000));
    app.add_option("--data", data_, "folders of real lists, for A and F")->delimiter(',')->type_name("DIR");
    app.add_option("--out", out_, "output folder [default: runs/generalisation]")->type_name("DIR");
    app.add_option("--jobs", jobs_, "cells at once [default: 1]")
        ->type_name("N")
        ->check(CLI::Range(1, 4096));
    request_.declare(app);
  }

  int run(const OutputFlags& output) override {
    return run_generalisation(plan_without_data(), {data_, out_, jobs_}, request_.request(),
                              output.command_line, output.form(), [](std::string_view text) {
                                write_output(text);
                                flush_output();
                              });
  }

 private:
  static std::vector<std::int64_t> integers(const char* flag, const std::string& text,
                                            std::int64_t lowest) {
    std::vector<std::int64_t> numbers;
    try {
      numbers = std::get<std::vector<std::int64_t>>(parse_setting(SettingKind::kIntegers, text));
    } catch (const InvalidArgument& error) {
      throw InvalidArgument(fmt::format("{}: {}", flag, error.what()));
    }
    if (numbers.empty()) throw InvalidArgument(fmt::format("{} must name at least one number.", flag));
    std::sort(numbers.begin(), numbers.end());
    if (std::adjacent_find(numbers.begin(), numbers.end()) != numbers.end())
      throw InvalidArgument(fmt::format("{} names a number twice: '{}'.", flag, text));
    if (numbers.front() < lowest)
      throw InvalidArgument(fmt::format("{} must be at least {}, not {}.", flag, lowest, numbers.front()));
    return numbers;
  }

  GeneralisationPlan plan_without_data() const {
    GeneralisationPlan plan;
    if (std::find(kSizeNames.begin(), kSizeNames.end(), size_) == kSizeNames.end())
      throw InvalidArgument("--size " + must_be_one_of(size_, kSizeNames));
    const bool small = size_ == "small";
    if (small) plan.sizes = GeneralisationSizes::small();
    const auto take = [](const char* flag, const std::optional<std::string>& text, std::int64_t lowest,
                         std::vector<std::int64_t>& sizes) {
      if (text) sizes = integers(flag, *text, lowest);
    };
    take("--lengths", lengths_, 2, plan.sizes.lengths);
    take("--queries", queries_, 2, plan.sizes.queries);
    take("--online-queries", online_, 2, plan.sizes.online);
    take("--widths", widths_, 10, plan.sizes.widths);
    if (held_out_) plan.sizes.held_out = *held_out_;
    plan.seeds = integers("--seeds", seeds_.value_or(small ? "1-3" : "1-20"), 0);
    if (!data_.empty()) plan.experiments = "ABCDEF";
    if (!experiments_.empty()) {
      plan.experiments.clear();
      for (const std::string& name : experiments_) {
        if (std::find(kExperimentNames.begin(), kExperimentNames.end(), name) == kExperimentNames.end())
          throw InvalidArgument("--experiments " + must_be_one_of(name, kExperimentNames));
        if (plan.experiments.find(name) == std::string::npos) plan.experiments += name;
      }
      std::sort(plan.experiments.begin(), plan.experiments.end());
    }
    if (plan.experiments.find('F') != std::string::npos && data_.empty())
      throw InvalidArgument("Experiment F ranks real lists: name a folder of five folds with --data.");
    return plan;
  }

  std::vector<std::string> experiments_;
  std::optional<std::string> seeds_;
  std::string size_ = "full";
  std::optional<std::string> lengths_;
  std::optional<std::string> queries_;
  std::optional<std::string> online_;
  std::optional<std::string> widths_;
  std::optional<std::int64_t> held_out_;
  std::vector<std::string> data_;
  std::string out_ = "runs/generalisation";
  int jobs_ = 1;
  ExperimentFlags request_;
};

}  // namespace

std::unique_ptr<Command> make_bench_generalisation_command() {
  return std::make_unique<BenchGeneralisationCommand>();
}

}  // namespace olrank
