#include <cctype>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "apps/command.h"
#include "core/data/normaliser_text.h"
#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/io/state_archive.h"
#include "core/runtime/log.h"
#include "core/settings/enum_names.h"
#include "core/settings/value.h"
#include "jobs/saved_trial.h"
#include "models/export/export_format.h"
#include "models/export/torch_script.h"
#include "models/files/model_file.h"
#include "serve/service_setup.h"
#include "serve/snapshot.h"

namespace olrank {
namespace {

/// A C identifier made from a file's name.
std::string identifier_of(const std::filesystem::path& file) {
  std::string name = file.stem().string();
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  const bool begins_well = !name.empty() && std::isalpha(static_cast<unsigned char>(name.front())) != 0;
  return begins_well ? name : "model_" + name;
}

class ExportCommand : public Command {
 public:
  void declare(CLI::App& app) override {
    add_option(app, "model", model_, "MODEL",
               "a model file, a snapshot, or the folder of a finished trial");
    add_option(app, "--state", state_, "DIR",
               "export the model of a stopped service instead: the folder of 'olrank serve'");
    add_option(app, "--trust-code", trust_code_, "true|false",
               "whether the model may contain a TorchScript module, whose code can read and write your "
               "files [default: false]");
    add_option(app, "--to", format_, "FORMAT",
               "output format: safetensors, pt, torchscript, onnx, json, c, ltr (OpenSearch, "
               "Elasticsearch), solr, or "
               "snapshot (with the memory of documents)");
    add_output(
        app, "--out", out_, "FILE",
        "output file; with --to c, its name is the prefix of the function names, and with --to ltr and "
        "solr the model's name");
    add_option(app, "--feature-names", names_, "A,B,…",
               "names of the features in their order, such as those of the engine's feature set [default: "
               "the model's]")
        ->delimiter(',')
        ->allow_extra_args(false);
    add_option(
        app, "--memory-limit", memory_limit_, "MB",
        "with --to snapshot: memory for documents, of the queries that were learned last [default: all]")
        ->check(CLI::NonNegativeNumber);
  }

  int run(const OutputFlags&) override {
    if (model_.empty() && state_.empty())
      throw InvalidArgument("No model given: name a model file, a trial's folder, or a service's --state.");
    if (!model_.empty() && !state_.empty())
      throw InvalidArgument("A model and --state exclude each other: name one of them.");
    if (format_.empty())
      throw InvalidArgument(
          "--to is required: choose safetensors, pt, torchscript, onnx, json, c, ltr, solr or snapshot.");
    if (out_.empty()) throw InvalidArgument("--out is required: name the file to write.");
    const auto format = parse_choice<ExportFormat>("--to", format_);
    if (format == ExportFormat::kSnapshot) return export_snapshot();
    if (memory_limit_ > 0.0)
      throw InvalidArgument("--memory-limit: Only --to snapshot has a memory: remove the flag.");
    LoadedModel model = state_.empty()
                            ? load_model(model_file_of(model_), code_if(trust_code_))
                            : parse_model(stopped_service_file(state_, false), state_, ModelCode::kTrust);
    if (!names_.empty()) name_features(model);
    write_file_atomically(out_, format == ExportFormat::kTorchScript
                                    ? torch_script_of(model)
                                    : exported(model, format, identifier_of(out_)));
    log_info("Wrote {}: the model in the format {}", out_, name_of(format));
    return 0;
  }

 private:
  int export_snapshot() const {
    const std::string origin = state_.empty() ? model_file_of(model_).string() : state_;
    std::string bytes = state_.empty() ? read_file(origin) : stopped_service_file(state_, true);
    if (!StateReader::is_state(bytes) || !names_.empty()) {
      throw InvalidArgument(
          "--to snapshot takes the --state of a service, or another snapshot, with the names that it has: "
          "a model "
          "file has no memory of documents.");
    }
    write_file_atomically(out_, limited_snapshot(std::move(bytes), origin, memory_limit_));
    log_info("Wrote {}: the model with its memory of documents", out_);
    return 0;
  }
  void name_features(LoadedModel& model) const {
    require_feature_names(names_, model.normaliser.features, "--feature-names");
    model.feature_names = names_;
    std::erase_if(model.metadata, [](const auto& entry) { return entry.first == "feature_names"; });
    model.metadata.emplace_back("feature_names", feature_names_text(names_));
  }

  std::string model_;
  bool trust_code_ = false;
  std::string state_;
  std::string format_;
  std::string out_;
  std::vector<std::string> names_;
  double memory_limit_ = 0.0;
};

}  // namespace

const CommandEntry kExportCommand{"export", "export a saved model to another tool's format",
                                  make_command<ExportCommand>};

}  // namespace olrank
