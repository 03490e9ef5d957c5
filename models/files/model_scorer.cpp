#include "models/files/model_scorer.h"

#include <fmt/format.h>

#include <cassert>
#include <utility>

#include "core/data/doc_table.h"
#include "core/data/join.h"
#include "core/error.h"
#include "core/feedback/preference_pairs.h"
#include "core/ops/precise_scores.h"
#include "core/runtime/log.h"
#include "core/text/message_text.h"
#include "models/files/external_model.h"
#include "models/modules/module_model.h"

namespace olrank {
namespace {

constexpr std::int64_t kDocsPerTask = 256;

/// Calls use(first row, rows) for each query.
template <class Use>
void for_queries(std::span<const std::int64_t> offsets, const Use& use) {
  for (std::size_t query = 0; query + 1 < offsets.size(); ++query)
    use(offsets[query] - offsets.front(), offsets[query + 1] - offsets[query]);
}

/// Normalises dense documents, query by query; the result lies in the scratch.
FeatureMatrix normalised(Scratch& scratch, const FittedNormaliser& normaliser, FeatureMatrix raw,
                         std::span<const std::int64_t> offsets) {
  const std::int64_t inputs = normaliser.inputs();
  const auto matrix = scratch.take<float>(raw.docs * inputs);
  for_queries(offsets, [&](std::int64_t first, std::int64_t docs) {
    normaliser.apply(raw.part(first, first + docs), matrix.data() + first * inputs);
  });
  return {matrix.data(), raw.docs, inputs};
}

void score_known(const LoadedModel& model, FeatureMatrix raw, std::span<const std::int64_t> offsets,
                 std::span<double> scores, const QueryNames& names) {
  const FittedNormaliser normaliser = model.normaliser.without_terms();
  const std::int64_t columns = normaliser.columns();
  std::vector<float> inputs;
  std::vector<std::int64_t> numbers;
  for (std::size_t query = 0; query + 1 < offsets.size(); ++query) {
    const std::int64_t first = offsets[query] - offsets.front();
    const std::int64_t docs = offsets[query + 1] - offsets[query];
    inputs.resize(docs * columns);
    normaliser.apply(raw.part(first, first + docs), inputs.data());
    const FeatureMatrix rows{inputs.data(), docs, columns};
    const auto name = names.query ? names.query(static_cast<std::int64_t>(query)) : std::string_view();
    numbers.assign(docs, -1);
    for (std::int64_t doc = 0; doc < docs && !name.empty(); ++doc) {
      const auto id = names.doc ? names.doc(first + doc) : std::string_view();
      if (model.names_by_content || !id.empty())
        numbers[doc] = model.names_by_content ? doc_number(name, rows.doc(doc)) : name_number(id);
    }
    model.memory->score_known(rows, {name.empty() ? -1 : name_number(name), numbers},
                              scores.subspan(first, docs));
  }
}

}  // namespace

ModelScorer::ModelScorer(LoadedModel model) : model_(std::move(model)) {
  for (const std::vector<float>& theta : model_.members) members_.emplace_back(theta.begin(), theta.end());
}

void ModelScorer::score(Scratch& scratch, FeatureMatrix raw, std::span<const std::int64_t> offsets,
                        std::span<double> scores, const QueryNames& names) const {
  assert(raw.features == features() && offsets.back() - offsets.front() == raw.docs);
  const Scratch::Frame frame(scratch);
  std::vector<float> zeros;
  if (raw.is_sparse() && !takes_sparse(model_)) raw = with_zeros(raw, zeros);
  if (model_.memory) return score_known(model_, raw, offsets, scores, names);
  if (raw.is_sparse()) {
    SparseRows rows;
    for_queries(offsets, [&](std::int64_t first, std::int64_t docs) {
      model_.normaliser.apply(raw.part(first, first + docs), rows);
    });
    return score_inputs(scratch, rows.matrix(model_.shape.inputs), offsets, scores);
  }
  score_inputs(scratch, normalised(scratch, model_.normaliser, raw, offsets), offsets, scores);
  if (!model_.start) return;
  const FeatureMatrix inputs = normalised(scratch, model_.normaliser.without_terms(), raw, offsets);
  const auto of_start = scratch.take<double>(scores.size());
  model_.start->score(scratch, inputs, offsets, of_start);
  for (std::size_t doc = 0; doc < scores.size(); ++doc)
    scores[doc] += double{model_.start_weight} * of_start[doc];
}

LoadedModel on_inputs(LoadedModel model) {
  FittedNormaliser none;
  none.features = model.normaliser.columns();
  none.cosines = model.normaliser.cosines;
  none.products = model.normaliser.products;
  model.normaliser = none;
  return model;
}

void ModelScorer::score_inputs(Scratch& scratch, FeatureMatrix docs, std::span<const std::int64_t> offsets,
                               std::span<double> scores) const {
  if (model_.external) {
    const std::span values(docs.values, static_cast<std::size_t>(docs.docs * docs.features));
    for_queries(offsets, [&](std::int64_t first, std::int64_t count) {
      model_.external->score(values.subspan(first * docs.features, count * docs.features),
                             scores.subspan(first, count));
    });
    return;
  }
  score_by_member(scratch, 0, docs, offsets, scores);
  if (members_.size() == 1) return;
  const auto of_member = scratch.take<double>(scores.size());
  for (std::size_t member = 1; member < members_.size(); ++member) {
    score_by_member(scratch, member, docs, offsets, of_member);
    for (std::size_t doc = 0; doc < scores.size(); ++doc) scores[doc] += of_member[doc];
  }
  for (double& score : scores) score /= static_cast<double>(members_.size());
}

void ModelScorer::score_by_member(Scratch& scratch, std::size_t member, FeatureMatrix docs,
                                  std::span<const std::int64_t> offsets, std::span<double> scores) const {
  if (!model_.module) return precise_scores(scratch, model_.shape, members_[member], docs, scores);
  const std::vector<float>& theta = model_.members[member];
  if (!model_.module->reads_lists()) return model_.module->score_precisely(theta, docs, scores);
  for_queries(offsets, [&](std::int64_t first, std::int64_t count) {
    model_.module->score_precisely(theta, docs.part(first, first + count), scores.subspan(first, count));
  });
}

Dataset fitted_to_model(const Dataset& data, const LoadedModel& model, const std::string& source,
                        ExecutionContext& context) {
  const std::int64_t features = model.normaliser.features;
  if (data.features() == features) return data;
  if (data.features() < features) {
    if (data.is_sparse()) return widened(data, features, context);
    if (features >= kManyColumns && ModelScorer::takes_sparse(model))
      return widened(as_sparse(data, context.pool()), features, context);
    const double bytes = static_cast<double>(data.docs()) * static_cast<double>(features) * sizeof(float);
    if (bytes > static_cast<double>(available_memory())) {
      throw DataError(
          source, 0, 0,
          fmt::format("The model was trained on {} features, so {} documents need {} of memory.", features,
                      data.docs(), readable_bytes(bytes)));
    }
    return widened(data, features, context);
  }
  throw DataError(
      source, 0, 0,
      fmt::format("The data has {} features, but the model was trained on {}: remove the others.",
                  data.features(), features));
}

void warn_of_fewer_features(const std::string& source, std::int64_t of_data, std::int64_t of_model) {
  if (of_data >= of_model) return;
  log_warning("{} has {} and the model {}: the others count as 0.", source, counted(of_data, "feature"),
              of_model);
}

void warn_of_missing_names(const std::string& source, const Dataset& data, const LoadedModel& model) {
  if (!model.memory || model.names_by_content || data.has_doc_names()) return;
  log_warning(
      "{} has no IDs of documents (# docid = …), by which the snapshot knows them: it ranks by its model "
      "alone.",
      source);
}

QueryNames names_of(const Dataset& data, std::int64_t first_query) {
  return {[&data, first_query](std::int64_t query) { return data.qid(first_query + query); },
          [&data, first_doc = data.offset(first_query)](std::int64_t doc) {
            return data.doc_name(first_doc + doc);
          }};
}

std::vector<QueryRange> query_ranges(const Dataset& data, std::int64_t docs) {
  std::vector<QueryRange> ranges;
  std::int64_t begin = 0;
  for (std::int64_t query = 0; query < data.queries(); ++query) {
    if (data.offset(query + 1) - data.offset(begin) < docs && query + 1 < data.queries()) continue;
    ranges.push_back({begin, query + 1});
    begin = query + 1;
  }
  return ranges;
}

std::vector<double> scores_of_all(const ModelScorer& scorer, const Dataset& data,
                                  ExecutionContext& context) {
  std::vector<double> scores(data.docs());
  const std::vector<QueryRange> ranges = query_ranges(data, kDocsPerTask);
  context.for_blocks(std::ssize(ranges), 1, [&](std::int64_t number, std::int64_t, int worker) {
    const QueryRange range = ranges[number];
    const std::int64_t first = data.offset(range.begin);
    const std::int64_t docs = data.offset(range.end) - first;
    const auto queries = static_cast<std::size_t>(range.end - range.begin);
    scorer.score(context.scratch(worker), data.all_rows().part(first, first + docs),
                 data.offsets().subspan(range.begin, queries + 1), std::span(scores).subspan(first, docs),
                 names_of(data, range.begin));
  });
  return scores;
}

}  // namespace olrank
