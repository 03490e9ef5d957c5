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

/// A member of an evaluation, or of one of its objects.
struct Member {
  const char* object;  // empty: the evaluation itself
  const char* key;
  Measure measure;
};
constexpr Member kMembers[] = {{"", "certain_share", Measure::kCertainShare},
                               {"", "blocks", Measure::kBlocks},
                               {"", "cosine", Measure::kCosine},
                               {"online", "regret", Measure::kRegret},
                               {"online", "examined_regret", Measure::kExaminedRegret},
                               {"width_ratio", "median", Measure::kWidthRatio},
                               {"width_ratio", "p10", Measure::kWidthRatioLow},
                               {"width_ratio", "p90", Measure::kWidthRatioHigh},
                               {"false_certain", "share", Measure::kFalseCertain},
                               {"decisions_differ", "share", Measure::kDecisionsDiffer},
                               {"fairness", "unfairness", Measure::kUnfairness},
                               {"fairness", "fair_share", Measure::kFairShare},
                               {"fairness", "violations", Measure::kViolations},
                               {"fairness", "unrealisable", Measure::kUnrealisable}};

/// The object of this name, or an empty one.
const json& object_named(const json& evaluation, const char* name) {
  static const json nothing = json::object();
  const auto found = evaluation.find(name);
  return found != evaluation.end() && found->is_object() ? *found : nothing;
}

/// The count behind a share: {"share": …, "of": …}; 0 without it.
double count_of(const json& evaluation, const char* name) {
  const json& share = object_named(evaluation, name);
  return share.empty() ? 0.0 : share.at("of").get<double>();
}

/// Reads the members that protocol.metrics adds to an evaluation.
void read_metrics(const json& evaluation, MeasureValues& values) {
  const auto read = [&](const json& object, Measure (*measure)(const NamedMetric&)) {
    const auto metrics = object.find("metrics");
    if (metrics == object.end()) return;
    for (const auto& [name, value] : metrics->items()) {
      const auto metric = metric_named(name);
      values[measure(metric ? *metric : own_metric(name))] = nullable(value);
    }
  };
  read(evaluation, measure_of);
  if (const auto random = evaluation.find("random"); random != evaluation.end())
    read(*random, random_measure_of);
}

struct Line {
  CurveEvaluation point;
  std::int64_t cutoff = 0;
  double seconds = 0.0;  // total of all rounds so far
};

Line parse_line(std::string_view text) {
  const json object = parse_json(text);
  Line line;
  line.point = read_evaluation(object, line.cutoff);
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

double number_or_nan(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? std::nan("") : nullable(*found);
}

CurveEvaluation read_evaluation(const json& object, std::int64_t& cutoff) {
  CurveEvaluation point;
  point.round = object.at("round").get<std::int64_t>();
  MeasureValues& values = point.values;
  const auto offline = member(object.at("offline"), "ndcg@");
  cutoff = std::stoll(offline.key().substr(5));
  values[Measure::kOfflineNdcg] = nullable(offline.value());
  const json& online = object.at("online");
  // Before the first round no list has been shown, and its mean is no result.
  if (point.round > 0) values[Measure::kOnlineNdcg] = nullable(member(online, "ndcg@").value());
  values[Measure::kDiscountedNdcg] = nullable(member(online, "cndcg@").value());
  for (const auto& [name, key, measure] : kMembers)
    values[measure] = number_or_nan(*name == '\0' ? object : object_named(object, name), key);
  const json& sizes = object_named(object, "block_size");
  for (std::size_t place = 0; place < ListCertainty::kBlockRanks.size(); ++place)
    values[block_size_at(place)] =
        number_or_nan(sizes, fmt::to_string(ListCertainty::kBlockRanks[place]).c_str());
  point.certain_orders = count_of(object, "false_certain");
  point.decisions = count_of(object, "decisions_differ");
  if (const auto stated = object.find("stated"); stated != object.end()) {
    for (const json& one : *stated) {
      const double of = one.at("of").get<double>();
      point.stated.push_back(
          {one.at("from").get<double>(), of > 0.0 ? number_or_nan(one, "wrong") * of : 0.0, of});
    }
  }
  if (const auto random = object.find("random"); random != object.end()) {
    const json& lists = random->at("online");
    values[Measure::kRandomOfflineNdcg] = nullable(member(random->at("offline"), "ndcg@").value());
    if (point.round > 0) values[Measure::kRandomOnlineNdcg] = nullable(member(lists, "ndcg@").value());
    values[Measure::kRandomDiscountedNdcg] = nullable(member(lists, "cndcg@").value());
    values[Measure::kRandomRegret] = number_or_nan(lists, "regret");
  }
  read_metrics(object, values);
  return point;
}

double whole_trial_share(const RecordedCurve& curve, Measure measure) {
  double hits = 0.0;
  double of = 0.0;
  for (const CurveEvaluation& point : curve.points) {
    const double share = point.values[measure];
    const double count = measure == Measure::kFalseCertain ? point.certain_orders : point.decisions;
    if (!std::isfinite(share)) continue;
    hits += share * count;
    of += count;
  }
  return of > 0.0 ? hits / of : std::nan("");
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
