#include <caffe2/serialize/inline_container.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <atomic>
#include <functional>
#include <memory>
#include <sstream>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "models/modules/script_archive.h"
#include "tests/models/modules/module_fixture.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

// Modules of users: what is refused, and what works in a way of its own.

namespace olrank {
namespace {

using torch::Tensor;

constexpr std::int64_t kTriedFeatures = 6;

/// A linear layer, and what a test makes of its scores [V × 1].
class Bent : public torch::nn::Module {
 public:
  using Bend = std::function<Tensor(Bent& module, const Tensor& docs)>;
  Bent(std::int64_t features, Bend bend) : bend_(std::move(bend)) {
    linear = register_module("linear", torch::nn::Linear(features, 1));
  }
  Tensor forward(const Tensor& docs) { return bend_(*this, docs); }

  torch::nn::Linear linear{nullptr};

 private:
  Bend bend_;
};

/// Registers a linear layer whose scores are bent, under a name of its own.
std::string bent(Bent::Bend bend) {
  static std::atomic<int> count = 0;
  const std::string name = "bent-" + std::to_string(count++);
  register_module(name, [bend](const ModuleRequest& request) {
    return std::make_shared<Bent>(request.features, bend);
  });
  return name;
}

void expect_refusal(const std::string& name, const std::vector<std::string>& words) {
  const std::string text = message_of<InvalidArgument>(
      [&] { open_module({.module = name, .features = kTriedFeatures, .width = 4}); });
  for (const std::string& word : words) EXPECT_TRUE(contains(text, word)) << word << " in: " << text;
  EXPECT_FALSE(contains(text, "\n"));
}

Tensor plain(Bent& module, const Tensor& docs) {
  return module.linear->forward(docs).squeeze(1);
}

/// Refuses a linear layer that is changed when it is made, with these words.
template <class Change>
void refused_when_made(const std::string& name, const std::vector<std::string>& words,
                       const Change& change) {
  register_module(name, [change](const ModuleRequest& request) {
    auto module = std::make_shared<Bent>(request.features, plain);
    const torch::NoGradGuard no_gradient;
    change(*module);
    return module;
  });
  expect_refusal(name, words);
}

TEST(ModuleChecksTest, RefusesNamesFactoriesAndParameters) {
  refused_when_made("starts-at-infinity", {"'linear.bias'", "not finite"},
                    [](Bent& module) { module.linear->bias.fill_(INFINITY); });
  refused_when_made("frozen", {"no parameters that can be learned"}, [](Bent& module) {
    for (Tensor& parameter : module.parameters()) parameter.requires_grad_(false);
  });
  refused_when_made("counts", {"'counts'", "Long", "float32"}, [](Bent& module) {
    module.register_parameter("counts", torch::ones({2}, torch::kLong), false);
  });
  register_module("seven", [](const ModuleRequest&) { return std::make_shared<Bent>(7, plain); });
  expect_refusal("seven", {"7 documents of 6 features", "that many features"});
  register_module("fails", [](const ModuleRequest& request) -> std::shared_ptr<Bent> {
    TORCH_CHECK(request.width > 10, "too narrow");
    return std::make_shared<Bent>(request.features, plain);
  });
  expect_refusal("fails", {"cannot be made", "too narrow"});
  expect_refusal("atention", {"attention", "layernorm", "relu", "residual", "Did you mean 'attention'?"});
  EXPECT_TRUE(contains(message_of<InvalidArgument>([] { open_module({.module = "relu", .depth = 1}); }),
                       "A ReLU ranker has at least 2 layers of weights, not 1"));
  EXPECT_THROW(register_factory("relu", {}), InvalidArgument);
  EXPECT_THROW(register_factory("mine.pt", {}), InvalidArgument);
}

/// Refuses a linear layer whose scores are bent, with these words.
void refused(const std::vector<std::string>& words, Bent::Bend bend) {
  expect_refusal(bent(std::move(bend)), words);
}

TEST(ModuleChecksTest, RefusesForwardsThatCannotBeTrained) {
  refused({"[7 × 1]", ".squeeze(1)"},
          [](Bent& module, const Tensor& docs) { return module.linear->forward(docs); });
  refused({"shape []", "one score for each document"},
          [](Bent& module, const Tensor& docs) { return plain(module, docs).sum(); });
  refused({"1 document", "squeeze(1)"},
          [](Bent& module, const Tensor& docs) { return module.linear->forward(docs).squeeze(); });
  refused({"not finite", "divisions by zero"},
          [](Bent& module, const Tensor& docs) { return plain(module, docs) / 0.0; });
  refused({"gradient", "'linear.weight'", "not finite"},
          [](Bent& module, const Tensor& docs) { return torch::sqrt(plain(module, docs) * 0.0); });
  refused({"without gradients"},
          [](Bent& module, const Tensor& docs) { return plain(module, docs).detach(); });
  refused({"'linear.bias'", "does not use"}, [](Bent& module, const Tensor& docs) {
    return torch::matmul(docs, module.linear->weight.squeeze(0));
  });
  refused({"cannot be differentiated", "in place"}, [](Bent& module, const Tensor& docs) {
    Tensor inputs = docs.clone();
    const Tensor scores = module.linear->forward(inputs).squeeze(1);
    inputs.mul_(2.0);
    return scores;
  });
  refused({"draws random numbers (aten::rand)"}, [](Bent& module, const Tensor& docs) {
    return plain(module, docs) * (1.0 + 0.1 * torch::rand({1}, torch::kDouble));
  });
  // Also where scores do not show it.
  refused({"draws random numbers (aten::randperm)"}, [](Bent& module, const Tensor& docs) {
    return plain(module, docs) + 0.0 * torch::randperm(docs.size(0));
  });
  const auto calls = std::make_shared<int>(0);
  refused({"other scores", "eval()"}, [calls](Bent& module, const Tensor& docs) {
    return plain(module, docs) * (1.0 + 0.1 * ++*calls);
  });
  refused({"changes its documents in place"}, [](Bent& module, const Tensor& docs) {
    const Tensor scores = plain(module, docs.clone());
    docs.select(0, 0).zero_();
    return scores;
  });
  refused({"one document", "two documents at least"}, [](Bent& module, const Tensor& docs) {
    TORCH_CHECK(docs.size(0) > 1, "two documents at least");
    return plain(module, docs);
  });
  refused({"float32 alone", "dtype=docs.dtype"}, [](Bent& module, const Tensor& docs) {
    return plain(module, docs) + torch::matmul(docs, torch::ones({kTriedFeatures}));
  });
  refused({"another order", "as a set"},
          [](Bent& module, const Tensor& docs) { return plain(module, docs).cumsum(0); });
}

/// A module that doubles its scores from the hundredth call on.
std::string counting() {
  static const bool registered = register_module("counting", [](const ModuleRequest& request) {
    auto module = std::make_shared<Bent>(request.features, [](Bent& self, const Tensor& docs) {
      Tensor calls = self.named_buffers()["calls"];
      calls.add_(1.0);
      return plain(self, docs) * (calls.item<double>() < 100.0 ? 1.0 : 2.0);
    });
    module->register_buffer("calls", torch::zeros({1}));
    return module;
  });
  EXPECT_TRUE(registered);
  return "counting";
}

TEST(ModuleChecksTest, RefusesABufferThatChanges) {
  expect_refusal(counting(), {"its buffer 'calls'", "change nothing there"});
}

/// Factors against autograd on a module of the same class, and how they were found.
template <class Module>
void expect_rows(const std::string& name, std::string_view way, bool reads_lists) {
  if (name != "shared")
    register_module(name, [](const ModuleRequest&) { return std::make_shared<Module>(); });
  const std::unique_ptr<ModuleModel> model = open_module({.module = name, .features = kTriedFeatures});
  EXPECT_EQ(model->factors_by(), way) << name;
  EXPECT_EQ(model->reads_lists(), reads_lists) << name;
  const std::vector<float> theta = moved_parameters(*model, 41);
  const std::vector<float> features = module_docs(5, kTriedFeatures, 42);
  Module module;
  module.eval();
  const AutogradRows expected = autograd_rows(module, theta, features, kTriedFeatures);
  ExecutionContext context;
  std::vector<float> factors(5 * model->tangent_shape().factors());
  model->find_factors(context, theta, matrix_of(features, kTriedFeatures), factors, {}, {});
  EXPECT_LE(largest_difference(written_out(*model, factors), expected.rows),
            3e-7 * expected.rows.cwiseAbs().maxCoeff())
      << name;
  const std::vector<double> v = random_doubles(model->parameters(), 43);
  std::vector<double> products(5);
  model->multiply_gradients(context, theta, matrix_of(features, kTriedFeatures), v, products);
  const Eigen::VectorXd wanted = expected.rows * Eigen::Map<const Eigen::VectorXd>(v.data(), std::ssize(v));
  for (int doc = 0; doc < 5; ++doc)
    EXPECT_NEAR(products[doc], wanted(doc), 1e-5 * expected.rows.cwiseAbs().sum()) << name;
}

struct Base : torch::nn::Module {
  torch::nn::Linear input = register_module("input", torch::nn::Linear(kTriedFeatures, 5));
  torch::nn::Linear inner = register_module("inner", torch::nn::Linear(5, 5));
  torch::nn::Linear output = register_module("output", torch::nn::Linear(5, 1));
};

/// A layer that is used twice.
struct Shared : Base {
  Tensor forward(const Tensor& docs) {
    return output(torch::tanh(inner(torch::tanh(inner(input(docs)))))).squeeze(1);
  }
};

/// A parameter in an operation of its own.
struct Scaled : Base {
  Tensor gain = register_parameter("gain", torch::ones({5}));
  Tensor forward(const Tensor& docs) { return output(torch::tanh(inner(input(docs) * gain))).squeeze(1); }
};

/// A matrix that is not transposed, and activations in place.
struct Straight : Base {
  Tensor matrix = register_parameter("matrix", torch::ones({5, 5}) * 0.1);
  Tensor forward(const Tensor& docs) {
    Tensor units = inner(torch::tanh(input(docs)).mm(matrix));
    units.relu_();
    return output(units).squeeze(1);
  }
};

/// Documents pass in another order and come back.
struct Turned : Base {
  Tensor forward(const Tensor& docs) {
    return output(torch::tanh(inner(input(docs.flip({0}))))).flip({0}).squeeze(1);
  }
};

/// Scores relative to the list's mean.
struct Centred : Base {
  Tensor forward(const Tensor& docs) {
    const Tensor scores = output(torch::tanh(inner(input(docs)))).squeeze(1);
    return scores - scores.mean();
  }
};

/// A category in the last feature, behind layers in training mode.
struct Categories : Base {
  torch::nn::Embedding table =
      register_module("table", torch::nn::Embedding(torch::nn::EmbeddingOptions(4, 5).padding_idx(2)));
  torch::nn::Dropout dropout = register_module("dropout", torch::nn::Dropout(0.5));
  torch::nn::BatchNorm1d norm =
      register_module("norm", torch::nn::BatchNorm1d(torch::nn::BatchNorm1dOptions(5).affine(false)));
  Tensor forward(const Tensor& docs) {
    const Tensor category = (docs.select(1, kTriedFeatures - 1) * 4.0).toType(torch::kLong);
    return output(torch::tanh(dropout(norm(inner(input(docs)))) + table(category))).squeeze(1);
  }
};

/// A first derivative alone.
struct Kinked : Base {
  Tensor forward(const Tensor& docs) {
    const Tensor units = inner(torch::tanh(inner(input(docs))));
    return output(torch::relu(units) + torch::abs(units)).squeeze(1);
  }
};

OLRANK_REGISTER_MODULE("shared", [](const ModuleRequest&) { return std::make_shared<Shared>(); });

TEST(ModuleChecksTest, FindsTheFactorsOfModulesThatUsersWrite) {
  expect_rows<Shared>("shared", "rows", false);
  expect_rows<Scaled>("scaled", "rows", false);
  expect_rows<Straight>("straight", "hooks", false);
  expect_rows<Turned>("turned", "rows", false);
  expect_rows<Centred>("centred", "rows", true);
  expect_rows<Categories>("categories", "hooks", false);
  expect_rows<Kinked>("kinked", "rows", false);
}

}  // namespace
}  // namespace olrank

// TorchScript files that are not what they say.

namespace olrank {
namespace {

std::string script_bytes() {
  const TemporaryFolder folder;
  write_script(folder.path() / "scorer.pt", 6);
  return read_file(folder.path() / "scorer.pt");
}

/// Writes a script's records again, each as `change` leaves it, and compressed if it `packs` them.
std::string rewritten(const std::function<void(const std::string& name, std::string& record)>& change,
                      bool packs = false) {
  std::istringstream stream(script_bytes());
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

std::string with_pickle(std::string_view pickle) {
  return rewritten([&](const std::string& name, std::string& record) {
    if (name == "data.pkl") record = pickle;
  });
}

std::string archive_refusal(const std::string& bytes) {
  return message_of<InvalidArgument>([&] { check_script_archive(bytes, "scorer.pt"); });
}

TEST(ScriptArchiveTest, TakesWhatLibTorchHasWritten) {
  EXPECT_EQ(archive_refusal(script_bytes()), kNoError);
  EXPECT_EQ(archive_refusal(rewritten([](const std::string&, std::string&) {})), kNoError);
}

// LibTorch would read the rest from whatever lies behind.
TEST(ScriptArchiveTest, RefusesAStorageThatIsShorterThanItsTensor) {
  const std::string shorter = rewritten([](const std::string& name, std::string& record) {
    if (name.starts_with("data/") && record.size() == 4 * 6 * sizeof(float)) record.resize(8);
  });
  EXPECT_EQ(archive_refusal(shorter),
            "module: 'scorer.pt' is damaged: it holds 8 bytes of a tensor that has 96: save it again.");
}

// LibTorch would make room for gigabytes: for a text, and for a place in the memo. Its reader does not care
// about the case of names.
TEST(ScriptArchiveTest, RefusesPicklesThatSayThatTheyHaveGigabytes) {
  std::string other_case = with_pickle("\x80\x02X\xff\xff\xff\x7fshort.");
  for (std::size_t at; (at = other_case.find("data.pkl")) != std::string::npos;)
    other_case.replace(at, 8, "data.PKL");
  for (const std::string& bytes : {with_pickle("\x80\x02X\xff\xff\xff\x7fshort."),
                                   with_pickle("\x80\x02Nr\xff\xff\xff\x7f."), other_case})
    EXPECT_EQ(archive_refusal(bytes),
              "module: 'scorer.pt' is damaged, because its data end too early: save it again.");
}

TEST(ScriptArchiveTest, RefusesWhatUnpacksToFarMore) {
  const std::string packed = rewritten(
      [](const std::string& name, std::string& record) {
        if (name.starts_with("data/")) record.assign(20'000'000, '\0');
      },
      true);
  EXPECT_TRUE(contains(archive_refusal(packed), "would unpack to")) << archive_refusal(packed);
}

/// Returns what is said of a module whose forward has this code.
std::string code_refusal(const std::string& code) {
  torch::jit::Module module("Scorer");
  module.register_parameter("w", torch::ones({6}), false);
  module.register_buffer("calls", torch::zeros({1}));
  module.register_attribute("training", c10::BoolType::get(), true);
  module.register_attribute("count", c10::IntType::get(), 0);
  module.define("def forward(self, docs: Tensor) -> Tensor:\n" + code);
  module.eval();
  return message_of<InvalidArgument>([&] { check_script_code(module, "scorer.pt"); });
}

constexpr const char* kProduct = "  return torch.matmul(docs, self.w)\n";

TEST(ScriptCodeTest, TakesPlainCode) {
  EXPECT_EQ(code_refusal(kProduct), kNoError);
  EXPECT_EQ(code_refusal("  h = docs * 2.0\n  h.relu_()\n  return torch.matmul(h, self.w)\n"), kNoError);
}

TEST(ScriptCodeTest, RefusesRandomOperatorsUnlessAConstantTurnsThemOff) {
  const auto dropout = [](const char* training) {
    return fmt::format("  return torch.matmul(torch.dropout(docs, 0.5, {}), self.w)\n", training);
  };
  EXPECT_EQ(code_refusal(dropout("False")), kNoError);
  EXPECT_EQ(code_refusal(dropout("self.training")), kNoError);
  EXPECT_EQ(
      code_refusal(dropout("True")),
      "module: 'scorer.pt' draws random numbers (aten::dropout): let forward compute the same from the "
      "same documents.");
}

// Trying it would not show what is in branches that few documents take.
TEST(ScriptCodeTest, RefusesCodeThatChangesOrReads) {
  const std::string rare = "  if docs.size(0) > 1000:\n";
  const std::pair<std::string, const char*> cases[] = {
      {rare + "    return torch.rand([docs.size(0)])\n" + kProduct, "aten::rand"},
      {rare + "    self.calls.add_(1.0)\n" + kProduct, "changes 'calls' in forward (aten::add_)"},
      {"  h = docs.double()\n  h.relu_()\n  return torch.matmul(h, self.w.double())\n",
       "changes its documents in place (aten::relu_)"},
      {std::string("  self.count = self.count + 1\n") + kProduct,
       "changes 'count' in forward (prim::SetAttr)"},
      {"  return torch.matmul(docs, torch.from_file(\"/tmp/x\", True, 6, dtype=6))\n",
       "reaches for files (aten::from_file)"}};
  for (const auto& [code, part] : cases) EXPECT_TRUE(contains(code_refusal(code), part));
}

TEST(ScriptArchiveTest, LeavesOtherDamageToLibTorch) {
  EXPECT_ANY_THROW(check_script_archive("no archive", "scorer.pt"));
}

}  // namespace
}  // namespace olrank
