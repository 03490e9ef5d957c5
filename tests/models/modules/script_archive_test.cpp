// TorchScript files that are not what they say.
#include "models/modules/script_archive.h"

#include <caffe2/serialize/inline_container.h>
#include <gtest/gtest.h>

#include <functional>
#include <sstream>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "tests/models/modules/script_file.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

std::string script_bytes() {
  const TemporaryFolder folder;
  write_script(folder.path() / "scorer.pt", 6);
  return read_file(folder.path() / "scorer.pt");
}

/// The same records, each as `change` leaves it; `packs` them.
std::string rewritten(const std::string& bytes,
                      const std::function<void(const std::string& name, std::string& record)>& change,
                      bool packs = false) {
  std::istringstream stream(bytes);
  caffe2::serialize::PyTorchStreamReader reader(&stream);
  std::string made;
  caffe2::serialize::PyTorchStreamWriter writer([&](const void* from, std::size_t size) {
    made.append(static_cast<const char*>(from), size);
    return size;
  });
  for (const std::string& name : reader.getAllRecords()) {
    if (name == "version" || name == ".data/serialization_id" || name == "byteorder") continue;
    const auto [data, size] = reader.getRecord(name);
    std::string record(static_cast<const char*>(data.get()), size);
    change(name, record);
    writer.writeRecord(name, record.data(), record.size(), packs);
  }
  writer.writeEndOfFile();
  return made;
}

std::string archive_refusal(const std::string& bytes) {
  try {
    check_script_archive(bytes, "scorer.pt");
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

TEST(ScriptArchiveTest, TakesWhatLibTorchHasWritten) {
  EXPECT_EQ(archive_refusal(script_bytes()), "");
  EXPECT_EQ(archive_refusal(rewritten(script_bytes(), [](const std::string&, std::string&) {})), "");
}

// LibTorch would read the rest from whatever lies behind.
TEST(ScriptArchiveTest, RefusesAStorageThatIsShorterThanItsTensor) {
  const std::string found =
      archive_refusal(rewritten(script_bytes(), [](const std::string& name, std::string& record) {
        if (name.starts_with("data/") && record.size() == 4 * 6 * sizeof(float)) record.resize(8);
      }));
  EXPECT_EQ(found,
            "module: 'scorer.pt' is damaged: it holds 8 bytes of a tensor that has 96: save it again.");
}

TEST(ScriptArchiveTest, RefusesWhatUnpacksToFarMore) {
  const std::string packed = rewritten(
      script_bytes(),
      [](const std::string& name, std::string& record) {
        if (name.starts_with("data/")) record.assign(20'000'000, '\0');
      },
      true);
  EXPECT_NE(archive_refusal(packed).find("would unpack to"), std::string::npos) << archive_refusal(packed);
}

TEST(ScriptArchiveTest, LeavesOtherDamageToLibTorch) {
  EXPECT_ANY_THROW(check_script_archive("no archive", "scorer.pt"));
}

}  // namespace
}  // namespace olrank
