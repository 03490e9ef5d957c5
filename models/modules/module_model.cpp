#include "models/modules/module_model.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <fmt/format.h>
#include <torch/headeronly/version.h>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "core/io/fingerprint.h"
#include "core/ops/gradient_products.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "models/modules/module_checks.h"
#include "models/modules/module_instance.h"
#include "models/skeleton/network_settings.h"

namespace olrank {
namespace {

/// Documents of one pass where they do not depend on each other. On a GPU as many as fill it.
constexpr std::int64_t kDocsPerModulePass = 256;
constexpr std::int64_t kDocsPerGpuPass = 8192;
/// Most documents of several lists whose graphs wait for the weights of scores; with more, each list is
/// computed once more, with the same bits.
constexpr std::int64_t kMostDocsWithGraphs = 32768;

/// Copies of a module in one precision. A call borrows one, alone.
class InstancePool {
 public:
  InstancePool(const ModuleSource& source, torch::Dtype precision, const ModuleDevice& device)
      : source_(source), precision_(precision), device_(device) {}

  const ModuleDevice& device() const { return device_; }

  std::unique_ptr<ModuleInstance> borrow(std::span<const float> theta) {
    thread_local const bool one_thread = (use_one_libtorch_thread(), true);
    static_cast<void>(one_thread);
    std::unique_ptr<ModuleInstance> instance;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!free_.empty()) {
        instance = std::move(free_.back());
        free_.pop_back();
      }
    }
    // Buffers that were drawn are the same in every copy.
    if (!instance) instance = std::make_unique<ModuleInstance>(source_.make(0), precision_, device_.get());
    instance->set_parameters(theta);
    return instance;
  }
  void give_back(std::unique_ptr<ModuleInstance> instance) {
    const std::lock_guard<std::mutex> lock(mutex_);
    free_.push_back(std::move(instance));
  }

 private:
  const ModuleSource& source_;
  torch::Dtype precision_;
  const ModuleDevice& device_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<ModuleInstance>> free_;
};

/// A copy, and the stream in which the calling thread works with it.
class Borrowed {
 public:
  Borrowed(InstancePool& pool, std::span<const float> theta)
      : in_stream_(pool.device().stream()), pool_(pool), instance_(pool.borrow(theta)) {}
  ~Borrowed() { pool_.give_back(std::move(instance_)); }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  ModuleInstance& operator*() { return *instance_; }
  ModuleInstance* operator->() { return instance_.get(); }

 private:
  c10::OptionalStreamGuard in_stream_;
  InstancePool& pool_;
  std::unique_ptr<ModuleInstance> instance_;
};

/// Scores in double are rounded once, so that their size bounds the terms behind them.
void set_magnitudes(std::span<const float> scores, std::span<float> magnitudes) {
  for (std::size_t doc = 0; doc < magnitudes.size(); ++doc) magnitudes[doc] = std::abs(scores[doc]);
}

void copy_scores(const torch::Tensor& scores, std::span<float> out) {
  const torch::Tensor values = scores.detach().to(torch::kFloat).cpu().contiguous();
  std::copy_n(values.data_ptr<float>(), out.size(), out.data());
}

/// It is made of copies of the module, which calls borrow.
class LibtorchModule : public ModuleModel {
 public:
  LibtorchModule(const ModuleRequest& request, std::optional<int> gpu)
      : request_(request),
        device_(gpu),
        source_(request),
        kept_(device_),
        precise_(source_, torch::kDouble, device_),
        fast_(source_, torch::kFloat, device_) {
    use_one_libtorch_thread();
    const c10::OptionalStreamGuard in_stream(device_.stream());
    found_ = check_module(source_, request, device_.get());
    Fingerprinter digest;
    for (const ModuleFindings::Parameter& parameter : found_.parameters) {
      digest.add(parameter.name);
      digest.add(std::span(parameter.shape));
    }
    digest.add(source_.code());
    fingerprint_ = digest.value().hex();
    if (source_.file()) file_text_ = base64_of(*source_.file());
  }

  bool reads_lists() const override { return found_.reads_lists; }

  std::string_view factors_by() const override { return found_.factors ? "hooks" : "rows"; }

  const std::string& fingerprint() const override { return fingerprint_; }

  std::int64_t features() const override { return request_.features; }

  std::int64_t parameters() const override { return found_.shape().parameters(); }

  const TangentShape& tangent_shape() const override { return found_.shape(); }

  std::shared_ptr<const void> keep_docs(FeatureMatrix docs) const override { return kept_.keep(docs); }

  /// Computes as if every matrix multiplied what the one before it gave.
  double largest_parameter() const override {
    std::int64_t matrices = 1;
    std::int64_t columns = request_.features;
    for (const ModuleFindings::Parameter& parameter : found_.parameters) {
      if (parameter.shape.size() < 2) continue;
      ++matrices;
      columns = std::max(columns, parameter.shape.back());
    }
    const double gain = largest_finite_gain() / std::max(1.0, request_.output_scale);
    return std::pow(gain, 1.0 / static_cast<double>(matrices)) / static_cast<double>(columns + 1);
  }

  void score(ExecutionContext& context, std::span<const float> theta, FeatureMatrix docs,
             std::span<float> scores) const override {
    context.for_blocks(passes(docs), 1, [&](std::int64_t number, std::int64_t, int) {
      const auto [begin, end] = pass(docs, number);
      if (begin == end) return;
      const torch::NoGradGuard no_gradient;
      Borrowed instance(precise_, theta);
      copy_scores(forward(*instance, docs.part(begin, end)), scores.subspan(begin, end - begin));
    });
  }

  void score_precisely(std::span<const float> theta, FeatureMatrix docs,
                       std::span<double> scores) const override {
    const torch::NoGradGuard no_gradient;
    for (std::int64_t number = 0; number < passes(docs); ++number) {
      const auto [begin, end] = pass(docs, number);
      if (begin == end) continue;
      Borrowed instance(precise_, theta);
      const torch::Tensor values = forward(*instance, docs.part(begin, end)).cpu().contiguous();
      std::copy_n(values.data_ptr<double>(), end - begin, scores.subspan(begin).data());
    }
  }

  ModelTensors tensors(std::span<const float> theta) const override {
    ModelTensors model;
    model.architecture = {{"architecture", "module"},
                          {"module", request_.module},
                          {"inputs", fmt::format("{}", request_.features)}};
    if (source_.file()) {
      model.architecture.emplace_back(kTorchScriptKey, file_text_);
    } else {
      model.architecture.insert(model.architecture.end(),
                                {{"width", fmt::format("{}", request_.width)},
                                 {"depth", fmt::format("{}", request_.depth)},
                                 {"activation", std::string(name_of(request_.activation))},
                                 {"biases", request_.biases ? "true" : "false"},
                                 {"output_scale", fmt::format("{}", request_.output_scale)}});
    }
    model.architecture.emplace_back("factors_by", factors_by());
    model.architecture.emplace_back("fingerprint", fingerprint_);
    const float* values = theta.data();
    for (const ModuleFindings::Parameter& parameter : found_.parameters) {
      std::int64_t size = 1;
      for (const std::int64_t side : parameter.shape) size *= side;
      model.tensors.push_back({parameter.name, parameter.shape, {values, values + size}});
      values += size;
    }
    return model;
  }

  std::vector<float> first_parameters(PhiloxKey key) const override {
    const std::uint64_t seed = seed_of_key(key);
    const ScoringModule module = source_.make(seed);
    return module.first_parameters ? module.first_parameters(seed) : flat_parameters(module);
  }

  void score_with_magnitudes(ExecutionContext& context, std::span<const float> theta, FeatureMatrix docs,
                             std::span<float> scores, std::span<float> magnitudes) const override {
    score(context, theta, docs, scores);
    set_magnitudes(scores, magnitudes);
  }

  void find_factors(ExecutionContext& context, std::span<const float> theta, FeatureMatrix docs,
                    std::span<float> factors, std::span<float> scores,
                    std::span<float> magnitudes) const override {
    find_with(context, precise_, theta, docs, factors, scores);
    set_magnitudes(scores, magnitudes);
  }

  void multiply_gradients(ExecutionContext& context, std::span<const float> theta, FeatureMatrix docs,
                          std::span<const double> v, std::span<double> products) const override {
    for (std::int64_t number = 0; number < passes(docs); ++number) {
      const auto [begin, end] = pass(docs, number);
      if (begin == end) continue;
      const FeatureMatrix part = docs.part(begin, end);
      const auto out = products.subspan(begin, part.docs);
      if (!found_.products_by_gradients) {
        // From factors: another pass through the graph is slower, or impossible.
        const Scratch::Frame frame(context.scratch());
        const auto factors = context.scratch().take<float>(part.docs * tangent_shape().factors());
        find_with(context, fast_, theta, part, factors, {});
        gradient_products(context, tangent_shape(), {factors.data(), part.docs}, v, out);
        continue;
      }
      const torch::AutoGradMode with_gradient(true);
      Borrowed instance(fast_, theta);
      const torch::Tensor direction = instance->here(on_host(v));
      const torch::Tensor values =
          multiply_by_gradients(forward(*instance, part), instance->parameters(), direction)
              .to(torch::kCPU, torch::kDouble)
              .contiguous();
      std::copy_n(values.data_ptr<double>(), part.docs, out.data());
    }
  }

  void add_gradient_of_scores(
      ExecutionContext& context, std::span<const float> theta, FeatureMatrix docs,
      FunctionRef<void(std::span<const float> scores, std::span<double> weights)> weigh,
      std::span<double> gradient) const override {
    Scratch& scratch = context.scratch();
    const Scratch::Frame frame(scratch);
    const auto scores = scratch.take<float>(docs.docs);
    const auto weights = scratch.take<double>(docs.docs);
    if (docs.docs == 0) return weigh(scores, weights);
    const torch::AutoGradMode with_gradient(true);
    Borrowed instance(fast_, theta);
    // A sum over documents that do not depend on each other is one pass.
    const std::int64_t lists = reads_lists() ? docs.lists() : 1;
    const FeatureMatrix whole = reads_lists() ? docs : docs.part(0, docs.docs);
    const bool keeps_graphs = lists == 1 || docs.docs <= kMostDocsWithGraphs;
    std::vector<torch::Tensor> values(lists);
    for (std::int64_t list = 0; list < lists; ++list) {
      const std::int64_t begin = whole.list_begin(list);
      const std::int64_t count = whole.list_end(list) - begin;
      if (count == 0) continue;
      const torch::AutoGradMode with_graph(keeps_graphs);
      torch::Tensor of_list = forward(*instance, whole.part(begin, begin + count));
      copy_scores(of_list, scores.subspan(begin, count));
      if (keeps_graphs) values[list] = std::move(of_list);
    }
    weigh(scores, weights);
    for (std::int64_t list = 0; list < lists; ++list) {
      const std::int64_t begin = whole.list_begin(list);
      const std::int64_t end = whole.list_end(list);
      const auto of_list = weights.subspan(begin, end - begin);
      // Lists of replays and batches whose pairs have left bring nothing.
      if (lists > 1 && std::all_of(of_list.begin(), of_list.end(), [](double w) { return w == 0.0; }))
        continue;
      if (!values[list].defined()) values[list] = forward(*instance, whole.part(begin, end));
      const torch::Tensor seeds = instance->here(on_host(std::span<const double>(of_list)));
      const auto sums = gradients_of(values[list], instance->parameters(), seeds);
      values[list].reset();
      double* out = gradient.data();
      for (const torch::Tensor& sum : sums) {
        const float* part = sum.data_ptr<float>();
        for (std::int64_t k = 0; k < sum.numel(); ++k) out[k] += double{part[k]};
        out += sum.numel();
      }
    }
  }

 private:
  /// The scores that a module gives, or the reason why there are none.
  torch::Tensor forward(ModuleInstance& instance, FeatureMatrix docs) const {
    return told(request_, docs.docs, [&] {
      const std::optional<torch::Tensor> there = kept_.find(docs);
      torch::Tensor scores = instance.forward(there ? instance.here(*there) : instance.documents(docs));
      if (scores.dim() != 1 || scores.size(0) != docs.docs) {
        throw_error<Error>("Module '{}' gave {} scores for {} documents: return one for each.",
                           request_.module, scores.numel(), docs.docs);
      }
      return scores;
    });
  }
  /// Documents of one pass: a list, or a block of documents that do not depend on each other.
  struct Pass {
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };
  std::int64_t docs_of_pass() const { return device_.is_cpu() ? kDocsPerModulePass : kDocsPerGpuPass; }
  std::int64_t passes(const FeatureMatrix& docs) const {
    if (found_.reads_lists) return docs.lists();
    return (docs.docs + docs_of_pass() - 1) / docs_of_pass();
  }
  Pass pass(const FeatureMatrix& docs, std::int64_t number) const {
    if (found_.reads_lists) return {docs.list_begin(number), docs.list_end(number)};
    const std::int64_t begin = number * docs_of_pass();
    return {begin, std::min(begin + docs_of_pass(), docs.docs)};
  }
  void find_with(ExecutionContext& context, InstancePool& pool, std::span<const float> theta,
                 FeatureMatrix docs, std::span<float> factors, std::span<float> scores) const {
    const std::int64_t stride = found_.shape().factors();
    context.for_blocks(passes(docs), 1, [&](std::int64_t number, std::int64_t, int) {
      const auto [begin, end] = pass(docs, number);
      if (begin == end) return;
      const torch::AutoGradMode with_gradient(true);
      Borrowed instance(pool, theta);
      const torch::Tensor values = forward(*instance, docs.part(begin, end));
      if (!scores.empty()) copy_scores(values, scores.subspan(begin, end - begin));
      float* rows = factors.data() + begin * stride;
      if (!found_.factors) {
        find_gradient_rows(values, instance->parameters(), rows);
      } else if (!found_.factors->extract(values, instance->parameters(), rows)) {
        throw_error<Error>(
            "Module '{}' computes in another way than when it was tried: let no branch of its forward "
            "depend on the documents or the parameters.",
            request_.module);
      }
    });
  }

  ModuleRequest request_;
  ModuleDevice device_;
  ModuleSource source_;
  ModuleFindings found_;
  std::string fingerprint_;
  std::string file_text_;  // the TorchScript file in base64
  mutable KeptDocuments kept_;
  mutable InstancePool precise_;
  mutable InstancePool fast_;
};

}  // namespace

std::shared_ptr<const std::string> load_module_file(const std::string& path) {
  return ModuleSource({.module = path}).file();
}

std::unique_ptr<ModuleModel> open_module(const ModuleRequest& request, std::optional<int> gpu) {
  return std::make_unique<LibtorchModule>(request, gpu);
}

LibtorchDescription describe_libtorch() {
  return {.version = TORCH_VERSION,
          .cuda = at::Context::hasCUDART(),
          .cpu_capability = at::get_cpu_capability()};
}

void use_one_libtorch_thread() {
  at::set_num_threads(1);
}

}  // namespace olrank
