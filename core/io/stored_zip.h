#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace olrank {

/// The bytes of a zip archive whose entries are stored as they are, each beginning on a multiple of
/// kAlignment, so that a reader can map them. Equal entries give equal bytes: times are left out.
class StoredZip {
 public:
  static constexpr std::size_t kAlignment = 64;

  void add(const std::string& name, std::string_view content);
  /// Ends the archive; nothing may be added after it.
  std::string finish();

 private:
  struct Entry {
    std::string name;
    std::uint32_t checksum = 0;
    std::uint32_t size = 0;
    std::uint32_t place = 0;
  };

  std::string bytes_;
  std::vector<Entry> entries_;
};

}  // namespace olrank
