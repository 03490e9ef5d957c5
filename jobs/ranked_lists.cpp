#include "jobs/ranked_lists.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>

#include "core/data/doc_table.h"
#include "core/metrics/list_metrics.h"
#include "core/throw_error.h"

namespace olrank {
namespace {

constexpr std::int64_t kDocsPerTask = 256;
constexpr std::size_t kTasksPerTurn = 256;  // bounds the memory held by unwritten text

template <class Number>
void append_number(std::string& text, Number number) {
  char digits[32];
  text.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

void append_run_line(std::string& text, std::string_view qid, std::string_view docno, std::int64_t rank,
                     double score) {
  text += qid;
  text += " Q0 ";
  text += docno;
  text += ' ';
  append_number(text, rank);
  text += ' ';
  append_number(text, score);
  text += " olrank\n";
}

/// Scores and writes a range of queries on one thread.
class RangeWriter {
 public:
  RangeWriter(const ModelScorer& scorer, ListFormat format, const Dataset& data, Scratch& scratch)
      : scorer_(scorer), format_(format), data_(data), scratch_(scratch) {}

  void write(QueryRange range, std::string& text) {
    const Scratch::Frame frame(scratch_);
    const std::int64_t first = data_.offset(range.begin);
    const std::int64_t docs = data_.offset(range.end) - first;
    const auto scores = scratch_.take<double>(docs);
    scorer_.score(
        scratch_, data_.all_rows().part(first, first + docs),
        data_.offsets().subspan(range.begin, static_cast<std::size_t>(range.end - range.begin) + 1), scores,
        names_of(data_, range.begin));
    for (std::int64_t query = range.begin; query < range.end; ++query) {
      const auto of_query = scores.subspan(data_.offset(query) - first, data_.docs_of(query));
      check(query, of_query);
      if (format_ == ListFormat::kScores) {
        for (const double score : of_query) {
          append_number(text, score);
          text += '\n';
        }
      } else {
        write_run(query, of_query, text);
      }
    }
  }

 private:
  void check(std::int64_t query, std::span<const double> scores) const {
    if (std::all_of(scores.begin(), scores.end(), [](double score) { return std::isfinite(score); }))
      return;
    throw_error<NumericError>(
        "A document of query {} has a score that is not finite: the model's parameters are out of range, "
        "or the features differ too much from the training data.",
        data_.qid(query));
  }

  void write_run(std::int64_t query, std::span<const double> scores, std::string& text) {
    const Scratch::Frame frame(scratch_);
    const auto order = scratch_.take<std::int32_t>(scores.size());
    order_by_score(scores, order, scratch_);
    std::int64_t rank = 0;
    for (const std::int32_t doc : order)
      append_run_line(text, data_.qid(query), DocLabel(data_, query, doc).view(), ++rank, scores[doc]);
  }

  const ModelScorer& scorer_;
  ListFormat format_;
  const Dataset& data_;
  Scratch& scratch_;
};

}  // namespace

void write_judgements(const Dataset& data, const TextSink& sink) {
  std::string text;
  for (std::int64_t query = 0; query < data.queries(); ++query) {
    text.clear();
    std::int64_t doc = 0;
    for (const std::uint8_t grade : data.grades_of(query)) {
      text += data.qid(query);
      text += " 0 ";
      text += DocLabel(data, query, doc++).view();
      text += ' ';
      append_number(text, static_cast<int>(grade));
      text += '\n';
    }
    sink(text);
  }
}

void write_ranked(const ModelScorer& scorer, ListFormat format, const Dataset& data,
                  ExecutionContext& context, const TextSink& sink) {
  const std::vector<QueryRange> ranges = query_ranges(data, kDocsPerTask);
  std::vector<std::string> texts(std::min(ranges.size(), kTasksPerTurn));
  for (std::size_t begin = 0; begin < ranges.size(); begin += kTasksPerTurn) {
    const std::size_t count = std::min(kTasksPerTurn, ranges.size() - begin);
    context.for_blocks(
        static_cast<std::int64_t>(count), 1, [&](std::int64_t number, std::int64_t, int worker) {
          const auto at = static_cast<std::size_t>(number);
          texts[at].clear();
          RangeWriter(scorer, format, data, context.scratch(worker)).write(ranges[begin + at], texts[at]);
        });
    for (std::size_t at = 0; at < count; ++at) sink(texts[at]);
  }
}

ExploringLists::ExploringLists(SavedTrial trial, FittedNormaliser normaliser)
    : trial_(std::move(trial)), normaliser_(std::move(normaliser)) {}

void ExploringLists::write(ListFormat format, const Dataset& data, ExecutionContext& context,
                           const TextSink& sink) {
  RoundContext round_context{context, clock_};
  const std::int64_t columns = normaliser_.inputs();
  std::string text;
  std::vector<std::int64_t> score_of;
  std::vector<float> zeros;
  for (std::int64_t query = 0; query < data.queries(); ++query) {
    const FeatureMatrix raw = with_zeros(data.rows_of(query), zeros);
    inputs_.resize(raw.docs * columns);
    normaliser_.apply(raw, inputs_.data());
    const std::int64_t round = trial_.rounds + ++queries_;
    QueryDocs docs{queries_ - 1, data.offset(query), {inputs_.data(), raw.docs, columns}};
    const QueryIdentity unknown;  // these queries are none of those that the trial was asked
    docs.identity = &unknown;
    const RankedList list = trial_.ranker->rank(round_context, docs, static_cast<std::uint32_t>(round));
    text.clear();
    score_of.assign(raw.docs, 0);
    std::int64_t rank = 0;
    for (const std::int32_t doc : list.docs) {
      score_of[doc] = raw.docs - rank++;
      if (format == ListFormat::kTrec) {
        append_run_line(text, data.qid(query), DocLabel(data, query, doc).view(), rank,
                        static_cast<double>(score_of[doc]));
      }
    }
    if (format == ListFormat::kScores) {
      for (const std::int64_t score : score_of) text += std::to_string(score) + "\n";
    }
    sink(text);
  }
}

}  // namespace olrank
