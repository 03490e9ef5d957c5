#include "models/modules/script_archive.h"

#include <ATen/core/jit_type.h>
#include <caffe2/serialize/inline_container.h>
#include <fmt/format.h>
#include <torch/csrc/jit/api/compilation_unit.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/alias_analysis.h>
#include <torch/csrc/jit/passes/freeze_module.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/serialization/unpickler.h>
#include <torch/types.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <sstream>
#include <utility>
#include <vector>

#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "models/modules/random_operators.h"

namespace olrank {
namespace {

using caffe2::serialize::PyTorchStreamReader;

// Code is packed, tensors are not.
constexpr std::uint64_t kMostRatio = 16;
constexpr std::uint64_t kAlwaysUnpacked = 1'000'000;

void check_unpacked_size(PyTorchStreamReader& reader, std::size_t packed, const std::string& path) {
  std::uint64_t unpacked = 0;
  for (const std::string& record : reader.getAllRecords()) unpacked += reader.getRecordSize(record);
  if (unpacked <= kMostRatio * packed + kAlwaysUnpacked) return;
  throw_error<InvalidArgument>(
      "module: '{}' has {} and would unpack to {}: torch.jit.save() does not pack tensors; save it again.",
      path, readable_bytes(static_cast<double>(packed)), readable_bytes(static_cast<double>(unpacked)));
}

/// Whether every text in a pickle is there, every line ends, and no place of its memo is beyond what it
/// could have filled. LibTorch makes room for what these numbers say, up to 64 GB, before it reads on, and
/// where a line does not end, it reads past its buffer. The codes are those that Python documents in
/// pickletools, by how their arguments are counted.
bool has_what_it_says(std::string_view pickle) {
  std::size_t at = 0;
  const auto left = [&] { return pickle.size() - at; };
  /// A number of so many bytes, little-endian.
  const auto number = [&](std::size_t bytes) {
    std::uint64_t value = 0;
    for (std::size_t k = 0; k < bytes && at < pickle.size(); ++k)
      value |= std::uint64_t{static_cast<unsigned char>(pickle[at++])} << (8 * k);
    return value;
  };
  while (at < pickle.size()) {
    const char code = pickle[at++];
    const auto is = [&](std::string_view codes) { return codes.find(code) != std::string_view::npos; };
    std::uint64_t skipped = 0;
    if (code == '.') return true;
    if (is("Kqh\x80\x82")) skipped = 1;
    if (is("M\x83")) skipped = 2;
    if (code == 'r' && number(4) > pickle.size()) return false;
    if (is("Jj\x84")) skipped = 4;
    if (is("G\x95")) skipped = 8;
    if (is("UC\x8a\x8c")) skipped = number(1);
    if (is("XTB\x8b")) skipped = number(4);
    if (is("\x8d\x8e")) skipped = number(8);
    const int lines = is("ci") ? 2 : is("FILSVPgp") ? 1 : 0;
    for (int line = 0; line < lines; ++line) {
      const std::size_t end = pickle.find('\n', at);
      if (end == std::string_view::npos) return false;
      at = end + 1;
    }
    if (skipped > left()) return false;
    at += static_cast<std::size_t>(skipped);
  }
  return false;
}

void check_pickles(PyTorchStreamReader& reader, const std::string& path) {
  for (const std::string& name : reader.getAllRecords()) {
    // The reader finds records whatever the case of their names.
    const std::string_view end =
        std::string_view(name).substr(name.size() - std::min<std::size_t>(name.size(), 3));
    if (!std::equal(end.begin(), end.end(), "pkl", [](char c, char small) { return (c | 0x20) == small; }))
      continue;
    const auto [pickle, size] = reader.getRecord(name);
    if (has_what_it_says({static_cast<const char*>(pickle.get()), size})) continue;
    throw_error<InvalidArgument>("module: '{}' is damaged, because its data end too early: save it again.",
                                 path);
  }
}

/// The tensors of one pickle of a file, with the bytes that the file holds of each.
class PickledTensors {
 public:
  PickledTensors(PyTorchStreamReader& reader, std::string archive)
      : reader_(reader), archive_(std::move(archive)) {}

  void check(const std::string& path) {
    const auto [pickle, size] = reader_.getRecord(archive_ + ".pkl");
    std::size_t place = 0;
    torch::jit::Unpickler unpickler(
        [&, from = static_cast<const char*>(pickle.get()), size = size](char* to, std::size_t wanted) {
          const std::size_t count = std::min(wanted, size - place);
          std::copy_n(from + place, count, to);
          place += count;
          return count;
        },
        [this](const c10::QualifiedName& name) { return type_of(name); },
        [](const c10::StrongTypePtr& type, const c10::IValue& state) {
          auto object = c10::ivalue::Object::create(type, 1);
          object->setSlot(0, state);
          return object;
        },
        [this](const std::string& name) { return record(name); }, at::Device(at::kCPU));
    unpickler.parse_ivalue().visit([&](const c10::IValue& value) {
      if (value.isTensor() && value.toTensor().defined()) check_tensor(value.toTensor(), path);
      return false;
    });
  }

 private:
  /// Objects of any type keep their state as it is.
  c10::StrongTypePtr type_of(const c10::QualifiedName& name) {
    c10::ClassTypePtr& made = types_[name.qualifiedName()];
    if (!made) {
      made = c10::ClassType::create(name, unit_, true);
      made->addAttribute("state", c10::AnyType::get());
    }
    return {unit_, made};
  }

  at::DataPtr record(const std::string& name) {
    auto [data, size] = reader_.getRecord(archive_ + "/" + name);
    held_[data.get()] = size;
    return std::move(data);
  }

  void check_tensor(const torch::Tensor& tensor, const std::string& path) const {
    const c10::Storage& storage = tensor.storage();
    const auto found = held_.find(storage.data());
    const double held = found == held_.end() ? 0.0 : static_cast<double>(found->second);
    // In double, as crafted numbers may be any: those that fit are exact.
    double least = static_cast<double>(tensor.storage_offset());
    double end = tensor.numel() == 0 ? 0.0 : least + 1.0;
    for (std::int64_t side = 0; side < tensor.dim() && tensor.numel() != 0; ++side) {
      least = std::min(
          {least, static_cast<double>(tensor.size(side)), static_cast<double>(tensor.stride(side))});
      end += static_cast<double>(tensor.size(side) - 1) * static_cast<double>(tensor.stride(side));
    }
    const double wanted =
        std::max(static_cast<double>(storage.nbytes()), end * static_cast<double>(tensor.itemsize()));
    if (wanted <= held && least >= 0.0) return;
    throw_error<InvalidArgument>(
        "module: '{}' is damaged: it holds {} bytes of a tensor that has {}: save it again.", path, held,
        std::max(wanted, 0.0));
  }

  PyTorchStreamReader& reader_;
  std::string archive_;
  std::shared_ptr<torch::jit::CompilationUnit> unit_ = std::make_shared<torch::jit::CompilationUnit>();
  std::map<std::string, c10::ClassTypePtr> types_;
  std::map<const void*, std::size_t> held_;  // bytes of the records that were read
};

template <class Visit>
void for_nodes(torch::jit::Block* block, const Visit& visit) {
  for (torch::jit::Node* node : block->nodes()) {
    visit(*node);
    for (torch::jit::Block* inner : node->blocks()) for_nodes(inner, visit);
  }
}

template <class... Args>
[[noreturn]] void refuse_module(const std::string& path, fmt::format_string<Args...> wrong,
                                Args&&... args) {
  throw_error<InvalidArgument>("module: '{}' {}.", path, fmt::format(wrong, std::forward<Args>(args)...));
}

/// Checks before anything runs: freezing computes what follows from constants.
void refuse_files(const torch::jit::Module& module, const std::string& path) {
  const std::shared_ptr<torch::jit::Graph> graph = module.get_method("forward").graph()->copy();
  torch::jit::Inline(*graph);
  for_nodes(graph->block(), [&](const torch::jit::Node& node) {
    const std::string name = node.kind().toQualString();
    if (name != "aten::from_file" && name != "aten::save") return;
    refuse_module(
        path, "reaches for files ({}): let forward compute from its documents and parameters alone", name);
  });
}

/// Looks through the graph of a module's forward(), from which freezing has taken what eval mode leaves
/// out.
class ScriptCode {
 public:
  ScriptCode(std::shared_ptr<torch::jit::Graph> graph, const std::string& path)
      : graph_(std::move(graph)), aliases_(graph_, /*isFrozen=*/true), path_(path) {
    for_nodes(graph_->block(), [this](const torch::jit::Node& node) {
      // Freezing keeps the attributes that are changed somewhere.
      if (node.kind() == c10::prim::GetAttr)
        attributes_.emplace_back(node.output(), node.s(c10::attr::name));
    });
  }

  void check() const {
    for_nodes(graph_->block(), [this](const torch::jit::Node& node) { check_node(node); });
  }

 private:
  void check_node(const torch::jit::Node& node) const {
    const std::string name = node.kind().toQualString();
    if (draws(node)) {
      refuse_module(
          path_, "draws random numbers ({}): let forward compute the same from the same documents", name);
    }
    if (node.kind() == c10::prim::fork)
      refuse_module(path_, "computes in parallel ({}): let forward do one thing after the other", name);
    if (node.kind() == c10::prim::SetAttr) return refuse_state(node.s(c10::attr::name), name);
    const c10::FunctionSchema* schema = node.maybeSchema();
    if (schema == nullptr || !schema->is_mutable()) return;
    for (std::size_t k = 0; k < schema->arguments().size() && k < node.inputs().size(); ++k) {
      const c10::AliasInfo* alias = schema->arguments()[k].alias_info();
      if (alias == nullptr || !alias->isWrite()) continue;
      const torch::jit::Value* written = node.input(k);
      if (aliases_.mayAlias(written, graph_->inputs()[1])) {
        refuse_module(path_, "changes its documents in place ({}): let forward make new tensors of them",
                      name);
      }
      for (const auto& [value, attribute] : attributes_) {
        if (aliases_.mayAlias(written, value)) refuse_state(attribute, name);
      }
    }
  }

  static bool draws(const torch::jit::Node& node) {
    const c10::FunctionSchema* schema = node.maybeSchema();
    if (schema == nullptr) return false;
    return draws_random_numbers(schema->operator_name(), [&](std::size_t k) -> std::optional<c10::IValue> {
      if (k < node.inputs().size()) return torch::jit::toIValue(node.input(k));
      return std::nullopt;
    });
  }

  void refuse_state(const std::string& attribute, const std::string& by) const {
    refuse_module(path_,
                  "changes '{}' in forward ({}), so that its scores may depend on earlier calls: change "
                  "nothing there",
                  attribute, by);
  }

  std::shared_ptr<torch::jit::Graph> graph_;
  torch::jit::AliasDb aliases_;
  const std::string& path_;
  std::vector<std::pair<const torch::jit::Value*, std::string>> attributes_;
};

}  // namespace

void check_script_archive(const std::string& bytes, const std::string& path) {
  std::istringstream stream(bytes);
  PyTorchStreamReader reader(&stream);
  check_unpacked_size(reader, bytes.size(), path);
  check_pickles(reader, path);
  for (const char* archive : {"data", "constants"}) {
    if (reader.hasRecord(std::string(archive) + ".pkl")) PickledTensors(reader, archive).check(path);
  }
}

void check_script_code(const torch::jit::Module& module, const std::string& path) {
  refuse_files(module, path);
  std::shared_ptr<torch::jit::Graph> graph;
  try {
    graph = torch::jit::freeze_module(module).get_method("forward").graph();
  } catch (const std::exception&) {
    return;  // It cannot be looked through; trying it shows what it does at once.
  }
  ScriptCode(std::move(graph), path).check();
}

}  // namespace olrank
