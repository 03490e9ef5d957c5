#include "core/data/letor_reader.h"

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>
#include <fstream>
#include <thread>

#include "core/error.h"
#include "core/random/rng_stream.h"
#include "tests/core/data/letor_support.h"
#include "tests/support/cases.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

/// A file of many shapes: sparse and dense lines, queries that come back, names here and there.
std::string random_text(int docs, std::uint32_t number) {
  RngStream rng(make_key({.seed = 1, .purpose = Purpose::kProbe}), number);
  std::string text;
  for (int doc = 0; doc < docs; ++doc) {
    text += fmt::format("{} qid:{}", rng.index(5), rng.index(10) == 0 ? rng.index(20) : doc / 30);
    const std::uint32_t density = 1 + rng.index(4);
    for (int feature = 1; feature <= 20; ++feature) {
      if (rng.index(density) == 0) text += fmt::format(" {}:{:.6f}", feature, rng.normal());
    }
    if (rng.index(3) == 0) text += fmt::format(" # docid = D{}", doc);
    text += rng.index(8) == 0 ? "\r\n" : "\n";
  }
  return text;
}

TEST(LetorReader, ResultIndependentOfThreadsBlocksAndCompression) {
  const std::string text = random_text(2000, 0);
  const Dataset expected = read_text(text);
  for (const int threads : {1, 2, 4}) {
    for (const std::size_t block :
         {std::size_t{1}, std::size_t{97}, std::size_t{4096}, std::size_t{1} << 20}) {
      const LetorOptions options{.block_bytes = block};
      EXPECT_TRUE(same_content(read_text(text, options, threads), expected)) << threads << " " << block;
      if (block == 1) continue;
      for (const Compression compression : {Compression::kGzip, Compression::kZstd}) {
        EXPECT_TRUE(same_content(read_text(compressed(text, compression), options, threads), expected));
      }
    }
  }
}

TEST(LetorReader, ReportsFirstErrorOnAnyThreads) {
  std::string text = random_text(3000, 1);
  std::size_t at = 0;
  for (int line = 1; line < 1500; ++line) at = text.find('\n', at) + 1;
  text.insert(at, "0 qid:1 0:1\n");
  text += "and a later one\n";
  for (const int threads : {1, 2, 4}) {
    for (const std::size_t block : {std::size_t{100}, std::size_t{10'000}}) {
      for (const std::string& bytes : {text, compressed(text, Compression::kGzip)}) {
        EXPECT_TRUE(
            is_expected(message_of<DataError>([&] { read_text(bytes, {.block_bytes = block}, threads); }),
                        "data.txt:1500:9: ..."));
      }
    }
  }
}

TEST(LetorReader, ReadsConcatenatedMembersAndFrames) {
  const std::string text = random_text(200, 2);
  const Dataset expected = read_text(text);
  const std::size_t half = text.size() / 2;
  for (const Compression compression : {Compression::kGzip, Compression::kZstd}) {
    const std::string bytes = compressed(std::string_view(text).substr(0, half), compression) +
                              compressed("", compression) +
                              compressed(std::string_view(text).substr(half), compression);
    EXPECT_TRUE(same_content(read_text(bytes), expected));
  }
  const std::string padded = compressed(text, Compression::kGzip) + std::string(512, '\0');
  EXPECT_TRUE(same_content(read_text(padded), expected));
  const std::string skippable = std::string("\x50\x2A\x4D\x18\x03\x00\x00\x00xyz", 11);
  EXPECT_TRUE(same_content(read_text(skippable + compressed(text, Compression::kZstd)), expected));
}

TEST(LetorReader, TruncatedStreamErrorNamesLastLine) {
  const std::string text = random_text(2000, 3);
  for (const Compression compression : {Compression::kGzip, Compression::kZstd}) {
    const std::string bytes = compressed(text, compression);
    for (std::size_t size = 5; size < bytes.size(); size += bytes.size() / 37) {
      try {
        read_text(std::string_view(bytes).substr(0, size), {.block_bytes = 1000}, 2);
        FAIL();
      } catch (const DataError& error) {
        EXPECT_TRUE(contains(error.what(), "data is truncated."));
        EXPECT_GE(error.column(), 1);
        EXPECT_GT(error.line(), size > bytes.size() / 2 ? 100 : 0);
      }
    }
    std::string damaged = bytes;
    for (std::size_t at = bytes.size() / 2; at < bytes.size() / 2 + 64; ++at) damaged[at] = '\x55';
    EXPECT_THROW(read_text(damaged), DataError);
  }
  EXPECT_THROW(read_text(compressed(text, Compression::kGzip) + "rubbish"), DataError);
}

TEST(LetorReader, RefusesOversizedMatrixBeforeAllocation) {
  const std::string text = "0 qid:1 1:1\n0 qid:1 1:1 4000000000:1\n0 qid:1 1:1\n";
  EXPECT_EQ(message_of<DataError>(
                [&] { read_text(text, {.max_bytes = 1'000'000, .layout = FeatureLayout::kDense}); }),
            "data.txt:2:13: With feature 4000000000, the dense matrix of the first 3 documents needs "
            "48000000000 bytes, but --max-memory allows 1000000. Raise --max-memory, or remove or "
            "renumber features.");
  EXPECT_EQ(read_text("0 qid:1 25:1\n", {.max_bytes = 100}).features(), 25);
  EXPECT_THROW(read_text("0 qid:1 26:1\n", {.max_bytes = 100}), DataError);
}

TEST(LetorReader, RefusesFeaturesThatAreTooWideForTheirTextUnlessAsked) {
  std::string text;
  for (int doc = 0; doc < 24; ++doc)
    text += fmt::format("0 qid:1 {}:1\n", doc == 20 ? 100'000'000 : doc + 1);
  for (const Compression compression : {Compression::kNone, Compression::kZstd}) {
    for (const auto& [layout, matrix] :
         {std::pair{FeatureLayout::kDense, "dense matrix of 9.6 GB"},
          std::pair{FeatureLayout::kAuto, "sparse matrix and a model of 6.4 GB"}})
      EXPECT_EQ(
          message_of<DataError>([&, layout = layout] {
            read_text(compressed(text, compression), {.refuse_wide = true, .layout = layout});
          }),
          fmt::format("data.txt:21:9: With feature 100000000, 24 documents of 310 bytes of text become a "
                      "{}. Renumber the features, or give --max-memory to read the data as they are.",
                      matrix));
  }
  EXPECT_EQ(read_text("0 qid:1 1000000:1\n", {.refuse_wide = true}).features(), 1'000'000);
  EXPECT_TRUE(is_too_wide(1.1e9, 1e7));
  EXPECT_FALSE(is_too_wide(0.9e9, 1.0));
  EXPECT_FALSE(is_too_wide(1e12, 1.1e10));
}

TEST(LetorReader, RefusesEndlessNamesAndLines) {
  // 100 MB of names that compress to nothing, in documents of one value.
  std::string text;
  for (int doc = 0; doc < 100; ++doc) text += "0 qid:1 1:1 # docid = " + std::string(1 << 20, 'x') + "\n";
  const std::string names = compressed(text, Compression::kZstd);
  EXPECT_EQ(read_text(names).docs(), 100);
  // 40 MB of blanks; the reader must not take more of them than the limit.
  const std::string line = compressed("0 qid:1 1:1 " + std::string(40 << 20, ' '), Compression::kZstd);
  const auto refused = [](const std::string& bytes) {
    return message_of<DataError>([&] { read_text(bytes, {.max_bytes = 4 << 20}); });
  };
  EXPECT_TRUE(contains(refused(names), "The names of the first"));
  EXPECT_TRUE(is_expected(refused(line), "data.txt:1:...longer than..."));
}

std::int64_t resident_bytes(const char* which) {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    std::int64_t kilobytes = 0;
    if (word == which && status >> kilobytes) return kilobytes * 1024;
  }
  return -1;
}

TEST(LetorReader, PeakMemoryStaysNearOneMatrix) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's own memory would be measured";
#endif
  const TemporaryFolder folder;
  for (const bool scattered : {false, true}) {
    // 46 features and names, as in LETOR 4.0: the names are what weighs most beside the matrix.
    const std::string path = (folder / "large.txt").string();
    {
      std::ofstream file(path);
      RngStream rng(make_key({.seed = 6, .purpose = Purpose::kProbe}), 0);
      std::string values;
      for (int feature = 1; feature <= 46; ++feature)
        values += fmt::format(" {}:0.{}", feature, rng.index(1000));
      for (int doc = 0; doc < 150'000; ++doc) {
        file << "0 qid:" << (scattered ? rng.index(2000) : static_cast<std::uint32_t>(doc / 75)) << values
             << " # docid = GX-" << 1'000'000'000 + doc << "\n";
      }
    }
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ThreadPool pool(2);
      std::ofstream("/proc/self/clear_refs") << "5";  // the peak counts from here
      const std::int64_t before = resident_bytes("VmRSS:");
      const Dataset data = read_letor(path, {}, pool);
      const auto file = static_cast<std::int64_t>(std::filesystem::file_size(path));
      const double above = static_cast<double>(resident_bytes("VmHWM:") - before - file);
      const double matrix = static_cast<double>(data.docs() * data.features() * 4);
      fmt::print("{} queries: {:.2f} times the matrix above the mapped file\n",
                 scattered ? "scattered" : "grouped", above / matrix);
      std::fflush(stdout);
      ::_exit(above <= 1.3 * matrix ? 0 : 1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0) << (scattered ? "scattered" : "grouped");
  }
}

TEST(LetorReader, ReadsFilesAndPipes) {
  const TemporaryFolder folder;
  const std::string text = random_text(300, 4);
  const Dataset expected = read_text(text);
  ThreadPool pool(2);
  // Compression is told by content, not by name.
  for (const auto& [name, bytes] :
       {std::pair{"a.txt", text}, std::pair{"b.txt", compressed(text, Compression::kGzip)},
        std::pair{"c.gz", text}}) {
    write_file(folder / name, bytes);
    EXPECT_TRUE(same_content(read_letor(folder / name, {}, pool), expected)) << name;
  }

  for (const Compression compression : {Compression::kNone, Compression::kGzip, Compression::kZstd}) {
    const std::string bytes = compressed(text, compression);
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const int earlier = ::dup(STDIN_FILENO);
    ::dup2(ends[0], STDIN_FILENO);
    std::thread writer([&] {
      // The first byte alone, so that the reader cannot tell the compression from one read.
      EXPECT_EQ(::write(ends[1], bytes.data(), 1), 1);
      for (std::size_t at = 1; at < bytes.size();) {
        const ssize_t written = ::write(ends[1], bytes.data() + at, bytes.size() - at);
        ASSERT_GT(written, 0);
        at += static_cast<std::size_t>(written);
      }
      ::close(ends[1]);
    });
    EXPECT_TRUE(same_content(read_letor("-", {}, pool), expected));
    writer.join();
    ::dup2(earlier, STDIN_FILENO);
    ::close(earlier);
    ::close(ends[0]);
  }
}

TEST(LetorReader, RefusesCompressedNamesOfOtherContent) {
  const TemporaryFolder folder;
  ThreadPool pool(1);
  const auto message = [&](const std::string& name, const std::string& bytes) {
    std::ofstream(folder / name, std::ios::binary) << bytes;
    return message_of<DataError>([&] { read_letor(folder / name, {}, pool); });
  };
  const std::string text = "1 qid:1 1:0.5\n";
  for (const std::string& bytes : {std::string("PK\x03\x04 not gzip"), std::string("\x1f"), text + '\0',
                                   std::string("<!DOCTYPE html>\n<title>404</title>\n")}) {
    for (const std::string kind : {"gzip", "zstd"}) {
      const std::string name = kind == "gzip" ? "a.gz" : "a.zst";
      EXPECT_EQ(message(name, bytes), (folder / name).string() + ": The name says " + kind +
                                          ", but this is neither " + kind +
                                          " data nor text. Get the file again, or rename it.");
    }
  }
  EXPECT_TRUE(contains(message("b.gz", ""), "The file contains no document."));
  // The content decides how it is read.
  EXPECT_EQ(message("c.gz", compressed(text, Compression::kZstd)), kNoError);
  EXPECT_EQ(message("c.txt", compressed(text, Compression::kGzip)), kNoError);
}

TEST(LetorReader, RefusesMissingFilesAndFolders) {
  const TemporaryFolder folder;
  ThreadPool pool(1);
  EXPECT_THROW(read_letor((folder / "absent").string(), {}, pool), IoError);
  EXPECT_THROW(read_letor(folder.path().string(), {}, pool), IoError);
  write_file(folder / "empty", "");
  EXPECT_THROW(read_letor((folder / "empty").string(), {}, pool), DataError);
}

TEST(LetorReader, FingerprintDependsOnContents) {
  const auto fingerprint = [](const char* text) { return read_text(text).fingerprint().hex(); };
  const std::string base = fingerprint("1 qid:1 1:0.5 2:1\n0 qid:2 2:2\n");
  EXPECT_EQ(base, fingerprint("# c\n1.0 qid:1 2:1 1:5e-1\r\n\n0 qid:2 1:0 2:2.00 # x"));
  for (const char* other : {"2 qid:1 1:0.5 2:1\n0 qid:2 2:2\n", "1 qid:1 1:0.5 2:1\n0 qid:3 2:2\n",
                            "1 qid:1 1:0.5 2:1\n0 qid:1 2:2\n", "1 qid:1 1:0.5 2:1\n0 qid:2 2:2 3:0\n",
                            "1 qid:1 1:0.5 2:1\n0 qid:2 2:2 # docid = a\n",
                            "1 qid:1 1:0.5 2:1\n0 qid:2 1:-0 2:2\n", "0 qid:2 2:2\n1 qid:1 1:0.5 2:1\n"})
    EXPECT_NE(base, fingerprint(other)) << other;
}

}  // namespace
}  // namespace olrank
