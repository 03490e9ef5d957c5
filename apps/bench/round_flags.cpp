#include "apps/bench/round_flags.h"

#include <fmt/format.h>

#include "apps/device_choice.h"

namespace olrank {

void RoundFlags::declare(CLI::App& app) {
  app.add_option("--structure", sizes_.structure,
                 "full, diagonal, diagonal-of-inverse, none or ensemble-N [default: full]");
  app.add_option("--pairs", sizes_.pairs, "n, observed pairs [default: 1000]")->check(CLI::PositiveNumber);
  app.add_option("--docs", sizes_.docs, "V, documents per query [default: 120]")
      ->check(CLI::PositiveNumber);
  app.add_option("--width", sizes_.width, "m, network width [default: 100]")->check(CLI::PositiveNumber);
  app.add_option("--depth", sizes_.depth, "L, layers of weights [default: 2]")->check(CLI::Range(2, 16));
  app.add_option("--features", sizes_.features, "d, features [default: 136]")->check(CLI::PositiveNumber);
  app.add_option("--threads", sizes_.threads, "CPU threads per trial [default: 1]")
      ->check(CLI::PositiveNumber);
  app.add_option("--trials", sizes_.trials, "trials to run in parallel [default: 1]")
      ->check(CLI::PositiveNumber);
  app.add_option("--device", device_, "auto, cpu, cuda or cuda:N; auto means the CPU [default: auto]");
  app.add_option("--rounds", sizes_.rounds, "rounds to measure [default: 11]")->check(CLI::PositiveNumber);
}

RoundSizes RoundFlags::sizes() const {
  RoundSizes sizes = sizes_;
  if (const auto gpu = gpu_for(device_)) sizes.gpu = gpu->index;
  return sizes;
}

std::string RoundFlags::command_line() const {
  return fmt::format(
      " --structure {} --pairs {} --docs {} --width {} --depth {} --features {} --threads {} --trials {}",
      sizes_.structure, sizes_.pairs, sizes_.docs, sizes_.width, sizes_.depth, sizes_.features,
      sizes_.threads, sizes_.trials);
}

}  // namespace olrank
