#include <fmt/format.h>

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "apps/command.h"
#include "apps/eval_request.h"
#include "core/error.h"
#include "core/text/nearest.h"

namespace olrank {
namespace {

/// The one place where eval meets the reading of data.
Dataset load_part(const EvalRequest& request) {
  throw Error(fmt::format("This version has no reader of data sets, so it cannot judge a ranking of '{}'.",
                          request.data));
}

template <class Enum>
Enum parse_choice(const std::string& flag, const std::string& text) {
  if (const auto value = value_named<Enum>(text)) return *value;
  std::vector<std::string> names;
  names.reserve(EnumNames<Enum>::values.size());
  for (const auto& [value, name] : EnumNames<Enum>::values) names.emplace_back(name);
  throw InvalidArgument(fmt::format("{} is {}, not '{}'; the nearest is '{}'.", flag, joined(names, " or "),
                                    text, nearest_name(text, names)));
}

class EvalCommand : public Command {
 public:
  std::string name() const override { return "eval"; }
  std::string summary() const override {
    return "metrics of a ranking made elsewhere: scores or a TREC run";
  }

  void declare(CLI::App& app) override {
    app.add_option("--data", request_.data, "data set: a folder, or synth:NAME?key=value&...")
        ->type_name("SOURCE");
    app.add_option("--fold", request_.fold, "which fold (1)")->type_name("N");
    app.add_option("--part", request_.part, "train, vali or test (test)")->type_name("PART");
    app.add_option("--scores", request_.scores, "one number a line, in the data's order of documents")
        ->type_name("FILE");
    app.add_option("--run", request_.run, "a TREC run: lines of qid Q0 docno rank score tag")
        ->type_name("FILE");
    app.add_option("--at", request_.metrics.cutoffs, "cutoffs of NDCG and DCG (1,3,5,10)")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->type_name("K,...");
    convention_ = app.add_option(
        "--convention", convention_text_,
        "whose figures: olrank, letor, lightgbm or trec_eval (olrank); flags below override");
    gain_ = app.add_option("--gain", gain_text_, "exponential (2^grade - 1) or linear");
    empty_ = app.add_option("--empty-queries", empty_text_,
                            "zero, one or skip: queries without a relevant document");
    max_grade_ =
        app.add_option("--max-grade", max_grade_value_, "largest grade there can be, for ERR (the data's)")
            ->type_name("G");
    app.add_option("--per-query", request_.per_query, "also write every query's figures as CSV")
        ->type_name("FILE");
    app.add_option("--threads", threads_, "threads to use (0: all)")->type_name("N");
  }

  int run(const OutputFlags& output) override {
    check_usage();
    choose_conventions();
    ExecutionContext context({}, threads_ > 0 ? threads_ : available_threads());
    const Dataset data = load_part(request_);
    fmt::print("{}", answer_eval(request_, data, output.json, context));
    return 0;
  }

 private:
  void check_usage() const {
    if (request_.data.empty())
      throw InvalidArgument("--data is missing: name the data set that was ranked.");
    if (request_.scores.empty() == request_.run.empty()) {
      throw InvalidArgument("Give the ranking either as --scores FILE or as --run FILE.");
    }
    if (request_.fold < 1)
      throw InvalidArgument(fmt::format("--fold counts from 1; {} is none.", request_.fold));
    if (request_.part != "train" && request_.part != "vali" && request_.part != "test") {
      throw InvalidArgument(fmt::format("--part is train, vali or test, not '{}'.", request_.part));
    }
    if (threads_ < 0) throw InvalidArgument(fmt::format("--threads cannot be {}.", threads_));
  }

  /// The convention sets everything, then what was said explicitly wins.
  void choose_conventions() {
    MetricOptions& metrics = request_.metrics;
    if (convention_->count() > 0)
      request_.convention = parse_choice<Convention>("--convention", convention_text_);
    apply_convention(request_.convention, metrics);
    if (gain_->count() > 0) {
      metrics.gain = parse_choice<Gain>("--gain", gain_text_);
      request_.overrides.push_back("gain " + gain_text_);
    }
    if (empty_->count() > 0) {
      metrics.empty_queries = parse_choice<EmptyQueries>("--empty-queries", empty_text_);
      request_.overrides.push_back("empty queries " + empty_text_);
    }
    if (max_grade_->count() > 0) metrics.max_grade = max_grade_value_;
    check_metric_options(metrics);
  }

  EvalRequest request_;
  CLI::Option* convention_ = nullptr;
  CLI::Option* gain_ = nullptr;
  CLI::Option* empty_ = nullptr;
  CLI::Option* max_grade_ = nullptr;
  std::string convention_text_;
  std::string gain_text_;
  std::string empty_text_;
  int max_grade_value_ = 0;
  int threads_ = 0;
};

}  // namespace

std::unique_ptr<Command> make_eval_command() {
  return std::make_unique<EvalCommand>();
}

}  // namespace olrank
