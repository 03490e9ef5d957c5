#include "apps/data/data_files.h"

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <utility>

#include "core/data/data_loader.h"
#include "core/data/data_settings.h"
#include "core/data/dataset_cache.h"
#include "core/data/dataset_file.h"
#include "core/data/query_weights.h"
#include "core/data/synthetic.h"
#include "core/data/synthetic_source.h"
#include "core/io/atomic_file.h"
#include "core/io/byte_stream.h"
#include "core/io/folder.h"
#include "core/runtime/log.h"
#include "core/throw_error.h"

namespace olrank {

using nlohmann::ordered_json;

void ReadingFlags::declare(CLI::App& app) {
  add_option(app, "--threads", threads, "N", "CPU threads [default: every core]");
  add_option(app, "--max-memory", max_memory, "SIZE", kMaxMemoryHelp);
}

LetorOptions ReadingFlags::options() const {
  DataSettings settings;
  settings.max_memory = max_memory;
  settings.weights = true;
  return letor_options(settings);
}

Dataset read_any(const std::string& path, const ReadingFlags& flags, ExecutionContext& context) {
  return DatasetCache().read(path, flags.options(), context.pool());
}

void write_any(const Dataset& data, const std::string& path, const LetorFormat& format) {
  if (path.ends_with(".olrank")) {
    write_dataset_file(data, {}, path);
    return;
  }
  if (path == "-") {
    if (!data.contents().weights.empty())
      log_warning(
          "Standard output has the text without the weights of its queries: name a file to keep them.");
    write_letor(data, format, write_output);
    return;
  }
  AtomicFile file(path);
  const auto compressor =
      Compressor::make(compression_of_name(path), [&](std::string_view piece) { file.write(piece); });
  write_letor(data, format, [&](std::string_view piece) { compressor->write(piece); });
  compressor->finish();
  commit_with_weights(data, file, path);
}

ordered_json summary_of(const std::string& path, const Dataset& data) {
  return {{"file", path},
          {"queries", data.queries()},
          {"docs", data.docs()},
          {"features", data.features()},
          {"fingerprint", data.fingerprint().hex()}};
}

std::string summary_text(const ordered_json& summary) {
  return fmt::format("Wrote {}: {} queries, {} documents, {} features\n",
                     summary["file"].get<std::string>(), summary["queries"].get<std::int64_t>(),
                     summary["docs"].get<std::int64_t>(), summary["features"].get<std::int64_t>());
}

namespace {

class ConvertCommand : public Command {
 public:
  void declare(CLI::App& app) override {
    add_option(app, "in", in_, "IN", "LETOR text or binary file; - is standard input")->required();
    add_output(app, "out", out_, "OUT",
               "output file: .olrank is binary, .gz and .zst are compressed text, anything else is "
               "plain text; - is standard output")
        ->required();
    app.add_flag("--sparse", format_.sparse, "omit zeros in text output");
    flags_.declare(app);
  }
  int run(const OutputFlags& output) override {
    ExecutionContext context(flags_.threads);
    const Dataset data = read_any(in_, flags_, context);
    write_any(data, out_, format_);
    if (out_ == "-") return 0;
    const ordered_json summary = summary_of(out_, data);
    output.print(summary, summary_text(summary));
    return 0;
  }

 private:
  std::string in_;
  std::string out_;
  LetorFormat format_;
  ReadingFlags flags_;
};

class SynthCommand : public Command {
 public:
  void declare(CLI::App& app) override {
    add_option(app, "source", source_, "NAME?key=value", "NAME or NAME?key=value&…, as in synth:NAME")
        ->required();
    add_output(app, "--out", out_, "DIR", "output folder")->required();
    app.add_option("--ending", ending_, "file format [default: .txt]")
        ->check(CLI::IsMember({".txt", ".txt.gz", ".txt.zst", ".olrank"}));
    app.add_flag("--force", force_, "overwrite train, vali and test of this format in the output folder");
    add_option(app, "--max-memory", limits_.max_memory, "SIZE", kMaxMemoryHelp);
    add_option(app, "--threads", threads_, "N", "CPU threads [default: every core]");
  }

  int run(const OutputFlags& output) override {
    for (const char* part : {"train", "vali", "test"}) {
      if (force_ || !std::filesystem::exists(path_of(part))) continue;
      throw_error<InvalidArgument>(
          "'{}' already exists; overwrite it with --force, or choose another folder.", path_of(part));
    }
    ExecutionContext context(threads_);
    const std::string source = is_synthetic(source_) ? source_ : "synth:" + source_;
    const LetorOptions limits = letor_options(limits_);
    const SyntheticParts parts = make_synthetic(source, context, limits.max_bytes, limits.store);
    make_folder(out_);
    ordered_json summaries = ordered_json::array();
    std::string text;
    for (const auto& [part, data] : {std::pair<const char*, const Dataset&>("train", parts.train),
                                     std::pair<const char*, const Dataset&>("vali", parts.vali),
                                     std::pair<const char*, const Dataset&>("test", parts.test)}) {
      write_any(data, path_of(part), {});
      summaries.push_back(summary_of(path_of(part), data));
      text += summary_text(summaries.back());
    }
    output.print(summaries, text);
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

const CommandEntry kDataConvertCommand{
    "data convert", "convert between text and binary (.olrank), losslessly; text may be plain, .gz or .zst",
    make_command<ConvertCommand>};
const CommandEntry kDataSynthCommand{"data synth",
                                     "generate synthetic data: a folder with train, vali and test",
                                     make_command<SynthCommand>};

}  // namespace olrank
