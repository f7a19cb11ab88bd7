// Writing files: what is already there is replaced as a whole, but never made something else.
#include "base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "command.h"

namespace stoker {
namespace {

using testing::read_text;

void write(const std::filesystem::path& path, const std::string& text) {
  write_file_atomically(path, [&](const WritePart& part) { part(std::as_bytes(std::span(text))); });
}

class Files : public ::testing::Test {
 protected:
  [[nodiscard]] std::ptrdiff_t count() const {
    return std::distance(std::filesystem::directory_iterator(folder_.path()), {});
  }
  testing::TempFolder folder_;
};

TEST_F(Files, AreReplacedAsAWhole) {
  write(folder_ / "file", "a long text");
  write(folder_ / "file", "short");
  EXPECT_EQ(read_text(folder_ / "file"), "short");
  EXPECT_EQ(count(), 1) << "a temporary file was left";
}

TEST_F(Files, BehindALinkAreReplacedAndTheLinkStays) {
  std::filesystem::create_directory(folder_ / "below");
  write(folder_ / "below/file", "old");
  std::filesystem::create_symlink("below/file", folder_ / "link");
  write(folder_ / "link", "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "link"));
  EXPECT_EQ(read_text(folder_ / "below/file"), "new");
}

// As /dev/null and /dev/stdout are: a file renamed over them would break every other program.
TEST_F(Files, ThatArePipesOrDevicesAreWrittenTo) {
  const std::filesystem::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDWR | O_NONBLOCK);
  require_writable(pipe);
  write(pipe, "text");
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  char got[8] = {};
  EXPECT_EQ(::read(reader, got, sizeof got), 4);
  EXPECT_STREQ(got, "text");
  ::close(reader);
}

TEST_F(Files, CanBeAskedWhetherTheyCanBeWritten) {
  require_writable(folder_ / "new");
  EXPECT_EQ(count(), 0) << "asking has left a file";
  write(folder_ / "file", "old");
  require_writable(folder_ / "file");
  EXPECT_EQ(read_text(folder_ / "file"), "old");
  EXPECT_THROW(require_writable(folder_.path()), Error);
  EXPECT_THROW(require_writable(folder_ / "no/such/folder"), Error);
  EXPECT_THROW(write(folder_ / "no/such/folder", "x"), Error);
  EXPECT_EQ(count(), 1);
}

}  // namespace
}  // namespace stoker
