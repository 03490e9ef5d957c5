#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace olrank {

/// Names a document across rounds by its content: the same name in the same query with the same inputs is
/// the same document. 63 of the bits of XXH3; ten million documents collide with a probability below 1e-5.
std::int64_t doc_number(std::string_view query, std::span<const float> inputs, std::string_view name = {});

/// Names a query or a document by what its owner calls it.
std::int64_t name_number(std::string_view name);

}  // namespace olrank
