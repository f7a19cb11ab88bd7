#include "formats/gzip.h"

#include <zlib.h>

#include <algorithm>

#include "base/error.h"
#include "base/file.h"

namespace stoker {
namespace {

constexpr int kGzipOnly = 16 + MAX_WBITS;
constexpr std::size_t kMostPerCall = std::size_t{1} << 20;  // zlib counts in 32 bits

// Owns zlib's state for one stream of members.
class Inflater {
 public:
  explicit Inflater(std::string_view file) : file_(file) {
    require(inflateInit2(&stream_, kGzipOnly) == Z_OK, Code::no_memory, file_, ": no memory to inflate");
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Takes from the front of `in`, writes to `out`, returns how much was written; sets `ended` at a member's end.
  std::size_t step(std::span<const std::byte>& in, std::span<std::byte> out, bool& ended) {
    const std::size_t offered = std::min(in.size(), kMostPerCall);
    // zlib's interface predates const; it does not write to its input.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(in.data()));
    stream_.avail_in = static_cast<uInt>(offered);
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(out.size());
    const int status = inflate(&stream_, Z_NO_FLUSH);
    require(status != Z_MEM_ERROR, Code::no_memory, file_, ": no memory to inflate");
    require(status == Z_OK || status == Z_STREAM_END || status == Z_BUF_ERROR, Code::bad_file, file_,
            ": damaged gzip data: ", stream_.msg != nullptr ? stream_.msg : "invalid stream");
    in = in.subspan(offered - stream_.avail_in);
    ended = status == Z_STREAM_END;
    return out.size() - stream_.avail_out;
  }

  void restart() {
    require(inflateReset(&stream_) == Z_OK, Code::bad_file, file_, ": damaged gzip data: invalid stream");
  }

 private:
  std::string_view file_;
  z_stream stream_{};
};

}  // namespace

bool is_gzip(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1F} && bytes[1] == std::byte{0x8B};
}

std::vector<std::byte> inflate_gzip(std::span<const std::byte> bytes, std::string_view file, std::size_t most) {
  require(is_gzip(bytes), Code::bad_file, file, ": not gzip data");
  Inflater inflater(file);
  std::vector<std::byte> part(std::size_t{1} << 18);
  std::vector<std::byte> result;
  for (;;) {
    bool ended = false;
    const std::size_t before = bytes.size();
    const std::size_t got = inflater.step(bytes, part, ended);
    require(got <= most - result.size(), Code::bad_file, file, ": inflates to more than ", most, " bytes");
    result.insert(result.end(), part.begin(), part.begin() + static_cast<std::ptrdiff_t>(got));
    if (ended) {
      // Some tools pad a gzip file with zeros; anything else after a member must be a further member.
      if (std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; })) return result;
      require(is_gzip(bytes), Code::bad_file, file, ": foreign data after the end of the gzip data");
      inflater.restart();
    } else {
      require(got > 0 || bytes.size() < before, Code::bad_file, file, ": the gzip data is truncated");
    }
  }
}

std::vector<std::byte> read_file_inflated(const std::filesystem::path& path) {
  std::vector<std::byte> bytes = read_file(path);
  if (!is_gzip(bytes)) return bytes;
  return inflate_gzip(bytes, path.string());
}

}  // namespace stoker
