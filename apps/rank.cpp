#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

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
#include "jobs/ranked_lists.h"
#include "jobs/saved_trial.h"
#include "models/files/model_scorer.h"

namespace olrank {
namespace {

/// Writes a file atomically, or standard output for "-", also in one piece.
class Output {
 public:
  explicit Output(const std::string& name) {
    if (name != "-") file_.emplace(name);
  }
  void write(std::string_view text) {
    if (file_) {
      file_->write(text);
    } else {
      kept_ += text;
    }
  }
  void commit() {
    if (file_) {
      file_->commit();
    } else {
      write_output(kept_);
    }
  }

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
    add_option(app, "--trust-code", trust_code_, "true|false",
               "whether the model may contain a TorchScript module, whose code can read and write your "
               "files [default: false]");
    add_option(app, "--data", data_.source, "SOURCE",
               "data to rank: a file, a folder, synth:NAME?key=value&…, or - for standard input");
    add_output(app, "--out", out_, "FILE", "output file; - is standard output");
    add_option(app, "--format", format_text_, "FORMAT",
               "trec (a TREC run) or scores (one score per document) [default: trec]");
    add_output(app, "--qrels", qrels_, "FILE",
               "also write the grades of the data as TREC judgements: lines 'qid 0 docno grade'");
    app.add_flag("--explore", explore_,
                 "write the lists that the trial's ranker would show next, including random exploration");
    add_option(app, "--fold", fold_, "N", "fold of a data folder [default: 1]");
    add_option(app, "--part", part_text_, "PART",
               "part of a data folder: train, vali or test [default: test]");
    add_option(app, "--cache", data_.cache, "DIR",
               "folder for binary copies of text files, auto or none [default: auto]");
    add_option(app, "--max-memory", data_.max_memory, "SIZE", kMaxMemoryHelp);
    add_option(app, "--threads", threads_, "N", "CPU threads; 0 uses every core [default: 0]");
  }

  int run(const OutputFlags&) override {
    check_usage();
    const auto format = parse_choice<ListFormat>("--format", format_text_);
    const std::filesystem::path file = model_file_of(model_);
    const ModelScorer scorer(load_model(file, code_if(trust_code_)));
    ExecutionContext context(threads_ > 0 ? threads_ : available_threads());
    // Exploring lists count queries as rounds, so each pass over the data needs a new object.
    const auto make_ranking = [&]() -> PrintLists {
      if (!explore_) {
        return [&, format](const Dataset& data, const TextSink& sink) {
          write_ranked(scorer, format, data, context, sink);
        };
      }
      const auto lists =
          std::make_shared<ExploringLists>(load_saved_trial(file, scorer.model(), code_if(trust_code_)),
                                           scorer.model().normaliser.without_terms());
      return [&, format, lists](const Dataset& data, const TextSink& sink) {
        lists->write(format, data, context, sink);
      };
    };
    rank_all(scorer, context, make_ranking);
    return 0;
  }

 private:
  using MakeRanking = std::function<PrintLists()>;

  void check_usage() const {
    if (model_.empty())
      throw InvalidArgument("--model is required: name a model file or the folder of a finished trial.");
    if (data_.source.empty()) throw InvalidArgument("--data is required: name the data to rank.");
    if (out_.empty())
      throw InvalidArgument("--out is required: name the file to write, or - for standard output.");
    if (qrels_ == out_)
      throw_error<InvalidArgument>("--out and --qrels both name '{}': give each a file of its own.", out_);
    if (threads_ < 0) throw_error<InvalidArgument>("--threads must be at least 0, not {}.", threads_);
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
  void rank_all(const ModelScorer& scorer, ExecutionContext& context, const MakeRanking& make) const {
    const bool is_file = std::filesystem::is_regular_file(data_.source);
    if (!is_file && data_.source != "-") {
      const DataPart part = parse_choice<DataPart>("--part", part_text_);
      return rank_whole(load_part(data_, fold_, part, context), scorer, context, make());
    }
    if (fold_ != 1)
      throw_error<InvalidArgument>("--fold {} requires a data folder; a single file has no folds.", fold_);
    const LetorOptions options = letor_options(data_);
    const DatasetCache cache = DatasetCache::of_setting(data_.cache);
    if (const auto data = cache.find(data_.source, options, context.pool()))
      return rank_whole(*data, scorer, context, make());
    if (is_file) {
      try {
        return rank_stream(scorer, options, context, make());
      } catch (const ScatteredQueries& scattered) {
        log_detail("{} Reading the whole file instead of streaming it.", scattered.what());
      }
    }
    rank_whole(cache.read(data_.source, options, context.pool()), scorer, context, make());
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
  bool explore_ = false;
  std::int64_t fold_ = 1;
  std::string part_text_ = "test";
  int threads_ = 0;
};

}  // namespace

const CommandEntry kRankCommand{"rank", "rank data with a saved model; write a TREC run or scores",
                                make_command<RankCommand>};

}  // namespace olrank
