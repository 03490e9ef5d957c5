#include "serve/arm_ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/io/json.h"
#include "core/statistics/t_tests.h"
#include "serve/metrics.h"

namespace olrank {
namespace {

/// Fewer lists, or lists of fewer clusters, say nothing: the interval is a limit theorem's.
constexpr std::int64_t kLeast = 30;

bool is_enough(const ClusteredMean& mean) {
  return mean.values() >= kLeast && mean.clusters() >= kLeast;
}

std::string interval_json(const std::optional<Interval>& interval) {
  if (!interval) return "null";
  return fmt::format("{{\"value\":{},\"low\":{},\"high\":{}}}", interval->value, interval->low,
                     interval->high);
}

void mean_fields(StateFields& fields, ClusteredMean& mean) {
  using Sums = ClusteredMean::Sums;
  Sums sums = mean.sums();
  std::vector<double> all = {sums.values,  sums.clusters,   sums.sum,
                             sums.sum_sum, sums.sum_values, sums.values_values};
  fields.any("arms.values_in", sums.values_in);
  fields.any("arms.sum_of", sums.sum_of);
  fields.any("arms.sums", all);
  fields.require(std::ssize(sums.values_in) == ArmPlan::kBuckets &&
                     std::ssize(sums.sum_of) == ArmPlan::kBuckets && all.size() == 6,
                 "The sums of an arm do not fit together.");
  if (fields.reads())
    mean = ClusteredMean(Sums{std::move(sums.values_in), std::move(sums.sum_of), all[0], all[1], all[2],
                              all[3], all[4], all[5]});
}

}  // namespace

ArmLedger::ArmLedger(ArmPlan plan)
    : plan_(std::move(plan)),
      id_(plan_.id()),
      shares_(plan_.shares),
      lists_(plan_.names.size()),
      clicks_(plan_.names.size()),
      rewards_(plan_.names.size()),
      current_(plan_.names.size(), ClusteredMean(ArmPlan::kBuckets)),
      preference_(ArmPlan::kBuckets),
      recent_{current_, current_} {
  if (plan_.promote == Promotion::kAuto) shares_ = shares_at(0);
}

std::vector<double> ArmLedger::shares_at(std::size_t stage) const {
  std::vector<double> shares(2);
  shares[learner()] = kStages[stage] * (100.0 - plan_.holdout) / 100.0;
  shares[plan_.baseline()] = 100.0 - shares[learner()];
  return shares;
}

bool ArmLedger::observe(const FeedbackRecord& record) {
  if (record.experiment != id_ || record.bucket < 0 || record.bucket >= ArmPlan::kBuckets) return false;
  const double reward = record.reward();
  if (record.arm == ArmPlan::kDrafted) {
    int won = 0;
    for (std::size_t rank = 0; rank < std::min(record.teams.size(), record.clicks.size()); ++rank)
      won += record.clicks[rank] == 0 ? 0 : record.teams[rank] == 'A' ? 1 : -1;
    ++votes_[won > 0 ? 0 : won < 0 ? 1 : 2];
    preference_.add(record.bucket, won > 0 ? 1.0 : won < 0 ? -1.0 : 0.0);
    return false;
  }
  const auto found = std::find(plan_.names.begin(), plan_.names.end(), record.arm);
  if (found == plan_.names.end()) return false;
  const auto arm = static_cast<std::size_t>(found - plan_.names.begin());
  ++lists_[arm];
  clicks_[arm] += std::accumulate(record.clicks.begin(), record.clicks.end(), 0);
  rewards_[arm] += reward;
  current_[arm].add(record.bucket, reward);
  if (plan_.promote != Promotion::kAuto) return false;
  for (Comparison& recent : recent_) recent[arm].add(record.bucket, reward);
  ++since_change_;
  return consider_stage(record.round);
}

std::optional<Interval> ArmLedger::difference(const Comparison& comparison, std::size_t arm) const {
  const std::size_t baseline = plan_.baseline();
  if (arm == baseline || !is_enough(comparison[arm]) || !is_enough(comparison[baseline]))
    return std::nullopt;
  // All differences to the baseline hold together.
  const double confidence = 1.0 - (1.0 - kConfidence) / static_cast<double>(comparison.size() - 1);
  return anytime_difference(comparison[arm], comparison[baseline], confidence);
}

bool ArmLedger::consider_stage(std::uint64_t round) {
  if (stage_ == 0) {
    // A learner that fell back has to observe longer.
    const std::int64_t factor = std::int64_t{1} << std::min<std::int64_t>(rollbacks_, 10);
    if (since_change_ < plan_.observe * factor) return false;
    return move_to(1, round, fmt::format("{} lists were observed", since_change_));
  }
  const std::size_t mine = learner();
  for (const Comparison* lists : {&current_, &recent_[0]}) {
    const double margin = plan_.margin / 100.0 * (*lists)[plan_.baseline()].mean();
    if (const auto more = difference(*lists, mine); more && more->high < -margin) {
      ++rollbacks_;
      return move_to(0, round,
                     fmt::format("its lists get {:.4f} less than the incumbent's, and at least {:.4f}",
                                 -more->value, -more->high));
    }
  }
  const double allowed = plan_.margin / 100.0 * current_[plan_.baseline()].mean();
  if (stage_ + 1 < kStages.size()) {
    if (const auto more = difference(current_, mine);
        more && more->low * kStages[stage_ + 1] / 100.0 > -allowed) {
      return move_to(
          stage_ + 1, round,
          fmt::format("its lists get {:+.4f} compared with the incumbent's, and at least {:+.4f}",
                      more->value, more->low));
    }
  }
  if (since_change_ % kRecent == 0) {
    std::swap(recent_[0], recent_[1]);
    for (ClusteredMean& mean : recent_[1]) mean.clear();
  }
  return false;
}

bool ArmLedger::move_to(std::size_t stage, std::uint64_t round, std::string reason) {
  const double before = shares_[learner()];
  stage_ = stage;
  shares_ = shares_at(stage);
  since_change_ = 0;
  for (Comparison* comparison : {&current_, &recent_[0], &recent_[1]}) {
    for (ClusteredMean& mean : *comparison) mean.clear();
  }
  changes_.push_back({round, before, shares_[learner()], std::move(reason)});
  if (changes_.size() > kChanges) changes_.erase(changes_.begin());
  return true;
}

ArmReport ArmLedger::report() const {
  ArmReport report;
  report.id = id_;
  report.baseline = plan_.baseline();
  for (std::size_t arm = 0; arm < plan_.names.size(); ++arm)
    report.arms.push_back({plan_.names[arm], shares_[arm], lists_[arm], clicks_[arm], rewards_[arm],
                           difference(current_, arm)});
  report.wins = {votes_[0], votes_[1]};
  report.ties = votes_[2];
  if (is_enough(preference_))
    report.preference = anytime_interval(preference_.mean(), preference_.variance(),
                                         static_cast<double>(preference_.values()), kConfidence);
  report.promotes = plan_.promote == Promotion::kAuto;
  report.changes = changes_;
  report.rollbacks = rollbacks_;
  return report;
}

void ArmLedger::save(StateWriter& state) const {
  state.put_text("arms.plan", id_);
  save_fields(*this, state);
}

bool ArmLedger::load(StateReader& state) {
  if (!state.is_next("arms.plan") || state.get_text("arms.plan") != id_) return false;
  load_fields(*this, state);
  return true;
}

void ArmLedger::fields(StateFields& fields) {
  std::vector<std::int64_t> votes(votes_.begin(), votes_.end());
  fields.any("arms.lists", lists_);
  fields.any("arms.clicks", clicks_);
  fields.any("arms.rewards", rewards_);
  fields.any("arms.votes", votes);
  fields.require(lists_.size() == plan_.names.size() && clicks_.size() == lists_.size() &&
                     rewards_.size() == lists_.size() && votes.size() == votes_.size(),
                 "The arms do not fit their plan.");
  std::copy(votes.begin(), votes.end(), votes_.begin());
  for (ClusteredMean& mean : current_) mean_fields(fields, mean);
  mean_fields(fields, preference_);
  std::vector<std::int64_t> stage = {static_cast<std::int64_t>(stage_), since_change_, rollbacks_};
  fields.any("arms.stage", stage);
  fields.require(stage.size() == 3 && stage[0] >= 0 && stage[0] < std::ssize(kStages),
                 "The stage of the promotion is none.");
  stage_ = static_cast<std::size_t>(stage[0]);
  since_change_ = stage[1];
  rollbacks_ = stage[2];
  if (plan_.promote != Promotion::kAuto) return;
  shares_ = shares_at(stage_);
  for (Comparison& recent : recent_) {
    for (ClusteredMean& mean : recent) mean_fields(fields, mean);
  }
  auto changes = std::ssize(changes_);
  fields.numbers("arms.changes", changes);
  changes_.resize(std::min<std::size_t>(changes, kChanges));
  for (ArmReport::Change& change : changes_) {
    std::vector<double> shares = {change.from, change.to};
    fields.numbers("arms.change.round", change.round);
    fields.any("arms.change.shares", shares);
    fields.require(shares.size() == 2, "A change of shares has no two shares.");
    change.from = shares[0];
    change.to = shares[1];
    fields.text("arms.change.reason", change.reason);
  }
}

std::vector<double> ArmReport::shares() const {
  std::vector<double> shares;
  for (const Arm& arm : arms) shares.push_back(arm.share);
  return shares;
}

std::string ArmReport::json() const {
  std::string out =
      fmt::format("{{\"experiment\":\"{}\",\"baseline\":\"{}\",\"arms\":[", id, arms[baseline].name);
  for (const Arm& arm : arms) {
    if (out.back() != '[') out += ',';
    out += fmt::format(
        "{{\"name\":\"{}\",\"share\":{},\"lists\":{},\"clicks\":{},\"reward\":{},\"difference\":{}}}",
        arm.name, arm.share, arm.lists, arm.clicks, arm.reward, interval_json(arm.difference));
  }
  out += fmt::format(
      "],\"interleaved\":{{\"wins\":[{},{}],\"ties\":{},\"preference\":{}}},\"promotes\":{},\"rollbacks\":{"
      "}",
      wins[0], wins[1], ties, interval_json(preference), promotes, rollbacks);
  out += ",\"changes\":[";
  for (const Change& change : changes) {
    if (out.back() != '[') out += ',';
    out += fmt::format("{{\"round\":{},\"from\":{},\"to\":{},\"reason\":{}}}", change.round, change.from,
                       change.to, json_string(change.reason));
  }
  return out + "]}";
}

std::string ArmReport::metrics() const {
  std::string text;
  const auto add = [&](std::string_view name, std::string_view type, std::string_view help,
                       const auto& value_of) {
    text += metric_heading(name, type, help);
    for (const Arm& arm : arms) {
      if (const std::optional<double> value = value_of(arm))
        text += fmt::format("{}{{arm=\"{}\"}} {}\n", name, arm.name, *value);
    }
  };
  using Value = std::optional<double>;
  add("olrank_arm_share", "gauge", "Share of the traffic that an arm has now.",
      [](const Arm& arm) { return Value(arm.share / 100.0); });
  add("olrank_arm_lists_total", "counter", "Lists of an arm with feedback.",
      [](const Arm& arm) { return Value(static_cast<double>(arm.lists)); });
  add("olrank_arm_clicks_total", "counter", "Clicks on the lists of an arm.",
      [](const Arm& arm) { return Value(static_cast<double>(arm.clicks)); });
  add("olrank_arm_reward_total", "counter", "What users did with the lists of an arm is worth.",
      [](const Arm& arm) { return Value(arm.reward); });
  add("olrank_arm_difference", "gauge",
      "Reward a list more than the baseline, since the shares changed last.",
      [](const Arm& arm) { return arm.difference ? Value(arm.difference->value) : Value(); });
  add("olrank_arm_difference_low", "gauge",
      "Lower bound of olrank_arm_difference, 95 % at all times together.",
      [](const Arm& arm) { return arm.difference ? Value(arm.difference->low) : Value(); });
  add("olrank_arm_difference_high", "gauge",
      "Upper bound of olrank_arm_difference, 95 % at all times together.",
      [](const Arm& arm) { return arm.difference ? Value(arm.difference->high) : Value(); });
  return text + metric_text("olrank_rollbacks_total", "counter",
                            "How often the learner's share fell back to 0.",
                            static_cast<double>(rollbacks));
}

}  // namespace olrank
