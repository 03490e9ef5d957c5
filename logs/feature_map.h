#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/data/normaliser.h"
#include "core/feedback/feedback_record.h"

namespace olrank {

/// The inputs of a model by the names of their features.
struct NamedInputs {
  std::vector<std::string> names;  // in the model's order; empty: unknown
  /// They tell the input of each document of a list that lacks the feature; empty: 0.
  std::vector<float> defaults{};
  /// Features of lists that the model leaves out. "colour" also names "colour=red" and "colour[0]".
  std::vector<std::string> dropped{};
  std::vector<std::pair<std::string, std::string>> renamed{};  // from what a list says to the model's name
  std::string advice = "take the log of a service with the features of the model";  // on such a feature
  std::vector<std::string> unnamed{};  // features of lists without names; empty: the model's, in its order

  /// The name of the model's feature that a list calls `name`.
  std::string present_name(const std::string& name) const;
  bool drops(const std::string& name) const;
};

/// The names that tell features apart: none if they are plain (f1, f2, …) or numbers are among them, as in
/// a table without names of columns.
std::vector<std::string> telling_names(const std::vector<std::string>& names);

/// The names of a model's inputs, given those of its raw features.
std::vector<std::string> names_of_inputs(const std::vector<std::string>& features,
                                         const FittedNormaliser& normaliser);

/// Puts the inputs of lists in the order of a model by the names of their features. Where one side has no
/// names, positions decide.
class FeatureMap {
 public:
  explicit FeatureMap(NamedInputs inputs);

  bool has_names() const { return !text_.empty(); }
  const std::vector<std::string>& names() const { return inputs_.names; }
  /// Gives the list the model's inputs and names. Returns what is wrong with its names; empty if nothing
  /// is.
  std::string apply(FeedbackRecord& record);

 private:
  std::string find_places(const FeedbackRecord& record);

  NamedInputs inputs_;
  std::string text_;                  // of the names
  std::string latest_;                // names of the latest list that had others
  std::int64_t given_ = 0;            // how many they are
  std::vector<std::int64_t> places_;  // of each input in such a list; −1: it lacks the feature
};

}  // namespace olrank
