#include "machine/roofs.h"

#include <ATen/Parallel.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/json/file.h"
#include "machine/known/file.h"

namespace roofprof {
namespace {

namespace fs = std::filesystem;

Ceilings some_roofs() {
  Ceilings ceilings;
  ceilings.device = "a machine";
  ceilings.compute = {{DType::fp32, 2e11, {"given", "by hand", "", {}}}};
  ceilings.memory = {{"DRAM", 3e10, 0, {"given", "by hand", "2024-02-29", 0.1}}};
  return ceilings;
}

// The cache is a folder of its own, and a measurement takes no time.
class CeilingsCache : public ::testing::Test {
 protected:
  CeilingsCache() : folder_(fs::temp_directory_path() / ("roofprof_cache_" + std::to_string(::getpid()))) {
    fs::remove_all(folder_);
    setenv("ROOFPROF_CACHE_DIR", folder_.c_str(), 1);
    source_.measure = [this](const std::string& device, const Progress& progress) {
      measured_.push_back(device);
      progress("roofs of this machine: fp32 GEMM");
      return MeasuredCeilings{some_roofs(), {"fp16 was left out"}};
    };
    source_.gpu_environment = [this](const std::string&) { return gpu_; };
  }
  ~CeilingsCache() override {
    unsetenv("ROOFPROF_CACHE_DIR");
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  CachedCeilings cached(const std::string& device = "cpu", bool again = false) {
    return cached_ceilings(device, [this](std::string_view line) { lines_.emplace_back(line); }, again, source_);
  }
  std::vector<fs::path> files() const { return {fs::directory_iterator(folder_), fs::directory_iterator()}; }

  fs::path folder_;
  RoofSource source_;
  Environment gpu_ = {{"gpu_device", "Simulated GPU"},
                      {"gpu_uuid", "GPU-1"},
                      {"gpu_driver", "580.65.06"},
                      {"torch_cuda", "13.2"},
                      {"gpu_max_sm_clock_hz", std::int64_t{1'980'000'000}},
                      {"gpu_power_limit_watts", 700.0},
                      // What may change from moment to moment:
                      {"gpu_sm_clock_hz", std::int64_t{345'000'000}},
                      {"gpu_throttle_reasons", "idle"}};
  std::vector<std::string> measured_;
  std::vector<std::string> lines_;
};

TEST_F(CeilingsCache, MeasuresOnceAndThenReads) {
  const CachedCeilings first = cached();
  EXPECT_TRUE(first.is_new);
  EXPECT_EQ(first.roofs.ceilings, some_roofs());
  EXPECT_EQ(lines_.size(), 1U);
  const CachedCeilings second = cached("cpu:0");
  EXPECT_FALSE(second.is_new);
  EXPECT_EQ(second.roofs.ceilings, some_roofs());
  EXPECT_EQ(second.roofs.notes, std::vector<std::string>{"fp16 was left out"});
  EXPECT_EQ(lines_.size(), 1U);
  EXPECT_EQ(measured_, std::vector<std::string>{"cpu"});
  EXPECT_TRUE(cached("cpu", true).is_new);
  EXPECT_EQ(measured_.size(), 2U);
  ASSERT_EQ(files().size(), 1U);
  EXPECT_TRUE(files()[0].filename().string().starts_with("ceilings-cpu-" + std::to_string(at::get_num_threads()) +
                                                         "-threads-"));
}

TEST_F(CeilingsCache, OneMeasuresWhileTheOthersWait) {
  std::atomic<int> measuring{0}, measured{0};
  source_.measure = [&](const std::string&, const Progress&) {
    EXPECT_EQ(++measuring, 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    --measuring;
    ++measured;
    return MeasuredCeilings{some_roofs(), {}};
  };
  std::vector<std::thread> ranks;
  std::atomic<int> fresh{0};
  for (int rank = 0; rank < 4; ++rank) {
    ranks.emplace_back(
        [&] { fresh += cached_ceilings("cpu", [](std::string_view) {}, false, source_).is_new ? 1 : 0; });
  }
  for (auto& rank : ranks) rank.join();
  EXPECT_EQ(measured, 1);
  EXPECT_EQ(fresh, 1);
}

// Somebody else has the turn for as long as this is there. In a folder of its own, as other tests measure, too.
class ATurnOfSomebody {
 public:
  explicit ATurnOfSomebody(const fs::path& folder) {
    fs::create_directories(folder);
    setenv("TMPDIR", folder.c_str(), 1);
    file_ = ::open((folder / ("roofprof-" + std::to_string(::getuid()) + ".lock")).c_str(), O_RDWR | O_CREAT, 0600);
    EXPECT_EQ(::flock(file_, LOCK_EX), 0);
  }
  ~ATurnOfSomebody() {
    ::close(file_);
    before_ ? setenv("TMPDIR", before_->c_str(), 1) : unsetenv("TMPDIR");
  }

 private:
  std::optional<std::string> before_ =
      std::getenv("TMPDIR") != nullptr ? std::optional<std::string>(std::getenv("TMPDIR")) : std::nullopt;
  int file_ = -1;
};

TEST_F(CeilingsCache, NobodyWaitsForOneThatDoesNotGoOn) {
  const ATurnOfSomebody turn(folder_);
  source_.longest_turn = std::chrono::milliseconds(1);
  EXPECT_TRUE(cached().is_new);
}

TEST_F(CeilingsCache, TellsStderrOnceAMeasurementTakesLong) {
  static std::chrono::steady_clock::time_point now;
  source_.now = [] { return now; };
  ::testing::internal::CaptureStderr();
  cached_ceilings("cpu", {}, false, source_);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  source_.measure = [](const std::string&, const Progress& progress) {
    progress("roofs of this machine: fp32");
    now += std::chrono::milliseconds(1999);
    progress("roofs of this machine: fp32 again");
    now += std::chrono::milliseconds(1);
    progress("roofs of this machine: fp64");
    return MeasuredCeilings{some_roofs(), {}};
  };
  ::testing::internal::CaptureStderr();
  cached_ceilings("cpu", {}, true, source_);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "roofs of this machine: measured once, in 20 to 30 seconds, and kept in " + folder_.string() +
                "\nroofs of this machine: fp64\n");
  ::testing::internal::CaptureStderr();
  cached_ceilings("cpu", {}, false, source_);  // known by now
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST_F(CeilingsCache, ABrokenFileIsMeasuredAgainWithANote) {
  cached();
  const std::string path = files().at(0).string();
  write_whole_file(path, "{");
  const CachedCeilings again = cached();
  EXPECT_EQ(measured_.size(), 2U);
  ASSERT_EQ(again.roofs.notes.size(), 2U);
  EXPECT_TRUE(again.roofs.notes[0].starts_with(
      "the roofs were measured again, as those kept could not be used: cannot read ceilings from " + path +
      ": it is not JSON"));
  EXPECT_EQ(Ceilings::load(path), some_roofs());
}

// To open a pipe would wait for somebody at its other end.
TEST_F(CeilingsCache, APipeInTheFolderIsPassedOverWithANote) {
  static_cast<void>(cached());
  const fs::path file = files().at(0);
  fs::remove(file);
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  const CachedCeilings again = cached();
  EXPECT_TRUE(again.is_new);
  EXPECT_EQ(again.roofs.ceilings, some_roofs());
  ASSERT_EQ(again.roofs.notes.size(), 3U);
  EXPECT_NE(again.roofs.notes[0].find("not a regular file"), std::string::npos) << again.roofs.notes[0];
  EXPECT_NE(again.roofs.notes[1].find("not kept"), std::string::npos) << again.roofs.notes[1];
  EXPECT_TRUE(fs::is_fifo(file));
}

TEST_F(CeilingsCache, AFolderThatCannotBeMadeIsOnlyNoted) {
  fs::create_directories(folder_);
  write_whole_file((folder_ / "file").string(), "");
  setenv("ROOFPROF_CACHE_DIR", (folder_ / "file" / "cache").c_str(), 1);
  const CachedCeilings found = cached();
  EXPECT_EQ(found.roofs.ceilings, some_roofs());
  ASSERT_EQ(found.roofs.notes.size(), 2U);
  EXPECT_TRUE(found.roofs.notes[0].starts_with("the roofs were not kept for the next run: "));
}

TEST_F(CeilingsCache, RoofsOfABusyMachineStayInThisProcess) {
  double share = 0.4;
  source_.measure = [&](const std::string& device, const Progress&) {
    measured_.push_back(device);
    MeasuredCeilings roofs{some_roofs(), {}};
    roofs.ceilings.busy_share = share;
    return roofs;
  };
  EXPECT_EQ(cached().roofs.ceilings.busy_share, 0.4);
  EXPECT_FALSE(fs::exists(folder_));
  EXPECT_FALSE(cached().is_new);
  EXPECT_EQ(measured_.size(), 1U);
  share = 0;
  EXPECT_TRUE(cached("cpu", true).is_new);
  EXPECT_EQ(cached().roofs.ceilings.busy_share, 0);
  EXPECT_EQ(files().size(), 1U);
}

TEST_F(CeilingsCache, RoofsOfAGpuAreKeptForEachGpuAndForWhatHoldsItDown) {
  cached("cuda:0");
  gpu_[6].second = std::int64_t{1'755'000'000};
  gpu_[7].second = "none";
  cached("cuda:0");
  EXPECT_EQ(measured_.size(), 1U);
  const int threads = at::get_num_threads();
  at::set_num_threads(threads + 1);
  cached("cuda:0");
  at::set_num_threads(threads);
  EXPECT_EQ(measured_.size(), 1U) << "the host's threads are nothing to a GPU";
  const std::vector<EnvironmentValue> changed = {"Another GPU", "GPU-2", "590.1", "13.0", std::int64_t{1'500'000'000},
                                                 350.0};
  for (std::size_t i = 0; i < changed.size(); ++i) {
    gpu_[i].second = changed[i];
    cached("cuda:0");
    EXPECT_EQ(measured_.size(), i + 2) << gpu_[i].first;
  }
  cached("cuda:1");
  EXPECT_EQ(measured_.size(), changed.size() + 2);
  for (const fs::path& file : files()) EXPECT_TRUE(file.filename().string().starts_with("ceilings-cuda-")) << file;
}

TEST_F(CeilingsCache, TheFolderFollowsXdg) {
  const auto variable = [](const char* name) {
    return std::getenv(name) != nullptr ? std::string(std::getenv(name)) : "";
  };
  const std::string home = variable("HOME");
  const std::string xdg = variable("XDG_CACHE_HOME");
  unsetenv("ROOFPROF_CACHE_DIR");
  setenv("HOME", "/home/someone", 1);
  setenv("XDG_CACHE_HOME", "/var/cache", 1);
  EXPECT_EQ(ceilings_cache_folder(), "/var/cache/roofprof");
  setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_EQ(ceilings_cache_folder(), "/home/someone/.cache/roofprof");
  unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(ceilings_cache_folder(), "/home/someone/.cache/roofprof");
  setenv("HOME", home.c_str(), 1);
  if (!xdg.empty()) setenv("XDG_CACHE_HOME", xdg.c_str(), 1);
}

}  // namespace
}  // namespace roofprof
