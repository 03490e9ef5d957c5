#include "models/clickgp/click_memory.h"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>
#include <vector>

#include "core/random/rng_stream.h"

namespace olrank {
namespace {

struct SiteExample {
  Departures departures;
  std::vector<double> examined;
  std::vector<double> clicks;
  std::vector<double> model;

  std::size_t docs() const { return model.size(); }
};

SiteExample site_example(std::uint32_t number) {
  RngStream draws(make_key({.seed = 11, .purpose = Purpose::kProbe}), number);
  SiteExample made;
  made.departures = {0.05 + 2.0 * draws.uniform(), 0.05 + 2.0 * draws.uniform()};
  const std::size_t docs = 1 + draws.index(7);
  for (std::size_t doc = 0; doc < docs; ++doc) {
    made.examined.push_back(0.01 + 9.0 * draws.uniform());
    made.clicks.push_back(std::floor(made.examined.back() * draws.uniform()));
    made.model.push_back(2.0 * draws.normal());
  }
  return made;
}

struct SolvedSite {
  std::vector<double> departure, curvature, evidence;
  QuerySite site;

  explicit SolvedSite(const SiteExample& given, int steps = 60) {
    departure.resize(given.docs());
    curvature.resize(given.docs());
    evidence.resize(given.docs());
    site = {departure, curvature, evidence};
    solve_site(given.departures, {given.examined, given.clicks, given.model}, steps, 0.0, site);
  }
};

/// The mode of all departures together, by Newton's method on the dense problem.
Eigen::VectorXd joint_mode(const SiteExample& given) {
  const auto docs = static_cast<Eigen::Index>(given.docs());
  Eigen::VectorXd mode = Eigen::VectorXd::Zero(docs + 1);  // u, then b
  for (int step = 0; step < 200; ++step) {
    Eigen::VectorXd slope = Eigen::VectorXd::Zero(docs + 1);
    Eigen::MatrixXd curvature = Eigen::MatrixXd::Zero(docs + 1, docs + 1);
    for (Eigen::Index doc = 0; doc < docs; ++doc) {
      const double p = 1.0 / (1.0 + std::exp(-(given.model[doc] + mode[doc] + mode[docs])));
      const double residual = given.clicks[doc] - given.examined[doc] * p;
      const double weight = given.examined[doc] * p * (1.0 - p);
      slope[doc] += residual - mode[doc] / given.departures.document;
      slope[docs] += residual;
      curvature(doc, doc) += weight + 1.0 / given.departures.document;
      curvature(doc, docs) += weight;
      curvature(docs, doc) += weight;
      curvature(docs, docs) += weight;
    }
    slope[docs] -= mode[docs] / given.departures.query;
    curvature(docs, docs) += 1.0 / given.departures.query;
    Eigen::VectorXd change = curvature.ldlt().solve(slope);
    mode += change.cwiseMax(-1.0).cwiseMin(1.0);
  }
  return mode;
}

TEST(QuerySiteTest, FindsTheJointMode) {
  for (std::uint32_t number = 0; number < 50; ++number) {
    const SiteExample given = site_example(number);
    const SolvedSite found(given);
    const Eigen::VectorXd mode = joint_mode(given);
    for (std::size_t doc = 0; doc < given.docs(); ++doc)
      EXPECT_NEAR(found.departure[doc], mode[static_cast<Eigen::Index>(doc)], 1e-9) << number;
    EXPECT_NEAR(found.site.query_departure, mode[static_cast<Eigen::Index>(given.docs())], 1e-9) << number;
  }
}

TEST(QuerySiteTest, IsTheGaussianWithoutDepartures) {
  for (std::uint32_t number = 0; number < 50; ++number) {
    const SiteExample given = site_example(number);
    const SolvedSite found(given);
    const auto docs = static_cast<Eigen::Index>(given.docs());
    // Of f = m + u + b with precision W of f: M = (W⁻¹ + σ²I + τ²11ᵀ)⁻¹, and the slope at the mode is v.
    Eigen::MatrixXd variance = Eigen::MatrixXd::Constant(docs, docs, given.departures.query) +
                               given.departures.document * Eigen::MatrixXd::Identity(docs, docs);
    Eigen::VectorXd slope(docs);
    for (Eigen::Index doc = 0; doc < docs; ++doc) {
      const double f = given.model[doc] + found.departure[doc] + found.site.query_departure;
      const double p = 1.0 / (1.0 + std::exp(-f));
      variance(doc, doc) += 1.0 / (given.examined[doc] * p * (1.0 - p));
      slope[doc] = given.clicks[doc] - given.examined[doc] * p;
    }
    const Eigen::MatrixXd precision = variance.inverse();
    const Eigen::VectorXd evidence =
        slope + precision * Eigen::Map<const Eigen::VectorXd>(given.model.data(), docs);
    for (Eigen::Index i = 0; i < docs; ++i) {
      EXPECT_NEAR(found.evidence[i], evidence[i], 1e-8) << number;
      for (Eigen::Index j = 0; j < docs; ++j) {
        const double of_site = (i == j ? found.curvature[i] : 0.0) -
                               found.site.coupling * found.curvature[i] * found.curvature[j];
        EXPECT_NEAR(of_site, precision(i, j), 1e-8) << number;
      }
    }
    // What is left of u given f: σ² − σ⁴ M_ii.
    const double s2 = given.departures.document;
    EXPECT_NEAR(variance_left(given.departures, found.curvature[0], found.site.coupling),
                s2 - s2 * s2 * precision(0, 0), 1e-8);
  }
}

TEST(QuerySiteTest, FindsTheModeWhereClicksContradictTheModel) {
  SiteExample given;
  given.examined = {40.0};
  given.clicks = {40.0};
  given.model = {-20.0};
  const SolvedSite found(given, 100);
  EXPECT_NEAR(found.departure[0], joint_mode(given)[0], 1e-9);
}

TEST(QuerySiteTest, ProbabilitiesStayWithinTheirRange) {
  EXPECT_NEAR(click_probability(0.0), 0.5, 1e-16);
  EXPECT_NEAR(click_probability(3.0), 1.0 / (1.0 + std::exp(-3.0)), 1e-15);
  EXPECT_NEAR(click_probability(-3.0), 1.0 / (1.0 + std::exp(3.0)), 1e-15);
  EXPECT_LT(click_probability(1e9), 1.0);
  EXPECT_GT(click_probability(-1e9), 0.0);
}

}  // namespace
}  // namespace olrank
