#include "report/run_description.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/io/atomic_file.h"
#include "core/io/json.h"
#include "core/throw_error.h"
#include "report/markup.h"

namespace olrank {
namespace {

using nlohmann::ordered_json;

std::string plain(const ordered_json& value) {
  return value.is_string() ? value.get<std::string>() : dump_json(value);
}

/// A count with commas between thousands.
std::string separated(const ordered_json& count) {
  return fixed_number(count.get<double>(), 0);
}

bool is_any(const std::string& word, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(), [&](const char* other) { return word == other; });
}

std::string ranker_summary(const ordered_json& ranker) {
  const std::string kind = ranker.at("kind").get<std::string>();
  std::string text = kind;
  if (is_any(kind, {"p2linrank", "p2neurrank"}))
    text += fmt::format(", N = {}", plain(ranker.at("members")));
  const bool network = is_any(kind, {"olranknet", "ollambdarank", "p2neurrank"}) ||
                       plain(ranker.value("network", ordered_json("linear"))) == "mlp";
  if (network) {
    text += fmt::format(", width {}", plain(ranker.at("width")));
    if (ranker.at("depth") != 2) text += fmt::format(", depth {}", plain(ranker.at("depth")));
  }
  if (is_any(kind, {"pairrank", "olranknet", "ollambdarank"})) {
    const std::string covariance = plain(ranker.at("covariance"));
    text += covariance == "none" ? ", no covariance" : fmt::format(", {} covariance", covariance);
  }
  return text;
}

void read_data(const ordered_json& manifest, RunDescription& run) {
  const ordered_json& data = manifest.at("data");
  run.data = plain(data.at("source"));
  for (const ordered_json& fold : data.at("folds")) {
    const auto number = fold.at("fold").get<std::int64_t>();
    std::string sentence;
    for (const char* name : {"train", "vali", "test"}) {
      const auto part = fold.find(name);
      if (part == fold.end()) continue;
      run.fingerprints[number] += plain(part->at("fingerprint")) + " ";
      sentence += fmt::format("{}{} {} queries with {} documents", sentence.empty() ? "" : ", ", name,
                              separated(part->at("queries")), separated(part->at("docs")));
    }
    const ordered_json& train = fold.at("train");
    run.parts.push_back(fmt::format("Fold {}: {}; {} features, grades 0 to {}.", number, sentence,
                                    separated(train.at("features")), plain(train.at("max_grade"))));
  }
}

void read_matrix(const ordered_json& manifest, RunDescription& run) {
  const ordered_json& config = manifest.at("config");
  for (const char* table : {"data", "protocol", "clicks"}) {
    for (const auto& [key, value] : config.at(table).items()) {
      // Storage settings affect no result, and the trials are listed separately.
      if (is_any(key, {"cache", "max_memory", "seeds", "folds", "models"})) continue;
      run.settings.emplace_back(fmt::format("{}.{}", table, key), plain(value));
    }
  }
  for (const ordered_json& ranker : config.at("ranker")) {
    ordered_json settings = ranker;
    settings.erase("name");
    run.rankers.push_back(
        {plain(ranker.at("name")), ranker_summary(ranker), dump_json(settings),
         is_any(plain(ranker.at("kind")), {"lambdarank-labels", "lambdarank-step", "ranknet-offline"})});
  }
  const bool recorded = manifest.value("recorded", false);
  run.users = recorded ? std::vector<std::string>{"recorded"}
                       : config.at("clicks").at("models").get<std::vector<std::string>>();
  run.folds = config.at("data").at("folds").get<std::vector<std::int64_t>>();
  run.seeds = config.at("protocol").at("seeds").get<std::vector<std::int64_t>>();
  run.rounds = config.at("protocol").at("rounds").get<std::int64_t>();
  run.trials = manifest.at("trials").get<std::int64_t>();
}

void read_facts(const ordered_json& manifest, RunDescription& run) {
  const ordered_json& protocol = manifest.at("config").at("protocol");
  const ordered_json& data = manifest.at("config").at("data");
  const ordered_json& clicks = manifest.at("config").at("clicks");
  const auto add = [&](const char* name, std::string text) {
    run.facts.emplace_back(name, std::move(text));
  };
  add("Data", fmt::format("{}, {} normalisation, evaluated on the {} part", run.data,
                          plain(data.at("normalise")), plain(data.at("evaluate"))));
  for (const std::string& part : run.parts) add("", part);
  add("Protocol", fmt::format("{}: {} rounds, {} documents shown, evaluated every {} rounds, discount {}",
                              plain(manifest.at("protocol")), separated(protocol.at("rounds")),
                              plain(protocol.at("cutoff")), separated(protocol.at("eval_every")),
                              plain(protocol.at("discount"))));
  add("Users", fmt::format("{} ({} click model, stop {})", fmt::join(run.users, ", "),
                           plain(clicks.at("kind")), plain(clicks.at("stop"))));
  for (const auto& [name, text] : manifest.at("conventions").items()) {
    if (name != "empty_queries")
      add(name == "offline" ? "Offline measures" : "Online measures", plain(text));
  }
  add("Seeds", fmt::format("{}", fmt::join(run.seeds, ", ")));
  const std::string cpu = plain(manifest.value("cpu", ordered_json("")));
  add("Machine",
      fmt::format("{}{}{}, LibTorch {}, {}, CUDA {}", cpu, cpu.empty() ? "" : "; ",
                  plain(manifest.at("device")), plain(manifest.at("libtorch")), plain(manifest.at("blas")),
                  manifest.at("cuda").is_null() ? "not built in" : plain(manifest.at("cuda"))));
  add("Program", fmt::format("olrank {}, commit {}, {}", plain(manifest.at("version")),
                             plain(manifest.at("commit")), plain(manifest.at("compiler"))));
  add("Command", plain(manifest.at("command")));
  add("Started", plain(manifest.at("started")));
}

using nlohmann::json;

/// Isotonic regression by pooling adjacent violators: Ayer et al., "An empirical distribution function for
/// sampling with incomplete information", Annals of Mathematical Statistics 1955.
std::vector<CalibrationPoint> decreasing(const std::vector<CalibrationPoint>& points) {
  struct Pool {
    double sum = 0.0;
    double weight = 0.0;
    std::size_t points = 0;
    double mean() const { return sum / weight; }
  };
  std::vector<Pool> pools;
  for (const CalibrationPoint& point : points) {
    pools.push_back({point.false_certain * point.certain_orders, point.certain_orders, 1});
    while (pools.size() > 1 && pools[pools.size() - 2].mean() < pools.back().mean()) {
      const Pool last = pools.back();
      pools.pop_back();
      pools.back().sum += last.sum;
      pools.back().weight += last.weight;
      pools.back().points += last.points;
    }
  }
  std::vector<CalibrationPoint> curve = points;
  std::size_t at = 0;
  for (const Pool& pool : pools) {
    for (std::size_t i = 0; i < pool.points; ++i) curve[at++].false_certain = pool.mean();
  }
  return curve;
}

template <class Number>
std::optional<Number> optional_number(const json& value) {
  return value.is_null() ? std::nullopt : std::optional(value.get<Number>());
}

double number(const json& value) {
  return value.is_null() ? std::nan("") : value.get<double>();
}

StudyCell read_cell(const json& object) {
  return {object.at("ranker").get<std::string>(), object.at("structure").get<std::string>(),
          object.at("width").get<std::int64_t>(), object.at("depth").get<std::int64_t>(),
          optional_number<double>(object.at("noise_variance")), optional_number<double>(object.at("alpha")),
          // Studies of earlier versions have no budgets.
          optional_number<std::int64_t>(object.value("budget", json()))};
}

Calibration read_calibration(const json& object) {
  Calibration calibration;
  calibration.ranker = object.at("ranker").get<std::string>();
  calibration.target = number(object.at("target"));
  calibration.alpha = object.at("alpha").get<double>();
  calibration.bracketed = object.at("bracketed").get<bool>();
  for (const json& point : object.at("points")) {
    calibration.points.push_back({point.at("alpha").get<double>(), number(point.at("false_certain")),
                                  point.at("certain_orders").get<double>()});
  }
  return calibration;
}

StudyPlan read_plan(const json& object) {
  StudyPlan plan;
  plan.matched_alpha = object.at("alpha").get<std::string>() == "matched";
  for (const json& cell : object.at("rankers")) plan.cells.push_back(read_cell(cell));
  if (const json& calibration = object.at("calibration"); calibration.is_object()) {
    plan.calibration_rounds = calibration.at("rounds").get<std::int64_t>();
    for (const json& one : calibration.at("rankers")) plan.calibrations.push_back(read_calibration(one));
  }
  return plan;
}

}  // namespace

std::string RunDescription::setting(const std::string& key, const std::string& otherwise) const {
  for (const auto& [name, value] : settings) {
    if (name == key) return value;
  }
  return otherwise;
}

std::string conventions_text(const ResultConventions& about) {
  return fmt::format("protocol {}, queries without a relevant document: {}, seeds {}{}{}", about.protocol,
                     about.empty_queries, fmt::join(about.seeds, ", "),
                     about.deviations.empty() ? "" : "; ", fmt::join(about.deviations, "; "));
}

ResultConventions conventions_of(const RunDescription& run) {
  return {run.setting("protocol.name", "unknown"), run.setting("protocol.empty_queries", "unknown"),
          run.seeds, run.deviations};
}

RunDescription read_run_description(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "manifest.json";
  if (!std::filesystem::is_directory(folder)) {
    throw_error<InvalidArgument>("The experiment folder '{}' does not exist.", folder.string());
  }
  if (!std::filesystem::exists(file)) {
    throw_error<InvalidArgument>(
        "'{0}' is not an experiment folder: it has no manifest.json, which `olrank run --out {0}` writes.",
        folder.string());
  }
  RunDescription run;
  try {
    const ordered_json manifest = parse_ordered_json(read_file(file, kLargestJson));
    read_data(manifest, run);
    read_matrix(manifest, run);
    read_facts(manifest, run);
    run.deviations = manifest.at("deviations").get<std::vector<std::string>>();
  } catch (const nlohmann::json::exception&) {
    throw_error<IoError>("{}: This file is not an experiment manifest.", file.string());
  }
  return run;
}

const StudyCell* StudyPlan::exact_of(const StudyCell& cell) const {
  const auto found = std::find_if(cells.begin(), cells.end(), [&](const StudyCell& other) {
    return other.structure == kExactStructure && other.width == cell.width && other.depth == cell.depth;
  });
  return found == cells.end() ? nullptr : &*found;
}

void match_alpha(Calibration& calibration) {
  std::vector<CalibrationPoint> points;
  for (const CalibrationPoint& point : calibration.points) {
    if (point.certain_orders > 0.0) points.push_back(point);
  }
  calibration.bracketed = false;
  if (points.empty() || !std::isfinite(calibration.target)) return;
  const std::vector<CalibrationPoint> curve = decreasing(points);
  if (calibration.target >= curve.front().false_certain) {
    calibration.alpha = curve.front().alpha;
    calibration.bracketed = calibration.target == curve.front().false_certain;
    return;
  }
  for (std::size_t i = 1; i < curve.size(); ++i) {
    const CalibrationPoint& above = curve[i - 1];
    const CalibrationPoint& below = curve[i];
    if (below.false_certain > calibration.target) continue;
    const double part =
        (above.false_certain - calibration.target) / (above.false_certain - below.false_certain);
    calibration.alpha = std::exp(std::log(above.alpha) + part * std::log(below.alpha / above.alpha));
    calibration.bracketed = true;
    return;
  }
  calibration.alpha = curve.back().alpha;
}

std::optional<StudyPlan> read_study_plan(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "study.json";
  if (!std::filesystem::exists(file)) return std::nullopt;
  try {
    return read_plan(parse_json(read_file(file, kLargestJson)));
  } catch (const json::exception&) {
    throw_error<IoError>("{}: This file is not a covariance study.", file.string());
  }
}

}  // namespace olrank
