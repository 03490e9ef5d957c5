#include "apps/bench/device_ops.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "core/error.h"
#include "core/io/scratch_folder.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;

/// Runs a program with its output redirected to stderr; returns its exit code.
int run_program(const fs::path& program, int gpu, const std::string& only, const fs::path& json) {
  const pid_t child = ::fork();
  if (child < 0) throw IoError("start", program.string(), errno);
  if (child == 0) {
    ::setenv("CUDA_VISIBLE_DEVICES", std::to_string(gpu).c_str(), 0);
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
    ::execl(program.c_str(), program.c_str(), "--only", only.c_str(), "--json", json.c_str(), nullptr);
    ::_exit(127);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

}  // namespace

MeasurementFile measure_on_gpu(int gpu, const std::string& only) {
  const fs::path program = fs::read_symlink("/proc/self/exe").parent_path() / "device_bench";
  if (!fs::exists(program)) {
    throw InvalidArgument(
        fmt::format("GPU benchmarks require {}, which does not exist: build all targets of a CUDA build.",
                    program.string()));
  }
  const ScratchFolder scratch;
  const fs::path json = scratch.path() / "operations.json";
  const int code = run_program(program, gpu, only, json);
  if (code != 0) throw Error(fmt::format("{} exited with code {}.", program.string(), code));
  return read_measurements(json.string());
}

}  // namespace olrank
