#include "core/io/byte_stream.h"

#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <new>
#include <utility>
#include <vector>

#include "core/throw_error.h"

namespace olrank {
namespace {

constexpr std::size_t kPiece = std::size_t{256} << 10;
constexpr int kFrameLevel = 9;
constexpr unsigned long long kLargestFrame = 1ULL << 30;  // of content; also less than zstd's error sizes

/// Buffers a source's pieces for a reader that asks for other sizes.
class PlainStream : public ByteStream {
 public:
  explicit PlainStream(ByteSource source) : source_(std::move(source)) {}
  std::size_t read(std::span<char> bytes) override {
    if (left_.empty()) left_ = source_();
    const std::size_t count = std::min(bytes.size(), left_.size());
    if (count > 0) std::memcpy(bytes.data(), left_.data(), count);
    left_.remove_prefix(count);
    return count;
  }

 private:
  ByteSource source_;
  std::string_view left_;
};

class GzipStream : public ByteStream {
 public:
  explicit GzipStream(ByteSource source) : source_(std::move(source)) {
    if (inflateInit2(&zlib_, 15 + 16) != Z_OK) throw std::bad_alloc();
  }
  ~GzipStream() override { inflateEnd(&zlib_); }

  std::size_t read(std::span<char> bytes) override {
    if (ended_ || bytes.empty()) return 0;
    const auto capacity =
        static_cast<uInt>(std::min<std::size_t>(bytes.size(), std::numeric_limits<uInt>::max()));
    zlib_.next_out = reinterpret_cast<Bytef*>(bytes.data());
    zlib_.avail_out = capacity;
    while (zlib_.avail_out == capacity) {
      if (!refill()) {
        if (between_members_) {
          ended_ = true;
          break;
        }
        throw BrokenStream("The gzip data is truncated.");
      }
      if (between_members_) {
        // tar and tape tools pad with zeros; anything else must be a further member.
        if (*zlib_.next_in == 0) {
          ++zlib_.next_in;
          --zlib_.avail_in;
          continue;
        }
        if (inflateReset(&zlib_) != Z_OK) throw std::bad_alloc();
        between_members_ = false;
      }
      const int status = inflate(&zlib_, Z_NO_FLUSH);
      if (status == Z_STREAM_END) {
        between_members_ = true;
      } else if (status == Z_MEM_ERROR) {
        throw std::bad_alloc();
      } else if (status != Z_OK && status != Z_BUF_ERROR) {
        throw BrokenStream(fmt::format("The gzip data is damaged ({}).",
                                       zlib_.msg != nullptr ? zlib_.msg : "no reason given"));
      }
    }
    return capacity - zlib_.avail_out;
  }

 private:
  bool refill() {
    if (zlib_.avail_in > 0) return true;
    if (left_.empty()) left_ = source_();
    if (left_.empty()) return false;
    const std::string_view piece = left_.substr(0, std::size_t{1} << 30);
    left_.remove_prefix(piece.size());
    zlib_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(piece.data()));
    zlib_.avail_in = static_cast<uInt>(piece.size());
    return true;
  }

  ByteSource source_;
  std::string_view left_;
  z_stream zlib_{};
  bool between_members_ = false;
  bool ended_ = false;
};

class ZstdStream : public ByteStream {
 public:
  explicit ZstdStream(ByteSource source) : source_(std::move(source)), zstd_(ZSTD_createDStream()) {
    if (zstd_ == nullptr) throw std::bad_alloc();
  }
  ~ZstdStream() override { ZSTD_freeDStream(zstd_); }

  std::size_t read(std::span<char> bytes) override {
    if (bytes.empty()) return 0;
    ZSTD_outBuffer out{bytes.data(), bytes.size(), 0};
    while (out.pos == 0) {
      if (in_.pos == in_.size) {
        const std::string_view piece = source_();
        in_ = {piece.data(), piece.size(), 0};
        // At the end of the input, what the decoder still holds can come out without any.
        if (piece.empty() && expected_ == 0) return 0;
      }
      const bool input_ended = in_.size == 0;
      const std::size_t taken = in_.pos;
      expected_ = ZSTD_decompressStream(zstd_, &out, &in_);
      if (ZSTD_isError(expected_) != 0) {
        throw BrokenStream(fmt::format("The zstd data is damaged ({}).", ZSTD_getErrorName(expected_)));
      }
      if (input_ended && out.pos == 0 && in_.pos == taken)
        throw BrokenStream("The zstd data is truncated.");
    }
    return out.pos;
  }

 private:
  ByteSource source_;
  ZSTD_DStream* zstd_;
  ZSTD_inBuffer in_{nullptr, 0, 0};
  std::size_t expected_ = 0;  // 0 between frames
};

class PlainCompressor : public Compressor {
 public:
  explicit PlainCompressor(Sink sink) : sink_(std::move(sink)) {}
  void write(std::string_view bytes) override { sink_(bytes); }
  void finish() override {}

 private:
  Sink sink_;
};

class GzipCompressor : public Compressor {
 public:
  explicit GzipCompressor(Sink sink) : sink_(std::move(sink)), out_(kPiece) {
    if (deflateInit2(&zlib_, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) throw std::bad_alloc();
  }
  ~GzipCompressor() override { deflateEnd(&zlib_); }
  void write(std::string_view bytes) override {
    while (!bytes.empty()) {
      const std::string_view piece = bytes.substr(0, std::size_t{1} << 30);
      bytes.remove_prefix(piece.size());
      zlib_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(piece.data()));
      zlib_.avail_in = static_cast<uInt>(piece.size());
      run(Z_NO_FLUSH);
    }
  }
  void finish() override { run(Z_FINISH); }

 private:
  void run(int flush) {
    int status = Z_OK;
    do {
      zlib_.next_out = reinterpret_cast<Bytef*>(out_.data());
      zlib_.avail_out = static_cast<uInt>(out_.size());
      status = deflate(&zlib_, flush);
      sink_({out_.data(), out_.size() - zlib_.avail_out});
    } while (zlib_.avail_in > 0 || (flush == Z_FINISH && status != Z_STREAM_END));
  }

  Sink sink_;
  std::vector<char> out_;
  z_stream zlib_{};
};

class ZstdCompressor : public Compressor {
 public:
  explicit ZstdCompressor(Sink sink) : sink_(std::move(sink)), out_(kPiece), zstd_(ZSTD_createCStream()) {
    if (zstd_ == nullptr) throw std::bad_alloc();
    ZSTD_CCtx_setParameter(zstd_, ZSTD_c_checksumFlag, 1);
  }
  ~ZstdCompressor() override { ZSTD_freeCStream(zstd_); }
  void write(std::string_view bytes) override { run(bytes, ZSTD_e_continue); }
  void finish() override { run({}, ZSTD_e_end); }

 private:
  void run(std::string_view bytes, ZSTD_EndDirective directive) {
    ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
    std::size_t left = 0;
    do {
      ZSTD_outBuffer out{out_.data(), out_.size(), 0};
      left = ZSTD_compressStream2(zstd_, &out, &in, directive);
      if (ZSTD_isError(left) != 0) {
        throw_error<Error>("Compression with zstd failed: {}.", ZSTD_getErrorName(left));
      }
      sink_({out_.data(), out.pos});
    } while (in.pos < in.size || (directive == ZSTD_e_end && left > 0));
  }

  Sink sink_;
  std::vector<char> out_;
  ZSTD_CStream* zstd_;
};

/// Whether the beginning of the bytes has control characters that text does not have.
bool is_binary(std::string_view bytes) {
  return std::any_of(bytes.begin(), bytes.begin() + std::min<std::size_t>(bytes.size(), 4096), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n' && c != '\v' && c != '\f' &&
           c != '\r';
  });
}

}  // namespace

Compression compression_of(std::string_view first_bytes) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(first_bytes[at]); };
  if (first_bytes.size() >= 2 && byte(0) == 0x1F && byte(1) == 0x8B) return Compression::kGzip;
  if (first_bytes.size() >= 4) {
    if (first_bytes.substr(0, 4) == "\x28\xB5\x2F\xFD") return Compression::kZstd;
    // A skippable frame, which parallel compressors put first.
    if ((byte(0) & 0xF0) == 0x50 && first_bytes.substr(1, 3) == "\x2A\x4D\x18") return Compression::kZstd;
  }
  return Compression::kNone;
}

Compression compression_of_name(std::string_view name) {
  if (name.ends_with(".gz")) return Compression::kGzip;
  if (name.ends_with(".zst")) return Compression::kZstd;
  return Compression::kNone;
}

void require_compression_of_name(const std::string& name, std::string_view first_bytes) {
  const Compression promised = compression_of_name(name);
  if (promised == Compression::kNone || compression_of(first_bytes.substr(0, 4)) != Compression::kNone)
    return;
  if (!is_binary(first_bytes) && !first_bytes.starts_with('<')) return;
  const std::string_view kind = promised == Compression::kGzip ? "gzip" : "zstd";
  throw_data_error(
      name, 0, 0,
      "The name says {0}, but this is neither {0} data nor text. Get the file again, or rename it.", kind);
}

ByteSource memory_source(std::string_view bytes) {
  return [bytes]() mutable { return std::exchange(bytes, std::string_view()); };
}

ByteSource descriptor_source(int descriptor, std::string name) {
  return [descriptor, name = std::move(name), piece = std::vector<char>(kPiece)]() mutable {
    for (;;) {
      const ssize_t count = ::read(descriptor, piece.data(), piece.size());
      if (count >= 0) return std::string_view(piece.data(), count);
      if (errno != EINTR) throw IoError("read", name, errno);
    }
  };
}

std::unique_ptr<ByteStream> decompressed(ByteSource source, Compression compression) {
  if (compression == Compression::kGzip) return std::make_unique<GzipStream>(std::move(source));
  if (compression == Compression::kZstd) return std::make_unique<ZstdStream>(std::move(source));
  return std::make_unique<PlainStream>(std::move(source));
}

std::unique_ptr<ByteStream> descriptor_stream(int descriptor, const std::string& name) {
  ByteSource rest = descriptor_source(descriptor, name);
  std::string start;  // enough to tell the compression; given out again first
  while (start.size() < 4) {
    const std::string_view piece = rest();
    if (piece.empty()) break;
    start += piece;
  }
  require_compression_of_name(name, start);
  const Compression compression = compression_of(start);
  ByteSource bytes = [start = std::move(start), rest = std::move(rest),
                      given = false]() mutable -> std::string_view {
    if (given || start.empty()) return rest();
    given = true;
    return start;
  };
  return decompressed(std::move(bytes), compression);
}

std::unique_ptr<Compressor> Compressor::make(Compression compression, Sink sink) {
  if (compression == Compression::kGzip) return std::make_unique<GzipCompressor>(std::move(sink));
  if (compression == Compression::kZstd) return std::make_unique<ZstdCompressor>(std::move(sink));
  return std::make_unique<PlainCompressor>(std::move(sink));
}

std::string zstd_frame(std::string_view bytes) {
  std::string frame(ZSTD_compressBound(bytes.size()), '\0');
  const std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> zstd(ZSTD_createCCtx(), ZSTD_freeCCtx);
  if (!zstd) throw std::bad_alloc();
  ZSTD_CCtx_setParameter(zstd.get(), ZSTD_c_checksumFlag, 1);
  ZSTD_CCtx_setParameter(zstd.get(), ZSTD_c_compressionLevel, kFrameLevel);
  const std::size_t size =
      ZSTD_compress2(zstd.get(), frame.data(), frame.size(), bytes.data(), bytes.size());
  if (ZSTD_isError(size) != 0)
    throw_error<Error>("Compression with zstd failed: {}.", ZSTD_getErrorName(size));
  frame.resize(size);
  return frame;
}

std::string zstd_content(std::string_view frame) {
  std::string content(zstd_sizes(frame).content, '\0');
  const std::size_t size = ZSTD_decompress(content.data(), content.size(), frame.data(), frame.size());
  if (ZSTD_isError(size) != 0)
    throw BrokenStream(fmt::format("The zstd data is damaged ({}).", ZSTD_getErrorName(size)));
  return content;
}

ZstdSizes zstd_sizes(std::string_view bytes) {
  const std::size_t frame = ZSTD_findFrameCompressedSize(bytes.data(), bytes.size());
  const unsigned long long content = ZSTD_getFrameContentSize(bytes.data(), bytes.size());
  if (ZSTD_isError(frame) != 0 || content == ZSTD_CONTENTSIZE_UNKNOWN || content > kLargestFrame) return {};
  return {frame, static_cast<std::size_t>(content)};
}

}  // namespace olrank
