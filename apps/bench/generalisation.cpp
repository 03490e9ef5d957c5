
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/command.h"
#include "apps/setting_flags.h"
#include "core/runtime/log.h"
#include "core/settings/value.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "studies/generalisation/generalisation_run.h"

namespace olrank {
namespace {

const std::vector<std::string> kExperimentNames = {"A", "B", "C", "D", "E", "F"};
const std::vector<std::string> kSizeNames = {"small", "full"};

class BenchGeneralisationCommand : public Command {
 public:
  void declare(CLI::App& app) override {
    add_option(app, "--experiments", experiments_, "LIST",
               "which of A to F: list length, slopes, algorithms, norms, noise, rankings [default: "
               "A,B,C,D,E, and F with --data]")
        ->delimiter(',');
    add_option(app, "--seeds", seeds_, "LIST", "such as 1-20 [default: 1-20, or 1-3 with --size small]");
    app.add_option("--size", size_, "small or full; the next flags change single sizes [default: full]");
    add_option(app, "--lengths", lengths_, "LIST", "documents of a query, m, in A and B");
    add_option(app, "--queries", queries_, "LIST", "training queries, n, in A");
    add_option(app, "--online-queries", online_, "LIST", "training queries, n, in C and E");
    add_option(app, "--widths", widths_, "LIST", "features, d, in D");
    add_option(app, "--held-out", held_out_, "N", "held-out queries of A at most")
        ->check(CLI::Range(100, 1000000));
    add_option(app, "--data", data_, "DIR", "folders of real lists, for A and F")->delimiter(',');
    add_option(app, "--out", out_, "DIR", "output folder [default: runs/generalisation]");
    add_option(app, "--jobs", jobs_, "N", "cells at once [default: 1]")->check(CLI::Range(1, 4096));
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
      throw_error<InvalidArgument>("{}: {}", flag, error.what());
    }
    if (numbers.empty()) throw_error<InvalidArgument>("{} must name at least one number.", flag);
    std::sort(numbers.begin(), numbers.end());
    if (std::adjacent_find(numbers.begin(), numbers.end()) != numbers.end())
      throw_error<InvalidArgument>("{} names a number twice: '{}'.", flag, text);
    if (numbers.front() < lowest)
      throw_error<InvalidArgument>("{} must be at least {}, not {}.", flag, lowest, numbers.front());
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

const CommandEntry kBenchGeneralisationCommand{
    "bench generalisation",
    "study: the effect of list length, norms and noise on the generalisation of losses of lists",
    make_command<BenchGeneralisationCommand>};

}  // namespace olrank
