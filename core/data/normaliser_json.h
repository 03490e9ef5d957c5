#pragma once

#include <string>
#include <string_view>

#include "core/data/normaliser.h"

namespace olrank {

/// A normaliser as model files carry it: {"kind", "features", "kept", "means", "scales"}, the last three
/// only where they say something. Reading gives the same bits.
std::string normaliser_json(const FittedNormaliser& normaliser);

/// Throws DataError, with `origin` as the file, for a text that is none.
FittedNormaliser parse_normaliser(std::string_view json, const std::string& origin);

}  // namespace olrank
