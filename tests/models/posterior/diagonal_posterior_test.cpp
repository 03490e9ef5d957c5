#include "models/posterior/posterior.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/models/posterior/posterior_oracle.h"

namespace olrank {
namespace {

TEST(PosteriorTest, DiagonalsMatchTheirFormulas) {
  for (const NetworkShape& shape : {ntk_shape(12, 14, 2), standard_shape(6, 9, 3), linear_shape(30)}) {
    for (const double lambda : {1.0, 1e-4}) {
      ExecutionContext context(2);
      PosteriorRounds history(shape, 51);
      PosteriorOracle oracle(shape, lambda, 0.25);
      PosteriorSpec spec = posterior_spec(shape, CovarianceForm::kAuto, lambda, 0.25);
      spec.covariance = Covariance::kDiagonal;
      const auto diagonal = make_posterior(spec);
      spec.covariance = Covariance::kDiagonalOfInverse;
      const auto of_inverse = make_posterior(spec);
      EXPECT_EQ(diagonal->spec().name(), "diagonal");
      EXPECT_EQ(of_inverse->spec().name(), "diagonal-of-inverse");
      for (int round = 0; round < 40; ++round) {
        const PosteriorRound made = history.round(5);
        oracle.observe(made);
        diagonal->observe(context, view_of(shape, made.factors), made.pairs);
        of_inverse->observe(context, view_of(shape, made.factors), made.pairs);
        if (round % 20 != 19) continue;
        const std::vector<float> docs = history.docs(33, 400);
        const WideMatrix diagonal_inverse = oracle.a().diagonal().cwiseInverse();
        // M_ii + M_jj − 2 M_ij loses what two documents share, up to six of double's sixteen digits here.
        const double error = largest_relative_error(posterior_widths(*diagonal, context, shape, docs),
                                                    oracle.width_sq(docs, diagonal_inverse));
        EXPECT_TRUE(error <= 1e-9) << error;
        const WideMatrix inverse_diagonal =
            oracle.a().llt().solve(WideMatrix::Identity(shape.parameters(), shape.parameters())).diagonal();
        // A⁻¹'s diagonal by updates: as the full form.
        EXPECT_TRUE(largest_relative_error(posterior_widths(*of_inverse, context, shape, docs),
                                           oracle.width_sq(docs, inverse_diagonal)) <= 1e-9);
        double log_det = 0.0;
        for (std::int64_t k = 0; k < shape.parameters(); ++k) {
          log_det += std::log(static_cast<double>(oracle.a()(k, k)) / lambda);
        }
        EXPECT_NEAR(diagonal->log_det(), log_det, 1e-9 * log_det);
      }
    }
  }
}

}  // namespace
}  // namespace olrank
