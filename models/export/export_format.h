#pragma once

#include <string>
#include <vector>

#include "core/settings/enum_names.h"
#include "models/files/model_file.h"

namespace olrank {

enum class ExportFormat { kSafetensors, kPt, kTorchScript, kOnnx, kJson, kC, kLtr, kSolr, kSnapshot };

template <>
struct EnumNames<ExportFormat> {
  static constexpr std::array values = names_in_order<ExportFormat>(
      "safetensors", "pt", "torchscript", "onnx", "json", "c", "ltr", "solr", "snapshot");
};

/// The bytes of the model's file in a format. `name` is the prefix of the functions of a C source, and the
/// model's name in a search engine; other formats ignore it. Everything comes from the model alone.
/// TorchScript is written with LibTorch, by torch_script_of() in models/modules, and refused here with
/// InvalidArgument.
std::string exported(const LoadedModel& model, ExportFormat format, const std::string& name);

/// The metadata of the model's file, with the normalisation and feature names added if missing, but without
/// a TorchScript file, which model files alone carry.
ModelMetadata complete_metadata(const LoadedModel& model);

// One function per format, in a file of its own:
std::string safetensors_of(const LoadedModel& model);
/// torch.load(weights_only=True) reads this: an OrderedDict of float tensors with the names of the model
/// file, whose attribute `olrank` holds the metadata.
std::string torch_archive_of(const LoadedModel& model);
/// It leads from `docs`, the raw float features of one query's documents, to their `scores` in double.
std::string onnx_of(const LoadedModel& model);
std::string json_of(const LoadedModel& model);
/// C99 that needs only the C library.
std::string c_source_of(const LoadedModel& model, const std::string& name);
/// The body of _ltr/_featureset/SET/_createmodel in OpenSearch and Elasticsearch.
std::string ltr_model_of(const LoadedModel& model, const std::string& name);
/// Solr's model-store takes this.
std::string solr_model_of(const LoadedModel& model, const std::string& name);

/// A layer of weights with its place in θ.
struct ExportedLayer {
  std::string name;  // that of its tensors, without ".weight" and ".bias"
  NetworkLayer place;
};

/// Whether scores consist of exported_layers(): networks, and modules of linear layers and ReLU.
bool has_exported_layers(const LoadedModel& model);
/// The layers in the order in which scores need them. Those of a network follow each other; those of
/// `residual` are its input, W₁ and W₂ of each block, and its output.
std::vector<ExportedLayer> exported_layers(const LoadedModel& model);

/// Whether the layers are those of `residual`.
bool has_residual_blocks(const LoadedModel& model);

/// The numbers of the columns that a model takes, from those of all raw features.
std::vector<double> of_columns(const FittedNormaliser& normaliser, const std::vector<double>& numbers);
/// The inputs of products.
struct ProductInputs {
  std::vector<std::int64_t> first;
  std::vector<std::int64_t> second;
};
ProductInputs product_inputs(std::span<const InputPair> products);

/// The bytes of a TorchScript archive, which torch.jit.load() reads in Python and torch::jit::load() in
/// C++. Its forward(docs) takes the raw float features of one query's documents, [documents × features],
/// and returns their scores in double. The parameters have the names of the model file, in modules
/// `layers.0` and so on (those of a TorchScript file in the module `module`), and the archive's extra file
/// `olrank.json` holds the metadata.
std::string torch_script_of(const LoadedModel& model);

}  // namespace olrank
