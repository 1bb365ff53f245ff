#include "json/file.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>

namespace roofprof {

namespace {

[[noreturn]] void fail(const std::string& path, const std::string& reason) {
  throw std::runtime_error("cannot write '" + path + "': " + reason);
}

[[noreturn]] void fail_to_read(const std::string& path, const std::string& reason) {
  throw std::runtime_error("cannot read '" + path + "': " + reason);
}

std::string last_error() { return std::generic_category().message(errno); }

// Empty where all went well, else why not.
std::string write_stream(const std::filesystem::path& path, std::string_view text) {
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (!file) return last_error();
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  return file ? std::string() : last_error();
}

// Beside the target, as a rename is only whole within one file system; unique per process and call.
std::filesystem::path temporary_beside(const std::filesystem::path& target) {
  static std::atomic<unsigned> counter{0};
  auto path = target;
  path += ".tmp" + std::to_string(::getpid()) + "." + std::to_string(counter++);
  return path;
}

}  // namespace

void write_whole_file(const std::string& path, std::string_view text) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path target(path);
  // A link stays a link: what it points to is replaced.
  if (fs::is_symlink(target, error)) target = fs::weakly_canonical(target, error);
  if (fs::is_directory(target, error)) fail(path, "it is a folder");
  if (fs::exists(target, error) && !fs::is_regular_file(target, error)) {
    if (const auto reason = write_stream(target, text); !reason.empty()) fail(path, reason);
    return;
  }
  const fs::path temporary = temporary_beside(target);
  if (const auto reason = write_stream(temporary, text); !reason.empty()) {
    fs::remove(temporary, error);
    fail(path, reason);
  }
  fs::rename(temporary, target, error);
  if (error) {
    const std::string reason = error.message();
    fs::remove(temporary, error);
    fail(path, reason);
  }
}

std::string read_whole_file(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) fail_to_read(path, last_error());
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) fail_to_read(path, "it is a folder");
  std::string text;
  const auto size = std::filesystem::file_size(path, error);  // of a pipe there is none
  if (!error) text.reserve(size);
  text.assign(std::istreambuf_iterator<char>(file), {});
  return text;
}

}  // namespace roofprof
