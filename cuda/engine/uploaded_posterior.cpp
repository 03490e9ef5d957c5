#include "cuda/engine/uploaded_posterior.h"

#include <fmt/format.h>

#include <cstring>

#include "core/error.h"
#include "cuda/ops/layer_table.h"
#include "cuda/runtime/address_range.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

/// Of a grid's second dimension, along which some kernels take documents.
constexpr std::int64_t kMostDocs = 65'535;
constexpr std::size_t kStatusBytes = 16;
static_assert(sizeof(CovarianceStatus) <= kStatusBytes);

/// Checks the layers and selects the calling thread's device, before anything is made on it.
const TangentShape& on_device(int device, const TangentShape& shape) {
  static_cast<void>(LayerTable(shape));
  use_device(device);
  return shape;
}

}  // namespace

UploadedPosterior::UploadedPosterior(int device, const PosteriorSpec& spec)
    : shape_(on_device(device, spec.shape)),
      device_(device),
      products_(plans_, stream_.get()),
      posterior_(spec, products_) {}

UploadedPosterior::~UploadedPosterior() {
  // Transfers into the memory that is freed now may still be running.
  try {
    use_device(device_);
    stream_.wait();
  } catch (const Error&) {  // the device is gone
  }
}

void UploadedPosterior::wait() {
  stream_.wait();
  factors_.started = sent_pairs_.started = false;
}

void UploadedPosterior::send(Upload& upload, const void* from, std::size_t bytes, void* to) {
  if (upload.started) wait();
  upload.bytes.reserve(bytes);
  std::memcpy(upload.bytes.data(), from, bytes);
  copy_bytes(stream_.get(), to, upload.bytes.data(), bytes);
  upload.started = true;
}

bool UploadedPosterior::is_latest(TangentFactors docs) const {
  return docs.docs == docs_ &&
         std::memcmp(factors_.bytes.data(), docs.values,
                     static_cast<std::size_t>(docs_ * shape_.factors()) * sizeof(float)) == 0;
}

void UploadedPosterior::start_gram(TangentFactors docs) {
  const Stream stream = stream_.get();
  if (!is_latest(docs)) {
    if (docs.docs > kMostDocs) {
      throw InvalidArgument(fmt::format(
          "A query has {} documents, but a covariance on a GPU takes at most {}: use --device cpu.",
          docs.docs, kMostDocs));
    }
    const std::int64_t numbers = docs.docs * shape_.factors();
    docs_ = 0;  // until they are there
    rows_.reserve(stream, numbers);
    send(factors_, docs.values, static_cast<std::size_t>(numbers) * sizeof(float), rows_.data());
    docs_ = docs.docs;
  }
  m_.reserve(stream, docs_ * docs_);
  posterior_.gram(stream, rows(), m_.data());
  has_gram_ = true;
}

void UploadedPosterior::gram(TangentFactors docs, std::span<double> m) {
  if (docs.docs == 0) return;
  use_device(device_);
  const std::size_t bytes = static_cast<std::size_t>(docs.docs * docs.docs) * sizeof(double);
  answer_.reserve(kStatusBytes + bytes);
  for (;;) {
    start_gram(docs);
    const Stream stream = stream_.get();
    copy_bytes(stream, answer_.data(), posterior_.status(), sizeof(CovarianceStatus));
    copy_bytes(stream, answer_.data() + kStatusBytes, m_.data(), bytes);
    wait();
    CovarianceStatus status;
    std::memcpy(&status, answer_.data(), sizeof status);
    log_det_ = status.log_det;
    knows_log_det_ = true;
    if (status.failed == 0) break;
    repair();
  }
  std::memcpy(m.data(), answer_.data() + kStatusBytes, bytes);
}

void UploadedPosterior::repair() {
  use_device(device_);
  forget_gram();
  knows_log_det_ = false;
  posterior_.repair(stream_.get());
}

void UploadedPosterior::observe(TangentFactors docs, std::span<const PreferencePair> pairs) {
  if (pairs.empty()) return;
  use_device(device_);
  const Stream stream = stream_.get();
  if (!has_gram_ || !is_latest(docs)) start_gram(docs);
  const auto count = std::ssize(pairs);
  new_pairs_.reserve(stream, count);
  send(sent_pairs_, pairs.data(), pairs.size_bytes(), new_pairs_.data());
  forget_gram();
  knows_log_det_ = false;
  posterior_.observe(stream, rows(), m_.data(), new_pairs_.data(), count);
  pairs_ += count;
  posterior_.check_drift(stream);
}

void UploadedPosterior::switch_to_primal() {
  use_device(device_);
  wait();
  forget_gram();
  knows_log_det_ = false;
  posterior_.switch_to_primal();
}

double UploadedPosterior::log_det() {
  if (knows_log_det_) return log_det_;
  use_device(device_);
  wait();
  CovarianceStatus status;
  copy_to_host(posterior_.status(), std::span(&status, 1));
  log_det_ = status.log_det;
  knows_log_det_ = true;
  return log_det_;
}

double UploadedPosterior::drift() {
  use_device(device_);
  return posterior_.drift(stream_.get());
}

std::int64_t UploadedPosterior::bytes() const {
  return posterior_.bytes() + rows_.bytes() + m_.bytes() + new_pairs_.bytes() + products_.bytes();
}

bool UploadedPosterior::grows_in_place() const {
  use_device(device_);
  return AddressRange::supported();
}

void UploadedPosterior::save(StateWriter& state) {
  use_device(device_);
  wait();
  state.put("device.observed", pairs_);
  posterior_.save(state);
}

void UploadedPosterior::load(StateReader& state) {
  use_device(device_);
  wait();
  forget_gram();
  knows_log_det_ = false;
  pairs_ = state.get_one<std::int64_t>("device.observed");
  posterior_.load(stream_.get(), state);
}

std::unique_ptr<DevicePosterior> make_posterior(int device, const PosteriorSpec& spec) {
  return std::make_unique<UploadedPosterior>(device, spec);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
