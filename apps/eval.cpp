#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "apps/choice.h"
#include "apps/command.h"
#include "apps/eval_request.h"
#include "core/data/data_loader.h"
#include "core/error.h"
#include "core/settings/value.h"

namespace olrank {
namespace {

/// FILE with {fold} replaced by the number of the fold.
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
    return "metrics of a ranking: scores, a TREC run or a saved model";
  }

  void declare(CLI::App& app) override {
    app.add_option("--data", request_.data, "data set: a folder, a file, or synth:NAME?key=value&...")
        ->type_name("SOURCE");
    app.add_option("--fold", folds_text_,
                   "which folds (1), such as 1-5; {fold} in file names is the number")
        ->type_name("N,...");
    app.add_option("--part", request_.part, "train, vali or test (test)")->type_name("PART");
    app.add_option("--cache", data_.cache, "folder of binary copies of text files, auto or none (auto)")
        ->type_name("DIR");
    app.add_option("--max-memory", data_.max_memory, "what the features may take, such as 8GB (auto: half)")
        ->type_name("SIZE");
    app.add_option("--scores", request_.scores, "one number a line, in the data's order of documents")
        ->type_name("FILE");
    app.add_option("--run", request_.run, "a TREC run: lines of qid Q0 docno rank score tag")
        ->type_name("FILE");
    app.add_option("--model", request_.model, "a model file, or the folder of a finished trial")
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
    const DataPart part = parse_choice<DataPart>("--part", request_.part);
    ExecutionContext context(threads_ > 0 ? threads_ : available_threads());
    data_.source = request_.data;
    std::vector<EvalAnswer> answers;
    for (const std::int64_t fold : folds_) {
      EvalRequest of_fold = request_;
      of_fold.fold = fold;
      for (std::string* file : {&of_fold.scores, &of_fold.run, &of_fold.model, &of_fold.per_query})
        *file = for_fold(*file, fold);
      answers.push_back(judge(of_fold, load_part(data_, fold, part, context), context));
    }
    fmt::print("{}", output.json ? eval_json(answers) : eval_table(answers));
    return 0;
  }

 private:
  void check_usage() {
    if (request_.data.empty())
      throw InvalidArgument("--data is missing: name the data set that was ranked.");
    const int given = !request_.scores.empty() + !request_.run.empty() + !request_.model.empty();
    if (given != 1) {
      throw InvalidArgument("Give the ranking as one of --scores FILE, --run FILE and --model FILE.");
    }
    folds_ = std::get<std::vector<std::int64_t>>(parse_setting(SettingKind::kIntegers, folds_text_));
    if (folds_.empty() || *std::min_element(folds_.begin(), folds_.end()) < 1) {
      throw InvalidArgument(fmt::format("--fold counts from 1, and '{}' does not.", folds_text_));
    }
    if (folds_.size() > 1) {
      for (const std::string& file :
           {request_.scores + request_.run + request_.model, request_.per_query}) {
        if (file.empty() || file.find("{fold}") != std::string::npos) continue;
        throw InvalidArgument(fmt::format(
            "Each fold has a file of its own: write {{fold}} where its number stands in '{}'.", file));
      }
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
