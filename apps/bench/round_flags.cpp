#include "apps/bench/round_flags.h"

#include <fmt/format.h>

#include "apps/device_choice.h"

namespace olrank {

void RoundFlags::declare(CLI::App& app) {
  app.add_option("--structure", sizes_.structure,
                 "full, diagonal, diagonal-of-inverse, none or ensemble-N [full]");
  app.add_option("--pairs", sizes_.pairs, "n, pairs observed before [1000]")->check(CLI::PositiveNumber);
  app.add_option("--docs", sizes_.docs, "V, documents of a query [120]")->check(CLI::PositiveNumber);
  app.add_option("--width", sizes_.width, "m, width of the network [100]")->check(CLI::PositiveNumber);
  app.add_option("--depth", sizes_.depth, "layers of weights [2]")->check(CLI::Range(2, 16));
  app.add_option("--features", sizes_.features, "d [136]")->check(CLI::PositiveNumber);
  app.add_option("--threads", sizes_.threads, "threads of a trial [1]")->check(CLI::PositiveNumber);
  app.add_option("--trials", sizes_.trials, "trials at once [1]")->check(CLI::PositiveNumber);
  app.add_option("--device", device_, "auto, cpu, cuda or cuda:N; auto is the CPU [auto]");
  app.add_option("--rounds", sizes_.rounds, "rounds measured [11]")->check(CLI::PositiveNumber);
}

RoundSizes RoundFlags::sizes() const {
  RoundSizes sizes = sizes_;
  if (const auto gpu = gpu_for(device_)) sizes.gpu = gpu->index;
  return sizes;
}

std::string RoundFlags::spoken() const {
  return fmt::format(
      " --structure {} --pairs {} --docs {} --width {} --depth {} --features {} --threads {} --trials {}",
      sizes_.structure, sizes_.pairs, sizes_.docs, sizes_.width, sizes_.depth, sizes_.features,
      sizes_.threads, sizes_.trials);
}

}  // namespace olrank
