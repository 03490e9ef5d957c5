#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "apps/bench/commands.h"
#include "apps/bench/data_cases.h"
#include "apps/bench/measurement_flags.h"
#include "core/error.h"
#include "core/runtime/log.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;

/// Removed with all that is in it.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string pattern = (fs::temp_directory_path() / "olrank-bench-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw IoError("make the folder", pattern, errno);
    path_ = pattern;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

class BenchDataCommand : public Command {
 public:
  std::string name() const override { return "data"; }
  std::string summary() const override { return "parsing, the binary copy and the metrics"; }
  void declare(CLI::App& app) override {
    app.add_option("--source", source_, "a generated data set [synth:mslr-like?queries=100]")
        ->type_name("SYNTH");
    app.add_option("--threads", threads_, "threads [1]")->check(CLI::PositiveNumber);
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
    return flags_.tell({fmt::format("olrank bench data --source '{}' --threads {}", source_, threads_),
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
