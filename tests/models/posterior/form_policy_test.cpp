#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "core/error.h"
#include "models/posterior/full_posterior.h"
#include "models/posterior/posterior_memory.h"
#include "tests/models/posterior/posterior_oracle.h"
#include "tests/support/message_of.h"

namespace olrank {
namespace {

constexpr std::int64_t kDocs = 20;
constexpr std::int64_t kAdded = 3;

NetworkShape shape() {
  return linear_shape(40);
}

/// The pairs after which a policy switches; -1 if it does not within 400 rounds.
std::int64_t switches_at(FormPolicy policy) {
  for (std::int64_t pairs = 0; pairs < 400 * kAdded; pairs += kAdded) {
    if (policy.switches(pairs, kAdded, kDocs)) return pairs + kAdded;
  }
  return -1;
}

std::int64_t whole(double bytes) {
  return static_cast<std::int64_t>(bytes);
}

TEST(FormPolicyTest, SwitchesOnceTheExcessExceedsTheConversion) {
  double excess = 0.0;
  std::int64_t pairs = 0;
  do {
    const double dual = dual_operations(shape(), pairs, kDocs, 4);
    const double primal = primal_operations(shape(), pairs, kDocs, 4);
    if (dual > primal) excess += dual - primal;
    pairs += kAdded;
  } while (excess <= conversion_operations(shape(), pairs));
  EXPECT_GT(excess, 0.0);
  EXPECT_EQ(switches_at(FormPolicy(shape(), CovarianceForm::kAuto, {})), pairs);
}

TEST(FormPolicyTest, FixedFormsNeverSwitch) {
  EXPECT_EQ(switches_at(FormPolicy(shape(), CovarianceForm::kDual, {})), -1);
}

TEST(FormPolicyTest, ExcessIsItsState) {
  FormPolicy policy(shape(), CovarianceForm::kAuto, {});
  policy.set_excess(conversion_operations(shape(), 1000));
  EXPECT_TRUE(policy.switches(kAdded, kAdded, kDocs));
  EXPECT_GE(policy.excess(), conversion_operations(shape(), 1000));
}

// The dual form outgrows the memory before the switch pays; the freed factor makes room for the primal
// form.
TEST(FormPolicyTest, SwitchesEarlyWhenTheDualFormOverflows) {
  struct Case {
    PosteriorHome home;
    NetworkShape network;
    std::int64_t pairs;  // for which the primal form fits
    double beside;       // that others take
  };
  for (const auto& [home, network, most_pairs, beside] :
       {Case{PosteriorHome::kHost, ntk_shape(20, 20, 2), 900, 0.0},
        Case{PosteriorHome::kDevice, ntk_shape(136, 100, 2), 20'000, 1e9}}) {
    const double memory = primal_bytes({network, home, most_pairs, 1, kAdded}).all();
    const FormPolicy::Room room{.bytes = whole(memory + beside), .home = home, .beside = beside};
    FormPolicy policy(network, CovarianceForm::kAuto, room);
    std::int64_t pairs = 0;
    while (!policy.switches(pairs, kAdded, 1)) pairs += kAdded;
    EXPECT_GT(dual_bytes({network, home, pairs + kAdded, 1, kAdded}).all(), memory - 1.0);
    EXPECT_LE(dual_bytes({network, home, pairs, 1, kAdded}).all(), memory);
    EXPECT_LT(policy.excess(), conversion_operations(network, pairs));
    EXPECT_LT(pairs, most_pairs);
  }
}

TEST(FormPolicyTest, NeverSwitchesIntoMemoryThatDoesNotSuffice) {
  // Enough for the dual form all the way, not for the primal form.
  const NetworkShape wide = linear_shape(400);
  FormPolicy policy(wide, CovarianceForm::kAuto, {.bytes = whole(primal_bytes({wide}).all()) - 1});
  EXPECT_FALSE(policy.primal_fits(0));
  policy.set_excess(2.0 * conversion_operations(wide, 1000));
  EXPECT_FALSE(policy.switches(100, kAdded, kDocs));
}

TEST(FormPolicyTest, ThrowsWhenNoFormFits) {
  for (const CovarianceForm form : {CovarianceForm::kAuto, CovarianceForm::kDual}) {
    FormPolicy policy(linear_shape(1000), form, {.bytes = 100'000});
    EXPECT_EQ(message_of<Error>([&] { policy.switches(1000, kAdded, kDocs); }).substr(0, 40),
              "The dual covariance of 1003 pairs needs ");
  }
}

TEST(PosteriorMemoryTest, DualPaysUntilAboutTheNumberOfParameters) {
  // n²V against p²V: the two meet where n is a little below p, as tangent kernels cost something too.
  const NetworkShape shape = ntk_shape(136, 100, 2);
  const std::int64_t pairs = primal_pays_from(shape, 120);
  EXPECT_GT(pairs, shape.parameters() / 2);
  EXPECT_LT(pairs, 2 * shape.parameters());
  EXPECT_LT(dual_operations(shape, pairs - 1, 120, 4), primal_operations(shape, 0, 120, 4));
  EXPECT_GE(dual_operations(shape, pairs, 120, 4), primal_operations(shape, 0, 120, 4));
}

}  // namespace
}  // namespace olrank
