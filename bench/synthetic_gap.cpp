// The test NDCG that different models reach on synthetic data: random order, the best linear ranker, a
// two-layer ReLU network of width 100, and the noise-free relevance itself. Prints the Markdown table of
// docs/SYNTHETIC.md.
//
//   synthetic_gap [--source synth:mslr-like] [--seeds 3] [--pairs 3000]
//   synthetic_gap --speed      prints the speed of data generation instead

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/synthetic.h"
#include "core/error.h"
#include "core/ops/blas.h"
#include "core/random/rng_stream.h"
#include "core/statistics/mean_interval.h"

namespace {

using olrank::Dataset;
using olrank::RngStream;
namespace blas = olrank::blas;

/// A part with normalised features: each scaled to [0, 1] within its query, 0 if it is constant there.
struct Part {
  explicit Part(const Dataset& data)
      : features(data.features()),
        values(data.all_features().values, data.all_features().values + data.docs() * data.features()),
        grades(data.all_grades().begin(), data.all_grades().end()),
        offsets(data.offsets().begin(), data.offsets().end()) {
    for (std::int64_t q = 0; q < queries(); ++q) normalise(offset(q), offset(q + 1));
  }

  std::int64_t queries() const { return std::ssize(offsets) - 1; }
  std::int64_t docs() const { return offsets.back(); }
  std::int64_t offset(std::int64_t query) const { return offsets[query]; }
  int grade(std::int64_t doc) const { return grades[doc]; }
  const float* row(std::int64_t doc) const { return values.data() + doc * features; }

  std::int64_t features;
  std::vector<float> values;
  std::vector<std::uint8_t> grades;
  std::vector<std::int64_t> offsets;

 private:
  void normalise(std::int64_t begin, std::int64_t end) {
    for (std::int64_t f = 0; f < features; ++f) {
      float low = values[begin * features + f];
      float high = low;
      for (std::int64_t doc = begin; doc < end; ++doc) {
        low = std::min(low, row(doc)[f]);
        high = std::max(high, row(doc)[f]);
      }
      const float range = high - low;
      for (std::int64_t doc = begin; doc < end; ++doc) {
        float& value = values[doc * features + f];
        value = range > 0.0F ? (value - low) / range : 0.0F;
      }
    }
  }
};

double discounted_gain(std::span<const int> shown) {
  double sum = 0.0;
  for (std::size_t rank = 0; rank < std::min<std::size_t>(10, shown.size()); ++rank) {
    sum += ((1 << shown[rank]) - 1) / std::log2(static_cast<double>(rank) + 2.0);
  }
  return sum;
}

/// Mean NDCG@10; ties by document index, queries without a relevant document count 0.
double ndcg(const Part& part, std::span<const double> scores) {
  double sum = 0.0;
  for (std::int64_t q = 0; q < part.queries(); ++q) {
    std::vector<std::int64_t> order(part.offset(q + 1) - part.offset(q));
    std::iota(order.begin(), order.end(), part.offset(q));
    std::stable_sort(order.begin(), order.end(),
                     [&](std::int64_t a, std::int64_t b) { return scores[a] > scores[b]; });
    std::vector<int> shown;
    shown.reserve(order.size());
    for (const std::int64_t doc : order) shown.push_back(part.grade(doc));
    const double gain = discounted_gain(shown);
    std::sort(shown.begin(), shown.end(), std::greater<>());
    const double ideal = discounted_gain(shown);
    if (ideal > 0.0) sum += gain / ideal;
  }
  return sum / static_cast<double>(part.queries());
}

struct Pair {
  std::int64_t winner;
  std::int64_t loser;
};

/// Random pairs of documents of random queries, restricted to different grades.
std::vector<Pair> random_pairs(const Part& part, std::int64_t count, RngStream& stream) {
  std::vector<Pair> pairs;
  while (std::ssize(pairs) < count) {
    const std::int64_t query = stream.index(static_cast<std::uint32_t>(part.queries()));
    const auto docs = static_cast<std::uint32_t>(part.offset(query + 1) - part.offset(query));
    const std::int64_t a = part.offset(query) + stream.index(docs);
    const std::int64_t b = part.offset(query) + stream.index(docs);
    if (part.grade(a) != part.grade(b))
      pairs.push_back(part.grade(a) > part.grade(b) ? Pair{a, b} : Pair{b, a});
  }
  return pairs;
}

enum class Shape { kLinear, kNetwork, kNetworkWithoutBias };

struct Recipe {
  float learning_rate;
  float penalty;       // weight of the squared parameters, relative to the mean loss
  bool weigh_by_gain;  // weight pairs by the difference of their gains instead of equally
};

/// Scores x·w, or w₂·relu(W₁x + b₁): trained with Adam on the pair logistic loss.
class Ranker {
 public:
  Ranker(Shape shape, std::int64_t features, RngStream& stream) : shape_(shape), features_(features) {
    if (shape == Shape::kLinear) {
      parameters_.assign(features, 0.0F);
    } else {
      parameters_.resize(kWidth * (features + 2));
      const double first = std::sqrt(2.0 / static_cast<double>(features));
      const double second = std::sqrt(1.0 / static_cast<double>(kWidth));
      for (std::int64_t i = 0; i < kWidth * features; ++i)
        at(parameters_, i) = static_cast<float>(first * stream.normal());
      for (std::int64_t i = 0; i < kWidth; ++i)
        second_layer()[i] = static_cast<float>(second * stream.normal());
    }
    gradient_.assign(parameters_.size(), 0.0F);
    mean_.assign(parameters_.size(), 0.0F);
    square_.assign(parameters_.size(), 0.0F);
  }

  /// Scores of `rows` documents; keeps the hidden layer for learn().
  const std::vector<float>& forward(const float* x, std::int64_t rows) {
    scores_.assign(rows, 0.0F);
    if (shape_ == Shape::kLinear) {
      blas::gemm(blas::Transpose::kNo, blas::Transpose::kNo, rows, 1, features_, 1.0F, x, features_,
                 parameters_.data(), 1, 0.0F, scores_.data(), 1);
      return scores_;
    }
    hidden_.resize(rows * kWidth);
    blas::gemm(blas::Transpose::kNo, blas::Transpose::kYes, rows, kWidth, features_, 1.0F, x, features_,
               parameters_.data(), features_, 0.0F, hidden_.data(), kWidth);
    for (std::int64_t i = 0; i < rows; ++i) {
      float* h = hidden_.data() + i * kWidth;
      for (std::int64_t j = 0; j < kWidth; ++j) h[j] = std::max(h[j] + bias()[j], 0.0F);
    }
    blas::gemm(blas::Transpose::kNo, blas::Transpose::kNo, rows, 1, kWidth, 1.0F, hidden_.data(), kWidth,
               second_layer(), 1, 0.0F, scores_.data(), 1);
    return scores_;
  }

  /// One step of Adam, given the derivative of the loss with respect to each score of the last forward().
  void learn(const float* x, std::span<const float> by_score, const Recipe& recipe) {
    const auto rows = std::ssize(by_score);
    if (shape_ == Shape::kLinear) {
      blas::gemm(blas::Transpose::kYes, blas::Transpose::kNo, features_, 1, rows, 1.0F, x, features_,
                 by_score.data(), 1, 0.0F, gradient_.data(), 1);
    } else {
      network_gradient(x, by_score, rows);
    }
    ++steps_;
    const float mean_scale = 1.0F / (1.0F - std::pow(0.9F, static_cast<float>(steps_)));
    const float square_scale = 1.0F / (1.0F - std::pow(0.999F, static_cast<float>(steps_)));
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const float g = gradient_[i] + recipe.penalty * parameters_[i];
      mean_[i] += 0.1F * (g - mean_[i]);
      square_[i] += 0.001F * (g * g - square_[i]);
      parameters_[i] -=
          recipe.learning_rate * mean_[i] * mean_scale / (std::sqrt(square_[i] * square_scale) + 1e-8F);
    }
  }

 private:
  static constexpr std::int64_t kWidth = 100;

  static float& at(std::vector<float>& v, std::int64_t i) { return v[i]; }
  float* bias() { return parameters_.data() + kWidth * features_; }
  float* second_layer() { return bias() + kWidth; }

  void network_gradient(const float* x, std::span<const float> by_score, std::int64_t rows) {
    float* bias_gradient = gradient_.data() + kWidth * features_;
    blas::gemm(blas::Transpose::kYes, blas::Transpose::kNo, kWidth, 1, rows, 1.0F, hidden_.data(), kWidth,
               by_score.data(), 1, 0.0F, bias_gradient + kWidth, 1);
    std::fill_n(bias_gradient, kWidth, 0.0F);
    for (std::int64_t i = 0; i < rows; ++i) {
      float* h = hidden_.data() + i * kWidth;
      for (std::int64_t j = 0; j < kWidth; ++j) {
        h[j] = h[j] > 0.0F ? by_score[i] * second_layer()[j] : 0.0F;
        if (shape_ == Shape::kNetwork) bias_gradient[j] += h[j];
      }
    }
    blas::gemm(blas::Transpose::kYes, blas::Transpose::kNo, kWidth, features_, rows, 1.0F, hidden_.data(),
               kWidth, x, features_, 0.0F, gradient_.data(), features_);
  }

  Shape shape_;
  std::int64_t features_;
  std::int64_t steps_ = 0;
  std::vector<float> parameters_;  // W₁ row-major [width × features], b₁, w₂; linear: w
  std::vector<float> gradient_;
  std::vector<float> mean_;
  std::vector<float> square_;
  std::vector<float> hidden_;
  std::vector<float> scores_;
};

/// Adds the derivatives of weight · log(1 + exp(f_loser − f_winner)) with respect to both scores.
void add_pair(std::span<const float> scores, std::size_t winner, std::size_t loser, float weight,
              std::span<float> by_score) {
  const float slope = weight / (1.0F + std::exp(scores[winner] - scores[loser]));
  by_score[winner] -= slope;
  by_score[loser] += slope;
}

float weight_of(const Recipe& recipe, int high, int low) {
  return recipe.weigh_by_gain ? static_cast<float>((1 << high) - (1 << low)) / 3.0F : 1.0F;
}

void epoch_of_pairs(Ranker& ranker, const Part& part, std::span<Pair> pairs, const Recipe& recipe,
                    RngStream& stream) {
  constexpr std::size_t kBatch = 64;
  stream.shuffle(pairs);
  std::vector<float> x;
  for (std::size_t begin = 0; begin < pairs.size(); begin += kBatch) {
    const std::span<const Pair> batch = pairs.subspan(begin, std::min(kBatch, pairs.size() - begin));
    x.clear();
    for (const Pair& pair : batch) {
      x.insert(x.end(), part.row(pair.winner), part.row(pair.winner) + part.features);
      x.insert(x.end(), part.row(pair.loser), part.row(pair.loser) + part.features);
    }
    const std::vector<float>& scores =
        ranker.forward(x.data(), static_cast<std::int64_t>(2 * batch.size()));
    std::vector<float> by_score(scores.size(), 0.0F);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const float weight = weight_of(recipe, part.grade(batch[i].winner), part.grade(batch[i].loser));
      add_pair(scores, 2 * i, 2 * i + 1, weight / static_cast<float>(batch.size()), by_score);
    }
    ranker.learn(x.data(), by_score, recipe);
  }
}

/// All pairs of different grades in the training set, four queries per step.
void epoch_of_all_labels(Ranker& ranker, const Part& part, const Recipe& recipe, RngStream& stream) {
  constexpr std::int64_t kBatch = 4;
  std::vector<std::int64_t> order(part.queries());
  std::iota(order.begin(), order.end(), 0);
  stream.shuffle(std::span(order));
  std::vector<float> x;
  for (std::size_t begin = 0; begin < order.size(); begin += kBatch) {
    const std::size_t end = std::min(order.size(), begin + kBatch);
    x.clear();
    for (std::size_t i = begin; i < end; ++i) {
      x.insert(x.end(), part.row(part.offset(order[i])), part.row(part.offset(order[i] + 1)));
    }
    const auto rows = std::ssize(x) / part.features;
    const std::vector<float>& scores = ranker.forward(x.data(), rows);
    std::vector<float> by_score(scores.size(), 0.0F);
    std::int64_t first = 0;
    std::int64_t pairs = 0;
    for (std::size_t i = begin; i < end; ++i) {
      const std::int64_t offset = part.offset(order[i]);
      const std::int64_t docs = part.offset(order[i] + 1) - offset;
      for (std::int64_t a = 0; a < docs; ++a) {
        for (std::int64_t b = 0; b < docs; ++b) {
          if (part.grade(offset + a) <= part.grade(offset + b)) continue;
          add_pair(scores, static_cast<std::size_t>(first + a), static_cast<std::size_t>(first + b),
                   weight_of(recipe, part.grade(offset + a), part.grade(offset + b)), by_score);
          ++pairs;
        }
      }
      first += docs;
    }
    if (pairs == 0) continue;
    for (float& slope : by_score) slope /= static_cast<float>(pairs);
    ranker.learn(x.data(), by_score, recipe);
  }
}

double ndcg_of(Ranker& ranker, const Part& part) {
  const std::vector<float>& scores = ranker.forward(part.values.data(), part.docs());
  return ndcg(part, std::vector<double>(scores.begin(), scores.end()));
}

/// Test NDCG of the recipe and epoch that are best on the validation set.
double best_test_ndcg(Shape shape, const Part& train, const Part& vali, const Part& test,
                      std::vector<Pair> pairs, std::uint64_t seed) {
  const bool all_labels = pairs.empty();
  const float step = shape == Shape::kLinear ? 0.01F : 0.003F;
  std::vector<Recipe> recipes;
  for (const bool weigh : {false, true}) {
    if (shape == Shape::kLinear) {
      for (const float penalty : {0.0F, 1e-4F, 1e-3F, 1e-2F}) recipes.push_back({step, penalty, weigh});
    } else if (all_labels) {
      recipes.push_back({step, 1e-5F, weigh});
    } else {
      for (const float penalty : {3e-4F, 3e-3F}) recipes.push_back({step, penalty, weigh});
    }
  }
  const int epochs = all_labels ? 15 : 40;
  double best_vali = -1.0;
  double best_test = 0.0;
  for (const Recipe& recipe : recipes) {
    RngStream stream(olrank::make_key({.seed = seed, .purpose = olrank::Purpose::kProbe}), 1);
    Ranker ranker(shape, train.features, stream);
    for (int epoch = 0; epoch < epochs; ++epoch) {
      if (all_labels) {
        epoch_of_all_labels(ranker, train, recipe, stream);
      } else {
        epoch_of_pairs(ranker, train, pairs, recipe, stream);
      }
      const double on_vali = ndcg_of(ranker, vali);
      if (on_vali > best_vali) {
        best_vali = on_vali;
        best_test = ndcg_of(ranker, test);
      }
    }
    std::fprintf(stderr, ".");
  }
  return best_test;
}

/// Bytes of LETOR text per document, measured on a sample.
double text_bytes_per_doc(const Dataset& data) {
  const std::int64_t sampled = std::min<std::int64_t>(data.docs(), 2000);
  std::size_t bytes = 0;
  for (std::int64_t doc = 0; doc < sampled; ++doc) {
    std::string line = fmt::format("{} qid:1", data.all_grades()[doc]);
    const std::span<const float> row = data.all_features().doc(doc);
    for (std::size_t f = 0; f < row.size(); ++f) {
      if (row[f] != 0.0F) line += fmt::format(" {}:{}", f + 1, row[f]);
    }
    bytes += line.size() + 1;
  }
  return static_cast<double>(bytes) / static_cast<double>(sampled);
}

template <class Body>
double median_seconds(const Body& body) {
  std::vector<double> seconds;
  for (int repetition = 0; repetition < 5; ++repetition) {
    const auto start = std::chrono::steady_clock::now();
    body();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

/// Generation of all three parts with fingerprints on one thread: megabytes per second of matrix and of the
/// equivalent text, compared with copying the matrix.
void print_speeds() {
  fmt::print("| source | matrix, MB/s | as text, MB/s | copying the matrix, MB/s |\n|---|---|---|---|\n");
  for (const char* source : {"synth:mslr-like", "synth:yahoo-like", "synth:small?queries=100000"}) {
    olrank::ExecutionContext context;
    const olrank::SyntheticParts parts = olrank::make_synthetic(source, context);
    const double seconds = median_seconds([&] { (void)olrank::make_synthetic(source, context); });
    std::vector<float> copy(parts.train.docs() * parts.train.features());
    const double copy_seconds =
        median_seconds([&] { std::copy_n(parts.train.all_features().values, copy.size(), copy.data()); });
    const double docs = static_cast<double>(parts.train.docs() + parts.vali.docs() + parts.test.docs());
    const double matrix = docs * static_cast<double>(parts.train.features()) * sizeof(float);
    fmt::print("| `{}` | {:.0f} | {:.0f} | {:.0f} |\n", source, matrix / seconds / 1e6,
               docs * text_bytes_per_doc(parts.train) / seconds / 1e6,
               static_cast<double>(copy.size()) * sizeof(float) / copy_seconds / 1e6);
  }
}

constexpr std::size_t kMeasures = 8;
constexpr const char* kMeasureNames[kMeasures] = {"random order",
                                                  "linear, {} pairs",
                                                  "network, {} pairs",
                                                  "network without biases, {} pairs",
                                                  "linear, all labels",
                                                  "network, all labels",
                                                  "network without biases, all labels",
                                                  "noise-free relevance (ceiling)"};

struct Options {
  std::string source = "synth:mslr-like";
  std::int64_t seeds = 3;
  std::int64_t pairs = 3000;
  bool speed = false;
};

std::array<double, kMeasures> measure(const Options& options, std::uint64_t seed) {
  olrank::ExecutionContext context;
  const char* separator = options.source.find('?') == std::string::npos ? "?" : "&";
  const std::string source = fmt::format("{}{}seed={}", options.source, separator, seed);
  const olrank::SyntheticParts parts = olrank::make_synthetic(source, context);
  std::fprintf(stderr, "%s: ", source.c_str());
  const Part train(parts.train);
  const Part vali(parts.vali);
  const Part test(parts.test);
  RngStream stream(olrank::make_key({.seed = seed, .purpose = olrank::Purpose::kProbe}), 0);
  std::vector<double> coins(test.docs());
  for (double& coin : coins) coin = stream.uniform();
  const std::vector<Pair> pairs = random_pairs(train, options.pairs, stream);
  const auto best = [&](Shape shape, const std::vector<Pair>& use) {
    return best_test_ndcg(shape, train, vali, test, use, seed);
  };
  std::array<double, kMeasures> values{};
  values[0] = ndcg(test, coins);
  values[1] = best(Shape::kLinear, pairs);
  values[2] = best(Shape::kNetwork, pairs);
  values[3] = best(Shape::kNetworkWithoutBias, pairs);
  values[4] = best(Shape::kLinear, {});
  values[5] = best(Shape::kNetwork, {});
  values[6] = best(Shape::kNetworkWithoutBias, {});
  values[7] = ndcg(test, olrank::synthetic_relevance(source, olrank::SyntheticPart::kTest, context));
  std::fprintf(stderr, "\n");
  return values;
}

/// ± is half the width of the 95 % t interval, as everywhere.
void print_row(const std::string& name, const std::vector<double>& values) {
  std::string row = fmt::format("| {} |", name);
  for (const double value : values) row += fmt::format(" {:.3f} |", value);
  const olrank::MeanInterval interval = olrank::mean_interval({values});
  const std::string width = values.size() > 1 ? fmt::format(" ± {:.3f}", interval.half_width) : "";
  fmt::print("{} {:.3f}{} |\n", row, interval.mean, width);
}

void print_table(const Options& options, const std::vector<std::array<double, kMeasures>>& runs) {
  std::string head = fmt::format("| test NDCG@10, `{}` |", options.source);
  std::string rule = "|---|";
  for (std::size_t i = 0; i < runs.size(); ++i) {
    head += fmt::format(" seed {} |", i + 1);
    rule += "---|";
  }
  fmt::print("{} mean |\n{}---|\n", head, rule);
  const auto row = [&](const std::string& name, std::size_t measure, std::size_t less) {
    std::vector<double> values;
    values.reserve(runs.size());
    for (const auto& run : runs) values.push_back(run[measure] - (less < kMeasures ? run[less] : 0.0));
    print_row(name, values);
  };
  for (std::size_t m = 0; m < kMeasures; ++m) {
    row(fmt::format(fmt::runtime(kMeasureNames[m]), options.pairs), m, kMeasures);
  }
  row(fmt::format("network − linear, {} pairs", options.pairs), 2, 1);
  row("network − linear, all labels", 5, 4);
  row("ceiling − network, all labels", 7, 5);
}

std::int64_t parse_positive(std::string_view flag, std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1) {
    throw olrank::InvalidArgument(fmt::format("{} must be a positive integer, not '{}'.", flag, text));
  }
  return value;
}

Options parse(std::span<char*> arguments) {
  Options options;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string_view flag = arguments[i];
    if (flag == "--speed") {
      options.speed = true;
      continue;
    }
    const std::string_view value = i + 1 < arguments.size() ? arguments[++i] : "";
    if (flag == "--source") {
      options.source = value;
    } else if (flag == "--seeds") {
      options.seeds = parse_positive(flag, value);
    } else if (flag == "--pairs") {
      options.pairs = parse_positive(flag, value);
    } else {
      throw olrank::InvalidArgument(
          fmt::format("Unknown flag '{}'. The flags are --source, --seeds, --pairs and --speed.", flag));
    }
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Options options = parse({argv, static_cast<std::size_t>(argc)});
    if (options.speed) {
      print_speeds();
      return 0;
    }
    std::vector<std::array<double, kMeasures>> runs;
    for (std::int64_t seed = 1; seed <= options.seeds; ++seed) {
      runs.push_back(measure(options, static_cast<std::uint64_t>(seed)));
    }
    print_table(options, runs);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(olrank::exit_code_of(error));
  }
}
