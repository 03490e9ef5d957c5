#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/io/json.h"
#include "core/version.h"
#include "serve/api_error.h"
#include "serve/service.h"

namespace olrank {
namespace {

/// JSON has no NaN or infinity.
std::string json_number(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? fmt::format("{}", *value) : "null";
}

std::string text_or_null(const std::optional<std::string>& text) {
  return text ? json_string(*text) : "null";
}

}  // namespace

std::string Service::stats() {
  RankerSource::State state;
  try {
    state = learner_->state();
  } catch (const std::exception& error) {
    throw ApiError(503, "", error.what());
  }
  const auto published = learner_->latest();
  const ImpressionStore::Counts impressions = lists_.counts();
  std::string out = fmt::format(
      "{{\"version\":\"{}\",\"features\":{},\"impressions\":{},\"open_impressions\":{},"
      "\"dropped_impressions\":{},\"impression_bytes\":{},\"impression_bytes_limit\":{},"
      "\"feedback_accepted\":{},\"late_events\":{},\"duplicates\":{},\"log_rounds\":{},\"log_bytes\":{},"
      "\"rounds\":{},\"skipped_rounds\":{},\"pairs\":{},\"certain_share\":{},\"fingerprint\":{},"
      "\"figures\":{{",
      version(), parts_.normaliser.features, impressions.opened, impressions.open, impressions.dropped,
      impressions.bytes, impressions.byte_limit, accepted_.load(), impressions.late, duplicates_.load(),
      log_.rounds(), log_.bytes(), state.round, state.skipped, state.pairs,
      counters_.certain_share().value_or(0.0),
      state.fingerprint == Fingerprint() ? "null" : fmt::format("\"{}\"", state.fingerprint.hex()));
  for (std::size_t i = 0; i < published->figures.size(); ++i) {
    out += fmt::format("{}\"{}\":{}", i > 0 ? "," : "", published->figures[i].name,
                       json_number(published->figures[i].value));
  }
  out += "},\"fairness\":" + (balance_ ? balance_->json() : "null");
  if (parts_.documents != nullptr) {
    const DocumentStore::Counts stored = parts_.documents->counts();
    out += fmt::format(
        ",\"documents\":{},\"document_versions\":{},\"document_bytes\":{},"
        "\"document_bytes_limit\":{},\"document_log_bytes\":{}",
        stored.documents, stored.versions, stored.bytes, stored.byte_limit, stored.log_bytes);
  }
  return out + ",\"failure\":" + text_or_null(failure()) + "}\n";
}

std::string Service::overview() const {
  const auto published = learner_->latest();
  const ImpressionStore::Counts impressions = lists_.counts();
  std::string out = fmt::format(
      "{{\"version\":{},\"ranker\":{},\"features\":{},\"uptime_seconds\":{:.1f},\"rounds\":{},"
      "\"log_rounds\":{},\"skipped_rounds\":{},\"pairs\":{},\"impressions\":{},\"open_impressions\":{},"
      "\"feedback_accepted\":{},\"certain_share\":{},\"disk_rejects_feedback\":{},\"log_away\":{},"
      "\"model_age\":{},\"failure\":{}",
      json_string(version()), json_string(parts_.kind), parts_.normaliser.features,
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(), published->round,
      log_.rounds(), published->skipped, published->pairs, impressions.opened, impressions.open,
      accepted_.load(), json_number(counters_.certain_share()), log_.is_failing(), log_.is_away(),
      json_number(learner_->model_age()), text_or_null(failure()));
  out += ",\"fairness\":" + (balance_ ? balance_->json() : "null");
  out += ",\"clicks\":" + counters_.clicks_json();
  out += ",\"arms\":" + (published->arms ? published->arms->json() : "null");
  out += ",\"latencies\":[";
  for (const Metrics::Summary& one : counters_.summaries()) {
    if (out.back() != '[') out += ',';
    out += fmt::format("{{\"path\":{},\"requests\":{},\"errors\":{},\"median\":{},\"p99\":{}}}",
                       json_string(one.route), one.requests, one.errors, one.median, one.p99);
  }
  out += "],\"history\":" + recent_.history_json();
  out += ",\"clicks_history\":" + curve_.json();
  out += ",\"queries\":" + asked_.json();
  out += ",\"lists\":" + recent_.lists_json();
  return out + "}\n";
}

std::string Service::features() {
  using Clock = std::chrono::steady_clock;
  constexpr int kRest = 9;  // times as long as the last one took, so that the learner has most of its time
  constexpr std::size_t kTold = 100;
  required_ranker();
  const std::unique_lock lock(effects_mutex_, std::try_to_lock);
  if (!lock)
    throw ApiError(503, "", "Another request computes the effects of features; retry.").retry_after(1);
  const Clock::time_point begin = Clock::now();
  if (begin < effects_due_) return effects_json_;
  try {
    const RankerSource::Model model = learner_->model();
    const ModelScorer scorer(
        parse_model(published_model(model, parts_.metadata), "model of the service", ModelCode::kTrust));
    effects_json_ = fmt::format("{{\"round\":{},\"features\":[", model.round);
    std::vector<FeatureEffects::Effect> effects = effects_.of(scorer);
    effects.resize(std::min(effects.size(), kTold));
    for (const FeatureEffects::Effect& one : effects) {
      effects_json_ += fmt::format(
          "{}{{\"name\":{},\"share\":{:.4f},\"direction\":{:.2f}}}", effects_json_.back() == '[' ? "" : ",",
          json_string(parts_.requests.feature(one.feature)), one.share, one.direction);
    }
  } catch (const Error& error) {
    throw ApiError(503, "", error.what());
  }
  effects_json_ += "]}\n";
  const Clock::time_point end = Clock::now();
  effects_due_ = end + std::max<Clock::duration>(kRest * (end - begin), std::chrono::seconds(1));
  return effects_json_;
}

std::string Service::metrics() const {
  const auto published = learner_->latest();
  const ImpressionStore::Counts lists = lists_.counts();
  std::string text = counters_.text();
  const auto counter = [&](std::string_view name, auto value, std::string_view help) {
    text += metric_text(fmt::format("olrank_{}_total", name), "counter", help, static_cast<double>(value));
  };
  const auto gauge = [&](std::string_view name, auto value, std::string_view help) {
    text += metric_text(fmt::format("olrank_{}", name), "gauge", help, static_cast<double>(value));
  };
  counter("rounds", published->round, "Rounds of feedback learned.");
  counter("skipped_rounds", published->skipped,
          "Rounds of feedback that could not be learned and changed nothing.");
  counter("log_rounds", log_.rounds(), "Rounds of feedback in the log.");
  gauge("log_bytes", log_.bytes(), "Size of the feedback log in bytes.");
  counter("pairs", published->pairs, "Preference pairs learned from.");
  counter("feedback_accepted", accepted_.load(), "Feedback requests accepted since the service started.");
  counter("feedback_duplicates", duplicates_.load(), "Feedback requests that repeated an accepted one.");
  gauge("open_impressions", lists.open, "Shown lists awaiting feedback.");
  counter("impressions_dropped", lists.dropped,
          "Shown lists forgotten unanswered because newer ones needed the place.");
  counter("late_events", lists.late,
          "Events that came after their list's window had closed; they are kept, not learned.");
  counter("windows_closed_early", lists.early,
          "Lists logged before their window had ended, because newer ones needed the place.");
  gauge("impression_bytes", lists.bytes, "Memory of shown lists and remembered answers.");
  gauge("impression_bytes_limit", lists.byte_limit, "Limit of olrank_impression_bytes.");
  if (parts_.documents != nullptr) {
    const DocumentStore::Counts stored = parts_.documents->counts();
    gauge("documents", stored.documents, "Documents that requests can name by their IDs alone.");
    gauge("document_bytes", stored.bytes, "Memory of these documents and of the index of their versions.");
    gauge("document_bytes_limit", stored.byte_limit, "Limit of olrank_document_bytes.");
    gauge("document_log_bytes", stored.log_bytes, "Size of the log of the documents in bytes.");
  }
  if (parts_.requests.counters != nullptr)
    gauge("counter_bytes", parts_.requests.counters->bytes(), "Memory of the counters of the schema.");
  gauge("certain_share", counters_.certain_share().value_or(0.0),
        "Share of shown pairs whose order was certain, since the service started.");
  if (balance_) text += balance_->metrics();
  if (published->arms) text += published->arms->metrics();
  gauge("feedback_rejected_by_disk", log_.is_failing(),
        "1 while the disk is full or failing, so that no feedback is logged, else 0.");
  gauge("log_away", log_.is_away(), "1 while the shared log cannot be reached, else 0.");
  if (const auto archived = log_.archived())
    counter("archived_rounds", *archived, "Rounds of the shared log that this learner has in its own.");
  gauge("model_round", published->round, "Rounds learned by the ranker that makes the lists.");
  if (const auto age = learner_->model_age())
    gauge("model_age_seconds", *age, "Seconds since this replica last knew that its model is the newest.");
  gauge("log_behind", log_.is_behind(),
        "1 while the shared log has fewer records than were acknowledged, and takes none, else 0.");
  gauge("learning", !failure(), "1 while learning is running, 0 after it has failed.");
  for (const RankerFigure& figure : published->figures)
    gauge(figure.name, figure.value, "Statistic of the ranker; may lag a few hundred rounds behind.");
  return text + process_metrics();
}

}  // namespace olrank
