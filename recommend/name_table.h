#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace olrank {

class StateReader;
class StateWriter;

/// Names with numbers from 0, in the order in which they first appeared.
class NameTable {
 public:
  NameTable();

  /// The number of a name, which is added if it is new.
  std::int32_t intern(std::string_view name);
  std::optional<std::int32_t> find(std::string_view name) const;

  std::int64_t size() const { return std::ssize(ends_) - 1; }
  /// Valid until the next intern().
  std::string_view operator[](std::int64_t number) const {
    return {text_.data() + ends_[number], static_cast<std::size_t>(ends_[number + 1] - ends_[number])};
  }

  void save(StateWriter& state, std::string_view name) const;
  void load(StateReader& state, std::string_view name);

  friend bool operator==(const NameTable& a, const NameTable& b) {
    return a.text_ == b.text_ && a.ends_ == b.ends_;
  }

 private:
  struct Slot {
    std::uint32_t hash = 0;
    std::int32_t number = -1;  // −1: free
  };
  std::size_t slot_of(std::string_view name, std::uint32_t hash) const;
  void grow();

  std::string text_;  // all names, one behind the other
  std::vector<std::int64_t> ends_;
  std::vector<Slot> slots_;  // open addressing; their count is a power of two
};

}  // namespace olrank
