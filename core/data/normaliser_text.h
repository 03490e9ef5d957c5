#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/data/normaliser.h"

namespace olrank {

/// A fitted normaliser as the JSON object that model files carry; its numbers read back exactly.
std::string normaliser_text(const FittedNormaliser& normaliser);

/// Throws DataError, with `origin` as the file, for a text that is no such object.
FittedNormaliser parse_normaliser(const std::string& text, const std::string& origin);

/// Default names of features, f1, f2, …, and names as the text in a model file.
std::vector<std::string> plain_feature_names(std::int64_t features);
std::string feature_names_text(const std::vector<std::string>& names);
/// The names in such a text; none if it is no list of names.
std::vector<std::string> parse_feature_names(const std::string& text);
/// Such a text for the models of a data file: the content of FILE.names, if that is there; else of the
/// default names. Throws InvalidArgument if it has other than one name for each feature.
std::string feature_names_beside(const std::string& file, std::int64_t features);
/// Throws InvalidArgument unless each feature has a name of its own; `origin` says where the names are
/// from.
void require_feature_names(const std::vector<std::string>& names, std::int64_t features,
                           const std::string& origin);

}  // namespace olrank
