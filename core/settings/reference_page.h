#pragma once

#include <span>
#include <string>

#include "core/settings/schema.h"

namespace olrank {

/// A table and the struct that holds its defaults.
struct SchemaWithDefaults {
  const Schema* schema;
  const void* defaults;
};

/// docs/CONFIGURATION.md: every setting with its key, flags, default, bounds and meaning.
std::string reference_page(std::span<const SchemaWithDefaults> tables);

/// The systematic flag of a setting, with dashes: --protocol-eval-every, and --learning-rate for a
/// repeated table, whose name is left out.
std::string systematic_flag(const Schema& schema, const Setting& setting);

}  // namespace olrank
