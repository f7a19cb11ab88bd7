#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace stoker {
namespace {

[[noreturn]] void fail_io(const char* what, const std::filesystem::path& path, int error) {
  fail(Code::io, "cannot ", what, " ", path.string(), ": ", std::strerror(error));
}

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] int close() { return ::close(std::exchange(fd_, -1)); }

 private:
  int fd_;
};

void write_all(int fd, std::span<const std::byte> bytes, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_io("write", path, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void sync_folder(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  const FileDescriptor descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some file systems cannot sync a folder; the rename itself has happened by now.
  if (descriptor.get() >= 0) ::fsync(descriptor.get());
}

enum class PathKind { none, folder, file, special };  // special: a device, a pipe; links are followed

PathKind kind_of(const std::filesystem::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return PathKind::none;
  return S_ISDIR(info.st_mode) ? PathKind::folder : S_ISREG(info.st_mode) ? PathKind::file : PathKind::special;
}

// The new file stands beside the one that a link leads to, and the link stays.
std::filesystem::path behind_links(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::path target = std::filesystem::canonical(path, error);
  return error ? path : target;
}

std::filesystem::path temporary_for(const std::filesystem::path& path) {
  std::filesystem::path temporary = path;
  temporary += ".tmp" + std::to_string(::getpid());
  return temporary;
}

int create(const std::filesystem::path& path) {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
}

// There is no old content to keep, and a file in its place would be no device any more.
void write_special(const std::filesystem::path& path, const std::function<void(const WritePart&)>& content) {
  FileDescriptor descriptor(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (descriptor.get() < 0) fail_io("open", path, errno);
  content([&](std::span<const std::byte> bytes) { write_all(descriptor.get(), bytes, path); });
  if (descriptor.close() != 0) fail_io("close", path, errno);
}

}  // namespace

std::vector<std::byte> read_file(const std::filesystem::path& path) {
  const FileDescriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (descriptor.get() < 0) fail_io("open", path, errno);
  struct stat info {};
  if (::fstat(descriptor.get(), &info) != 0) fail_io("read", path, errno);
  if (S_ISDIR(info.st_mode)) fail_io("read", path, EISDIR);
  std::vector<std::byte> bytes;
  bytes.reserve(static_cast<std::size_t>(info.st_size));
  std::vector<std::byte> part(std::size_t{1} << 20);
  for (;;) {
    const ssize_t got = ::read(descriptor.get(), part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_io("read", path, errno);
    if (got == 0) return bytes;
    bytes.insert(bytes.end(), part.begin(), part.begin() + got);
  }
}

void require_writable(const std::filesystem::path& path) {
  const PathKind kind = kind_of(path);
  if (kind == PathKind::folder) fail_io("write", path, EISDIR);
  if (kind == PathKind::special) {
    if (::access(path.c_str(), W_OK) != 0) fail_io("write", path, errno);
    return;
  }
  const std::filesystem::path temporary = temporary_for(behind_links(path));
  const FileDescriptor descriptor(create(temporary));
  if (descriptor.get() < 0) fail_io("write", path, errno);
  ::unlink(temporary.c_str());
}

void write_file_atomically(const std::filesystem::path& name, const std::function<void(const WritePart&)>& content,
                           bool sync) {
  if (kind_of(name) == PathKind::special) return write_special(name, content);
  const std::filesystem::path path = behind_links(name);
  const std::filesystem::path temporary = temporary_for(path);
  FileDescriptor descriptor(create(temporary));
  if (descriptor.get() < 0) fail_io("create", temporary, errno);
  try {
    content([&](std::span<const std::byte> bytes) { write_all(descriptor.get(), bytes, path); });
    if (sync && ::fsync(descriptor.get()) != 0) fail_io("sync", path, errno);
    if (descriptor.close() != 0) fail_io("close", path, errno);
    if (::rename(temporary.c_str(), path.c_str()) != 0) fail_io("replace", path, errno);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  if (sync) sync_folder(path);
}

}  // namespace stoker
