#include <fmt/format.h>

#include <filesystem>

#include "apps/bench/commands.h"
#include "apps/bench/measurement_flags.h"
#include "bench/cases/data_cases.h"
#include "core/error.h"
#include "core/io/scratch_folder.h"
#include "core/runtime/log.h"

namespace olrank {
namespace {

class BenchDataCommand : public Command {
 public:
  std::string name() const override { return "data"; }
  std::string summary() const override {
    return "benchmark parsing, inspecting, binary copies and metrics";
  }
  void declare(CLI::App& app) override {
    app.add_option("--source", source_,
                   "synthetic data set, or a plain LETOR text file [default: synth:mslr-like?queries=100]")
        ->type_name("SOURCE");
    app.add_option("--threads", threads_, "CPU threads [default: 1]")->check(CLI::PositiveNumber);
    flags_.declare(app);
  }
  int run(const OutputFlags& output) override {
    flags_.check();
    const ScratchFolder folder;
    std::vector<Measurement> measurements;
    for (const BenchCase& work : data_cases(source_, threads_, folder.path())) {
      log_info("{}", work.name);
      measurements.push_back(measure(work));
    }
    return flags_.report({fmt::format("olrank bench data --source '{}' --threads {}", source_, threads_),
                          this_machine(),
                          std::move(measurements),
                          {}},
                         output);
  }

 private:
  std::string source_ = "synth:mslr-like?queries=100";
  int threads_ = 1;
  MeasurementFlags flags_;
};

}  // namespace

std::unique_ptr<Command> make_bench_data_command() {
  return std::make_unique<BenchDataCommand>();
}

}  // namespace olrank
