#include "bench/cases/case_list.h"

#include <charconv>
#include <cstring>
#include <string_view>

#include "core/data/dataset_cache.h"
#include "core/data/dataset_file.h"
#include "core/data/inspection.h"
#include "core/data/letor_reader.h"
#include "core/data/letor_stream.h"
#include "core/data/synthetic.h"
#include "core/data/synthetic_source.h"
#include "core/io/atomic_file.h"
#include "core/metrics/evaluator.h"
#include "core/ops/blas.h"
#include "core/runtime/execution_context.h"
#include "jobs/rankings.h"
#include "models/files/model_scorer.h"

namespace olrank {
namespace {

constexpr std::int64_t kNarrow = 16;

}  // namespace

Documents::Documents(const NetworkShape& of_shape, std::int64_t count, std::uint32_t place, int threads)
    : shape(of_shape),
      context(threads),
      features(uniform<float>(count * shape.inputs, place)),
      theta(length(shape.parameters())),
      factors(length(count * shape.factors())),
      docs(count) {
  initialise(shape, Initialisation::kSymmetric, make_key({.seed = 1, .purpose = Purpose::kInitialisation}),
             theta);
  theta.back() *= 2.0F;  // an untrained network scores 0 without computing anything
  tangent_factors(context, shape, theta, matrix(), factors);
}

CaseList::CaseList(const OpSizes& of)
    : sizes(of),
      shape(ntk_shape(of.features, of.width, of.depth)),
      narrow(ntk_shape(of.features, kNarrow, of.depth)) {}

CaseList::Parameters CaseList::of_docs() const {
  return {{"V", sizes.docs}, {"m", sizes.width}, {"d", sizes.features}};
}

CaseList::Parameters CaseList::of_pairs() const {
  return {{"n", sizes.pairs}, {"m", sizes.width}, {"d", sizes.features}};
}

std::function<std::shared_ptr<Documents>()> CaseList::docs(const NetworkShape& of, std::int64_t count,
                                                           std::uint32_t place) const {
  return [of, count, place, threads = sizes.threads] {
    return std::make_shared<Documents>(of, count, place, threads);
  };
}

std::function<std::shared_ptr<ExecutionContext>()> CaseList::context() const {
  return [threads = sizes.threads] { return std::make_shared<ExecutionContext>(threads); };
}

void CaseList::add(const std::string& name, Parameters parameters, const CaseCost& cost,
                   std::function<Body()> prepare) {
  if (sizes.threads > 1) parameters.emplace_back("threads", sizes.threads);
  cases.push_back(
      {name, std::move(parameters), cost.operations, cost.traffic, cost.ceiling, std::move(prepare)});
}

std::vector<BenchCase> op_cases(const OpSizes& sizes) {
  CaseList list(sizes);
  add_product_cases(list);
  add_network_cases(list);
  add_gradient_cases(list);
  add_kernel_cases(list);
  add_factor_cases(list);
  add_inverse_cases(list);
  add_width_cases(list);
  add_training_cases(list);
  add_list_cases(list);
  return std::move(list.cases);
}

namespace {

namespace fs = std::filesystem;

/// A data set, as text and with scores.
struct DataWork {
  DataWork(const std::string& source, int threads) : context(threads), data(load(source)) {
    if (is_synthetic(source)) {
      write_letor(data, {}, [this](std::string_view piece) { text += piece; });
    } else {
      text = read_file(source);
    }
    scores = uniform<float>(data.docs(), 0);
  }
  Dataset load(const std::string& source) {
    return is_synthetic(source) ? make_synthetic(source, context).train
                                : read_letor(source, {}, context.pool());
  }

  ExecutionContext context;
  Dataset data;
  std::string text;
  std::vector<float> scores;
};

/// All that reading a text costs at least in anyone's loop: every feature number and value by
/// std::from_chars.
double sum_of_numbers(std::string_view text) {
  double sum = 0.0;
  const char* p = text.data();
  const char* const end = p + text.size();
  while (p < end) {
    const char* const colon = static_cast<const char*>(std::memchr(p, ':', end - p));
    if (colon == nullptr) break;
    const char* digits = colon;
    while (digits > p && digits[-1] > ' ') --digits;
    std::int64_t number = 0;
    float value = 0.0F;
    std::from_chars(digits, colon, number);
    p = std::from_chars(colon + 1, end, value).ptr;
    sum += static_cast<double>(number) + static_cast<double>(value);
  }
  return sum;
}

/// A new network of 100 units, which takes inputs between 0 and 1 by query.
ModelScorer wide_scorer(std::int64_t features) {
  LoadedModel model;
  model.settings.network = NetworkForm::kMlp;
  model.shape = ntk_shape(features, 100, 2);
  std::vector<float> theta(model.shape.parameters());
  initialise(model.shape, Initialisation::kUniform, make_key({.purpose = Purpose::kInitialisation}), theta);
  model.members.push_back(theta);
  model.normaliser.kind = Normalisation::kQueryMinmax;
  model.normaliser.features = features;
  return ModelScorer(std::move(model));
}

/// Ranks a file by a model, as `olrank rank` does: text beside parsing alone, and a binary file beside the
/// products of the network alone.
void add_ranking(std::vector<BenchCase>& cases, const std::shared_ptr<DataWork>& work, const fs::path& text,
                 const fs::path& binary, BenchCase sized) {
  const auto scorer = std::make_shared<const ModelScorer>(wide_scorer(work->data.features()));
  const auto rank = [=](const Dataset& data) {
    std::string lists;
    write_ranked(*scorer, ListFormat::kTrec, data, work->context,
                 [&](std::string_view more) { lists += more; });
  };
  sized.name = "data/rank_text";
  sized.own_name = "parsing";
  sized.own_body = [=] { read_letor(text.string(), {}, work->context.pool()); };
  sized.prepare = [=] {
    return [=] {
      LetorStream stream(text.string(), scorer->features(), {}, work->context.pool());
      while (const auto piece = stream.next()) rank(*piece);
    };
  };
  cases.push_back(sized);
  sized.name = "data/rank_binary";
  sized.own_name = "products";
  sized.own_body = [=, inputs = std::vector<double>(256 * work->data.features(), 0.5),
                    weight = std::vector<double>(100 * work->data.features(), 0.5),
                    units = std::vector<double>(256 * 104)]() mutable {
    const std::int64_t features = work->data.features();
    for (std::int64_t doc = 0; doc < work->data.docs(); doc += 256)
      blas::gemm(blas::Transpose::kNo, blas::Transpose::kYes, 256, 100, features, 1.0, inputs.data(),
                 features, weight.data(), features, 0.0, units.data(), 104);
  };
  sized.prepare = [=] {
    write_dataset_file(work->data, {}, binary);
    return [=] { rank(read_dataset_file(binary.string(), work->context.pool())); };
  };
  cases.push_back(std::move(sized));
}

}  // namespace

std::vector<BenchCase> data_cases(const std::string& source, int threads, const fs::path& folder) {
  const auto work = std::make_shared<DataWork>(source, threads);
  const Dataset& data = work->data;
  const fs::path file = folder / "data.txt";
  write_file_atomically(file, work->text);
  const std::vector<std::pair<std::string, std::int64_t>> sizes = {
      {"docs", data.docs()}, {"features", data.features()}, {"threads", threads}};
  const double matrix = static_cast<double>(data.docs() * data.features()) * sizeof(float);
  const double text = static_cast<double>(work->text.size());
  std::vector<BenchCase> cases;
  cases.push_back({"data/parse", sizes, 0.0, {text, 0.0, matrix}, CeilingKind::kMemory, [work] {
                     return [work] { read_letor_bytes(work->text, "text", {}, work->context.pool()); };
                   }});
  cases.push_back(
      {"data/inspect",
       sizes,
       0.0,
       {text, 0.0, 0.0},
       CeilingKind::kOwn,
       [work, file] { return [work, file] { inspect_file(file.string(), {}, work->context); }; },
       "from_chars",
       [work] {
         volatile double kept = sum_of_numbers(work->text);
         static_cast<void>(kept);
       }});
  cases.push_back(
      {"data/read_copy", sizes, 0.0, {matrix, 0.0, matrix}, CeilingKind::kMemory, [work, file, folder] {
         const DatasetCache cache(folder / "copies");
         cache.read(file.string(), {}, work->context.pool());  // writes the copy
         return [work, file, cache] { cache.read(file.string(), {}, work->context.pool()); };
       }});
  const double scores = static_cast<double>(data.docs()) * sizeof(float);
  cases.push_back({"data/evaluate", sizes, 0.0, {2.0 * scores, 0.0, 0.0}, CeilingKind::kMemory, [work] {
                     const auto evaluator = std::make_shared<Evaluator>(MetricOptions{});
                     return [work, evaluator] {
                       evaluator->evaluate(work->data, work->scores, work->context);
                     };
                   }});
  add_ranking(cases, work, file, folder / "data.olrank",
              {"", sizes, 0.0, {text, 0.0, 0.0}, CeilingKind::kOwn, {}});
  return cases;
}

}  // namespace olrank
