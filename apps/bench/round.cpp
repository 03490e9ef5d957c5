#include "apps/bench/commands.h"
#include "apps/bench/measurement_flags.h"
#include "apps/bench/round_flags.h"

namespace olrank {
namespace {

class BenchRoundCommand : public Command {
 public:
  std::string name() const override { return "round"; }
  std::string summary() const override {
    return "benchmark the stages of a round in the middle of a trial";
  }
  void declare(CLI::App& app) override {
    round_.declare(app);
    flags_.declare(app);
  }
  int run(const OutputFlags& output) override {
    flags_.check();
    const std::vector<RoundSizes> all = round_.all_sizes();
    for (const RoundSizes& sizes : all) check_memory(sizes);
    MeasurementFile file{"olrank bench round" + round_.command_line(), this_machine(), {}, {}};
    ProductUnit unit;
    for (const RoundSizes& sizes : all) {
      for (Measurement& one : measure_round(sizes, unit)) file.measurements.push_back(std::move(one));
    }
    file.unit_seconds = unit.seconds();
    return flags_.report(file, output);
  }

 private:
  RoundFlags round_;
  MeasurementFlags flags_;
};

}  // namespace

std::unique_ptr<Command> make_bench_round_command() {
  return std::make_unique<BenchRoundCommand>();
}

}  // namespace olrank
