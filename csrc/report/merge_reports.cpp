#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "analysis/ranks/rank_merger.h"
#include "core/json/file.h"
#include "roofprof/ranks.h"
#include "roofprof/report.h"

namespace roofprof {

Report merge_reports(const std::vector<std::string>& paths) {
  RankMerger merger;
  std::map<std::int64_t, std::string> path_of;
  for (const auto& path : paths) path_of[merger.add(Report::from_json(path).data(), path)] = path;
  for (const auto rank : merger.typical_ranks()) merger.keep(rank, read_whole_file(path_of.at(rank)));
  return make_report(std::make_shared<const ProfileData>(merger.finish()), {});
}

}  // namespace roofprof
