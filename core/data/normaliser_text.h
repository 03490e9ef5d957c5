#pragma once

#include <string>

#include "core/data/normaliser.h"

namespace olrank {

/// A fitted normaliser as the JSON object that model files carry; its numbers read back exactly.
std::string normaliser_text(const FittedNormaliser& normaliser);

/// Throws DataError, with `origin` as the file, for a text that is no such object.
FittedNormaliser parse_normaliser(const std::string& text, const std::string& origin);

}  // namespace olrank
