#include "core/error.h"
#include "models/gloo_transport.h"

namespace olrank {

std::unique_ptr<RankTransport> join_ranks(const RankPlace&, const WhenRankLost&) {
  throw InvalidArgument(
      "This olrank was built without Gloo, which --share-members needs: install libgloo-dev and build it "
      "again.");
}

}  // namespace olrank
