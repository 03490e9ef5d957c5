#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "apps/command.h"
#include "apps/eval_request.h"
#include "core/data/data_loader.h"
#include "core/error.h"
#include "core/settings/choice.h"
#include "core/settings/value.h"

namespace olrank {
namespace {

/// The file name with {fold} replaced by the fold's number.
std::string for_fold(const std::string& file, std::int64_t fold) {
  constexpr std::string_view kPlace = "{fold}";
  std::string text = file;
  for (std::size_t at = 0; (at = text.find(kPlace, at)) != std::string::npos;) {
    text.replace(at, kPlace.size(), std::to_string(fold));
  }
  return text;
}

class EvalCommand : public Command {
 public:
  std::string name() const override { return "eval"; }
  std::string summary() const override {
    return "compute metrics of a ranking: scores, a TREC run or a saved model";
  }

  void declare(CLI::App& app) override {
    app.add_option("--data", request_.data, "data set: a folder, a file, or synth:NAME?key=value&…")
        ->type_name("SOURCE");
    app.add_option(
           "--fold", folds_text_,
           "folds to evaluate, such as 1-5; {fold} in file names stands for the number [default: 1]")
        ->type_name("N,...");
    app.add_option("--part", request_.part, "train, vali or test [default: test]")->type_name("PART");
    app.add_option("--cache", data_.cache,
                   "folder for binary copies of text files, auto or none [default: auto]")
        ->type_name("DIR");
    app.add_option("--max-memory", data_.max_memory,
                   "limit for the feature matrix, such as 8GB; auto is half of the machine's memory "
                   "[default: auto]")
        ->type_name("SIZE");
    app.add_option("--scores", request_.scores,
                   "scores, one per line, in the order of the documents in the data")
        ->type_name("FILE");
    app.add_option("--run", request_.run, "a TREC run: lines 'qid Q0 docno rank score tag'")
        ->type_name("FILE");
    app.add_option("--model", request_.model, "a model file or the folder of a finished trial")
        ->type_name("FILE");
    app.add_option("--at", request_.metrics.cutoffs, "cutoffs of NDCG and DCG [default: 1,3,5,10]")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->type_name("K,...");
    convention_ = app.add_option("--convention", convention_text_,
                                 "metric definitions of olrank, letor, lightgbm or trec_eval; the flags "
                                 "below override them [default: olrank]")
                      ->type_name("NAME");
    gain_ = app.add_option("--gain", gain_text_, "gain: exponential (2^grade - 1) or linear")
                ->type_name("NAME");
    empty_ = app.add_option("--empty-queries", empty_text_,
                            "how queries without relevant documents count: zero, one or skip")
                 ->type_name("NAME");
    max_grade_ = app.add_option("--max-grade", max_grade_value_,
                                "highest possible grade, for ERR [default: the highest in the data]")
                     ->type_name("G");
    app.add_option("--per-query", request_.per_query, "also write the metrics of every query as CSV")
        ->type_name("FILE");
    app.add_option("--threads", threads_, "CPU threads; 0 uses every core [default: 0]")->type_name("N");
  }

  int run(const OutputFlags& output) override {
    check_usage();
    choose_conventions();
    const DataPart part = parse_choice<DataPart>("--part", request_.part);
    ExecutionContext context(threads_ > 0 ? threads_ : available_threads());
    data_.source = request_.data;
    std::vector<EvalResult> results;
    for (const std::int64_t fold : folds_) {
      EvalRequest of_fold = request_;
      of_fold.fold = fold;
      for (std::string* file : {&of_fold.scores, &of_fold.run, &of_fold.model, &of_fold.per_query})
        *file = for_fold(*file, fold);
      results.push_back(evaluate_ranking(of_fold, load_part(data_, fold, part, context), context));
    }
    fmt::print("{}", output.json ? eval_json(results) : eval_table(results));
    return 0;
  }

 private:
  void check_usage() {
    if (request_.data.empty())
      throw InvalidArgument("--data is required: name the data set that was ranked.");
    const int given = !request_.scores.empty() + !request_.run.empty() + !request_.model.empty();
    if (given != 1) {
      throw InvalidArgument("Give exactly one ranking: --scores FILE, --run FILE or --model FILE.");
    }
    folds_ = std::get<std::vector<std::int64_t>>(parse_setting(SettingKind::kIntegers, folds_text_));
    if (folds_.empty() || *std::min_element(folds_.begin(), folds_.end()) < 1) {
      throw InvalidArgument(fmt::format("--fold must be at least 1, not {}.", folds_text_));
    }
    if (folds_.size() > 1) {
      for (const std::string& file :
           {request_.scores + request_.run + request_.model, request_.per_query}) {
        if (file.empty() || file.find("{fold}") != std::string::npos) continue;
        throw InvalidArgument(fmt::format(
            "Each fold needs its own file: put {{fold}} in '{}' where the fold's number goes.", file));
      }
    }
    if (threads_ < 0) throw InvalidArgument(fmt::format("--threads must be at least 0, not {}.", threads_));
  }

  /// The convention sets every option; explicit flags override it.
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
  DataSettings data_;
  std::string folds_text_ = "1";
  std::vector<std::int64_t> folds_;
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
