#pragma once

#include <string>

namespace torch::jit {
struct Module;
}

namespace olrank {

/// Reads a TorchScript file for the first time. Throws InvalidArgument if it unpacks to far more than it
/// has, or if a tensor would read beyond what the file holds of it, which LibTorch does not notice; and
/// what LibTorch throws of other damage.
void check_script_archive(const std::string& bytes, const std::string& path);

/// Throws InvalidArgument for a module in eval mode whose forward() draws random numbers, reaches for
/// files, or changes its documents, buffers or attributes: by the operator's name, also where only some
/// documents lead there.
void check_script_code(const torch::jit::Module& module, const std::string& path);

}  // namespace olrank
