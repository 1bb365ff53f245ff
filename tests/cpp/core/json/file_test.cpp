#include "core/json/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>
#include <utility>

namespace roofprof {
namespace {

namespace fs = std::filesystem;

class Files : public ::testing::Test {
 protected:
  Files() : folder_(fs::temp_directory_path() / ("roofprof_files_" + std::to_string(::getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~Files() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  std::size_t count() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  fs::path folder_;
};

TEST_F(Files, AreReplacedWholeAndKeepTheirPermissions) {
  const std::string text("a\0b\n\xFF", 5);
  write_whole_file(at("a"), "first, longer");
  for (const auto mode : {fs::perms::owner_read | fs::perms::owner_write, fs::perms::all}) {
    fs::permissions(at("a"), mode);
    write_whole_file(at("a"), text);
    EXPECT_EQ(fs::status(at("a")).permissions(), mode);
    EXPECT_EQ(read_whole_file(at("a")), text);
  }
  EXPECT_EQ(count(), 1U);
}

TEST_F(Files, AFailureNamesThePathAndLeavesNothing) {
  for (const auto& path : {at("missing/a"), folder_.string()}) {
    try {
      write_whole_file(path, "text");
      FAIL() << "no exception";
    } catch (const std::runtime_error& error) {
      EXPECT_NE(std::string(error.what()).find("'" + path + "'"), std::string::npos) << error.what();
    }
  }
  EXPECT_EQ(count(), 0U);
}

TEST_F(Files, ALinkStaysALinkAndACircleOfThemIsNoFile) {
  write_whole_file(at("target"), "old");
  fs::create_symlink("target", at("link"));
  write_whole_file(at("link"), "new");
  EXPECT_TRUE(fs::is_symlink(at("link")));
  EXPECT_EQ(read_whole_file(at("target")), "new");
  fs::create_symlink("b", at("a"));
  fs::create_symlink("a", at("b"));
  EXPECT_THROW(write_whole_file(at("a"), "text"), std::runtime_error);
  write_whole_file("/dev/null", "text");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(Files, WhatCannotBeReadIsNamed) {
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);  // nobody writes to it
  for (const auto& [path, reason] : {std::pair{at("missing"), "No such file"},
                                     {folder_.string(), "folder"},
                                     {at("pipe"), "not a regular file"},
                                     {std::string("/dev/zero"), "not a regular file"}}) {
    try {
      static_cast<void>(read_whole_file(path));
      FAIL() << "no exception";
    } catch (const std::runtime_error& error) {
      EXPECT_NE(std::string(error.what()).find("'" + path + "'"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find(reason), std::string::npos) << error.what();
    }
  }
}

TEST_F(Files, MoreThanWasRequestedIsNotRead) {
  write_whole_file(at("a"), "12345");
  EXPECT_EQ(read_whole_file(at("a"), 5), "12345");
  EXPECT_THROW(static_cast<void>(read_whole_file(at("a"), 4)), std::runtime_error);
  write_whole_file(at("large"), "");
  fs::resize_file(at("large"), static_cast<std::uintmax_t>(kLargestFile) + 1);
  EXPECT_THROW(static_cast<void>(read_whole_file(at("large"))), std::runtime_error);
}

}  // namespace
}  // namespace roofprof
