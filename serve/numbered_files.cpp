#include "serve/numbered_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "serve/own_file.h"

namespace olrank {

namespace fs = std::filesystem;

fs::path NumberedFiles::path(const fs::path& folder, std::uint64_t number) const {
  return folder / fmt::format("{}{:06}{}", begin, number, end);
}

std::uint64_t NumberedFiles::number_of(const fs::path& path) const {
  const std::string name = path.filename().string();
  if (!name.starts_with(begin) || !name.ends_with(end) || name.size() <= begin.size() + end.size())
    return 0;
  std::uint64_t number = 0;
  for (const char c : name.substr(begin.size(), name.size() - begin.size() - end.size())) {
    if (c < '0' || c > '9') return 0;
    number = number * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return number;
}

std::vector<fs::path> NumberedFiles::in(const fs::path& folder) const {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (number_of(entry.path()) > 0) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end(),
            [this](const fs::path& a, const fs::path& b) { return number_of(a) < number_of(b); });
  return found;
}

void NumberedFiles::set_aside(const fs::path& folder) const {
  for (const fs::path& file : in(folder)) fs::rename(file, unused_path(file.string() + ".set-aside"));
}

}  // namespace olrank
