#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace olrank {

/// A function of raw documents that another program made. Any number of threads may use one at once.
class ExternalModel {
 public:
  virtual ~ExternalModel() = default;

  /// Says what it is, for messages, such as "an ONNX model".
  virtual std::string_view what() const = 0;
  virtual std::int64_t features() const = 0;
  /// Returns the features' names, or none.
  virtual const std::vector<std::string>& feature_names() const = 0;
  /// Writes a score for each of one query's documents, whose features follow one another.
  virtual void score_docs(std::span<const float> docs, std::span<double> scores) const = 0;
};

/// Makes a model of the bytes of an ONNX file, whose name is for messages. Several threads may call it.
using OnnxReader =
    std::function<std::shared_ptr<const ExternalModel>(std::string_view bytes, const std::string& name)>;
/// Files in ONNX are model files from here on, read by this; without a reader they are refused.
void register_onnx_reader(OnnxReader reader);

}  // namespace olrank
