#include "recommend/name_table.h"

#include <fmt/format.h>

#include <functional>
#include <limits>

#include "core/error.h"
#include "core/io/state_archive.h"

namespace olrank {
namespace {

std::uint32_t hash_of_name(std::string_view name) {
  const std::uint64_t hash = std::hash<std::string_view>()(name);
  return static_cast<std::uint32_t>(hash ^ (hash >> 32));
}

}  // namespace

NameTable::NameTable() : ends_(1, 0), slots_(64) {}

std::size_t NameTable::slot_of(std::string_view name, std::uint32_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = hash & mask;
  while (slots_[slot].number >= 0) {
    if (slots_[slot].hash == hash && (*this)[slots_[slot].number] == name) return slot;
    slot = (slot + 1) & mask;
  }
  return slot;
}

std::int32_t NameTable::intern(std::string_view name) {
  const std::uint32_t hash = hash_of_name(name);
  const std::size_t slot = slot_of(name, hash);
  if (slots_[slot].number >= 0) return slots_[slot].number;
  if (size() == std::numeric_limits<std::int32_t>::max())
    throw Error("There are more than 2,147,483,647 different names of one sort: use a part of the data.");
  const auto number = static_cast<std::int32_t>(size());
  slots_[slot] = {hash, number};
  text_ += name;
  ends_.push_back(std::ssize(text_));
  if (2 * static_cast<std::size_t>(size()) > slots_.size()) grow();
  return number;
}

std::optional<std::int32_t> NameTable::find(std::string_view name) const {
  const Slot& slot = slots_[slot_of(name, hash_of_name(name))];
  return slot.number >= 0 ? std::optional(slot.number) : std::nullopt;
}

void NameTable::grow() {
  std::vector<Slot> old(2 * slots_.size());
  old.swap(slots_);
  const std::size_t mask = slots_.size() - 1;
  for (const Slot& taken : old) {
    if (taken.number < 0) continue;
    std::size_t slot = taken.hash & mask;
    while (slots_[slot].number >= 0) slot = (slot + 1) & mask;
    slots_[slot] = taken;
  }
}

void NameTable::save(StateWriter& state, std::string_view name) const {
  state.put_text(fmt::format("{}.text", name), text_);
  state.put(fmt::format("{}.ends", name), ends_);
}

void NameTable::load(StateReader& state, std::string_view name) {
  const std::string text = state.get_text(fmt::format("{}.text", name));
  const auto ends = state.get<std::int64_t>(fmt::format("{}.ends", name));
  *this = NameTable();
  bool valid = !ends.empty() && ends.front() == 0 && ends.back() == std::ssize(text);
  for (std::size_t i = 1; valid && i < ends.size(); ++i) {
    valid = ends[i - 1] <= ends[i] && ends[i] <= std::ssize(text);
    if (valid) intern(std::string_view(text).substr(ends[i - 1], ends[i] - ends[i - 1]));
  }
  if (!valid || size() != std::ssize(ends) - 1)
    state.fail(fmt::format("The names of '{}' are damaged.", name));
}

}  // namespace olrank
