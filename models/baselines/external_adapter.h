#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/online/online_ranker.h"
#include "models/baselines/external_ranker.h"
#include "models/skeleton/ranker_settings.h"

namespace olrank {

/// It stands in model files, which hold nothing of such a ranker but where it comes from; none is read.
constexpr std::string_view kExternalArchitecture = "external";

/// A ranker that a program has registered.
struct RegisteredRanker {
  std::string description;
  ExternalRankerFactory factory;
};

/// Throws InvalidArgument if no ranker has this name.
RegisteredRanker registered_ranker(const std::string& name);

/// A registered ranker as trials see it. Checks what comes back: throws InvalidArgument for a list that is
/// none, and for scores that are not finite.
class ExternalAdapter : public OnlineRanker {
 public:
  ExternalAdapter(std::string name, std::int64_t cutoff, std::unique_ptr<ExternalRanker> ranker);

  RankedList rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) override;
  LearnReport learn(RoundContext& context, const Feedback& feedback) override;
  void describe(const QueryDocs& query, bool full, RoundDetail& detail) override;
  void score(ExecutionContext& context, FeatureMatrix docs, std::span<float> scores) const override;
  std::int64_t parameters() const override { return ranker_->parameters(); }
  ModelTensors model() const override;
  std::vector<RankerFigure> figures(ExecutionContext& context) const override;
  bool learns_from_unshown() const override { return true; }
  void fields(StateFields& state) override;

 private:
  /// Makes list_ of the documents that came back.
  void complete(std::span<const std::int32_t> docs, const QueryDocs& query);
  void checked_scores(FeatureMatrix docs, std::span<float> scores) const;

  std::string name_;
  std::int64_t cutoff_;
  std::unique_ptr<ExternalRanker> ranker_;
  std::uint32_t round_ = 0;  // the latest
  std::vector<std::int32_t> list_;
  std::vector<std::uint8_t> listed_;
  std::vector<float> scores_;
};

std::unique_ptr<OnlineRanker> make_external(const RankerRequest& request);

}  // namespace olrank
