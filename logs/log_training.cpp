#include "logs/log_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "core/data/doc_table.h"
#include "core/data/join.h"
#include "core/data/normaliser.h"
#include "core/runtime/log.h"
#include "core/settings/toml_document.h"
#include "core/settings/value.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "logs/log_reader.h"
#include "models/labels/label_training.h"

namespace olrank {
namespace {

/// A click model expects this of each document in all lists of a log.
struct Exposures {
  std::vector<double> examined;  // how often users saw it
  std::vector<double> clicked;   // how often they clicked it then
};

constexpr std::int64_t kHalves = 2;

std::int64_t half_of(std::int64_t number) {
  return number % kHalves;
}

/// Each list is weighed by a model that was fitted to the lists of the other half. P(examined) is that
/// given the clicks above: Vardasbi, de Rijke and Markov, "Cascade model-based propensity estimation for
/// counterfactual learning to rank", SIGIR 2020.
Exposures find_exposures(const LogTrainingRequest& request, const LogLists& log, const Dataset& train) {
  Exposures found{std::vector<double>(train.docs()), std::vector<double>(train.docs())};
  ClickDocs docs{train.docs()};
  if (goes_by_inputs(request.click_model)) {
    const FeatureMatrix rows = train.all_features();
    docs.columns = rows.features;
    docs.inputs.assign(rows.values, rows.values + rows.docs * rows.features);
  }
  ListForecast forecast;
  std::vector<double> attraction;
  for (std::int64_t half = 0; half < kHalves; ++half) {
    const bool naive = request.estimator == LogEstimator::kNaive;
    FittedClicks fit;
    if (!naive) {
      ClickLists others;
      for (std::int64_t i = 0; i < log.lists.size(); ++i) {
        if (half_of(i) != half) others.add(log.lists[i].docs, log.lists[i].clicks);
      }
      fit = fit_clicks(request.click_model, others, docs, log.lists.ranks(), {});
    }
    for (std::int64_t i = half; i < log.lists.size(); i += kHalves) {
      const ClickedList list = log.lists[i];
      if (!naive) {
        attraction.clear();
        for (const std::int32_t doc : list.docs) attraction.push_back(fit.attraction->of(doc));
        fit.reading->forecast(list, attraction, forecast);
      }
      for (std::size_t rank = 0; rank < list.size(); ++rank) {
        const double trust = naive ? 0.0 : fit.reading->trust(rank);
        const double chance = naive ? 1.0 : attraction[rank] + (1.0 - attraction[rank]) * trust;
        const double examined = naive ? 1.0 : forecast.given_above[rank] / chance;
        found.examined[list.docs[rank]] += examined * (1.0 - trust);
        // A click that the model excludes tells it nothing.
        if (examined > 0.0) found.clicked[list.docs[rank]] += list.clicks[rank] - examined * trust;
      }
    }
  }
  return found;
}

/// How likely each document is clicked where it is seen, by a model that learned it from queries of the
/// other half.
std::vector<double> regress(const Exposures& found, const Dataset& train, const LabelSettings& settings,
                            const TrialKeys& keys, int threads) {
  std::vector<double> expected(train.docs());
  for (std::int64_t half = 0; half < kHalves; ++half) {
    std::vector<ClickCell> cells;
    for (std::int64_t query = 0; query < train.queries(); ++query) {
      for (std::int64_t doc = train.offset(query); half_of(query) != half && doc < train.offset(query + 1);
           ++doc) {
        const double clicked = found.clicked[doc];
        if (found.examined[doc] > 0.0)
          cells.push_back({doc, 0, std::max(found.examined[doc], clicked), clicked});
      }
    }
    if (cells.empty()) continue;
    ClickTargets targets = ClickTargets::towers(std::move(cells), train.docs());
    LabelSettings of_half = settings;
    of_half.patience = 0;
    LabelTraining training(of_half, {train, nullptr, 1, &targets}, keys, {}, threads);
    while (!training.finished()) training.advance();
    const std::span<const float> scores = training.score(train);
    for (std::int64_t query = half; query < train.queries(); query += kHalves) {
      for (std::int64_t doc = train.offset(query); doc < train.offset(query + 1); ++doc)
        expected[doc] = targets.probability(scores[doc]);
    }
  }
  return expected;
}

/// With a document's expected examination ρ in a list of its query, and ρ' = max(ρ, 1/clip): clicks/ρ', and
/// for dr the regression R in (1 − ρ/ρ') R + clicks/ρ', which is the R + Σ (click − αR)/ρ' of Oosterhuis,
/// "Doubly robust estimation for correcting position bias in click feedback for unbiased learning to rank",
/// TOIS 2023. ρ is the mean over the lists that were shown, so that clicks/ρ is self-normalised.
std::vector<double> find_shares(const LogTrainingRequest& request, const LogLists& log,
                                const Exposures& found, std::span<const double> expected,
                                const Dataset& train) {
  const auto asked = std::count_if(log.shown_lists.begin(), log.shown_lists.end(),
                                   [](double lists) { return lists > 0.0; });
  const double scale = static_cast<double>(asked) / static_cast<double>(log.lists.size());
  std::vector<double> shares(train.docs());
  for (std::int64_t query = 0; query < train.queries(); ++query) {
    const double lists = log.shown_lists[query];
    if (lists == 0.0) continue;
    for (std::int64_t doc = train.offset(query); doc < train.offset(query + 1); ++doc) {
      const double examined = found.examined[doc] / lists;
      const double counted =
          request.estimator == LogEstimator::kNaive ? 1.0 : std::max(examined, 1.0 / request.clip);
      shares[doc] = scale * found.clicked[doc] / counted;
      if (!expected.empty()) shares[doc] += scale * lists * (1.0 - examined / counted) * expected[doc];
      shares[doc] = std::max(shares[doc], 0.0);
    }
  }
  return shares;
}

/// How the service of the log makes inputs of raw documents; otherwise they are the same.
FittedNormaliser normaliser_of_log(const std::string& log, std::int64_t inputs) {
  namespace fs = std::filesystem;
  const fs::path file =
      (fs::is_directory(log) ? fs::path(log) : fs::path(log).parent_path()) / "service.toml";
  FittedNormaliser normaliser;
  normaliser.features = inputs;
  if (!fs::exists(file)) return normaliser;
  for (const TomlDocument::Table& table : read_toml(file).tables) {
    for (const TomlDocument::Entry& entry : table.entries) {
      if (table.name == "service" && entry.key == "normalisation")
        normaliser = parse_normaliser(std::get<std::string>(entry.value), file.string());
    }
  }
  if (normaliser.inputs() == inputs) return normaliser;
  throw_error<InvalidArgument>(
      "{} makes {} inputs, and the lists of {} have {}: give the log of this service alone.", file.string(),
      normaliser.inputs(), log, inputs);
}

std::vector<ClickCell> find_cells(const LogLists& log) {
  std::map<std::pair<std::int64_t, std::int32_t>, ClickCell> cells;
  std::size_t place = 0;
  for (std::int64_t i = 0; i < log.lists.size(); ++i) {
    const ClickedList list = log.lists[i];
    for (std::size_t rank = 0; rank < list.size(); ++rank, ++place) {
      ClickCell& cell = cells[{list.docs[rank], static_cast<std::int32_t>(rank)}];
      cell.doc = list.docs[rank];
      cell.rank = static_cast<std::int32_t>(rank);
      const double weight = log.weights.empty() ? 1.0 : log.weights[place];
      cell.shown += weight;
      cell.clicked += weight * list.clicks[rank];
    }
  }
  std::vector<ClickCell> all;
  all.reserve(cells.size());
  for (const auto& [key, cell] : cells) all.push_back(cell);
  return all;
}

void require_linked_ranks(const LogTrainingRequest& request, const LogLists& log, const Dataset& train) {
  if (!learns_looks(request.click_model) || log.lists.ranks() < 2) return;
  const RankLinks links = find_rank_links(log.lists, train.docs());
  if (links.moved == 0) {
    throw_error<InvalidArgument>(
        "No document of {} was shown at two ranks, so that --click-model {} cannot tell how often a rank "
        "is seen: log lists in changing orders, or choose --estimator two-tower or --click-model cascade, "
        "dcm or dbn.",
        request.log, name_of(request.click_model));
  }
  if (links.groups.size() > 1)
    log_warning("{}: Documents link ranks only within {} groups, so that weights between them are a guess.",
                request.log, links.groups.size());
}

}  // namespace

void LogTrainingRequest::choose(const std::string& estimator_name, const std::string& click_model_name) {
  estimator = parse_choice<LogEstimator>("--estimator", estimator_name);
  click_model = parse_choice<FittedModel>("--click-model", click_model_name);
}

void LogTrainingRequest::check(const LabelSettings& settings, bool on_gpu) const {
  if (log.empty()) throw InvalidArgument("--log is required: name a log of shown lists.");
  if (!(clip >= 1.0)) throw_error<InvalidArgument>("--clip must be at least 1, not {}.", clip);
  if (click_model == FittedModel::kRankOnly) {
    throw InvalidArgument(
        "--click-model must tell documents apart, and rank-only does not: choose pbm, cascade, dcm, dbn, "
        "ubm, two-tower or trust.");
  }
  if (on_gpu) throw InvalidArgument("A GPU learns from grades only: use --device cpu with --log.");
  if (settings.loss != ListLoss::kListNet) {
    throw_error<InvalidArgument>(
        "loss = \"{}\" is of grades, and a log has clicks: remove it, and choose with --estimator.",
        name_of(settings.loss));
  }
  const bool changes = estimator == LogEstimator::kTwoTower || estimator == LogEstimator::kRegressionEm ||
                       estimator == LogEstimator::kDr;
  if (settings.optimizer == LabelOptimizer::kAdam ||
      (settings.optimizer == LabelOptimizer::kLbfgs && !changes))
    return;
  throw_error<InvalidArgument>("--estimator {} does not go with optimizer = \"{}\": choose \"adam\"{}.",
                               name_of(estimator), name_of(settings.optimizer),
                               changes ? "" : " or \"lbfgs\"");
}

std::string LogTrainingRequest::text() const {
  if (!goes_by_click_model()) return fmt::format("{}, clip {}", name_of(estimator), clip);
  return fmt::format("{}, click model {}, clip {}", name_of(estimator), name_of(click_model), clip);
}

LogFold fold_of_log(const std::string& log, ExecutionContext& context) {
  DocTable table;
  std::string names;
  std::vector<float> values;
  ClickDocNumbers numbers;
  QueryNumbers queries;
  LogReader reader(log);
  FeedbackRecord record;
  while (reader.next(record)) {
    if (table.docs() == 0) {
      table.features = record.columns;
      names = record.feature_names;
    }
    const bool fits = record.columns == table.features && record.feature_names == names;
    if (record.columns == 0 || !fits) {
      throw DataError(reader.file(), reader.number(), 1,
                      record.columns == 0
                          ? "The list has no inputs of documents: give the data that the log refers to by "
                            "--data."
                          : "The documents have other features than those of earlier lists: give the "
                            "lists of one schema.");
    }
    for (std::int64_t doc = 0; doc < std::ssize(record.docs); ++doc) {
      const auto [number, is_new] = numbers.add(record.query, record.docs[doc].text);
      if (is_new) {
        table.grades.push_back(0);
        append_run(table.query_runs, {queries.number_of(record.query), 1});
        table.name_text += record.docs[doc].text;
        table.name_ends.push_back(table.name_text.size());
        const auto row = record.inputs.begin() + doc * record.columns;
        values.insert(values.end(), row, row + record.columns);
      }
      if (doc < record.shown() && record.clicks[doc] != 0) table.grades[number] = 1;
    }
  }
  if (table.docs() == 0) throw_error<InvalidArgument>("{} has no lists.", log);
  table.qids = queries.take_names();
  table.values = feature_memory(nullptr, table.docs(), table.features);
  std::copy(values.begin(), values.end(), table.values.as<float>().begin());
  const std::int64_t features = table.features;
  Dataset train = gathered(std::move(table), context.pool());
  return {{std::move(train), std::nullopt, no_queries(features), 1, normaliser_of_log(log, features)},
          names};
}

LogLists read_log_lists(const LogTrainingRequest& request, const Dataset& data, bool named) {
  LogLists log;
  log.shown_lists.assign(data.queries(), 0.0);
  LogDocs docs(data, named);
  LogReader reader(request.log);
  FeedbackRecord record;
  Fingerprinter content;
  std::vector<std::int32_t> list;
  std::vector<double> sums;  // of weights, by rank
  std::vector<double> counts;
  bool clicked = false;
  while (reader.next(record)) {
    const auto shown = static_cast<std::size_t>(std::min(record.shown(), request.ranks));
    std::int64_t query = -1;
    list.clear();
    std::string wrong = docs.find_query(record.query, query);
    if (wrong.empty()) wrong = docs.find(query, std::span(record.docs).first(shown), list);
    for (std::size_t rank = 0; rank < list.size() && wrong.empty(); ++rank) {
      if (std::find(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(rank), list[rank]) !=
          list.begin() + static_cast<std::ptrdiff_t>(rank))
        wrong = fmt::format("Document '{}' is shown twice.", excerpt(record.docs[rank].text));
    }
    if (!wrong.empty()) throw DataError(reader.file(), reader.number(), 1, wrong);
    for (std::int32_t& doc : list) doc += static_cast<std::int32_t>(data.offset(query));
    const std::span clicks = std::span(record.clicks).first(shown);
    clicked = clicked || std::find(clicks.begin(), clicks.end(), 1) != clicks.end();
    log.lists.add(list, clicks);
    log.shown_lists[query] += 1.0;
    log.without_propensity += record.propensity.empty() ? 1 : 0;
    sums.resize(std::max(sums.size(), shown));
    counts.resize(sums.size());
    for (std::size_t rank = 0; rank < shown; ++rank) {
      const double weight =
          record.propensity.empty() ? 1.0 : std::min(1.0 / record.propensity[rank], request.clip);
      log.weights.push_back(weight);
      sums[rank] += weight;
      counts[rank] += 1.0;
    }
    content.add(std::span<const std::int32_t>(list));
    content.add(std::span<const std::uint8_t>(clicks));
    content.add(std::span<const double>(log.weights).last(shown));
  }
  log.fingerprint = content.value().hex();
  if (!clicked) {
    throw_error<InvalidArgument>(
        "{} has {} without a click, from which nothing can be learned: give a log "
        "with clicks.",
        request.log, counted(log.lists.size(), "list"));
  }
  if (log.without_propensity == log.lists.size()) log.weights.clear();
  for (std::size_t at = 0, i = 0; at < log.weights.size(); ++i) {
    for (std::size_t rank = 0; rank < log.lists[static_cast<std::int64_t>(i)].size(); ++rank)
      log.weights[at++] *= counts[rank] / sums[rank];
  }
  return log;
}

ClickTargets click_targets(const LogTrainingRequest& request, const LogLists& log, const Dataset& train,
                           const LabelSettings& settings, const TrialKeys& keys, int threads) {
  if (request.estimator == LogEstimator::kTwoTower)
    return ClickTargets::towers(find_cells(log), train.docs());
  if (request.estimator == LogEstimator::kRegressionEm)
    return ClickTargets::mixture(find_cells(log), train.docs());
  if (request.goes_by_click_model()) {
    if (log.lists.size() < kHalves) {
      throw_error<InvalidArgument>(
          "{} has a single list, and --estimator {} weighs one half of the lists by the other: give a "
          "longer log.",
          request.log, name_of(request.estimator));
    }
    require_linked_ranks(request, log, train);
  }
  const Exposures found = find_exposures(request, log, train);
  std::vector<double> expected;
  if (request.estimator == LogEstimator::kDr) expected = regress(found, train, settings, keys, threads);
  return ClickTargets::shares(find_shares(request, log, found, expected, train));
}

void describe_log(const LogTrainingRequest& request, const std::string& feature_names,
                  ModelMetadata& metadata) {
  metadata.emplace_back("learned_from", "clicks by " + request.text());
  for (auto& [key, text] : metadata) {
    if (key == "feature_names" && !feature_names.empty()) text = feature_names;
  }
}

}  // namespace olrank
