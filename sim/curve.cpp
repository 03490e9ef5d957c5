#include "sim/curve.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <iterator>
#include <span>

#include "sim/trial.h"

namespace olrank {

std::string json_number(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "null";
}

static std::string json_number(const std::optional<double>& value) {
  return value ? json_number(*value) : "null";
}

namespace {

std::string width_ratio_object(const std::optional<WidthRatio>& ratio) {
  if (!ratio) return "null";
  return fmt::format("{{\"median\":{},\"p10\":{},\"p90\":{}}}", json_number(ratio->median),
                     json_number(ratio->p10), json_number(ratio->p90));
}

/// A fraction as a JSON value; null if its denominator is 0.
std::string tally_member(const char* name, const Tally& tally) {
  if (tally.total == 0) return "";
  return fmt::format(",\"{}\":{{\"share\":{},\"of\":{}}}", name,
                     json_number(static_cast<double>(tally.count) / static_cast<double>(tally.total)),
                     tally.total);
}

/// Tells by class of stated probability where it begins, the share that was wrong, out of how many.
std::string stated_member(const StatedTallies& stated) {
  if (!is_stated(stated)) return "";
  std::string classes;
  for (std::size_t at = 0; at < stated.size(); ++at) {
    const Tally& tally = stated[at];
    const double wrong = static_cast<double>(tally.count) / static_cast<double>(tally.total);
    classes += fmt::format("{}{{\"from\":{},\"wrong\":{},\"of\":{}}}", at > 0 ? "," : "",
                           json_number(kStatedFrom[at]), json_number(wrong), tally.total);
  }
  return ",\"stated\":[" + classes + "]";
}

std::string fairness_member(const FairnessPoint& point) {
  std::string exposure;
  for (std::size_t group = 0; group < point.exposure.size(); ++group) {
    exposure += fmt::format("{}\"{}\":{}", group > 0 ? "," : "", letter_of(static_cast<DocGroup>(group)),
                            json_number(point.exposure[group]));
  }
  return fmt::format(
      ",\"fairness\":{{\"unfairness\":{},\"fair_share\":{},\"violations\":{},\"unrealisable\":{},"
      "\"exposure\":{{{}}}}}",
      json_number(point.unfairness), json_number(point.fair_share), json_number(point.violations),
      point.unrealisable, exposure);
}

/// {"map":0.31,"mrr":0.5}; without those that are unknown, if `known_only`.
std::string metrics_object(const std::vector<CurveMetric>& metrics, double CurveMetric::*value,
                           bool known_only) {
  std::string text;
  for (const CurveMetric& metric : metrics) {
    if (known_only && std::isnan(metric.*value)) continue;
    text += fmt::format("{}\"{}\":{}", text.empty() ? "" : ",", metric.name, json_number(metric.*value));
  }
  return "{" + text + "}";
}

/// The baselines of the members "offline", "online" and "metrics".
std::string random_object(const CurvePoint& point) {
  const RandomPoint& random = point.random;
  return fmt::format(
      "{{\"offline\":{{\"ndcg@{0}\":{1}}},\"online\":{{\"ndcg@{0}\":{2},\"cndcg@{0}\":{3},\"regret\":{4}}}{"
      "5}"
      "}}",
      point.cutoff, json_number(random.offline_ndcg), json_number(random.online_ndcg),
      json_number(random.discounted_ndcg), json_number(random.regret),
      point.metrics.empty() ? ""
                            : ",\"metrics\":" + metrics_object(point.metrics, &CurveMetric::random, true));
}

/// Ranks 1, 5 and 10 always, and with `all` the others that some list had.
std::string block_sizes(const CurvePoint& point, bool all) {
  std::string text;
  for (std::size_t i = 0; i < point.block_size.size(); ++i) {
    const auto& always = kFingerprintedBlocks;
    const bool is_member =
        std::find(always.begin(), always.end(), i) != always.end() || (all && point.block_size[i]);
    if (!is_member) continue;
    text += fmt::format("{}\"{}\":{}", text.empty() ? "" : ",", ListCertainty::kBlockRanks[i],
                        json_number(point.block_size[i]));
  }
  return text;
}

/// Stages that every line has, in this order; other stages follow.
constexpr std::array<const char*, 7> kStages = {"score",   "width", "rank", "click",
                                                "observe", "train", "eval"};

std::string seconds_object(const StageClock& clock) {
  std::string text = "{";
  for (const char* stage : kStages) {
    text += fmt::format("{}\"{}\":{:.6g}", text.size() > 1 ? "," : "", stage, clock.seconds(stage));
  }
  return text + "}";
}

}  // namespace

bool is_stated(const StatedTallies& tallies) {
  return std::any_of(tallies.begin(), tallies.end(), [](const Tally& tally) { return tally.total > 0; });
}

std::string curve_line(const CurvePoint& point, const StageClock* clock) {
  std::string line = fmt::format(
      "{{\"round\":{},\"pairs\":{},\"offline\":{{\"ndcg@{}\":{}}},\"online\":{{\"ndcg@{}\":{},\"cndcg@{}\":"
      "{},"
      "\"regret\":{}{}}}",
      point.round, point.pairs, point.cutoff, json_number(point.offline_ndcg), point.cutoff,
      json_number(point.online_ndcg), point.cutoff, json_number(point.discounted_ndcg),
      point.regret ? fmt::format("{}", *point.regret) : "null",
      clock != nullptr && point.examined_regret
          ? fmt::format(",\"examined_regret\":{}", *point.examined_regret)
          : "");
  line += fmt::format(",\"certain_share\":{},\"blocks\":{}", json_number(point.certain_share),
                      json_number(point.blocks));
  line += fmt::format(",\"block_size\":{{{}}},\"cosine\":{},\"width_ratio\":{},\"drift\":{}",
                      block_sizes(point, clock != nullptr), json_number(point.cosine),
                      width_ratio_object(point.width_ratio), json_number(point.drift));
  line += tally_member("false_certain", point.false_certain);
  line += tally_member("decisions_differ", point.decisions_differ);
  line += stated_member(point.stated);
  if (point.fairness) line += fairness_member(*point.fairness);
  for (const RankerFigure& figure : point.figures) {
    if (figure.of_the_run && clock == nullptr) continue;
    line += fmt::format(",\"{}\":{}", figure.name, json_number(figure.value));
  }
  if (clock != nullptr) {
    if (!point.metrics.empty())
      line += ",\"metrics\":" + metrics_object(point.metrics, &CurveMetric::value, false);
    line += ",\"random\":" + random_object(point);
    line += ",\"seconds\":" + seconds_object(*clock);
  }
  return line + "}\n";
}

Fingerprint chained(const Fingerprint& before, std::string_view text) {
  Fingerprinter fingerprinter;
  fingerprinter.add(&before, sizeof before);
  fingerprinter.add(text);
  return fingerprinter.value();
}

void CurveState::add(const CurvePoint& point, std::uint64_t line_bytes) {
  bytes += line_bytes;
  digest = chained(digest, curve_line(point, nullptr));
  const auto round = static_cast<double>(point.round);
  if (points > 0) {
    offline_area += 0.5 * (round - last_round) * (point.offline_ndcg + last_offline);
    online_area += 0.5 * (round - last_round) * (point.online_ndcg + last_online);
  }
  ++points;
  last_round = round;
  last_offline = point.offline_ndcg;
  last_online = point.online_ndcg;
}

void CurveState::fields(StateFields& state) {
  state.numbers("curve.bytes", bytes);
  state.numbers("curve.digest", digest.high, digest.low);
  state.numbers("curve.areas", offline_area, online_area, last_round, last_offline, last_online);
  state.numbers("curve.points", points);
}

namespace {

constexpr std::size_t kFlushBytes = 1 << 20;

template <class Numbers>
void append_list(std::string& text, const Numbers& numbers) {
  text += '[';
  bool first = true;
  for (const auto number : numbers) {
    if (!first) text += ',';
    first = false;
    // A float printed as a double, so that it reads back exactly in double precision.
    if constexpr (std::is_floating_point_v<std::remove_cvref_t<decltype(number)>>) {
      text += json_number(static_cast<double>(number));
    } else {
      fmt::format_to(std::back_inserter(text), "{}", number);
    }
  }
  text += ']';
}

template <class Numbers>
void append_matrix(std::string& text, const Numbers& numbers, std::size_t columns) {
  text += '[';
  for (std::size_t begin = 0; begin < numbers.size(); begin += columns) {
    if (begin > 0) text += ',';
    append_list(text, std::span(numbers).subspan(begin, columns));
  }
  text += ']';
}

}  // namespace

Trace::Trace(const std::filesystem::path& path, bool detail, std::string_view config_json)
    : file_(path), detail_(detail) {
  buffer_ = fmt::format("{{\"config\":{}}}\n", config_json);
}

void Trace::write(const PlayedRound& round, std::string_view qid, const RoundDetail& rested_on) {
  buffer_ += fmt::format("{{\"round\":{},\"qid\":{},\"docs\":{},\"scores\":", round.round,
                         nlohmann::json(qid).dump(), rested_on.scores.size());
  append_list(buffer_, rested_on.scores);
  buffer_ += ",\"shown\":";
  append_list(buffer_, round.shown);
  buffer_ += ",\"clicks\":";
  append_list(buffer_, round.clicks);
  if (!round.propensity.empty()) {
    buffer_ += ",\"propensity\":";
    append_list(buffer_, round.propensity);
  }
  buffer_ += ",\"pairs\":[";
  for (std::size_t i = 0; i < round.learned.pairs.size(); ++i) {
    const auto& [winner, loser] = round.learned.pairs[i];
    buffer_ += fmt::format("{}[{},{}]", i > 0 ? "," : "", winner, loser);
  }
  buffer_ += fmt::format("],\"ndcg\":{}", json_number(round.ndcg));
  if (round.unfairness) {
    buffer_ += fmt::format(",\"unfairness\":{},\"groups\":\"", json_number(*round.unfairness));
    for (const DocGroup group : round.groups) buffer_ += letter_of(group);
    buffer_ += '"';
  }
  buffer_ += ",\"step\":";
  const auto steps = round.learned.steps;
  if (steps.empty()) {
    buffer_ += "null";
  } else if (steps.size() == 1) {
    buffer_ += json_number(steps.front());
  } else {
    append_list(buffer_, steps);
  }
  if (detail_) {
    const std::size_t docs = rested_on.scores.size();
    if (rested_on.theta.size() == 1) {
      buffer_ += ",\"theta\":";
      append_list(buffer_, rested_on.theta.front());
    } else if (!rested_on.theta.empty()) {
      buffer_ += ",\"thetas\":[";
      for (std::size_t member = 0; member < rested_on.theta.size(); ++member) {
        if (member > 0) buffer_ += ',';
        append_list(buffer_, rested_on.theta[member]);
      }
      buffer_ += ']';
    }
    const auto add_matrix = [&](std::string_view name, const auto& numbers) {
      if (numbers.empty()) return;
      buffer_ += fmt::format(",\"{}\":", name);
      append_matrix(buffer_, numbers, docs);
    };
    add_matrix("width_sq", rested_on.width_sq);
    add_matrix("probability", rested_on.probability);
    add_matrix("certain", rested_on.certain);
  }
  buffer_ += "}\n";
  if (buffer_.size() >= kFlushBytes) flush();
}

void Trace::flush() {
  file_.write(buffer_);
  buffer_.clear();
}

void Trace::close() {
  flush();
  file_.commit();
}

}  // namespace olrank
