#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/data/dataset_file.h"
#include "core/data/letor_reader.h"
#include "core/data/letor_stream.h"
#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/ops/blas.h"
#include "core/random/rng_stream.h"
#include "core/runtime/execution_context.h"
#include "jobs/ranked_lists.h"
#include "models/files/model_scorer.h"

namespace olrank {

/// Text that resembles MSLR-WEB30K: 136 features; two fifths of the values are 0, a quarter are counts of
/// one to six digits, and a third are decimals, some of them constant within a query.
inline std::string mslr_like_text(std::size_t bytes) {
  std::string text;
  for (std::uint32_t doc = 0; text.size() < bytes; ++doc) {
    RngStream rng(make_key({.seed = 1, .purpose = Purpose::kProbe}), doc);
    RngStream of_query(make_key({.seed = 1, .purpose = Purpose::kQuery}), doc / 120);
    text += fmt::format("{} qid:{}", rng.index(5), doc / 120);
    for (int feature = 1; feature <= 136; ++feature) {
      text += fmt::format(" {}:", feature);
      switch (feature * 7 % 8) {
        case 0:
        case 1:
          text += "0";
          break;
        case 2:
          text += fmt::format("{}", rng.index(4) == 0 ? 1 + rng.index(3) : 0);
          break;
        case 3:
        case 4:
          text +=
              fmt::format("{}", static_cast<std::int64_t>(std::exp(7.0 * rng.uniform() * rng.uniform())));
          break;
        case 5:
          text += fmt::format("{:.6f}", 20.0 * of_query.uniform());
          break;
        case 6:
          text += fmt::format("{:.6f}", -30.0 * rng.uniform());
          break;
        default:
          text += rng.index(4) == 0 ? "0" : fmt::format("{:.6f}", rng.uniform());
      }
    }
    text += " \n";
  }
  return text;
}

}  // namespace olrank

// Ranking speed of a saved model with m = 100 and d = 136 on one core: text compared with parsing alone,
// and a binary file compared with the matrix products alone. Usage: rank_bench [REPETITIONS]

namespace olrank {
namespace {

/// CPU seconds of this process, which load on the machine affects less than wall-clock time.
double seconds_of(const std::function<void()>& work) {
  const std::clock_t start = std::clock();
  work();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

LoadedModel wide_model() {
  LoadedModel model;
  model.settings.network = NetworkForm::kMlp;
  model.shape = ntk_shape(136, 100, 2);
  std::vector<float> theta(model.shape.parameters());
  initialise(model.shape, Initialisation::kUniform, make_key({.purpose = Purpose::kInitialisation}), theta);
  model.members.push_back(theta);
  model.normaliser.kind = Normalisation::kQueryMinmax;
  model.normaliser.features = 136;
  return model;
}

void run(int repetitions) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "olrank-rank-bench";
  std::filesystem::create_directories(folder);
  const std::string text = (folder / "mslr.txt").string();
  const std::string binary = (folder / "mslr.olrank").string();
  write_file_atomically(text, mslr_like_text(std::size_t{128} << 20));
  ExecutionContext context;
  ThreadPool& pool = context.pool();
  const Dataset data = read_letor(text, {}, pool);
  write_dataset_file(data, {}, binary);
  const auto docs = static_cast<double>(data.docs());
  const ModelScorer scorer(wide_model());

  std::string lists;
  const auto rank_text = [&] {
    lists.clear();
    LetorStream stream(text, scorer.features(), {}, pool);
    while (const auto piece = stream.next())
      write_ranked(scorer, ListFormat::kTrec, *piece, context,
                   [&](std::string_view more) { lists += more; });
  };
  rank_text();
  const std::string expected = lists;
  const auto rank_binary = [&] {
    lists.clear();
    write_ranked(scorer, ListFormat::kTrec, read_dataset_file(binary, pool), context,
                 [&](std::string_view more) { lists += more; });
  };
  rank_binary();
  if (lists != expected)
    throw Error("Text and binary file give different lists, so the rates would be meaningless.");

  // The matrix products alone, a lower bound.
  std::vector<double> inputs(256 * 136, 0.5);
  std::vector<double> weight(100 * 136, 0.5);
  std::vector<double> units(256 * 104);
  const auto multiply = [&] {
    for (std::int64_t doc = 0; doc < data.docs(); doc += 256)
      blas::gemm(blas::Transpose::kNo, blas::Transpose::kYes, 256, 100, 136, 1.0, inputs.data(), 136,
                 weight.data(), 136, 0.0, units.data(), 104);
  };
  std::vector<double> parse_seconds;
  std::vector<double> text_seconds;
  std::vector<double> binary_seconds;
  std::vector<double> product_seconds;
  std::vector<double> ratios;
  for (int i = 0; i < repetitions; ++i) {
    parse_seconds.push_back(seconds_of([&] { read_letor(text, {}, pool); }));
    text_seconds.push_back(seconds_of(rank_text));
    ratios.push_back(parse_seconds.back() / text_seconds.back());
    binary_seconds.push_back(seconds_of(rank_binary));
    product_seconds.push_back(seconds_of(multiply));
  }
  fmt::print("{:.0f} documents, {} repetitions; median and best CPU time\n", docs, repetitions);
  const auto row = [&](const char* name, const std::vector<double>& seconds) {
    fmt::print("{:<18}{:>12.0f}{:>12.0f} documents/s\n", name, docs / median(seconds),
               docs / *std::min_element(seconds.begin(), seconds.end()));
  };
  row("parse text", parse_seconds);
  row("rank text", text_seconds);
  row("rank binary file", binary_seconds);
  row("products alone", product_seconds);
  fmt::print("rank text: {:.2f} times the speed of parsing (median)\n", median(ratios));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace olrank

int main(int argc, char** argv) {
  try {
    olrank::run(argc > 1 ? std::max(1, std::stoi(argv[1])) : 7);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "rank_bench: {}\n", error.what());
    return static_cast<int>(olrank::exit_code_of(error));
  }
}
