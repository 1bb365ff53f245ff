#pragma once
// Many ranks' profiles become one, one after the other: what is kept of each is its line in the table of ranks and a
// time for each module, whatever its profile had.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/ranks/collectives.h"
#include "core/profile.h"

namespace roofprof {

class RankMerger {
 public:
  RankMerger();
  ~RankMerger();
  RankMerger(const RankMerger&) = delete;
  RankMerger& operator=(const RankMerger&) = delete;

  // Returns the rank. `rank`: -1 takes the one that the environment tells; so does an empty `host`. `name` is what
  // messages call it. Throws std::invalid_argument where it is merged already, has no rank, has one that came before,
  // or is of another kind than those before: one sentence. Then it is as if it had not been added. `clock`: without it,
  // a rank has the first one's clock where the environment tells the same boot of a machine.
  std::int64_t add(const Profile& data, const std::string& name, std::int64_t rank = -1, const std::string& host = "",
                   const std::optional<ClockOffset>& clock = std::nullopt);

  // Returns the slowest and the median rank of those added so far. The caller must give their reports to keep(); those
  // of other ranks are not kept.
  std::vector<std::int64_t> typical_ranks() const;
  void keep(std::int64_t rank, std::shared_ptr<const Profile> report);

  // Notes how the ranks of reports are known that do not say them.
  void note_assumed(const std::string& text);

  // Sets the number of ranks, in addition to what the environments say; a note names those that did not come.
  void expect(std::int64_t world_size);

  // Throws std::invalid_argument where nothing was added. The merger is empty afterwards.
  Profile finish();

 private:
  struct Merged;
  std::unique_ptr<Merged> merged_;
};

}  // namespace roofprof
