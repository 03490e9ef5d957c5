// TorchScript files that are not what they say.
#include "models/modules/script_archive.h"

#include <caffe2/serialize/inline_container.h>
#include <fmt/format.h>
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

// LibTorch would make room for gigabytes: for a text, and for a place in the memo.
TEST(ScriptArchiveTest, RefusesPicklesThatSayThatTheyHaveGigabytes) {
  for (const char* pickle : {"\x80\x02X\xff\xff\xff\x7fshort.", "\x80\x02Nr\xff\xff\xff\x7f."}) {
    const std::string found =
        archive_refusal(rewritten(script_bytes(), [&](const std::string& name, std::string& record) {
          if (name == "data.pkl") record = pickle;
        }));
    EXPECT_EQ(found, "module: 'scorer.pt' is damaged, because its data end too early: save it again.");
  }
}

// The reader of LibTorch does not care about the case of names.
TEST(ScriptArchiveTest, LooksIntoPicklesOfAnyCase) {
  std::string bytes = rewritten(script_bytes(), [](const std::string& name, std::string& record) {
    if (name == "data.pkl") record = "\x80\x02X\xff\xff\xff\x7fshort.";
  });
  for (std::size_t at = bytes.find("data.pkl"); at != std::string::npos; at = bytes.find("data.pkl", at))
    bytes.replace(at, 8, "data.PKL");
  EXPECT_EQ(archive_refusal(bytes),
            "module: 'scorer.pt' is damaged, because its data end too early: save it again.");
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

/// What is said of a module whose forward has this code.
std::string code_refusal(const std::string& code, ModuleState state = ModuleState::kRefuse) {
  torch::jit::Module module("Scorer");
  module.register_parameter("w", torch::ones({6}), false);
  module.register_buffer("calls", torch::zeros({1}));
  module.register_attribute("training", c10::BoolType::get(), true);
  module.register_attribute("count", c10::IntType::get(), 0);
  module.define("def forward(self, docs: Tensor) -> Tensor:\n" + code);
  module.eval();
  try {
    check_script_code(module, state, "scorer.pt");
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

constexpr const char* kProduct = "  return torch.matmul(docs, self.w)\n";

TEST(ScriptCodeTest, TakesPlainCode) {
  EXPECT_EQ(code_refusal(kProduct), "");
  EXPECT_EQ(code_refusal("  h = docs * 2.0\n  h.relu_()\n  return torch.matmul(h, self.w)\n"), "");
}

TEST(ScriptCodeTest, RefusesRandomOperatorsUnlessAConstantTurnsThemOff) {
  const auto dropout = [](const char* training) {
    return fmt::format("  return torch.matmul(torch.dropout(docs, 0.5, {}), self.w)\n", training);
  };
  EXPECT_EQ(code_refusal(dropout("False")), "");
  EXPECT_EQ(code_refusal(dropout("self.training")), "");
  EXPECT_EQ(
      code_refusal(dropout("True")),
      "module: 'scorer.pt' draws random numbers (aten::dropout): let forward compute the same from the "
      "same documents.");
}

// Trying it would not show it.
TEST(ScriptCodeTest, LooksIntoBranchesThatFewDocumentsTake) {
  const std::string rare = "  if docs.size(0) > 1000:\n";
  EXPECT_NE(code_refusal(rare + "    return torch.rand([docs.size(0)])\n" + kProduct).find("aten::rand"),
            std::string::npos);
  EXPECT_NE(code_refusal(rare + "    self.calls.add_(1.0)\n" + kProduct)
                .find("changes 'calls' in forward (aten::add_)"),
            std::string::npos);
  EXPECT_NE(code_refusal("  h = docs.double()\n  h.relu_()\n  return torch.matmul(h, self.w.double())\n")
                .find("changes its documents in place (aten::relu_)"),
            std::string::npos);
}

TEST(ScriptCodeTest, RefusesAttributesThatChangeUnlessTheyAreReset) {
  const std::string counts = std::string("  self.count = self.count + 1\n") + kProduct;
  EXPECT_NE(code_refusal(counts).find("changes 'count' in forward (prim::SetAttr)"), std::string::npos);
  EXPECT_EQ(code_refusal(counts, ModuleState::kReset), "");
}

TEST(ScriptCodeTest, RefusesFiles) {
  const std::string code = "  return torch.matmul(docs, torch.from_file(\"/tmp/x\", True, 6, dtype=6))\n";
  EXPECT_NE(code_refusal(code, ModuleState::kReset).find("reaches for files (aten::from_file)"),
            std::string::npos);
}

TEST(ScriptArchiveTest, LeavesOtherDamageToLibTorch) {
  EXPECT_ANY_THROW(check_script_archive("no archive", "scorer.pt"));
}

}  // namespace
}  // namespace olrank
