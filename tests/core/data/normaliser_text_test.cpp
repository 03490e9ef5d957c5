#include "core/data/normaliser_text.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/core/data/letor_support.h"

namespace olrank {
namespace {

TEST(NormaliserText, EveryKindRoundTripsExactly) {
  ExecutionContext context;
  const Dataset data =
      read_text("0 qid:1 1:0.1 2:7 3:-3e9\n1 qid:1 1:0.7 2:7 3:1e-9\n0 qid:2 1:3 2:7 3:2\n");
  for (const auto& [kind, name] : EnumNames<Normalisation>::values) {
    for (const bool drop_constant : {false, true}) {
      const FittedNormaliser fitted = fit_normaliser(kind, data, drop_constant, context);
      const FittedNormaliser read = parse_normaliser(normaliser_text(fitted), "there");
      EXPECT_EQ(read.kind, fitted.kind);
      EXPECT_EQ(read.features, 3);
      EXPECT_EQ(read.kept, fitted.kept);
      EXPECT_EQ(read.means, fitted.means);
      EXPECT_EQ(read.scales, fitted.scales);
      EXPECT_TRUE(same_content(read.apply(data, context), fitted.apply(data, context))) << name;
    }
  }
}

TEST(NormaliserText, RefusesInvalidText) {
  for (const auto& [text, sentence] : std::vector<std::pair<std::string, std::string>>{
           {"", "It is not a JSON object."},
           {"[]", "It is not a JSON object."},
           {R"({"features":2})", "Its 'kind' is missing or not a string."},
           {R"({"kind":"rank","features":2})", "Its kind 'rank' is unknown."},
           {R"({"kind":"none"})", "Its 'features' is missing or not a valid number of features."},
           {R"({"kind":"none","features":0})",
            "Its 'features' is missing or not a valid number of features."},
           {R"({"kind":"none","features":-1})",
            "Its 'features' is missing or not a valid number of features."},
           {R"({"kind":"none","features":2,"kept":[]})",
            "Its 'kept' must be a non-empty array of increasing feature indices."},
           {R"({"kind":"none","features":2,"kept":[2]})",
            "Its 'kept' must be a non-empty array of increasing feature indices."},
           {R"({"kind":"none","features":2,"kept":[1,0]})",
            "Its 'kept' must be a non-empty array of increasing feature indices."},
           {R"({"kind":"none","features":2,"means":[1,2]})", "Its 'means' must be 0 finite numbers."},
           {R"({"kind":"zscore","features":2,"means":[1,2]})", "Its 'scales' must be 2 finite numbers."},
           {R"({"kind":"zscore","features":2,"means":[1],"scales":[1,2]})",
            "Its 'means' must be 2 finite numbers."},
           {R"({"kind":"zscore","features":2,"means":[1,null],"scales":[1,2]})",
            "Its 'means' must be 2 finite numbers."}}) {
    try {
      parse_normaliser(text, "m.safetensors");
      ADD_FAILURE() << text;
    } catch (const DataError& error) {
      EXPECT_EQ(error.what(), "m.safetensors: Its normalisation is invalid. " + sentence) << text;
    }
  }
}

}  // namespace
}  // namespace olrank
