// File formats: what they read, what they refuse, and that no damage to a file can do worse than an Error.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/random.h"
#include "formats/cifar.h"
#include "formats/csv.h"
#include "formats/gzip.h"
#include "formats/half.h"
#include "formats/idx.h"
#include "formats/safetensors.h"
#include "temp_folder.h"

namespace stoker {
namespace {

using testing::bytes_of;
using testing::expect_error;
using testing::TempFolder;

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// ---- gzip

TEST(Gzip, InflatesWhatWasDeflatedAlsoInSeveralMembers) {
  const std::string text(300'000, 'x');
  EXPECT_EQ(text_of(inflate_gzip(bytes_of(testing::gzip(text)), "f")), text);
  EXPECT_EQ(text_of(inflate_gzip(bytes_of(testing::gzip("ab") + testing::gzip("cd")), "f")), "abcd");
  EXPECT_EQ(text_of(inflate_gzip(bytes_of(testing::gzip("ab") + std::string(5, '\0')), "f")), "ab");
}

TEST(Gzip, ReportsTruncationAtEveryByte) {
  const std::string whole = testing::gzip("the quick brown fox jumps over the lazy dog");
  for (std::size_t n = 2; n < whole.size(); ++n) {
    expect_error(Code::bad_file, {"my.gz", "truncated"},
                 [&] { (void)inflate_gzip(bytes_of(whole).first(n), "my.gz"); });
  }
}

TEST(Gzip, RefusesDamageForeignTailAndBombs) {
  std::string damaged = testing::gzip("hello hello hello");
  damaged[12] = static_cast<char>(damaged[12] ^ 0x55);
  expect_error(Code::bad_file, {"my.gz"}, [&] { (void)inflate_gzip(bytes_of(damaged), "my.gz"); });
  expect_error(Code::bad_file, {"foreign"},
               [&] { (void)inflate_gzip(bytes_of(testing::gzip("a") + "tail"), "my.gz"); });
  const std::string bomb = testing::gzip(std::string(1'000'000, '\0'));
  expect_error(Code::bad_file, {"more than 1000"}, [&] { (void)inflate_gzip(bytes_of(bomb), "my.gz", 1000); });
}

// ---- idx

std::string idx(std::initializer_list<int> sizes, const std::string& values) {
  std::string text{'\0', '\0', '\x08', static_cast<char>(sizes.size())};
  for (const int size : sizes) {
    for (const int shift : {24, 16, 8, 0}) text.push_back(static_cast<char>(size >> shift & 0xFF));
  }
  return text + values;
}

TEST(Idx, ReadsSizesAndValues) {
  const std::string file = idx({2, 1, 3}, "abcdef");
  const IdxView view = parse_idx(bytes_of(file), "f");
  EXPECT_EQ(view.shape, (Shape{2, 1, 3}));
  EXPECT_EQ(text_of(view.values), "abcdef");
}

TEST(Idx, NamesWhatIsWrong) {
  const auto refuses = [](const std::string& file, const std::string& word) {
    expect_error(Code::bad_file, {"my.idx", word}, [&] { (void)parse_idx(bytes_of(file), "my.idx"); });
  };
  refuses("", "too short");
  refuses(std::string("\x89PNG"), "two zeros");
  refuses(std::string("\0\0\x0D\x01", 4), "type 13");
  refuses(std::string("\0\0\x08\0", 4), "rank 0");
  refuses(std::string("\0\0\x08\x07", 4), "rank 7");
  refuses(std::string("\0\0\x08\x02\0\0", 6), "header is truncated");
  refuses(idx({2, 3}, "abcde"), "truncated");
  refuses(idx({2, 3}, "abcdefg"), "7 values");
  refuses(idx({0, 3}, ""), "zero");
  refuses(idx({-1, -1, -1, -1, -1, -1}, "abc"), "truncated");  // 2^32-1 each: the product would overflow
}

// ---- CIFAR-10

TEST(Cifar, ConvertsPlanesToChannelsLast) {
  std::string record(3073, '\0');
  record[0] = 7;
  for (int c = 0; c < 3; ++c) {
    for (int p = 0; p < 1024; ++p)
      record[static_cast<std::size_t>(1 + c * 1024 + p)] = static_cast<char>(c * 50 + p % 50);
  }
  CifarImages images;
  parse_cifar10(bytes_of(record), "f", images);
  parse_cifar10(bytes_of(record), "f", images);
  ASSERT_EQ(images.labels, (std::vector<std::int32_t>{7, 7}));
  ASSERT_EQ(images.pixels.size(), 2U * 3072);
  for (std::size_t p : {0U, 33U, 1023U}) {
    for (std::size_t c = 0; c < 3; ++c) EXPECT_EQ(images.pixels[3072 + p * 3 + c], c * 50 + p % 50);
  }
}

TEST(Cifar, NamesWhatIsWrong) {
  CifarImages images;
  expect_error(Code::bad_file, {"b.bin", "empty"}, [&] { parse_cifar10({}, "b.bin", images); });
  expect_error(Code::bad_file, {"b.bin", "3072"},
               [&] { parse_cifar10(bytes_of(std::string(3072, '\0')), "b.bin", images); });
  std::string two(2 * 3073, '\0');
  two[3073] = 10;
  expect_error(Code::bad_file, {"record 1", "label 10"}, [&] { parse_cifar10(bytes_of(two), "b.bin", images); });
  EXPECT_TRUE(images.labels.empty()) << "a refused file leaves nothing behind";
}

// ---- CSV

TEST(Csv, ReadsNumbersAsTheCLibraryDoes) {
  for (const char* text : {"0", "-0", "1", "+1.5", "3.1415926535897932384", "1e10", "1E-10", ".5", "5.", "-2.5e+3",
                           "123456789012345678901234567890", "0.000000000000000000000000001", "16777217", "1e-45",
                           "3.4028234e38", "1e-400", "  7\t", "000000000000000000000000000001.25"}) {
    ASSERT_TRUE(parse_number(text).has_value()) << text;
    EXPECT_EQ(*parse_number(text), std::strtof(text, nullptr)) << text;
  }
  for (const char* text : {"", " ", "-", ".", "e5", "1e", "1e+", "1.2.3", "1,5", "0x10", "nan", "inf", "1e39", "1 2",
                           "12a", "--1", "1e999999999999"}) {
    EXPECT_FALSE(parse_number(text).has_value()) << text;
  }
}

TEST(Csv, TakesTheLabelFromTheColumnNamedLabelElseTheFirst) {
  const CsvTable named = parse_csv("a,label,b\r\n1,2,3\r\n\r\n4,5,6", "f");
  EXPECT_EQ(named.labels, (std::vector<std::int32_t>{2, 5}));
  EXPECT_EQ(named.values, (std::vector<float>{1, 3, 4, 6}));
  EXPECT_EQ(named.names, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(parse_csv("1,2,3\n", "f").labels[0], 1);
  EXPECT_EQ(parse_csv("1,2,3\n", "f", {.label_column = "last"}).labels[0], 3);
  EXPECT_EQ(parse_csv("x;y;z\n1;2;3\n", "f", {.label_column = "y", .separator = ';'}).labels[0], 2);
}

TEST(Csv, KnowsAHeaderWhereItSeesOne) {
  EXPECT_EQ(parse_csv("label,0,1\n5,2,3\n", "f").rows, 1) << "numbers as names, as data frames write them";
  EXPECT_EQ(parse_csv("x,y\n5,2\n", "f").rows, 1);
  EXPECT_EQ(parse_csv("5,2\n6,3\n", "f").rows, 2);
  EXPECT_EQ(parse_csv("5,2\n6,3\n", "f", {.header = CsvHeader::yes}).rows, 1);
  expect_error(Code::bad_file, {"row 1, column 1", "'x'"},
               [] { (void)parse_csv("x,y\n5,2\n", "f", {.header = CsvHeader::no}); });
}

TEST(Csv, UnderstandsQuotesAndAByteOrderMark) {
  const CsvTable table = parse_csv("\xEF\xBB\xBF\"label\",\"a \"\"b\"\"\nc\"\n\"3\",\"1.5\"\n", "f");
  EXPECT_EQ(table.labels[0], 3);
  EXPECT_EQ(table.values[0], 1.5F);
  EXPECT_EQ(table.names[0], "a \"b\"\nc");
}

TEST(Csv, SaysRowAndColumnOfABadValue) {
  const auto refuses = [](const std::string& text, const std::vector<std::string>& words,
                          const CsvOptions& options = {}) {
    expect_error(Code::bad_file, words, [&] { (void)parse_csv(text, "my.csv", options); });
  };
  refuses("", {"my.csv", "no rows"});
  refuses("\n\n", {"no rows"});
  refuses("label,a\n", {"header but no rows"});
  refuses("1\n2\n", {"one field"});
  refuses("1,2\n1,2,3\n", {"row 2", "3 fields", "2 were expected"});
  refuses("1,2\n1\n", {"row 2", "1 fields"});
  refuses("1,2\n\n3,nan\n", {"row 3, column 2", "'nan'"});
  refuses("1,2\n3,four\n", {"row 2, column 2", "'four'"});
  refuses("1,2\n3,\n", {"row 2, column 2"});
  refuses("\"a\nb\",c\n1,x\n", {"row 3, column 2"});
  refuses("1,2\n-1,2\n", {"row 2, column 1", "label '-1'"});
  refuses("1,2\n1.5,2\n", {"label '1.5'"});
  refuses("1,2\n1e9,2\n", {"label '1e9'"});
  refuses("1,2\n3,2\n", {"label '3'", "0..2"}, {.classes = 3});
  refuses("1,\"2\n", {"row 1", "never closed"});
  refuses("1,\"2\"x\n", {"row 1, column 2", "closing quote"});
  refuses("a,b\n1,2\n", {"'target'"}, {.label_column = "target"});
  refuses("1,2\n3," + std::string(10'000, 'z'), {"zzz...'"});
}

// ---- 16-bit floats

TEST(Half, WidensEveryValueExactly) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const int exponent = static_cast<int>(bits >> 10 & 0x1F);
    const int fraction = static_cast<int>(bits & 0x3FF);
    const float value = float_from_f16(static_cast<std::uint16_t>(bits));
    EXPECT_EQ(std::signbit(value), bits >= 0x8000);
    if (exponent == 31) {
      EXPECT_TRUE(fraction == 0 ? std::isinf(value) : std::isnan(value));
    } else {
      const double expected = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
      EXPECT_EQ(std::fabs(value), expected);
    }
  }
  EXPECT_EQ(float_from_bf16(0x3FC0), 1.5F);
  EXPECT_EQ(float_from_bf16(0xC000), -2.0F);
}

// ---- safetensors

std::string with_length(const std::string& header, const std::string& values = "") {
  std::string text;
  for (int i = 0; i < 8; ++i) text.push_back(static_cast<char>(header.size() >> (8 * i) & 0xFF));
  return text + header + values;
}

TensorToStore raw(std::string name, StoredType type, const Shape& shape, std::string bytes) {
  return {std::move(name), type, shape, [bytes](const WritePart& write) {
            for (const char& byte : bytes) write(bytes_of({&byte, 1}));  // in several parts
          }};
}

template <typename T>
std::string bytes_from(std::initializer_list<T> values) {
  return {reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(T)};
}

std::filesystem::path write_sample(const TempFolder& folder) {
  static const std::vector<float> kWeights = {1.5F, -2.0F, 0.0F, 4.25F, 1e-30F, 3.0F};
  const std::vector<TensorToStore> tensors = {
      stored_f32("layer1.0.weight", {2, 3}, kWeights),
      raw("double", StoredType::f64, {2}, bytes_from<double>({0.1, -3.0})),
      raw("half", StoredType::f16, {2}, bytes_from<std::uint16_t>({0x3E00, 0xC000})),
      raw("brain", StoredType::bf16, {1}, bytes_from<std::uint16_t>({0x3FC0})),
      raw("long", StoredType::i64, {1}, bytes_from<std::int64_t>({-(std::int64_t{1} << 40)})),
      raw("int", StoredType::i32, {}, bytes_from<std::int32_t>({-5})),
      raw("byte", StoredType::u8, {3}, "\x01\x02\xFF"),
      raw("flag", StoredType::b8, {2}, std::string("\0\1", 2)),
      raw("empty", StoredType::f32, {0, 4}, ""),
  };
  const auto path = folder.path() / "sample.safetensors";
  write_safetensors(path, tensors, {{"step", "17"}, {"note", "\"quoted\" \xC3\xA9"}});
  return path;
}

TEST(Safetensors, ReadsBackWhatItWrote) {
  const TempFolder folder;
  const auto file = SafetensorsFile::open(write_sample(folder));
  EXPECT_EQ(file.metadata().at("step"), "17");
  EXPECT_EQ(file.metadata().at("note"), "\"quoted\" \xC3\xA9");
  ASSERT_EQ(file.tensors().size(), 9U);
  EXPECT_EQ(file.at("layer1.0.weight").shape, (Shape{2, 3}));
  EXPECT_EQ(file.read_f32("layer1.0.weight"), (std::vector<float>{1.5F, -2.0F, 0.0F, 4.25F, 1e-30F, 3.0F}));
  EXPECT_EQ(file.read_f32("double"), (std::vector<float>{0.1F, -3.0F}));
  EXPECT_EQ(file.read_f32("half"), (std::vector<float>{1.5F, -2.0F}));
  EXPECT_EQ(file.read_f32("brain"), (std::vector<float>{1.5F}));
  EXPECT_TRUE(file.read_f32("empty").empty());
  EXPECT_EQ(file.read_i64("long"), (std::vector<std::int64_t>{-(std::int64_t{1} << 40)}));
  EXPECT_EQ(file.read_i64("int"), (std::vector<std::int64_t>{-5}));
  EXPECT_EQ(file.at("int").shape.rank(), 0);
  EXPECT_EQ(file.read_i64("byte"), (std::vector<std::int64_t>{1, 2, 255}));
  EXPECT_EQ(file.read_i64("flag"), (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(file.find("other"), nullptr);
}

TEST(Safetensors, ConvertsTensorsLargerThanItsChunks) {
  std::vector<double> values(100'003);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i) * 0.25;
  const TempFolder folder;
  const auto path = folder.path() / "large";
  write_safetensors(path, std::vector<TensorToStore>{{"d", StoredType::f64, {100'003}, [&](const WritePart& w) {
                                                        w(std::as_bytes(std::span(values)));
                                                      }}});
  const std::vector<float> read = SafetensorsFile::open(path).read_f32("d");
  ASSERT_EQ(read.size(), values.size());
  for (std::size_t i = 0; i < read.size(); ++i) ASSERT_EQ(read[i], values[i]);
}

TEST(Safetensors, PadsTheHeaderSoThatValuesAreAligned) {
  const TempFolder folder;
  const std::vector<float> one = {1};
  for (std::string name = "n"; name.size() < 10; name += "n") {
    write_safetensors(folder.path() / "f", std::vector<TensorToStore>{stored_f32(name, {1}, one)});
    const std::vector<std::byte> bytes = read_file(folder.path() / "f");
    EXPECT_EQ((bytes.size() - 4) % 8, 0U);
    EXPECT_EQ(SafetensorsFile::open(folder.path() / "f").read_f32(name), one);
  }
}

TEST(Safetensors, RefusesToWriteWhatItCouldNotRead) {
  const TempFolder folder;
  const auto path = write_sample(folder);
  const std::vector<std::byte> before = read_file(path);
  const std::vector<float> two = {1, 2};
  const auto refuses = [&](const std::vector<TensorToStore>& tensors, const std::string& word) {
    expect_error(Code::bad_argument, {word}, [&] { write_safetensors(path, tensors); });
    EXPECT_EQ(read_file(path), before) << "the old file stays";
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1) << "no temporary file is left";
  };
  refuses({stored_f32("a", {2}, two), stored_f32("a", {2}, two)}, "'a' is used twice");
  refuses({stored_f32("__metadata__", {2}, two)}, "reserved");
  refuses({raw("short", StoredType::f32, {2}, "1234")}, "gave 4 bytes");
  refuses({stored_f32("\xFF", {2}, two)}, "UTF-8");
  expect_error(Code::bad_argument, {"'a'", "[3]"}, [&] { (void)stored_f32("a", {3}, two); });
}

TEST(Safetensors, NamesWhatIsWrongWithAHeader) {
  const auto refuses = [](const std::string& file, const std::vector<std::string>& words) {
    std::vector<std::string> all = words;
    all.push_back("my.st");
    expect_error(Code::bad_file, all, [&] { (void)SafetensorsFile::over(bytes_of(file), "my.st"); });
  };
  const auto tensor = [](const std::string& fields) { return with_length(R"({"w":{)" + fields + "}}", "12345678"); };
  const std::string f32 = R"("dtype":"F32",)";
  refuses("", {"0 bytes"});
  refuses(std::string(8, '\xFF'), {"header"});
  refuses(with_length("{}").substr(0, 9), {"truncated"});
  refuses(with_length("[]"), {"begin with '{'"});
  refuses(with_length("{\"a\""), {"JSON"});
  refuses(with_length("{}", "1"), {"1 bytes after"});
  refuses(with_length(R"({"w":1})"), {"'w'", "object"});
  refuses(with_length(R"({"__metadata__":{"a":1}})"), {"'a'", "string"});
  refuses(with_length(R"({"__metadata__":7})"), {"__metadata__"});
  refuses(tensor(R"("dtype":"F32","shape":[2])"), {"keys"});
  refuses(tensor(f32 + R"("shape":[2],"offsets":[0,8])"), {"no data_offsets"});
  refuses(tensor(R"("dtype":"F8","shape":[8],"data_offsets":[0,8])"), {"F8", "not supported"});
  refuses(tensor(R"("dtype":5,"shape":[8],"data_offsets":[0,8])"), {"dtype"});
  refuses(tensor(f32 + R"("shape":[3],"data_offsets":[0,8])"), {"8 bytes", "F32[3]", "12"});
  refuses(tensor(f32 + R"("shape":[3],"data_offsets":[0,12])"), {"ends at byte 12", "truncated"});
  refuses(tensor(f32 + R"("shape":[1],"data_offsets":[4,8])"), {"gap of 4"});
  refuses(tensor(f32 + R"("shape":[1],"data_offsets":[0,4])"), {"4 bytes after"});
  refuses(tensor(f32 + R"("shape":[2],"data_offsets":[8,0])"), {"begin and an end"});
  refuses(tensor(f32 + R"("shape":[2],"data_offsets":[0,8,8])"), {"begin and an end"});
  refuses(tensor(f32 + R"("shape":[-2],"data_offsets":[0,8])"), {"shape"});
  refuses(tensor(f32 + R"("shape":[2.0],"data_offsets":[0,8])"), {"shape"});
  refuses(tensor(f32 + R"("shape":2,"data_offsets":[0,8])"), {"not a list"});
  refuses(tensor(f32 + R"("shape":[1,1,1,1,1,1,2],"data_offsets":[0,8])"), {"7 dimensions"});
  refuses(tensor(f32 + R"("shape":[4294967296,4294967296],"data_offsets":[0,8])"), {"'w'", "large"});
  refuses(tensor(f32 + R"("shape":[18446744073709551615],"data_offsets":[0,8])"), {"'w'", "large"});
  const std::string first = R"({"a":{"dtype":"U8","shape":[5],"data_offsets":[0,5]},)";
  refuses(with_length(first + R"("b":{"dtype":"U8","shape":[5],"data_offsets":[3,8]}})", "12345678"), {"'b' overlaps"});
  refuses(with_length(first + R"("a":{"dtype":"U8","shape":[3],"data_offsets":[5,8]}})", "12345678"), {"'a' twice"});
  refuses(with_length("{\"a\":" + std::string(100'000, '[')), {"my.st"});
}

TEST(Safetensors, NamesTheTensorThatWasAskedForWrongly) {
  const TempFolder folder;
  const auto file = SafetensorsFile::open(write_sample(folder));
  expect_error(Code::bad_file, {"sample.safetensors", "'nope'"}, [&] { (void)file.read_f32("nope"); });
  expect_error(Code::bad_file, {"'long'", "I64"}, [&] { (void)file.read_f32("long"); });
  expect_error(Code::bad_file, {"'half'", "F16"}, [&] { (void)file.read_i64("half"); });
  std::vector<float> small(2);
  expect_error(Code::bad_argument, {"6 values"}, [&] { file.read_f32("layer1.0.weight", small); });
  expect_error(Code::io, {"missing.safetensors"},
               [&] { (void)SafetensorsFile::open(folder.path() / "missing.safetensors"); });
  expect_error(Code::io, {folder.string()}, [&] { (void)SafetensorsFile::open(folder.path()); });
}

// Opens and reads all of it; true if that went well. Anything but an Error escapes and fails the test.
bool survives(std::span<const std::byte> bytes) {
  try {
    const auto file = SafetensorsFile::over(bytes, "damaged");
    for (const StoredTensor& tensor : file.tensors()) {
      std::vector<std::byte> values(static_cast<std::size_t>(tensor.bytes));
      file.read(tensor.name, values);
    }
    return true;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::bad_file) << error.what();
    EXPECT_NE(std::string(error.what()).find("damaged"), std::string::npos) << error.what();
    return false;
  }
}

TEST(Safetensors, SurvivesDamageAtEveryByte) {
  const TempFolder folder;
  const std::vector<std::byte> whole = read_file(write_sample(folder));
  ASSERT_TRUE(survives(whole));
  for (std::size_t n = 0; n < whole.size(); ++n) EXPECT_FALSE(survives(std::span(whole).first(n))) << n;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const int flip : {0x01, 0x80, 0xFF, 0x10}) {
      std::vector<std::byte> damaged = whole;
      damaged[at] ^= static_cast<std::byte>(flip);
      (void)survives(damaged);
    }
  }
}

}  // namespace
}  // namespace stoker
