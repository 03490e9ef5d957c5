#include "models/modules/script_archive.h"

#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>
#include <caffe2/serialize/inline_container.h>
#include <fmt/format.h>
#include <torch/csrc/jit/api/compilation_unit.h>
#include <torch/csrc/jit/serialization/unpickler.h>
#include <torch/types.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <sstream>

#include "core/error.h"
#include "core/text/byte_size.h"

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
  throw InvalidArgument(fmt::format(
      "module: '{}' has {} and would unpack to {}: torch.jit.save() does not pack tensors; save it again.",
      path, readable_bytes(static_cast<double>(packed)), readable_bytes(static_cast<double>(unpacked))));
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
          std::memcpy(to, from + place, count);
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
    throw InvalidArgument(
        fmt::format("module: '{}' is damaged: it holds {} bytes of a tensor that has {}: save it again.",
                    path, held, std::max(wanted, 0.0)));
  }

  PyTorchStreamReader& reader_;
  std::string archive_;
  std::shared_ptr<torch::jit::CompilationUnit> unit_ = std::make_shared<torch::jit::CompilationUnit>();
  std::map<std::string, c10::ClassTypePtr> types_;
  std::map<const void*, std::size_t> held_;  // bytes of the records that were read
};

}  // namespace

void check_script_archive(const std::string& bytes, const std::string& path) {
  std::istringstream stream(bytes);
  PyTorchStreamReader reader(&stream);
  check_unpacked_size(reader, bytes.size(), path);
  for (const char* archive : {"data", "constants"}) {
    if (reader.hasRecord(std::string(archive) + ".pkl")) PickledTensors(reader, archive).check(path);
  }
}

}  // namespace olrank
