#pragma once

#include <string>

namespace olrank {

/// Reads a TorchScript file for the first time. Throws InvalidArgument if it unpacks to far more than it
/// has, or if a tensor would read beyond what the file holds of it, which LibTorch does not notice; and
/// what LibTorch throws of other damage.
void check_script_archive(const std::string& bytes, const std::string& path);

}  // namespace olrank
