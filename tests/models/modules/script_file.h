#pragma once

#include <torch/csrc/jit/api/module.h>
#include <torch/types.h>

#include <filesystem>
#include <string>

#include "tests/core/ops/network_fixture.h"

namespace olrank {

inline constexpr const char* kTanhScript =
    "  h = torch.tanh(torch.matmul(docs, self.w.t()))\n"
    "  return torch.matmul(h, self.v) + self.constant.forward()\n";

/// A TorchScript file of a network with four hidden units and a module with a buffer inside it; `code` is
/// the body of its forward.
inline void write_script(const std::filesystem::path& path, std::int64_t inputs,
                         const std::string& code = kTanhScript, std::uint64_t seed = 1) {
  torch::jit::Module module("Scorer");
  module.register_parameter(
      "w", torch::tensor(random_numbers(4 * inputs, seed, 0.5)).reshape({4, inputs}).requires_grad_(),
      false);
  module.register_parameter("v", torch::tensor(random_numbers(4, seed + 1, 0.5)).requires_grad_(), false);
  torch::jit::Module constant("Constant");
  constant.register_buffer("shift", torch::tensor(0.25F));
  constant.define("def forward(self) -> Tensor:\n  return self.shift\n");
  module.register_module("constant", constant);
  module.define("def forward(self, docs: Tensor) -> Tensor:\n" + code);
  module.save(path.string());
}

}  // namespace olrank
