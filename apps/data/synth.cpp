#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <utility>

#include "apps/data/commands.h"
#include "apps/data/data_files.h"
#include "core/data/data_loader.h"
#include "core/data/data_settings.h"
#include "core/data/synthetic.h"
#include "core/data/synthetic_source.h"
#include "core/error.h"
#include "core/io/folder.h"

namespace olrank {
namespace {

class SynthCommand : public Command {
 public:
  std::string name() const override { return "synth"; }
  std::string summary() const override {
    return "generate synthetic data: a folder with train, vali and test";
  }
  void declare(CLI::App& app) override {
    app.add_option("source", source_, "NAME or NAME?key=value&…, as in synth:NAME")
        ->type_name("NAME?key=value")
        ->required();
    app.add_option("--out", out_, "output folder")->type_name("DIR")->required();
    app.add_option("--ending", ending_, "file format [default: .txt]")
        ->check(CLI::IsMember({".txt", ".txt.gz", ".txt.zst", ".olrank"}));
    app.add_flag("--force", force_, "overwrite train, vali and test of this format in the output folder");
    app.add_option("--max-memory", limits_.max_memory, kMaxMemoryHelp)->type_name("SIZE");
    app.add_option("--threads", threads_, "CPU threads [default: every core]")->type_name("N");
  }

  int run(const OutputFlags& output) override {
    for (const char* part : {"train", "vali", "test"}) {
      if (force_ || !std::filesystem::exists(path_of(part))) continue;
      throw InvalidArgument(fmt::format(
          "'{}' already exists; overwrite it with --force, or choose another folder.", path_of(part)));
    }
    ExecutionContext context(threads_);
    const std::string source = is_synthetic(source_) ? source_ : "synth:" + source_;
    const LetorOptions limits = letor_options(limits_);
    const SyntheticParts parts = make_synthetic(source, context, limits.max_bytes, limits.store);
    make_folder(out_);
    nlohmann::ordered_json summaries = nlohmann::ordered_json::array();
    for (const auto& [part, data] : {std::pair<const char*, const Dataset&>("train", parts.train),
                                     std::pair<const char*, const Dataset&>("vali", parts.vali),
                                     std::pair<const char*, const Dataset&>("test", parts.test)}) {
      write_any(data, path_of(part), {});
      summaries.push_back(summary_of(path_of(part), data));
      if (!output.json) print_summary(summaries.back());
    }
    if (output.json) fmt::print("{}\n", summaries.dump(2));
    return 0;
  }

 private:
  std::string path_of(const std::string& part) const {
    return (std::filesystem::path(out_) / (part + ending_)).string();
  }

  std::string source_;
  std::string out_;
  DataSettings limits_;
  std::string ending_ = ".txt";
  bool force_ = false;
  int threads_ = available_threads();
};

}  // namespace

std::unique_ptr<Command> make_data_synth_command() {
  return std::make_unique<SynthCommand>();
}

}  // namespace olrank
