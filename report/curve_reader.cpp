#include "report/curve_reader.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string_view>

#include "core/io/atomic_file.h"
#include "core/io/json.h"

namespace olrank {
namespace {

using nlohmann::json;

double number(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? std::nan("") : found->get<double>();
}

/// The member whose name starts with `prefix`: "ndcg@" finds "ndcg@10".
json::const_iterator member(const json& object, std::string_view prefix) {
  for (auto entry = object.begin(); entry != object.end(); ++entry) {
    if (entry.key().rfind(prefix, 0) == 0) return entry;
  }
  throw json::out_of_range::create(403, "missing member", &object);
}

double nullable(const json& value) {
  return value.is_null() ? std::nan("") : value.get<double>();
}

/// Reads {"share": …, "of": …} if present.
void read_tally(const json& object, const char* key, double& share, double& of) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_object()) return;
  share = number(*found, "share");
  of = found->at("of").get<double>();
}

/// An evaluation, with what the next line needs.
struct Line {
  CurveEvaluation point;
  std::int64_t cutoff = 0;
  double seconds = 0.0;  // total of all rounds so far
};

Line parse_line(std::string_view text) {
  const json object = parse_json(text);
  Line line;
  line.point.round = object.at("round").get<std::int64_t>();
  MeasureValues& values = line.point.values;
  const auto offline = member(object.at("offline"), "ndcg@");
  line.cutoff = std::stoll(offline.key().substr(5));
  values[Measure::kOfflineNdcg] = nullable(offline.value());
  const json& online = object.at("online");
  // Before the first round no list has been shown, and its mean is no result.
  if (line.point.round > 0) values[Measure::kOnlineNdcg] = nullable(member(online, "ndcg@").value());
  values[Measure::kDiscountedNdcg] = nullable(member(online, "cndcg@").value());
  values[Measure::kRegret] = number(online, "regret");
  values[Measure::kCertainShare] = number(object, "certain_share");
  values[Measure::kBlocks] = number(object, "blocks");
  values[Measure::kCosine] = number(object, "cosine");
  if (const auto sizes = object.find("block_size"); sizes != object.end() && sizes->is_object()) {
    values[Measure::kBlockSize1] = number(*sizes, "1");
    values[Measure::kBlockSize5] = number(*sizes, "5");
    values[Measure::kBlockSize10] = number(*sizes, "10");
  }
  if (const auto ratio = object.find("width_ratio"); ratio != object.end() && ratio->is_object()) {
    values[Measure::kWidthRatio] = number(*ratio, "median");
    values[Measure::kWidthRatioLow] = number(*ratio, "p10");
    values[Measure::kWidthRatioHigh] = number(*ratio, "p90");
  }
  read_tally(object, "false_certain", values[Measure::kFalseCertain], line.point.certain_orders);
  read_tally(object, "decisions_differ", values[Measure::kDecisionsDiffer], line.point.decisions);
  if (const auto fairness = object.find("fairness"); fairness != object.end()) {
    values[Measure::kUnfairness] = number(*fairness, "unfairness");
    values[Measure::kFairShare] = number(*fairness, "fair_share");
    values[Measure::kViolations] = number(*fairness, "violations");
    values[Measure::kUnrealisable] = number(*fairness, "unrealisable");
  }
  if (const auto random = object.find("random"); random != object.end()) {
    const json& lists = random->at("online");
    values[Measure::kRandomOfflineNdcg] = nullable(member(random->at("offline"), "ndcg@").value());
    if (line.point.round > 0) values[Measure::kRandomOnlineNdcg] = nullable(member(lists, "ndcg@").value());
    values[Measure::kRandomDiscountedNdcg] = nullable(member(lists, "cndcg@").value());
    values[Measure::kRandomRegret] = number(lists, "regret");
  }
  read_metrics(object, line.point.values);
  line.seconds = std::nan("");
  if (const auto seconds = object.find("seconds"); seconds != object.end() && seconds->is_object()) {
    line.seconds = 0.0;
    for (const auto& [stage, value] : seconds->items()) {
      if (is_of_rounds(stage)) line.seconds += value.get<double>();
    }
  }
  return line;
}

std::optional<Line> try_line(std::string_view text) {
  try {
    return parse_line(text);
  } catch (const std::exception&) {  // from the JSON parser or std::stoll
    return std::nullopt;
  }
}

}  // namespace

void read_metrics(const nlohmann::json& evaluation, MeasureValues& values) {
  const auto read = [&](const json& object, Measure (*measure)(const NamedMetric&)) {
    const auto metrics = object.find("metrics");
    if (metrics == object.end()) return;
    for (const auto& [name, value] : metrics->items()) {
      if (const auto metric = metric_named(name)) values[measure(*metric)] = nullable(value);
    }
  };
  read(evaluation, measure_of);
  if (const auto random = evaluation.find("random"); random != evaluation.end())
    read(*random, random_measure_of);
}

RecordedCurve read_curve(const std::filesystem::path& file) {
  const std::string text = read_file(file);
  RecordedCurve curve;
  double seconds_before = std::nan("");
  std::int64_t line_number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    ++line_number;
    const std::size_t end = text.find('\n', begin);
    const bool complete = end != std::string::npos;
    const std::string_view content = std::string_view(text).substr(begin, complete ? end - begin : end);
    std::optional<Line> line = try_line(content);
    const bool ascends = line && (curve.points.empty() || line->point.round > curve.points.back().round);
    if (!complete || !ascends) {
      const char* problem = !complete ? "incomplete" : !line ? "not a valid evaluation" : "out of order";
      curve.damage = fmt::format("{}:{}: This line is {}; the trial's curve ends before it.", file.string(),
                                 line_number, problem);
      break;
    }
    if (!curve.points.empty()) {
      const auto rounds = static_cast<double>(line->point.round - curve.points.back().round);
      line->point.values[Measure::kMilliseconds] = 1000.0 * (line->seconds - seconds_before) / rounds;
    }
    seconds_before = line->seconds;
    curve.cutoff = line->cutoff;
    curve.points.push_back(line->point);
    begin = end + 1;
  }
  return curve;
}

}  // namespace olrank
