#pragma once

#include <string>

#include "core/io/state_archive.h"

namespace olrank {

/// The bytes that an object saves.
template <class Saved>
std::string state_of(Saved& saved) {
  StateWriter state;
  saved.save(state);
  return state.bytes();
}

/// Loads all of a saved state.
template <class Loaded>
void load_state(Loaded& loaded, const std::string& state) {
  StateReader reader(state, "a test");
  loaded.load(reader);
  reader.require_end();
}

}  // namespace olrank
