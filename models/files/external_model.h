#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace olrank {

/// A function of raw documents that another program made.
struct ExternalModel {
  std::string what;  // for messages, such as "an ONNX model"
  std::int64_t features = 0;
  std::vector<std::string> feature_names;  // or none
  /// Writes a score for each of one query's documents, whose features follow one another. Any number of
  /// threads may call it at once.
  std::function<void(std::span<const float> docs, std::span<double> scores)> score;
};

/// Makes a model of the bytes of an ONNX file, whose name is for messages. Several threads may call it.
using OnnxReader = std::function<ExternalModel(std::string_view bytes, const std::string& name)>;
/// Files in ONNX are model files from here on, read by this. Without a reader, which programs register
/// before they have threads that read models, they are refused.
void register_onnx_reader(OnnxReader reader);

}  // namespace olrank
