// Data loading speed, compared with memcpy and read() measured in the same run. Usage: data_bench
// [--megabytes N] [--repetitions N] [--json FILE]
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/mslr_like_text.h"
#include "core/data/dataset_file.h"
#include "core/data/letor_reader.h"
#include "core/data/letor_writer.h"
#include "core/data/normaliser.h"
#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/io/byte_stream.h"
#include "core/io/scratch_folder.h"
#include "core/random/rng_stream.h"
#include "core/runtime/execution_context.h"
#include "core/runtime/log.h"
#include "core/version.h"

namespace olrank {
namespace {

struct Row {
  std::string name;
  double rate = 0.0;    // bytes per second, median
  double spread = 0.0;  // (largest − smallest) / median
  std::string against;  // the name of the ceiling's row
};

class Bench {
 public:
  explicit Bench(int repetitions) : repetitions_(repetitions) {}

  void measure(const std::string& name, double bytes, const std::string& against,
               const std::function<void()>& work) {
    work();  // warm-up: page cache, page tables of libraries
    std::vector<double> rates;
    for (int i = 0; i < repetitions_; ++i) {
      const auto start = std::chrono::steady_clock::now();
      work();
      rates.push_back(bytes /
                      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    std::sort(rates.begin(), rates.end());
    const double median = rates[rates.size() / 2];
    rows_.push_back({name, median, (rates.back() - rates.front()) / median, against});
    const Row& row = rows_.back();
    fmt::print("{:<34}{:>10.0f} MB/s  spread {:>4.0f} %", name, median / 1e6, 100.0 * row.spread);
    if (!against.empty()) fmt::print("  {:.3f} of {}", median / rate(against), against);
    fmt::print("\n");
    std::fflush(stdout);
  }

  nlohmann::ordered_json as_json() const {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const Row& row : rows_) {
      rows.push_back({{"name", row.name}, {"bytes_per_second", row.rate}, {"spread", row.spread}});
      if (row.against.empty()) continue;
      rows.back()["ceiling"] = row.against;
      rows.back()["of_ceiling"] = row.rate / rate(row.against);
    }
    return rows;
  }

 private:
  double rate(const std::string& name) const {
    return std::find_if(rows_.begin(), rows_.end(), [&](const Row& row) { return row.name == name; })->rate;
  }

  int repetitions_;
  std::vector<Row> rows_;
};

/// Text that resembles LETOR 4.0: 46 features with six decimals each, and a comment with the document's
/// name.
std::string letor_like_text(std::size_t bytes) {
  std::string text;
  for (std::uint32_t doc = 0; text.size() < bytes; ++doc) {
    RngStream rng(make_key({.seed = 2, .purpose = Purpose::kProbe}), doc);
    text += fmt::format("{} qid:{}", rng.index(3), doc / 20);
    for (int feature = 1; feature <= 46; ++feature)
      text += fmt::format(" {}:{:.6f}", feature, rng.uniform());
    text += fmt::format(" #docid = GX{:03}-{:02}-{:07} inc = 1 prob = 0.1\n", doc % 273, doc % 100, doc);
  }
  return text;
}

std::string compressed(const std::string& bytes, Compression compression) {
  std::string out;
  const auto compressor = Compressor::make(compression, [&](std::string_view piece) { out += piece; });
  compressor->write(bytes);
  compressor->finish();
  return out;
}

void read_through(const std::filesystem::path& path, std::vector<char>& buffer) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  while (::read(descriptor, buffer.data(), buffer.size()) > 0) {
  }
  ::close(descriptor);
}

void check(bool as_expected) {
  if (!as_expected)
    throw Error("The data read differ from one reading to the next: these rates mean nothing.");
}

void run(std::size_t megabytes, int repetitions, const std::string& json_file) {
  set_verbosity(Verbosity::kQuiet);
  const ScratchFolder scratch;
  const std::filesystem::path& folder = scratch.path();
  const std::string text = mslr_like_text(megabytes << 20);
  write_file_atomically(folder / "mslr.txt", text);
  write_file_atomically(folder / "letor.txt", letor_like_text(megabytes << 20));
  write_file_atomically(folder / "mslr.txt.gz", compressed(text, Compression::kGzip));
  write_file_atomically(folder / "mslr.txt.zst", compressed(text, Compression::kZstd));
  const int all = available_threads();
  ThreadPool one(1);
  const Dataset data = read_letor((folder / "mslr.txt").string(), {}, one);
  write_dataset_file(data, {}, folder / "mslr.olrank");
  const auto size = [&](const char* name) {
    return static_cast<double>(std::filesystem::file_size(folder / name));
  };

  Bench bench(repetitions);
  const std::size_t matrix_bytes = static_cast<std::size_t>(data.docs() * data.features()) * sizeof(float);
  std::vector<char> copy(matrix_bytes, 1);
  bench.measure("memcpy", static_cast<double>(matrix_bytes), "",
                [&] { std::memcpy(copy.data(), data.all_features().values, matrix_bytes); });
  std::vector<char> buffer(std::size_t{1} << 20);
  bench.measure("read()", size("mslr.txt"), "memcpy", [&] { read_through(folder / "mslr.txt", buffer); });
  std::vector<int> thread_counts = {1};
  if (all > 1) thread_counts.push_back(all);
  for (const int threads : thread_counts) {
    ThreadPool pool(threads);
    ExecutionContext context(threads);
    const std::string suffix = fmt::format(", {} thread{}", threads, threads == 1 ? "" : "s");
    for (const char* name : {"mslr.txt", "letor.txt"}) {
      bench.measure(fmt::format("parse {}{}", name, suffix), size(name), "read()",
                    [&] { check(read_letor((folder / name).string(), {}, pool).docs() > 0); });
    }
    for (const char* name : {"mslr.txt.gz", "mslr.txt.zst"}) {
      // Bytes of uncompressed text, so that the rates are comparable.
      bench.measure(
          fmt::format("parse {}{}", name, suffix), static_cast<double>(text.size()), "read()", [&] {
            check(read_letor((folder / name).string(), {}, pool).fingerprint() == data.fingerprint());
          });
    }
    bench.measure("binary copy" + suffix, size("mslr.olrank"), "memcpy", [&] {
      check(read_dataset_file(folder / "mslr.olrank", pool).fingerprint() == data.fingerprint());
    });
    for (const Normalisation kind : {Normalisation::kQueryMinmax, Normalisation::kLog1pZscore}) {
      const FittedNormaliser fitted = fit_normaliser(kind, data, false, context);
      bench.measure(fmt::format("normalise {}{}", name_of(kind), suffix), static_cast<double>(matrix_bytes),
                    "memcpy", [&] { check(fitted.apply(data, context).docs() == data.docs()); });
    }
  }
  if (json_file.empty()) return;
  const nlohmann::ordered_json report = {{"bench", "data"},        {"version", version()},
                                         {"revision", revision()}, {"compiler", compiler()},
                                         {"threads", all},         {"rows", bench.as_json()}};
  write_file_atomically(json_file, report.dump(2) + "\n");
}

}  // namespace
}  // namespace olrank

int main(int argc, char** argv) {
  std::size_t megabytes = 128;
  int repetitions = 5;
  std::string json_file;
  try {
    for (int i = 1; i < argc; i += 2) {
      const std::string flag = argv[i];
      if (i + 1 == argc) throw olrank::InvalidArgument(fmt::format("{} requires a value.", flag));
      if (flag == "--megabytes") {
        megabytes = std::stoul(argv[i + 1]);
      } else if (flag == "--repetitions") {
        repetitions = std::max(1, std::stoi(argv[i + 1]));
      } else if (flag == "--json") {
        json_file = argv[i + 1];
      } else {
        throw olrank::InvalidArgument(
            fmt::format("Unknown flag '{}'. The flags are --megabytes, --repetitions and --json.", flag));
      }
    }
    olrank::run(megabytes, repetitions, json_file);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "data_bench: {}\n", error.what());
    return static_cast<int>(olrank::exit_code_of(error));
  }
}
