#include "core/json/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/utf8.h"
#include "roofprof/error.h"

namespace roofprof {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& path, const std::string& reason) {
  throw RuntimeError("cannot write '" + printable(path) + "': " + reason);
}

[[noreturn]] void fail_to_read(const std::string& path, const std::string& reason) {
  throw RuntimeError("cannot read '" + printable(path) + "': " + reason);
}

std::string last_error() { return std::generic_category().message(errno); }

// An open file; closed at the end.
class OpenFile {
 public:
  OpenFile(const fs::path& path, int flags, mode_t mode = 0) : file_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {}
  ~OpenFile() {
    if (file_ >= 0) ::close(file_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  explicit operator bool() const { return file_ >= 0; }
  int number() const { return file_; }
  // Closes the file. Some file systems report only now that the disk is full.
  bool close() { return ::close(std::exchange(file_, -1)) == 0; }

 private:
  int file_;
};

// Returns why writing failed; empty if it did not.
std::string write_all(OpenFile& file, std::string_view text) {
  if (!file) return last_error();
  while (!text.empty()) {
    const ssize_t written = ::write(file.number(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return last_error();
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return file.close() ? std::string() : last_error();
}

// Returns a path in the target's folder, because a rename is atomic only within one file system. The name is unique per
// process and call.
fs::path temporary_beside(const fs::path& target) {
  constexpr std::size_t kLongest = 200;  // of a name of 255 bytes
  static std::atomic<unsigned> counter{0};
  const std::string name = target.filename().string().substr(0, kLongest);
  return target.parent_path() / (name + ".tmp" + std::to_string(::getpid()) + "." + std::to_string(counter++));
}

constexpr mode_t kPermissions = 0777;
constexpr mode_t kOfNewFiles = 0666;  // as the umask leaves it

}  // namespace

void write_whole_file(const std::string& path, std::string_view text) {
  std::error_code error;
  fs::path target(path);
  // A link stays a link: what it points to is replaced.
  if (fs::is_symlink(target, error)) {
    target = fs::weakly_canonical(target, error);
    if (error) fail(path, error.message());
  }
  struct stat before{};
  const bool is_there = ::stat(target.c_str(), &before) == 0;
  if (is_there && S_ISDIR(before.st_mode)) fail(path, "it is a folder");
  if (is_there && !S_ISREG(before.st_mode)) {
    OpenFile file(target, O_WRONLY | O_TRUNC);
    if (const auto reason = write_all(file, text); !reason.empty()) fail(path, reason);
    return;
  }
  const fs::path temporary = temporary_beside(target);
  const auto give_up = [&](const std::string& reason) {
    fs::remove(temporary, error);
    fail(path, reason);
  };
  const mode_t mode = is_there ? before.st_mode & kPermissions : kOfNewFiles;
  OpenFile file(temporary, O_WRONLY | O_CREAT | O_EXCL, mode);
  if (file && is_there && ::fchmod(file.number(), mode) != 0) give_up(last_error());
  if (const auto reason = write_all(file, text); !reason.empty()) give_up(reason);
  fs::rename(temporary, target, error);
  if (error) give_up(error.message());
}

std::string read_whole_file(const std::string& path, std::int64_t largest) {
  const OpenFile file(path, O_RDONLY | O_NONBLOCK);  // to open a pipe would wait for its writer
  if (!file) fail_to_read(path, last_error());
  struct stat about{};
  if (::fstat(file.number(), &about) != 0) fail_to_read(path, last_error());
  if (S_ISDIR(about.st_mode)) fail_to_read(path, "it is a folder");
  if (!S_ISREG(about.st_mode)) fail_to_read(path, "it is not a regular file but a pipe or a device");
  const auto refuse_size = [&](const std::string& size) {
    fail_to_read(path, "it has " + size + " bytes, and no file of roofprof has more than " + std::to_string(largest));
  };
  if (about.st_size > largest) refuse_size(std::to_string(about.st_size));
  std::string text;
  text.reserve(static_cast<std::size_t>(about.st_size));
  constexpr std::size_t kAtOnce = std::size_t{1} << 16U;
  std::array<char, kAtOnce> part{};
  for (;;) {
    const ssize_t count = ::read(file.number(), part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_to_read(path, last_error());
    if (count == 0) return text;
    text.append(part.data(), static_cast<std::size_t>(count));
    if (std::cmp_greater(text.size(), largest)) refuse_size("more and more");  // it grew meanwhile
  }
}

}  // namespace roofprof
