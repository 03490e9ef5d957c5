#include "models/skeleton/network_settings.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "models/neural/ranker_network.h"

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

TEST(NetworkShapeTest, ScalingPutsTheWidthIntoCovarianceAndPrior) {
  NetworkSettings settings;
  settings.width = 16;
  settings.scaling = WidthScaling::kWidth;
  EXPECT_EQ(covariance_scale(settings), 1.0 / 16.0);
  EXPECT_EQ(prior_weight(settings, 0.5), 0.5 * 16.0 * 0.5);
  settings.scaling = WidthScaling::kNone;
  EXPECT_EQ(covariance_scale(settings), 1.0);
  EXPECT_EQ(prior_weight(settings, 0.5), 0.25);
}

}  // namespace
}  // namespace olrank
