#include "core/data/synthetic_plan.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include "core/throw_error.h"

namespace olrank {
namespace {

// Beside those of synthetic_plan.h.
constexpr std::uint64_t kCalibrationPart = 101;
constexpr std::uint64_t kGroupPart = 102;

/// Kinds of the first ten groups: enough ratios for all signals however few the features are.
constexpr std::string_view kFirstKinds = "RCRKRRBRRR";
/// Kinds of all further groups, again and again.
constexpr std::string_view kFurtherKinds = "CRCBCSKCRC";
/// In yahoo-like data all features lie in [0, 1] and 0 means missing, so nothing is binary or a count.
constexpr std::string_view kFurtherRatioKinds = "WRWRWSKWRW";

SyntheticKind kind_of(char letter) {
  constexpr std::string_view kLetters = "RSWCBK";  // of the kinds in their order
  return static_cast<SyntheticKind>(kLetters.find(letter));
}

SyntheticKind without_zeros(SyntheticKind kind) {
  if (kind == SyntheticKind::kCount) return SyntheticKind::kSkewed;
  return kind == SyntheticKind::kBinary || kind == SyntheticKind::kScore ? SyntheticKind::kRatio : kind;
}

void measure(SyntheticBump& bump) {
  constexpr int kPoints = 4096;
  double sum = 0.0;
  double sum_sq = 0.0;
  for (int i = 0; i < kPoints; ++i) {
    const double value = bump.at((i + 0.5) / kPoints);
    sum += value;
    sum_sq += value * value;
  }
  bump.mean = sum / kPoints;
  bump.deviation = std::sqrt(sum_sq / kPoints - bump.mean * bump.mean);
}

SyntheticRelevance make_relevance(double nonlinearity, RngStream& stream) {
  SyntheticRelevance relevance;
  const double linear = std::sqrt(1.0 - nonlinearity);
  const double nonlinear = std::sqrt(nonlinearity);
  const auto sign = [&stream] { return stream.uniform() < 0.5 ? -1.0 : 1.0; };

  // 2t − 1 has variance 1/3 for uniform t, a product of two such 1/9; shares are of variance.
  constexpr std::array<double, 3> kLinearShares = {0.5, 0.3, 0.2};
  for (std::size_t i = 0; i < 3; ++i) {
    relevance.linear_weights[i] = sign() * linear * std::sqrt(3.0 * kLinearShares[i]);
  }
  constexpr std::array<double, 3> kBumpShares = {0.3, 0.3, 0.2};
  constexpr double kProductShare = 0.2;
  for (std::size_t i = 0; i < 3; ++i) {
    SyntheticBump& bump = relevance.bumps[i];
    bump.centre = 0.42 + 0.16 * stream.uniform();
    measure(bump);
    const double direction = i == 2 ? -1.0 : 1.0;
    relevance.bump_weights[i] = direction * nonlinear * std::sqrt(kBumpShares[i]) / bump.deviation;
  }
  relevance.product_weight = sign() * nonlinear * std::sqrt(9.0 * kProductShare);
  return relevance;
}

/// Which groups show the signals: signal 2 a count (or what stands for one), all others ratios.
void place_signals(std::vector<SyntheticGroup>& groups, RngStream& stream) {
  std::vector<std::size_t> ratios;
  std::vector<std::size_t> counts;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (groups[g].kind == SyntheticKind::kRatio) ratios.push_back(g);
    if (groups[g].kind == SyntheticKind::kCount || groups[g].kind == SyntheticKind::kSkewed)
      counts.push_back(g);
  }
  stream.shuffle(std::span(ratios));
  stream.shuffle(std::span(counts));
  std::size_t next_ratio = 0;
  for (int signal = 0; signal < kSyntheticSignals; ++signal) {
    groups[signal == 2 ? counts[0] : ratios[next_ratio++]].signal = signal;
  }
}

/// Gives each group the probability with which a document has it, so that half of all features are missing:
/// those that matter for relevance seldom are.
void place_missing(SyntheticPlan& plan) {
  constexpr double kSignalPresent = 0.85;
  constexpr double kShare = 0.5;
  const auto features = static_cast<double>(plan.source.features);
  const double of_signals = kSyntheticSignals * static_cast<double>(plan.streams);
  const double rest = (kShare * features - kSignalPresent * of_signals) / (features - of_signals);
  const double present = std::clamp(rest, 0.05, 1.0);
  plan.has_missing = true;
  plan.relevance.present = kSignalPresent;
  plan.single_present = present;
  for (SyntheticGroup& group : plan.groups) group.present = group.signal >= 0 ? kSignalPresent : present;
}

/// Shares of documents below each bound. MSLR-WEB's; about those of Yahoo's set 1; many of each grade.
std::array<double, 4> shares_below(SyntheticFamily family) {
  if (family == SyntheticFamily::kYahooLike) return {0.26, 0.62, 0.90, 0.98};
  if (family == SyntheticFamily::kSmall) return {0.40, 0.70, 0.88, 0.96};
  return {0.52, 0.84, 0.97, 0.99};
}

constexpr std::uint32_t kSample = 32768;

/// A sample of documents that depends on the seed and the part alone.
struct Sample {
  std::vector<double> y;  // relevance + query effect + noise
  std::vector<double> e;  // standard normal
};

Sample draw_sample(const SyntheticPlan& plan, std::uint64_t part) {
  const PhiloxKey key = key_of_part(plan.source, part);
  Sample sample;
  for (std::uint32_t i = 0; i < kSample; ++i) {
    RngStream stream(key, 0, i);
    const SyntheticSignals signals = plan.relevance.draw(stream);
    const double relevance =
        plan.relevance_of(signals, plan.source.has_embedding() ? stream.normal() : 0.0);
    const double query_effect = SyntheticPlan::kQueryEffect * stream.normal();
    sample.y.push_back(relevance + query_effect + plan.source.noise * stream.normal());
    sample.e.push_back(stream.normal());
  }
  return sample;
}

/// Sets the bounds of grades to quantiles of a sample.
void calibrate(SyntheticPlan& plan) {
  std::vector<double> sample = draw_sample(plan, kCalibrationPart).y;
  std::sort(sample.begin(), sample.end());
  const std::array<double, 4> shares = shares_below(plan.source.family);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    plan.grade_bounds[i] = sample[shares[i] * kSample];
  }
}

/// Finds the correlation of group and relevance that gives the wanted difference of mean grades, on a
/// sample.
void plant_groups(SyntheticPlan& plan) {
  constexpr double kMostCorrelation = 0.999;
  const Sample sample = draw_sample(plan, kGroupPart);
  const std::vector<double>& y = sample.y;
  const std::vector<double>& e = sample.e;
  double sum_sq = 0.0;
  plan.y_mean = std::accumulate(y.begin(), y.end(), 0.0) / kSample;
  for (const double value : y) sum_sq += (value - plan.y_mean) * (value - plan.y_mean);
  plan.y_deviation = std::sqrt(sum_sq / kSample);

  std::vector<double> latent(kSample);
  const auto gap_at = [&](double correlation) {
    plan.group_correlation = correlation;
    const double rest = std::sqrt(1.0 - correlation * correlation);
    for (std::uint32_t i = 0; i < kSample; ++i)
      latent[i] = correlation * (y[i] - plan.y_mean) / plan.y_deviation + rest * e[i];
    const auto bound =
        latent.begin() + static_cast<std::ptrdiff_t>((1.0 - plan.source.group_share) * kSample);
    std::nth_element(latent.begin(), bound, latent.end());
    plan.group_bound = *bound;
    double grades[2] = {0.0, 0.0};
    double docs[2] = {0.0, 0.0};
    for (std::uint32_t i = 0; i < kSample; ++i) {
      const int group = plan.in_group_a(y[i], e[i]) ? 0 : 1;
      grades[group] += plan.grade_of(y[i]);
      docs[group] += 1.0;
    }
    return grades[0] / docs[0] - grades[1] / docs[1];
  };
  const double wanted = plan.source.group_gap;
  const double least = gap_at(-kMostCorrelation);
  const double most = gap_at(kMostCorrelation);
  if (wanted < least || wanted > most) {
    throw_error<InvalidArgument>("group_gap must be from {:.3f} to {:.3f} with group_share = {}, not {}.",
                                 least, most, plan.source.group_share, wanted);
  }
  double low = -kMostCorrelation;
  double high = kMostCorrelation;
  for (int halving = 0; halving < 30; ++halving) {
    const double middle = 0.5 * (low + high);
    (gap_at(middle) < wanted ? low : high) = middle;
  }
  gap_at(wanted == 0.0 ? 0.0 : 0.5 * (low + high));
}

/// The highest level, relative to the largest score that is known to be taken.
constexpr double kReach = 0.9;

double dot(std::span<const double> x, std::span<const double> y) {
  return std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
}

SyntheticVectors make_vectors(const SyntheticSource& source) {
  const PhiloxKey key = key_of_part(source, kSyntheticVectorPart + kSyntheticPlanPart);
  const auto size = static_cast<std::size_t>(source.embedding);
  SyntheticVectors vectors;
  vectors.axes.resize(SyntheticVectors::kAxes * size);
  RngStream stream(key, 0);
  double sum = 0.0;
  for (int k = 1; k <= SyntheticVectors::kAxes; ++k) sum += 1.0 / k;
  for (int k = 1; k <= SyntheticVectors::kAxes; ++k) {
    const auto axis = std::span(vectors.axes).subspan((k - 1) * size, size);
    stream.unit_vector(axis);
    for (double& value : axis) value *= std::sqrt((1.0 - SyntheticVectors::kRest) / (k * sum));
  }
  vectors.texts.resize(source.subspace * size);
  vectors.relevance.resize(size);
  for (std::int64_t text = 0; text < source.subspace; ++text) {
    const auto of_text = std::span(vectors.texts).subspan(text * size, size);
    RngStream draws(key, 1, static_cast<std::uint32_t>(text));
    vectors.draw(draws, draws, of_text);
    for (std::size_t c = 0; c < size; ++c) vectors.relevance[c] += of_text[c];
  }
  double variance =
      SyntheticVectors::kRest / static_cast<double>(size) * dot(vectors.relevance, vectors.relevance);
  for (std::size_t at = 0; at < vectors.axes.size(); at += size) {
    const double along = dot(vectors.relevance, std::span(vectors.axes).subspan(at, size));
    variance += along * along;
  }
  for (double& value : vectors.relevance) value /= std::sqrt(variance);
  return vectors;
}

}  // namespace

void SyntheticVectors::draw(RngStream& of_query, RngStream& of_doc, std::span<double> vector) const {
  constexpr double kInCommon = 0.3;
  const auto size = std::ssize(vector);
  const double rest = std::sqrt(kRest / static_cast<double>(size));
  for (double& value : vector) value = rest * of_doc.normal();
  for (auto axis = axes.begin(); axis != axes.end(); axis += size) {
    const double place =
        std::sqrt(kInCommon) * of_query.normal() + std::sqrt(1.0 - kInCommon) * of_doc.normal();
    for (std::int64_t c = 0; c < size; ++c) vector[c] += place * axis[c];
  }
  const double length = std::sqrt(dot(vector, vector));
  for (double& value : vector) value /= length;
}

SyntheticSignals SyntheticRelevance::draw(RngStream& stream) const {
  SyntheticSignals signals{};
  for (double& signal : signals) {
    signal = synthetic_uniform(stream);
    if (present < 1.0 && synthetic_uniform(stream) >= present) signal = 0.0;
  }
  return signals;
}

double SyntheticRelevance::at(const SyntheticSignals& signals) const {
  const auto centred = [](double t) { return 2.0 * t - 1.0; };
  double sum = product_weight * (centred(signals[6]) * centred(signals[7]));
  for (std::size_t i = 0; i < 3; ++i) {
    sum += linear_weights[i] * centred(signals[i]);
    sum += bump_weights[i] * (bumps[i].at(signals[3 + i]) - bumps[i].mean);
  }
  return sum;
}

PhiloxKey key_of_part(const SyntheticSource& source, std::uint64_t part) {
  const std::string_view name = name_of(source.family);
  return make_key({.seed = source.seed,
                   .purpose = Purpose::kSynthetic,
                   .fold = part,
                   .click_model = name_hash(name.data(), name.size())});
}

SyntheticPlan make_synthetic_plan(const SyntheticSource& source) {
  SyntheticPlan plan;
  plan.source = source;
  RngStream stream(key_of_part(source, kSyntheticPlanPart), 0);
  plan.relevance = make_relevance(source.nonlinearity, stream);

  const std::int64_t singles = std::min<std::int64_t>(11, source.features / 12);
  plan.streams = static_cast<int>(std::clamp<std::int64_t>((source.features - singles) / 12, 1, 5));
  const std::int64_t groups = (source.features - singles) / plan.streams;
  plan.first_single = groups * plan.streams;
  const bool missing = source.family == SyntheticFamily::kYahooLike;
  const std::string_view further_kinds = missing ? kFurtherRatioKinds : kFurtherKinds;
  for (std::int64_t g = 0; g < groups; ++g) {
    const auto i = static_cast<std::size_t>(g);
    const char letter = i < kFirstKinds.size()
                            ? kFirstKinds[i]
                            : further_kinds[(i - kFirstKinds.size()) % further_kinds.size()];
    SyntheticGroup group;
    group.kind = missing ? without_zeros(kind_of(letter)) : kind_of(letter);
    group.first_column = g * plan.streams;
    plan.groups.push_back(group);
  }
  place_signals(plan.groups, stream);
  if (missing) place_missing(plan);
  if (source.has_embedding()) plan.vectors = make_vectors(source);
  calibrate(plan);
  if (source.has_groups()) plant_groups(plan);
  return plan;
}

RealisableTarget::RealisableTarget(const SyntheticSource& source)
    : source_(source), lowest_(source.features), highest_(source.features) {
  RngStream stream(key_of_part(source, kSyntheticPlanPart), 0);
  const auto features = static_cast<std::size_t>(source.features);
  hidden_.resize(features * static_cast<std::size_t>(std::max<std::int64_t>(1, source.units)));
  for (std::size_t at = 0; at < hidden_.size(); at += features)
    stream.unit_vector(std::span(hidden_).subspan(at, features));
  if (source.units == 0) {
    highest_ = hidden_;
    for (std::size_t k = 0; k < features; ++k) lowest_[k] = -hidden_[k];
  } else {
    constexpr int kSample = 4096;
    std::vector<double> x(features);
    double low = 0.0;
    double high = 0.0;
    for (int i = 0; i < kSample; ++i) {
      stream.unit_vector(x);
      const double score = unscaled(x);
      if (score < low) lowest_ = x;
      if (score > high) highest_ = x;
      low = std::min(low, score);
      high = std::max(high, score);
    }
  }
  const double most = std::min(unscaled(highest_), -unscaled(lowest_));
  scale_ = level(source.docs - 1) / (kReach * most);
}

double RealisableTarget::unscaled(std::span<const double> x) const {
  if (source_.units == 0) return dot(hidden_, x);
  double sum = 0.0;
  double sign = 1.0;
  for (std::size_t at = 0; at < hidden_.size(); at += x.size()) {
    sum += sign * std::max(0.0, dot(std::span(hidden_).subspan(at, x.size()), x));
    sign = -sign;
  }
  return sum;
}

double RealisableTarget::at(std::span<const double> x) const {
  return scale_ * unscaled(x);
}

double RealisableTarget::level(std::int64_t grade) const {
  return (static_cast<double>(grade) - 0.5 * static_cast<double>(source_.docs - 1)) * source_.gap;
}

void RealisableTarget::draw(RngStream& stream, std::int64_t grade, std::span<double> x) const {
  std::vector<double> start(x.size());
  stream.unit_vector(start);
  const double wanted = level(grade);
  const bool rises = at(start) < wanted;
  const std::vector<double>& end = rises ? highest_ : lowest_;
  double near = 0.0;  // the share of `end`
  double far = 1.0;
  constexpr int kHalvings = 60;
  for (int halving = 0; halving < kHalvings; ++halving) {
    const double middle = 0.5 * (near + far);
    for (std::size_t k = 0; k < x.size(); ++k) x[k] = (1.0 - middle) * start[k] + middle * end[k];
    const double length = std::sqrt(dot(x, x));
    for (double& value : x) value /= length;
    ((at(x) < wanted) == rises ? near : far) = middle;
  }
}

}  // namespace olrank
