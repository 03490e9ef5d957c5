#include <fmt/format.h>

#include <string_view>

#include "core/io/stored_zip.h"
#include "models/export/export_format.h"

namespace olrank {
namespace {

/// Writes objects in Python's pickle format, protocol 2, as torch.save() would.
class Pickle {
 public:
  Pickle() { bytes_ += "\x80\x02"; }

  void text(std::string_view text) {
    bytes_ += 'X';
    little_endian(text.size());
    bytes_ += text;
  }
  void integer(std::int64_t value) {
    if (value >= 0 && value <= 0x7FFFFFFF) {
      bytes_ += 'J';
      little_endian(static_cast<std::uint64_t>(value));
      return;
    }
    bytes_ += "\x8A\x08";  // LONG1 of eight bytes
    for (int byte = 0; byte < 8; ++byte)
      bytes_ += static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * byte) & 0xFFU);
  }
  void global(std::string_view module, std::string_view name) {
    bytes_ += fmt::format("c{}\n{}\n", module, name);
  }
  void mark() { bytes_ += '('; }
  void tuple() { bytes_ += 't'; }  // of everything since the mark
  void empty_tuple() { bytes_ += ')'; }
  void empty_dict() { bytes_ += '}'; }
  void set_items() { bytes_ += 'u'; }  // keys and values since the mark
  void call() { bytes_ += 'R'; }
  void set_state() { bytes_ += 'b'; }
  void persistent() { bytes_ += 'Q'; }
  void no() { bytes_ += "\x89"; }
  void ordered_dict() {
    global("collections", "OrderedDict");
    empty_tuple();
    call();
  }
  std::string finish() {
    bytes_ += '.';
    return std::move(bytes_);
  }

 private:
  void little_endian(std::uint64_t value) {
    for (int byte = 0; byte < 4; ++byte) bytes_ += static_cast<char>(value >> (8 * byte) & 0xFFU);
  }

  std::string bytes_;
};

void put_tensor(Pickle& pickle, const ModelTensors::Tensor& tensor, std::size_t storage) {
  pickle.global("torch._utils", "_rebuild_tensor_v2");
  pickle.mark();
  pickle.mark();
  pickle.text("storage");
  pickle.global("torch", "FloatStorage");
  pickle.text(fmt::format("{}", storage));
  pickle.text("cpu");
  pickle.integer(std::ssize(tensor.values));
  pickle.tuple();
  pickle.persistent();
  pickle.integer(0);  // where in its storage the tensor begins
  pickle.mark();
  for (const std::int64_t extent : tensor.shape) pickle.integer(extent);
  pickle.tuple();
  pickle.mark();
  std::int64_t stride = std::ssize(tensor.values);
  for (const std::int64_t extent : tensor.shape) pickle.integer(stride /= extent);
  pickle.tuple();
  pickle.no();  // no gradient
  pickle.ordered_dict();
  pickle.tuple();
  pickle.call();
}

std::string pickled(const std::vector<ModelTensors::Tensor>& tensors, const ModelMetadata& metadata) {
  Pickle pickle;
  pickle.ordered_dict();
  pickle.mark();
  for (std::size_t number = 0; number < tensors.size(); ++number) {
    pickle.text(tensors[number].name);
    put_tensor(pickle, tensors[number], number);
  }
  pickle.set_items();
  pickle.empty_dict();  // the attributes
  pickle.mark();
  pickle.text("olrank");
  pickle.empty_dict();
  pickle.mark();
  for (const auto& [key, text] : metadata) {
    pickle.text(key);
    pickle.text(text);
  }
  pickle.set_items();
  pickle.set_items();
  pickle.set_state();
  return pickle.finish();
}

}  // namespace

std::string torch_archive_of(const LoadedModel& model) {
  const auto tensors = tensors_of(model);
  StoredZip zip;
  zip.add("model/data.pkl", pickled(tensors, complete_metadata(model)));
  zip.add("model/byteorder", "little");
  for (std::size_t number = 0; number < tensors.size(); ++number) {
    const std::vector<float>& values = tensors[number].values;
    zip.add(fmt::format("model/data/{}", number),
            {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  }
  zip.add("model/version", "3\n");
  return zip.finish();
}

}  // namespace olrank
