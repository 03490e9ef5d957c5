#include <fmt/format.h>

#include <string>

#include "apps/bench/commands.h"
#include "apps/bench/device_ops.h"
#include "apps/bench/measurement_flags.h"
#include "bench/cases/op_cases.h"
#include "core/error.h"
#include "core/runtime/log.h"
#include "jobs/device_choice.h"

namespace olrank {
namespace {

class BenchOpsCommand : public Command {
 public:
  std::string name() const override { return "ops"; }
  std::string summary() const override {
    return "benchmark each operation against its ceiling on this machine";
  }
  void declare(CLI::App& app) override {
    app.add_option("--only", only_, "measure only operations whose name contains TEXT")->type_name("TEXT");
    app.add_option("--pairs", sizes_.pairs, "n, observed pairs [default: 5000]")
        ->check(CLI::PositiveNumber);
    app.add_option("--docs", sizes_.docs, "V, documents per query [default: 120]")
        ->check(CLI::PositiveNumber);
    app.add_option("--width", sizes_.width, "m, network width [default: 100]")->check(CLI::PositiveNumber);
    app.add_option("--depth", sizes_.depth, "L, layers of weights [default: 2]")->check(CLI::Range(2, 16));
    app.add_option("--features", sizes_.features, "d, features [default: 136]")->check(CLI::PositiveNumber);
    app.add_option(
        "--device", device_,
        "auto, cpu, cuda or cuda:N; on a GPU, device_bench runs with its own sizes [default: auto]");
    flags_.declare(app);
  }
  int run(const OutputFlags& output) override {
    flags_.check();
    if (const auto gpu = gpu_for(device_)) return flags_.report(measure_on_gpu(gpu->index, only_), output);
    std::vector<BenchCase> chosen = op_cases(sizes_);
    std::erase_if(chosen,
                  [&](const BenchCase& work) { return work.name.find(only_) == std::string::npos; });
    if (chosen.empty())
      throw InvalidArgument(fmt::format("--only {}: No operation's name contains this text.", only_));
    for (const BenchCase& work : chosen) check_memory(work);
    std::vector<Measurement> measurements;
    for (const BenchCase& work : chosen) {
      log_info("{}", work.name);
      measurements.push_back(measure(work));
    }
    return flags_.report(
        {fmt::format("olrank bench ops --pairs {} --docs {} --width {} --depth {} --features {}",
                     sizes_.pairs, sizes_.docs, sizes_.width, sizes_.depth, sizes_.features),
         this_machine(),
         std::move(measurements),
         {}},
        output);
  }

 private:
  std::string only_;
  std::string device_ = "auto";
  OpSizes sizes_;
  MeasurementFlags flags_;
};

}  // namespace

std::unique_ptr<Command> make_bench_ops_command() {
  return std::make_unique<BenchOpsCommand>();
}

}  // namespace olrank
