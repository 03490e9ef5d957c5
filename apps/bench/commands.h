#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "apps/command.h"
#include "bench/measurement_file.h"
#include "bench/steady_round.h"
#include "models/skeleton/network_settings.h"

namespace olrank {

/// The output flags of all benchmark commands: a table, a file, and a comparison with an earlier file.
class MeasurementFlags {
 public:
  void declare(CLI::App& app);

  /// Throws InvalidArgument for an invalid --factor or --compare FILE; call it before measuring.
  void check() const;

  /// Prints and writes the measurements. Returns the exit code: 1 if --compare finds something slower than
  /// --factor allows.
  int report(const MeasurementFile& file, const OutputFlags& output) const;

 private:
  std::string json_;
  const CLI::Option* json_option_ = nullptr;
  std::string compare_;
  double factor_ = 1.5;
};

/// The flags of the sizes that every operation on a network has.
template <class Sizes>
void declare_sizes(CLI::App& app, Sizes& sizes) {
  app.add_option("--docs", sizes.docs, "V, documents per query [default: 120]")->check(CLI::PositiveNumber);
  app.add_option("--width", sizes.width, "m, network width [default: 100]")->check(CLI::PositiveNumber);
  app.add_option("--depth", sizes.depth, "L, layers of weights [default: 2]")->check(CLI::Range(2, 16));
  app.add_option("--features", sizes.features, "d, features [default: 136]")->check(CLI::PositiveNumber);
}

/// Flags for the sizes of a round in the middle of a trial.
class RoundFlags {
 public:
  void declare(CLI::App& app);
  /// Throws if the device is not available, or if a flag has several values.
  RoundSizes sizes() const;
  /// One for each value of --pairs.
  std::vector<RoundSizes> all_sizes() const;
  /// The flags with their values, for a command line.
  std::string command_line() const;

 private:
  RoundSizes sizes_;
  std::vector<std::int64_t> pairs_ = {RoundSizes{}.pairs};
  std::string device_ = "auto";
  std::string retrain_ = std::string(name_of(Retrain::kEveryRound));
};

/// Measures operations on a GPU with `device_bench`, which a CUDA build puts next to olrank; its table goes
/// to stderr. Only names that contain `only` are measured. Throws if the program is missing or fails.
MeasurementFile measure_on_gpu(int gpu, const std::string& only);

}  // namespace olrank
