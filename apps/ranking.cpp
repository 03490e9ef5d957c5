#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/command.h"
#include "apps/data/data_files.h"
#include "core/data/data_loader.h"
#include "core/data/dataset_cache.h"
#include "core/data/letor_stream.h"
#include "core/io/atomic_file.h"
#include "core/runtime/log.h"
#include "core/settings/enum_names.h"
#include "core/settings/value.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "jobs/rankings.h"
#include "jobs/saved_trial.h"
#include "models/files/model_scorer.h"

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
  void declare(CLI::App& app) override {
    add_option(app, "--data", request_.data, "SOURCE",
               "data set: a folder, a file, or synth:NAME?key=value&…");
    add_option(app, "--fold", folds_text_, "N,...",
               "folds to evaluate, such as 1-5; {fold} in file names stands for the number [default: 1]");
    add_option(app, "--part", request_.part, "PART", "train, vali or test [default: test]");
    add_option(app, "--cache", data_.cache, "DIR", kCacheHelp);
    add_option(app, "--max-memory", data_.max_memory, "SIZE", kMaxMemoryHelp);
    add_option(app, "--qrels", request_.qrels, "FILE",
               "TREC judgements instead of a data set: lines 'qid 0 docno grade'; conventions are then "
               "those of trec_eval");
    add_option(app, "--scores", scores_, "FILE",
               "scores, one per line, in the order of the documents in the data; several files, here or "
               "with --run and --model, are compared");
    add_option(app, "--run", runs_, "FILE", "a TREC run: lines 'qid Q0 docno rank score tag'");
    add_option(app, "--model", models_, "FILE", "a model file or the folder of a finished trial");
    add_trust_code(app, request_.trust_code);
    add_option(app, "--baseline", baseline_, "NAME",
               "compare the others with this ranking only, by the name of its file without extension");
    add_option(app, "--at", request_.metrics.cutoffs, "K,...",
               "cutoffs of NDCG and DCG [default: 1,3,5,10]")
        ->delimiter(',')
        ->allow_extra_args(false);
    add_option(app, "--metrics", metrics_, "NAME,...",
               "further metrics, such as map@5,mrr@10,err@5; for several rankings, the metrics to "
               "compare [default: ndcg at the cutoffs, map, mrr, p@10, err@10]")
        ->delimiter(',')
        ->allow_extra_args(false);
    convention_ = add_option(app, "--convention", convention_text_, "NAME",
                             "metric definitions of olrank, letor, lightgbm or trec_eval; the flags "
                             "below override them [default: olrank]");
    gain_ = add_option(app, "--gain", gain_text_, "NAME", "gain: exponential (2^grade - 1) or linear");
    empty_ = add_option(app, "--empty-queries", empty_text_, "NAME",
                        "how queries without relevant documents count: zero, one or skip");
    max_grade_ = add_option(app, "--max-grade", max_grade_value_, "G",
                            "highest possible grade, for ERR [default: the highest in the data]");
    add_output(app, "--per-query", request_.per_query, "FILE",
               "also write the metrics of every query as CSV");
    add_threads(app, threads_);
  }

  int run(const OutputFlags& output) override {
    check_usage();
    choose_conventions();
    ExecutionContext context(threads_ > 0 ? threads_ : available_threads());
    const std::vector<EvalRequest> requests = requests_of_rankings();
    if (requests.size() > 1) return compare(requests, context, output);
    const std::vector<EvalResult> results = evaluate_all(requests, context).front();
    return printed(output.json ? eval_json(results) : eval_table(results));
  }

 private:
  /// One for each ranking, without a fold.
  std::vector<EvalRequest> requests_of_rankings() const {
    std::vector<EvalRequest> requests;
    const auto add = [&](const std::vector<std::string>& files, std::string EvalRequest::*member) {
      for (const std::string& file : files) {
        requests.push_back(request_);
        requests.back().*member = file;
      }
    };
    add(scores_, &EvalRequest::scores);
    add(runs_, &EvalRequest::run);
    add(models_, &EvalRequest::model);
    return requests;
  }

  /// The results of each ranking, by fold. A fold's data is read once.
  std::vector<std::vector<EvalResult>> evaluate_all(const std::vector<EvalRequest>& requests,
                                                    ExecutionContext& context) {
    std::vector<std::vector<EvalResult>> results(requests.size());
    if (!request_.qrels.empty()) {
      const Qrels qrels = read_qrels(TextLines::of_file(request_.qrels));
      for (std::size_t i = 0; i < requests.size(); ++i)
        results[i].push_back(evaluate_judged_run(requests[i], qrels, context));
      return results;
    }
    const DataPart part = parse_choice<DataPart>("--part", request_.part);
    data_.source = request_.data;
    for (const std::int64_t fold : folds_) {
      const Dataset data = load_part(data_, fold, part, context);
      for (std::size_t i = 0; i < requests.size(); ++i) {
        EvalRequest of_fold = requests[i];
        of_fold.fold = fold;
        for (std::string* file : {&of_fold.scores, &of_fold.run, &of_fold.model, &of_fold.per_query})
          *file = for_fold(*file, fold);
        results[i].push_back(evaluate_ranking(of_fold, data, context));
      }
    }
    return results;
  }

  int compare(std::vector<EvalRequest> requests, ExecutionContext& context, const OutputFlags& output) {
    std::vector<std::string> files;
    for (EvalRequest& request : requests) {
      files.push_back(request.scores + request.run + request.model);
      request.keep_queries = true;
      request.per_query.clear();  // one file for all
    }
    const std::vector<std::string> names = ranking_names(files);
    for (auto name = names.begin(); name != names.end(); ++name) {
      if (std::find(names.begin(), name, *name) != name)
        throw_error<InvalidArgument>("The ranking '{}' is given twice. Remove one of them.", *name);
    }
    if (!baseline_.empty() && std::find(names.begin(), names.end(), baseline_) == names.end())
      throw_error<InvalidArgument>("--baseline {}", must_be_one_of(baseline_, names));
    std::vector<std::vector<EvalResult>> results = evaluate_all(requests, context);
    std::vector<ComparedRanking> rankings;
    for (std::size_t i = 0; i < results.size(); ++i)
      rankings.push_back({names[i], files[i], std::move(results[i])});
    const EvalComparison comparison = compare_rankings(
        std::move(rankings), baseline_.empty() ? std::nullopt : std::optional(baseline_), context);
    for (std::size_t fold = 0; fold < folds_.size() && !request_.per_query.empty(); ++fold) {
      write_file_atomically(for_fold(request_.per_query, folds_[fold]),
                            comparison_queries_csv(comparison, fold));
    }
    return printed(output.json ? comparison_json(comparison) : comparison_table(comparison));
  }

  void check_usage() {
    const std::size_t rankings = scores_.size() + runs_.size() + models_.size();
    if (request_.qrels.empty() && request_.data.empty())
      throw InvalidArgument("--data is required: name the data set that was ranked.");
    if (!request_.qrels.empty()) check_judged();
    if (rankings == 0) throw InvalidArgument("Give a ranking: --scores FILE, --run FILE or --model FILE.");
    if (rankings == 1 && !baseline_.empty())
      throw InvalidArgument("--baseline needs at least two rankings to compare.");
    folds_ = std::get<std::vector<std::int64_t>>(parse_setting(SettingKind::kIntegers, folds_text_));
    if (folds_.empty() || *std::min_element(folds_.begin(), folds_.end()) < 1) {
      throw_error<InvalidArgument>("--fold must be at least 1, not {}.", folds_text_);
    }
    if (folds_.size() > 1) {
      std::vector<std::string> files = {request_.per_query};
      for (const auto* given : {&scores_, &runs_, &models_})
        files.insert(files.end(), given->begin(), given->end());
      for (const std::string& file : files) {
        if (file.empty() || file.find("{fold}") != std::string::npos) continue;
        throw_error<InvalidArgument>(
            "Each fold needs its own file: put {{fold}} in '{}' where the fold's number goes.", file);
      }
    }
  }

  /// Judgements come with neither features nor an order of documents.
  void check_judged() const {
    if (!request_.data.empty())
      throw InvalidArgument("--data and --qrels both hold relevance grades: give one of them.");
    if (!scores_.empty() || !models_.empty()) {
      throw_error<InvalidArgument>("{} needs --data: --qrels goes with TREC runs (--run).",
                                   models_.empty() ? "--scores" : "--model");
    }
    if (folds_text_ != "1") throw InvalidArgument("--fold needs --data: judgements have no folds.");
  }

  /// The convention sets every option; explicit flags override it.
  void choose_conventions() {
    MetricOptions& metrics = request_.metrics;
    if (!request_.qrels.empty()) request_.convention = Convention::kTrecEval;
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
    metrics.named = parse_metrics(metrics_, "--metrics");
    check_metric_options(metrics);
    if (metrics.named.empty() && scores_.size() + runs_.size() + models_.size() > 1) {
      for (const std::int64_t cutoff : metrics.cutoffs)
        metrics.named.push_back({MetricKind::kNdcg, cutoff});
      metrics.named.insert(metrics.named.end(), {{MetricKind::kMap, 0},
                                                 {MetricKind::kMrr, 0},
                                                 {MetricKind::kPrecision, metrics.precision_cutoff},
                                                 {MetricKind::kErr, metrics.err_cutoff}});
    }
  }

  EvalRequest request_;
  DataSettings data_;
  std::vector<std::string> scores_;
  std::vector<std::string> runs_;
  std::vector<std::string> models_;
  std::vector<std::string> metrics_;
  std::string baseline_;
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

/// Writes a file atomically, or standard output for "-", also in one piece.
class Output {
 public:
  explicit Output(const std::string& name) {
    if (name != "-") file_.emplace(name);
  }
  void write(std::string_view text) { file_ ? file_->write(text) : void(kept_ += text); }
  void commit() { file_ ? file_->commit() : write_output(kept_); }

 private:
  std::optional<AtomicFile> file_;
  std::string kept_;
};

/// Writes the lists of one block of the data; blocks come in order.
using PrintLists = std::function<void(const Dataset& data, const TextSink& sink)>;

/// The lists and, where they are asked for, the judgements.
class Outputs {
 public:
  Outputs(const std::string& out, const std::string& qrels) : lists_(out) {
    if (!qrels.empty()) judgements_.emplace(qrels);
  }
  void write(const Dataset& data, const PrintLists& rank) {
    rank(data, [&](std::string_view text) { lists_.write(text); });
    if (judgements_) write_judgements(data, [&](std::string_view text) { judgements_->write(text); });
  }
  void commit() {
    if (judgements_) judgements_->commit();
    lists_.commit();
  }

 private:
  Output lists_;
  std::optional<Output> judgements_;
};

class RankCommand : public Command {
 public:
  void declare(CLI::App& app) override {
    add_option(app, "--model", model_, "MODEL",
               "a model file, a snapshot, or the folder of a finished trial");
    add_trust_code(app, trust_code_);
    add_option(app, "--data", data_.source, "SOURCE",
               "data to rank: a file, a folder, synth:NAME?key=value&…, or - for standard input");
    add_output(app, "--out", out_, "FILE", "output file; - is standard output");
    add_option(app, "--format", format_text_, "FORMAT",
               "trec (a TREC run) or scores (one score per document) [default: trec]");
    add_output(app, "--qrels", qrels_, "FILE",
               "also write the grades of the data as TREC judgements: lines 'qid 0 docno grade'");
    add_option(app, "--fold", fold_, "N", "fold of a data folder [default: 1]");
    add_option(app, "--part", part_text_, "PART",
               "part of a data folder: train, vali or test [default: test]");
    add_option(app, "--cache", data_.cache, "DIR", kCacheHelp);
    add_option(app, "--max-memory", data_.max_memory, "SIZE", kMaxMemoryHelp);
    add_threads(app, threads_);
  }

  int run(const OutputFlags&) override {
    check_usage();
    const auto format = parse_choice<ListFormat>("--format", format_text_);
    const std::filesystem::path file = model_file_of(model_);
    const ModelScorer scorer(load_model(file, code_if(trust_code_)));
    ExecutionContext context(threads_ > 0 ? threads_ : available_threads());
    rank_all(scorer, context, [&](const Dataset& data, const TextSink& sink) {
      write_ranked(scorer, format, data, context, sink);
    });
    return 0;
  }

 private:
  void check_usage() const {
    if (model_.empty())
      throw InvalidArgument("--model is required: name a model file or the folder of a finished trial.");
    if (data_.source.empty()) throw InvalidArgument("--data is required: name the data to rank.");
    if (out_.empty())
      throw InvalidArgument("--out is required: name the file to write, or - for standard output.");
    if (qrels_ == out_)
      throw_error<InvalidArgument>("--out and --qrels both name '{}': give each a file of its own.", out_);
    if (fold_ < 1) throw_error<InvalidArgument>("--fold must be at least 1, not {}.", fold_);
  }

  void refuse_reordered(const Dataset& data) const {
    if (format_text_ != name_of(ListFormat::kScores) || !data.reordered()) return;
    throw_error<InvalidArgument>(
        "The lines of some queries in '{}' are not contiguous, so scores could not be matched to documents "
        "by line; use --format trec.",
        data_.source);
  }

  /// A single text file is streamed, unless it has a binary copy or its queries are not contiguous.
  void rank_all(const ModelScorer& scorer, ExecutionContext& context, const PrintLists& rank) const {
    const bool is_file = std::filesystem::is_regular_file(data_.source);
    if (!is_file && data_.source != "-") {
      const DataPart part = parse_choice<DataPart>("--part", part_text_);
      return rank_whole(load_part(data_, fold_, part, context), scorer, context, rank);
    }
    if (fold_ != 1)
      throw_error<InvalidArgument>("--fold {} requires a data folder; a single file has no folds.", fold_);
    const LetorOptions options = letor_options(data_);
    const DatasetCache cache = DatasetCache::of_setting(data_.cache);
    if (const auto data = cache.find(data_.source, options, context.pool()))
      return rank_whole(*data, scorer, context, rank);
    if (is_file) {
      try {
        return rank_stream(scorer, options, context, rank);
      } catch (const ScatteredQueries& scattered) {
        log_detail("{} Reading the whole file instead of streaming it.", scattered.what());
      }
    }
    rank_whole(cache.read(data_.source, options, context.pool()), scorer, context, rank);
  }

  void rank_whole(const Dataset& data, const ModelScorer& scorer, ExecutionContext& context,
                  const PrintLists& rank) const {
    refuse_reordered(data);
    warn_of_fewer_features(data_.source, data.features(), scorer.features());
    warn_of_missing_names(data_.source, data, scorer.model());
    Outputs outputs(out_, qrels_);
    outputs.write(fitted_to_model(data, scorer.model(), data_.source, context), rank);
    outputs.commit();
    say_what_was_written(data.queries(), data.docs());
  }

  void rank_stream(const ModelScorer& scorer, const LetorOptions& options, ExecutionContext& context,
                   const PrintLists& rank) const {
    Outputs outputs(out_, qrels_);
    LetorStream stream(data_.source, scorer.features(), options, context.pool());
    std::int64_t queries = 0;
    std::int64_t docs = 0;
    while (const auto data = stream.next()) {
      if (queries == 0) warn_of_missing_names(data_.source, *data, scorer.model());
      outputs.write(*data, rank);
      queries += data->queries();
      docs += data->docs();
    }
    outputs.commit();
    warn_of_fewer_features(data_.source, stream.largest_feature(), scorer.features());
    say_what_was_written(queries, docs);
  }

  void say_what_was_written(std::int64_t queries, std::int64_t docs) const {
    if (!qrels_.empty() && qrels_ != "-")
      log_info("Wrote {}: judgements of {}", qrels_, counted(docs, "document"));
    if (out_ == "-") return;
    log_info("Wrote {}: {} of {} in {}", out_,
             format_text_ == name_of(ListFormat::kScores) ? "scores" : "a TREC run",
             counted(docs, "document"), queries == 1 ? "1 query" : fmt::format("{} queries", queries));
  }

  std::string model_;
  bool trust_code_ = false;
  DataSettings data_;
  std::string out_;
  std::string qrels_;
  std::string format_text_ = "trec";
  std::int64_t fold_ = 1;
  std::string part_text_ = "test";
  int threads_ = 0;
};

}  // namespace

const CommandEntry kEvalCommand{
    "eval", "compute metrics of rankings (scores, TREC runs, saved models) and compare them",
    make_command<EvalCommand>};

const CommandEntry kRankCommand{"rank", "rank data with a saved model; write a TREC run or scores",
                                make_command<RankCommand>};

}  // namespace olrank
