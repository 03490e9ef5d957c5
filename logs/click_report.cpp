#include "logs/click_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>

#include "core/text/message_text.h"
#include "core/text/text_table.h"
#include "core/throw_error.h"
#include "report/markup.h"
#include "sim/trial_settings.h"

namespace olrank {
namespace {

constexpr std::size_t kFifths = 5;
constexpr std::size_t kRanksInText = 20;

AttractionFifths fifths_of(const FittedClicks& fit, const LoggedClicks& log) {
  std::vector<double> shown(log.docs.count, 0.0);
  std::vector<double> clicks(log.docs.count, 0.0);
  for (std::int64_t i = 0; i < log.fitted.size(); ++i) {
    const ClickedList list = log.fitted[i];
    for (std::size_t rank = 0; rank < list.size(); ++rank) {
      shown[list.docs[rank]] += 1.0;
      clicks[list.docs[rank]] += list.clicks[rank];
    }
  }
  std::vector<std::int32_t> order;
  for (std::int64_t doc = 0; doc < log.docs.count; ++doc) {
    if (shown[doc] > 0.0) order.push_back(static_cast<std::int32_t>(doc));
  }
  std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    const double of_a = fit.attraction->of(a);
    const double of_b = fit.attraction->of(b);
    return of_a != of_b ? of_a < of_b : a < b;
  });
  struct Sums {
    double shown = 0.0;
    double attraction = 0.0;
    double clicks = 0.0;
    double satisfied = 0.0;
  };
  std::vector<Sums> parts(kFifths);
  double before = 0.0;
  for (const std::int32_t doc : order) {
    const double middle = (before + 0.5 * shown[doc]) / static_cast<double>(log.fitted.shown());
    Sums& part = parts[std::min(static_cast<std::size_t>(middle * kFifths), kFifths - 1)];
    before += shown[doc];
    part.shown += shown[doc];
    part.attraction += shown[doc] * fit.attraction->of(doc);
    part.clicks += clicks[doc];
    part.satisfied += clicks[doc] * fit.reading->satisfaction(doc);
  }
  AttractionFifths fifths;
  for (const Sums& part : parts) {
    // Where documents are few, one may fill several parts.
    const double none = fifths.click.empty() ? 0.0 : fifths.click.back();
    fifths.click.push_back(part.shown > 0.0 ? part.attraction / part.shown : none);
    fifths.satisfaction.push_back(part.clicks > 0.0 ? part.satisfied / part.clicks : 0.0);
  }
  return fifths;
}

/// Weighted by the clicks that another rank follows.
double mean_continuation(const ReadingParameters& reading, const ClickReport& report) {
  double sum = 0.0;
  double clicks = 0.0;
  for (std::size_t rank = 0; rank < reading.continuation.size() && rank < report.clicks_by_rank.size();
       ++rank) {
    const auto weight = static_cast<double>(report.clicks_by_rank[rank]);
    sum += weight * reading.continuation[rank];
    clicks += weight;
  }
  return clicks > 0.0 ? sum / clicks : 0.0;
}

std::vector<std::int64_t> from_one(std::vector<std::int64_t> ranks) {
  for (std::int64_t& rank : ranks) ++rank;
  return ranks;
}

std::vector<double> rounded(std::vector<double> values) {
  for (double& value : values) value = std::round(value * 1e4) / 1e4;
  return values;
}

/// The [[user]] that a model makes; null for one that is no user.
nlohmann::ordered_json user_of(const ClickReport::Model& model) {
  const auto user = [&](ClickKind kind) {
    return nlohmann::ordered_json{{"name", fmt::format("fitted-{}", name_of(model.model))},
                                  {"kind", name_of(kind)},
                                  {"click", rounded(model.fifths.click)}};
  };
  nlohmann::ordered_json made;
  switch (model.model) {
    case FittedModel::kRankOnly:
    case FittedModel::kTrust:
      break;
    case FittedModel::kPosition:
    case FittedModel::kTwoTower:
      made = user(ClickKind::kPosition);
      made["examination"] = rounded(model.reading.by_rank);
      break;
    case FittedModel::kCascade:
      made = user(ClickKind::kCascade);
      break;
    case FittedModel::kDependent:
      made = user(ClickKind::kDependent);
      made["stop"] = rounded(std::vector(kFifths, 1.0 - model.continuation));
      made["stop_draw"] = name_of(StopDraw::kAfterClick);
      break;
    case FittedModel::kDynamicBayesian:
      made = user(ClickKind::kDynamicBayesian);
      made["satisfaction"] = rounded(model.fifths.satisfaction);
      made["perseverance"] = rounded({*model.reading.perseverance}).front();
      break;
    case FittedModel::kUserBrowsing:
      made = user(ClickKind::kUserBrowsing);
      made["browsing"] = rounded(model.reading.by_last_click);
      break;
  }
  return made;
}

std::string toml_of(const nlohmann::ordered_json& user) {
  std::string text = "[[user]]\n";
  for (const auto& [key, value] : user.items()) {
    const std::string shown = value.is_array()
                                  ? fmt::format("[{}]", fmt::join(value.get<std::vector<double>>(), ", "))
                                  : value.dump();
    text += fmt::format("{} = {}\n", key, shown);
  }
  return text;
}

const ClickReport::Model& best_of(std::span<const ClickReport::Model> models) {
  return *std::max_element(models.begin(), models.end(), [](const auto& a, const auto& b) {
    return a.held_out.log_likelihood < b.held_out.log_likelihood;
  });
}

/// A row for each rank, a column for each model: its perplexity on held-out lists, or its examination of
/// the fitted lists, which are counted; the rank-only model has none.
std::string table_by_rank(const ClickReport& report, bool examination, std::int64_t columns) {
  std::vector<TextTable::Column> header = {{"rank"}};
  if (examination) header.insert(header.end(), {{"lists"}, {"clicks"}});
  const auto has_column = [&](const ClickReport::Model& model) {
    return !examination || model.model != FittedModel::kRankOnly;
  };
  for (const ClickReport::Model& model : report.models) {
    if (has_column(model)) header.push_back({std::string(name_of(model.model))});
  }
  TextTable table(std::move(header));
  for (std::size_t rank = 0; rank < std::min(report.lists_by_rank.size(), kRanksInText); ++rank) {
    std::vector<std::string> row = {fmt::format("{}", rank + 1)};
    if (examination) {
      row.push_back(fmt::format("{}", report.lists_by_rank[rank]));
      row.push_back(fmt::format("{}", report.clicks_by_rank[rank]));
    }
    for (const ClickReport::Model& model : report.models) {
      if (!has_column(model)) continue;
      const std::vector<double>& of_model =
          examination ? model.fitted.examination : model.held_out.perplexity_by_rank;
      row.push_back(rank < of_model.size() ? fmt::format("{:.4f}", of_model[rank]) : "");
    }
    table.add(std::move(row));
  }
  const TextTable::Fitted fitted = table.fitted(columns);
  return fitted.text + hidden_columns_text(fitted.hidden, columns);
}

}  // namespace

void ClickReportRequest::choose(const std::string& model) {
  models.clear();
  if (model == "all") return;
  std::vector<std::string> names;
  for (const auto& [one, name] : EnumNames<FittedModel>::values) {
    if (one == FittedModel::kRankOnly) continue;  // it is always fitted
    if (name == model) models = {one};
    names.emplace_back(name);
  }
  names.emplace_back("all");
  if (models.empty()) throw_error<InvalidArgument>("--model {}", must_be_one_of(model, names));
}

void ClickReportRequest::check() const {
  if (log.log.empty()) throw InvalidArgument("--log is required: name a log of shown lists.");
  if (!(log.holdout > 0.0 && log.holdout < 1.0))
    throw_error<InvalidArgument>("--holdout must be above 0 and below 1, not {}.", log.holdout);
  if (log.ranks < 1 || log.ranks > 1000)
    throw_error<InvalidArgument>("--at must be from 1 to 1000, not {}.", log.ranks);
  if (fit.iterations < 1 || fit.iterations > 100'000)
    throw_error<InvalidArgument>("--iterations must be from 1 to 100000, not {}.", fit.iterations);
}

const ClickReport::Model& ClickReport::best() const {
  return best_of(models);
}

ClickReport report_clicks(const ClickReportRequest& request) {
  std::vector<FittedModel> models = request.models;
  const auto asked = [&](FittedModel model) {
    return std::find(models.begin(), models.end(), model) != models.end();
  };
  LoggedClicksRequest log_request = request.log;
  log_request.inputs = models.empty() || std::ranges::any_of(models, goes_by_inputs);
  const LoggedClicks log = read_logged_clicks(log_request);
  ClickReport report;
  if (log_request.inputs && log.docs.columns == 0) {
    if (!models.empty()) {
      throw_error<InvalidArgument>(
          "--model {} needs inputs of documents, and lists in {} have none: take the log of a service, or "
          "another model.",
          name_of(models.front()), request.log.log);
    }
    report.without_inputs = true;
  }
  report.lists = log.lists();
  report.held_out = log.held_out.size();
  report.documents = log.docs.count;
  report.clicks = log.clicks;
  report.longer_lists = log.longer_lists;
  report.links = find_rank_links(log.fitted, log.docs.count);
  report.clicks_by_rank.assign(log.fitted.ranks(), 0);
  report.lists_by_rank.assign(log.fitted.ranks(), 0);
  for (std::int64_t i = 0; i < log.fitted.size(); ++i) {
    const ClickedList list = log.fitted[i];
    for (std::size_t rank = 0; rank < list.size(); ++rank) {
      ++report.lists_by_rank[rank];
      report.clicks_by_rank[rank] += list.clicks[rank];
    }
  }
  const std::int64_t ranks = std::max(log.fitted.ranks(), log.held_out.ranks());
  for (const auto& [kind, name] : EnumNames<FittedModel>::values) {
    const bool wanted = kind == FittedModel::kRankOnly || models.empty() || asked(kind);
    if (!wanted || (goes_by_inputs(kind) && report.without_inputs)) continue;
    const FittedClicks fit = fit_clicks(kind, log.fitted, log.docs, ranks, request.fit);
    ClickReport::Model& model = report.models.emplace_back();
    model.model = kind;
    model.iterations = std::ssize(fit.objectives);
    model.converged = fit.converged;
    model.fitted = judge_clicks(fit, log.fitted);
    model.held_out = judge_clicks(fit, log.held_out);
    model.reading = fit.reading->parameters();
    model.continuation = mean_continuation(model.reading, report);
    if (kind != FittedModel::kRankOnly) model.fifths = fifths_of(fit, log);
  }
  return report;
}

std::string identification_text(const ClickReport& report) {
  const RankLinks& links = report.links;
  if (links.by_rank.size() < 2) return "All lists have one rank, so that there is no examination to learn.";
  if (links.moved == 0) {
    return fmt::format(
        "Examination is not identified: none of the {} was shown at two ranks, so that nothing tells how "
        "often a rank is examined from how attractive its documents are.",
        counted(links.docs, "document"));
  }
  const std::string moved =
      fmt::format("{} of {} were shown at two ranks or more", links.moved, counted(links.docs, "document"));
  if (!report.is_identified()) {
    std::vector<std::string> groups;
    for (const auto& group : links.groups) groups.push_back(runs_text(from_one(group), " to "));
    return fmt::format(
        "Examination is not identified at all ranks: {}, but they link ranks only within {} groups, ({}). "
        "Compare examination within a group alone.",
        moved, groups.size(), fmt::join(groups, "), ("));
  }
  const auto weakest = std::min_element(links.by_rank.begin(), links.by_rank.end());
  return fmt::format(
      "Examination is identified: {}, and they link all {} ranks. The fewest of them, {}, were at rank {}.",
      moved, links.by_rank.size(), *weakest, weakest - links.by_rank.begin() + 1);
}

nlohmann::ordered_json click_report_json(const ClickReportRequest& request, const ClickReport& report) {
  nlohmann::ordered_json groups = nlohmann::ordered_json::array();
  for (const auto& group : report.links.groups) groups.push_back(from_one(group));
  nlohmann::ordered_json json = {{"log", request.log.log},
                                 {"holdout", request.log.holdout},
                                 {"lists", report.lists},
                                 {"held_out", report.held_out},
                                 {"documents", report.documents},
                                 {"clicks", report.clicks},
                                 {"longer_lists", report.longer_lists},
                                 {"lists_by_rank", report.lists_by_rank},
                                 {"clicks_by_rank", report.clicks_by_rank},
                                 {"identification",
                                  {{"identified", report.is_identified()},
                                   {"documents", report.links.docs},
                                   {"moved", report.links.moved},
                                   {"moved_by_rank", report.links.by_rank},
                                   {"groups", std::move(groups)},
                                   {"sentence", identification_text(report)}}},
                                 {"best", name_of(report.best().model)}};
  nlohmann::ordered_json models = nlohmann::ordered_json::array();
  for (const ClickReport::Model& model : report.models) {
    nlohmann::ordered_json one = {{"name", name_of(model.model)},
                                  {"iterations", model.iterations},
                                  {"converged", model.converged},
                                  {"perplexity", model.held_out.perplexity},
                                  {"perplexity_by_rank", model.held_out.perplexity_by_rank},
                                  {"log_likelihood", model.held_out.log_likelihood},
                                  {"fitted_log_likelihood", model.fitted.log_likelihood}};
    if (model.model != FittedModel::kRankOnly) {
      one["examination"] = rounded(model.fitted.examination);
    } else {
      one["click"] = model.reading.by_rank;
    }
    if (!model.reading.continuation.empty()) one["continuation"] = model.reading.continuation;
    if (model.reading.perseverance) one["perseverance"] = *model.reading.perseverance;
    if (!model.reading.trust.empty()) one["trust"] = rounded(model.reading.trust);
    if (!model.reading.by_last_click.empty()) one["by_last_click"] = model.reading.by_last_click;
    if (auto user = user_of(model); !user.is_null()) one["user"] = std::move(user);
    models.push_back(std::move(one));
  }
  json["models"] = std::move(models);
  return json;
}

std::string click_report_text(const ClickReport& report, std::int64_t columns) {
  std::string text =
      fmt::format("{} of {} with {}; {} are held out.\n\n", counted(report.lists, "list"),
                  counted(report.documents, "document"), counted(report.clicks, "click"), report.held_out);
  TextTable table({{"model", true},
                   {"perplexity"},
                   {"log-likelihood of a list"},
                   {"that of fitted lists", false, 2},
                   {"iterations", false, 1}});
  for (const ClickReport::Model& model : report.models) {
    table.add({std::string(name_of(model.model)), fmt::format("{:.4f}", model.held_out.perplexity),
               fmt::format("{:.4f}", model.held_out.log_likelihood),
               fmt::format("{:.4f}", model.fitted.log_likelihood),
               fmt::format("{}{}", model.iterations, model.converged ? "" : " (not converged)")});
  }
  const TextTable::Fitted fitted = table.fitted(columns);
  text += fitted.text + hidden_columns_text(fitted.hidden, columns);
  text += "\nPerplexity by rank, on held-out lists:\n";
  text += table_by_rank(report, false, columns);
  text += "\nProbability of examination by rank, on fitted lists:\n";
  text += table_by_rank(report, true, columns);
  if (report.lists_by_rank.size() > kRanksInText)
    text += fmt::format("--json has all {} ranks.\n", report.lists_by_rank.size());
  std::vector<std::string> sentences;
  for (const ClickReport::Model& model : report.models) {
    if (model.reading.perseverance) {
      sentences.push_back(fmt::format("dbn: who is not satisfied goes on with probability {:.4f}.",
                                      *model.reading.perseverance));
    }
    if (model.model == FittedModel::kDependent) {
      std::vector<double> first = rounded(model.reading.continuation);
      if (first.size() > kRanksInText) first.resize(kRanksInText);
      sentences.push_back(fmt::format(
          "dcm: after a click at rank 1, 2, …, users go on with probability {}.", fmt::join(first, ", ")));
    }
  }
  sentences.push_back(identification_text(report));
  if (report.without_inputs)
    sentences.emplace_back(
        "two-tower and trust are left out, as lists of the log have no inputs of documents.");
  if (report.longer_lists > 0) {
    sentences.push_back(fmt::format("{} longer than --at, and documents below were left out.",
                                    report.longer_lists == 1
                                        ? std::string("1 list is")
                                        : fmt::format("{} lists are", report.longer_lists)));
  }
  // The first model is none of users, so the best is one of the others.
  const ClickReport::Model& best = best_of(std::span(report.models).subspan(1));
  const bool doubtful = !report.is_identified() && learns_looks(best.model);
  const nlohmann::ordered_json user = user_of(best);
  sentences.push_back(fmt::format(
      "{} predicts held-out lists best{}.{} Its examination for groups{}:", name_of(best.model),
      report.best().model == FittedModel::kRankOnly ? " of the models, but worse than the ranks alone do"
                                                    : "",
      doubtful ? " What follows rests on examination that is not identified." : "",
      user.is_null() ? ", as no simulated user has trust" : " and its simulated user"));
  for (const std::string& sentence : sentences) text += "\n" + wrapped(sentence, columns) + "\n";
  text += fmt::format("\n--groups examination=[{}]\n", fmt::join(rounded(best.fitted.examination), ","));
  if (!user.is_null()) text += "\n" + toml_of(user);
  return text;
}

}  // namespace olrank
