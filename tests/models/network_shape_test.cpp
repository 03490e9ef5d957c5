#include "models/network_shape.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "models/posterior/posterior.h"

namespace olrank {
namespace {

TEST(NetworkShapeTest, FollowsTheSettings) {
  NetworkSettings settings;
  settings.width = 16;
  settings.depth = 3;
  settings.parameterisation = Parameterisation::kNtk;
  EXPECT_EQ(network_shape(settings, 46), ntk_shape(46, 16, 3));
  EXPECT_EQ(initialisation_of(settings), Initialisation::kSymmetric);
  settings.width = 15;
  EXPECT_THROW(network_shape(settings, 46), InvalidArgument);
  settings.parameterisation = Parameterisation::kStandard;
  EXPECT_EQ(network_shape(settings, 46), standard_shape(46, 15, 3));
  EXPECT_EQ(initialisation_of(settings), Initialisation::kUniform);
  settings.initialisation = FirstDraw::kSymmetric;
  EXPECT_EQ(initialisation_of(settings), Initialisation::kSymmetric);
  settings.network = NetworkForm::kLinear;
  EXPECT_EQ(network_shape(settings, 46), linear_shape(46));
  EXPECT_EQ(initialisation_of(settings), Initialisation::kUniform);
}

TEST(NetworkShapeTest, PosteriorsFollowTheProtocol) {
  PosteriorSettings settings;
  settings.covariance = Covariance::kDiagonal;
  settings.form = CovarianceForm::kPrimal;
  settings.lambda = 0.5;
  const NetworkShape shape = ntk_shape(46, 16, 2);
  const PosteriorSpec paper = posterior_spec(shape, settings, ProtocolName::kPaper);
  EXPECT_EQ(paper.shape, shape);
  EXPECT_EQ(paper.covariance, Covariance::kDiagonal);
  EXPECT_EQ(paper.form, CovarianceForm::kPrimal);
  EXPECT_EQ(paper.lambda, 0.5);
  EXPECT_EQ(paper.scale, 1.0 / 16.0);
  EXPECT_EQ(posterior_spec(shape, settings, ProtocolName::kReference).scale, 1.0);
  EXPECT_EQ(posterior_spec(linear_shape(46), settings, ProtocolName::kPaper).scale, 1.0);
}

}  // namespace
}  // namespace olrank
