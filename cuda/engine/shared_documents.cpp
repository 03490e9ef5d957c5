#include "cuda/engine/shared_documents.h"

#include <cstddef>
#include <map>
#include <mutex>
#include <span>
#include <tuple>

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

using Key = std::tuple<const float*, std::int64_t, std::int64_t>;  // address, documents, features

/// The copies on one device. A copy is freed under the lock, so that a new one is never made beside it.
struct DeviceCopies {
  std::mutex mutex;
  std::map<Key, SharedDocuments::Copy> of_matrix;
};

DeviceCopies& copies_on(int device) {
  static std::mutex mutex;
  static std::map<int, DeviceCopies> devices;
  const std::lock_guard lock(mutex);
  return devices[device];
}

Key key_of(const FeatureMatrix& docs) {
  return {docs.values, docs.docs, docs.features};
}

}  // namespace

SharedDocuments::SharedDocuments(int device, const FeatureMatrix& docs) : device_(device), docs_(docs) {
  DeviceCopies& copies = copies_on(device_);
  const std::lock_guard lock(copies.mutex);
  auto found = copies.of_matrix.find(key_of(docs_));
  if (found == copies.of_matrix.end()) {
    const std::span<const float> values(docs.values, static_cast<std::size_t>(docs.docs * docs.features));
    found = copies.of_matrix.emplace(key_of(docs_), Copy{DeviceArray<float>(values)}).first;
  }
  copy_ = &found->second;
  ++copy_->users;
}

SharedDocuments::~SharedDocuments() {
  DeviceCopies& copies = copies_on(device_);
  const std::lock_guard lock(copies.mutex);
  if (--copy_->users == 0) copies.of_matrix.erase(key_of(docs_));
}

const float* SharedDocuments::data() const {
  return copy_->values.data();
}

std::int64_t SharedDocuments::size() const {
  return copy_->values.size();
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
