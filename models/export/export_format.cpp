#include "models/export/export_format.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/data/normaliser_text.h"
#include "core/error.h"
#include "core/io/safetensors.h"
#include "core/text/base64.h"
#include "models/export/exported_layers.h"
#include "models/modules/module_model.h"

namespace olrank {

ModelMetadata complete_metadata(const LoadedModel& model) {
  ModelMetadata metadata;
  for (const auto& entry : model.metadata) {
    if (entry.first != kTorchScriptKey) metadata.push_back(entry);
  }
  const auto add_missing = [&](const std::string& key, const std::string& text) {
    const bool there = std::any_of(metadata.begin(), metadata.end(),
                                   [&](const auto& entry) { return entry.first == key; });
    if (!there) metadata.emplace_back(key, text);
  };
  add_missing("normalisation", normaliser_text(model.normaliser));
  add_missing("feature_names", feature_names_text(plain_feature_names(model.normaliser.features)));
  return metadata;
}

std::string safetensors_of(const LoadedModel& model) {
  const auto tensors = tensors_of(model);
  std::vector<NamedTensor> views;
  views.reserve(tensors.size());
  for (const auto& tensor : tensors) views.push_back({tensor.name, tensor.shape, tensor.values});
  ModelMetadata metadata = complete_metadata(model);
  if (model.settings.module_file)
    metadata.emplace_back(kTorchScriptKey, base64_of(*model.settings.module_file));
  return safetensors_bytes(views, metadata);
}

std::string exported(const LoadedModel& model, ExportFormat format, const std::string& name) {
  const bool layered = format == ExportFormat::kOnnx || format == ExportFormat::kC;
  const bool closed =
      format == ExportFormat::kJson || format == ExportFormat::kLtr || format == ExportFormat::kSolr;
  if (layered ? !has_exported_layers(model) : closed && !model.has_closed_form()) {
    throw InvalidArgument(fmt::format(
        "Module '{}' cannot be written as {}, which holds linear models, networks and the module{}: choose "
        "--to torchscript, or --to pt for its tensors alone.",
        model.settings.module, name_of(format),
        layered ? "s relu and residual, with activation = \"relu\"" : " relu"));
  }
  switch (format) {
    case ExportFormat::kPt:
      return torch_archive_of(model);
    case ExportFormat::kTorchScript:
      throw InvalidArgument("This program writes no TorchScript.");
    case ExportFormat::kOnnx:
      return onnx_of(model);
    case ExportFormat::kJson:
      return json_of(model);
    case ExportFormat::kC:
      return c_source_of(model, name);
    case ExportFormat::kLtr:
      return ltr_model_of(model, name);
    case ExportFormat::kSolr:
      return solr_model_of(model, name);
    case ExportFormat::kSafetensors:
      break;
  }
  return safetensors_of(model);
}

}  // namespace olrank
