// The OpenCL layer below plans: loading, devices, quirks, counted calls, programs and their cache. On the stub driver.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>

#include "backends/opencl/api.h"
#include "backends/opencl/devices.h"
#include "backends/opencl/errors.h"
#include "backends/opencl/program.h"
#include "backends/opencl/quirks.h"
#include "base/error.h"
#include "fault_library.h"
#include "stub_driver.h"
#include "temp_folder.h"

namespace stoker::opencl {
namespace {

using stoker::testing::expect_error;
using stoker::testing::Fault;
using stoker::testing::FaultLibrary;
using stoker::testing::faults;
using stoker::testing::make_stub_library;
using stoker::testing::stub_report;
using stoker::testing::StubConfig;
using stoker::testing::StubDevice;
using stoker::testing::TempFolder;

// A variable of the environment, for as long as the object lives.
class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    ::setenv(name, value.c_str(), 1);
  }
  ~Environment() {
    if (old_.has_value()) {
      ::setenv(name_, old_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

// --- The library.

TEST(OpenClLibrary, TriesBareNamesFirstAndThenVendorsFolders) {
  ::unsetenv("STOKER_OPENCL_LIBRARY");
  const std::vector<std::string> names = library_names();
  EXPECT_EQ(names[0], "libOpenCL.so");
  EXPECT_EQ(names[1], "libOpenCL.so.1");
  const auto at = [&](const std::string& name) { return std::ranges::find(names, name) - names.begin(); };
  const auto count = static_cast<std::ptrdiff_t>(names.size());
  EXPECT_LT(at("libGLES_mali.so"), at("libOpenCL-pixel.so"));
  EXPECT_LT(at("libPVROCL.so"), at("/system/vendor/lib64/libOpenCL.so"));
  EXPECT_LT(at("/system/vendor/lib64/egl/libGLES_mali.so"), at("/vendor/lib64/libOpenCL.so"));
  EXPECT_LT(at("/vendor/lib64/libOpenCL.so"), count);
}

TEST(OpenClLibrary, TheEnvironmentNamesTheOnlyOneTried) {
  const Environment variable("STOKER_OPENCL_LIBRARY", "/nowhere/libmine.so");
  EXPECT_EQ(library_names(), std::vector<std::string>{"/nowhere/libmine.so"});
}

TEST(OpenClLibrary, SaysWhatWasTriedAndWhyItWasNotTaken) {
  const LoadReport report = try_libraries(std::vector<std::string>{"/nowhere/libOpenCL.so", "libz.so.1"});
  EXPECT_EQ(report.library, nullptr);
  ASSERT_EQ(report.tried.size(), 2U);
  EXPECT_NE(report.tried[1].find("libz.so.1: "), std::string::npos) << report.tried[1];
  EXPECT_NE(report.tried[0].find("/nowhere/libOpenCL.so"), std::string::npos) << report.tried[0];
  EXPECT_NE(report.tried[0].find("No such file"), std::string::npos) << report.tried[0];
  expect_error(Code::device, {"no OpenCL library", "/nowhere/libOpenCL.so"},
               [&] { static_cast<void>(open_device(report, "opencl")); });
}

TEST(OpenClLibrary, OpensLibrariesThatHandTheirFunctionsOut) {
  const LoadReport report = try_libraries(std::vector<std::string>{STOKER_PIXEL_LIBRARY});
  ASSERT_NE(report.library, nullptr) << report.tried.at(0);
  EXPECT_EQ(report.path, STOKER_PIXEL_LIBRARY);
  EXPECT_EQ(report.library->functions().clFinish(nullptr), -1);
}

// --- Errors.

TEST(OpenClErrors, TellLackOfMemoryFromALostDevice) {
  EXPECT_EQ(error_code(CL_MEM_OBJECT_ALLOCATION_FAILURE, false), Code::no_memory);
  EXPECT_EQ(error_code(CL_OUT_OF_RESOURCES, true), Code::no_memory);
  EXPECT_EQ(error_code(CL_OUT_OF_RESOURCES, false), Code::device);
  EXPECT_EQ(error_code(CL_BUILD_PROGRAM_FAILURE, true), Code::device);
  EXPECT_EQ(error_name(CL_MAP_FAILURE), "CL_MAP_FAILURE (-12)");
  EXPECT_EQ(error_name(-4711), "OpenCL error -4711");
}

// --- Devices.

TEST(OpenClDevice, FamiliesAreKnownByNameOrMaker) {
  EXPECT_EQ(classify("QUALCOMM Adreno(TM)", "QUALCOMM", false), Family::adreno);
  EXPECT_EQ(classify("FD630", "Qualcomm", false), Family::adreno);
  EXPECT_EQ(classify("FD740", "freedreno", false), Family::adreno);
  EXPECT_EQ(classify("Mali-G78 r0p1", "ARM", false), Family::mali);
  EXPECT_EQ(classify("Mali-G57 (Panfrost)", "Arm", false), Family::mali);
  EXPECT_EQ(classify("Immortalis-G715", "ARM", false), Family::mali);
  EXPECT_EQ(classify("PowerVR B-Series BXM-8-256", "Imagination Technologies", false), Family::powervr);
  EXPECT_EQ(classify("Intel(R) UHD Graphics 630", "Intel(R) Corporation", false), Family::other);
  EXPECT_EQ(classify("pthread-cortex-a78", "ARM", true), Family::cpu);
  EXPECT_EQ(classify("Samsung Xclipse 920", "Samsung Electronics", false), Family::other);
}

TEST(OpenClDevice, ExtensionsAreWholeWords) {
  EXPECT_TRUE(has_extension("cl_khr_fp16 cl_khr_command_buffer", "cl_khr_command_buffer"));
  EXPECT_FALSE(has_extension("cl_khr_command_buffer_mutable_dispatch cl_khr_fp16x", "cl_khr_command_buffer"));
  EXPECT_TRUE(has_extension("cl_khr_command_buffer_x cl_khr_command_buffer", "cl_khr_command_buffer"));
  EXPECT_FALSE(has_extension("", "cl_khr_fp16"));
}

StubDevice cpu() {
  return {.name = "A processor", .vendor = "V", .version = "OpenCL 3.0", .extensions = "", .type = CL_DEVICE_TYPE_CPU};
}

TEST(OpenClDevice, GpusComeBeforeCpusAndBrokenOnesAreLeftOut) {
  StubDevice broken;
  broken.name = "Broken";
  broken.broken_query = CL_DEVICE_LOCAL_MEM_SIZE;
  StubDevice old;
  old.name = "Old";
  old.version = "OpenCL 1.1 old";
  const DeviceList list = find_devices(*make_stub_library({.devices = {cpu(), broken, old, StubDevice{}}}));
  ASSERT_EQ(list.devices.size(), 2U);
  EXPECT_EQ(list.devices[0].info.id, "opencl:0");
  EXPECT_EQ(list.devices[0].info.family, Family::adreno);
  EXPECT_EQ(list.devices[1].info.id, "opencl:1");
  EXPECT_EQ(list.devices[1].info.family, Family::cpu);
  ASSERT_EQ(list.notes.size(), 2U);
  EXPECT_NE(list.notes[0].find("CL_OUT_OF_HOST_MEMORY"), std::string::npos) << list.notes[0];
  EXPECT_NE(list.notes[1].find("1.2 is needed"), std::string::npos) << list.notes[1];
}

TEST(OpenClDevice, LimitsComeFromQueries) {
  const Device device = find_devices(*make_stub_library()).devices.at(0).info;
  EXPECT_EQ(device.base_alignment, 128);
  EXPECT_EQ(device.largest_buffer, std::int64_t{1} << 30);
  EXPECT_EQ(device.native_width, 4);  // whatever a GPU says
  EXPECT_EQ(device.max_item_sizes[2], 64U);
  EXPECT_TRUE(device.local_is_real);
  EXPECT_TRUE(device.fp16);
  EXPECT_EQ(device.image_texels, 1 << 27);
}

TEST(OpenClDevice, AnAbsentOneIsAnErrorThatListsWhatThereIs) {
  const LoadReport two{.library = make_stub_library({.devices = {cpu(), StubDevice{}}}), .path = "stub", .tried = {}};
  EXPECT_EQ(open_device(two, "opencl").info.family, Family::adreno);
  EXPECT_EQ(open_device(two, "opencl:1").info.family, Family::cpu);
  for (const char* bad : {"opencl:2", "opencl:-1", "opencl:", "opencl:1x"})
    expect_error(Code::bad_argument, {bad, "opencl:0 (QUALCOMM Adreno(TM) 640)", "opencl:1 (A processor)"},
                 [&] { static_cast<void>(open_device(two, bad)); });
  const LoadReport none{.library = make_stub_library({.devices = {}}), .path = "stub", .tried = {}};
  expect_error(Code::device, {"stub", "no platforms"}, [&] { static_cast<void>(open_device(none, "opencl")); });
}

TEST(OpenClDevice, CommandBuffersAreUsedInKnownVersionsOnly) {
  const auto with = [](cl_version version, cl_command_queue_properties required) {
    StubDevice device;
    device.extensions = "cl_khr_command_buffer";
    device.command_buffer_version = version;
    device.required_queue = required;
    return find_devices(*make_stub_library({.devices = {device}})).devices.at(0).info.command_buffers;
  };
  EXPECT_TRUE(with(CL_MAKE_VERSION(0, 9, 0), 0));
  EXPECT_TRUE(with(CL_MAKE_VERSION(1, 0, 0), 0));
  EXPECT_FALSE(with(0, 0)) << "no version reported";
  EXPECT_FALSE(with(CL_MAKE_VERSION(2, 0, 0), 0));
  EXPECT_FALSE(with(CL_MAKE_VERSION(1, 0, 0), CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE));
}

// --- Quirks.

TEST(OpenClQuirks, PatternsMatchAnywhereInAnyCase) {
  EXPECT_TRUE(matches("", ""));
  EXPECT_TRUE(matches("", "anything"));
  EXPECT_TRUE(matches("mali-t", "ARM Mali-T880"));
  EXPECT_FALSE(matches("mali-t", "Mali-G76"));
  EXPECT_TRUE(matches("V@*.1", "driver v@0502.1 x"));
  EXPECT_FALSE(matches("V@*.1", "driver v@0502"));
  EXPECT_FALSE(matches("a", ""));
}

TEST(OpenClQuirks, EachRowHasItsEvidenceAndAppliesToItsDeviceAlone) {
  for (const QuirkRow& row : all_quirks()) {
    EXPECT_GT(std::string(row.what).size(), 5U);
    EXPECT_GT(std::string(row.evidence).size(), 10U) << row.what;
  }
  Device device;
  device.family = Family::mali;
  device.name = "Mali-T860";
  EXPECT_TRUE(quirks_of(device).no_images);
  EXPECT_EQ(quirks_of(device).launches_a_flush, 16);
  device.name = "Mali-G76";
  EXPECT_FALSE(quirks_of(device).no_images);
  device.family = Family::adreno;
  EXPECT_EQ(quirks_of(device).launches_a_flush, 10);
  EXPECT_GT(quirks_of(device).submission_seconds, 0.0);
  device.family = Family::cpu;
  EXPECT_FALSE(quirks_of(device).no_command_buffers);
  device.platform = "Intel(R) OpenCL OpenCL 3.1 LINUX";
  EXPECT_TRUE(quirks_of(device).no_command_buffers);
  device.family = Family::other;
  EXPECT_FALSE(quirks_of(device).no_command_buffers);
  device.platform = "rusticl OpenCL 3.0";
  device.driver = "22.3.6";
  EXPECT_TRUE(quirks_of(device).no_images);
  device.driver = "25.0.1";
  EXPECT_FALSE(quirks_of(device).no_images);
  EXPECT_FALSE(quirks_of(device).short_loops);
  device.family = Family::cpu;
  device.name = "llvmpipe (LLVM 15.0.6, 256 bits)";
  EXPECT_TRUE(quirks_of(device).short_loops);
}

// --- The counted calls.

// An Api on the stub, with a context and a queue.
struct Opened {
  explicit Opened(std::shared_ptr<const Library> from = make_stub_library())
      : api(from),
        device(find_devices(*from).devices.at(0)),
        context(api.create_context(device.id)),
        queue(api.create_queue(context.get(), device.id, false)) {}
  Api api;
  OpenedDevice device;
  Handle<cl_context> context;
  Handle<cl_command_queue> queue;
};

TEST(OpenClApi, CountsBytesCallsAndObjects) {
  {
    Opened cl;
    const Counters before = cl.api.counters();
    EXPECT_EQ(before.objects_created, 2);
    const Handle<cl_mem> buffer = cl.api.create_buffer(cl.context.get(), CL_MEM_READ_WRITE, 64);
    std::vector<std::byte> host(48);
    cl.api.write(cl.queue.get(), buffer.get(), 0, host, true);
    cl.api.write(cl.queue.get(), buffer.get(), 0, std::span(host).first(16), false);
    cl.api.read(cl.queue.get(), buffer.get(), 16, host, true);
    Handle<cl_event> event;
    cl.api.read(cl.queue.get(), buffer.get(), 0, std::span(host).first(4), false, &event);
    cl.api.wait(event.get(), Wait::back_pressure);
    cl.api.wait(event.get(), Wait::finished);
    cl.api.wait(event.get(), Wait::blocking);
    std::byte* mapped = cl.api.map(cl.queue.get(), buffer.get(), 32, true, event);
    cl.api.unmap(cl.queue.get(), buffer.get(), mapped);
    mapped = cl.api.map(cl.queue.get(), buffer.get(), 8, false, event);
    cl.api.unmap(cl.queue.get(), buffer.get(), mapped);
    cl.api.copy(cl.queue.get(), buffer.get(), 0, buffer.get(), 32, 12);
    cl.api.flush(cl.queue.get());
    cl.api.finish(cl.queue.get());
    const Counters got = cl.api.counters() - before;
    EXPECT_EQ(got.written, 64);
    EXPECT_EQ(got.read, 52);
    EXPECT_EQ(got.mapped_in, 32);
    EXPECT_EQ(got.mapped_out, 8);
    EXPECT_EQ(got.copied, 12);
    EXPECT_EQ(got.blocking_calls, 4);  // write, read, wait, finish
    EXPECT_EQ(got.back_pressure, 1);
    EXPECT_EQ(got.flushes, 1);
    EXPECT_EQ(got.objects_created, 1);
    EXPECT_EQ(got.events_created, 3);
  }
  EXPECT_TRUE(stub_report().live.empty());
  EXPECT_TRUE(stub_report().misuse.empty());
}

TEST(OpenClApi, EmptyTransfersAreNoMistake) {
  Opened cl;
  const Handle<cl_mem> buffer = cl.api.create_buffer(cl.context.get(), CL_MEM_READ_WRITE, 0);
  Handle<cl_event> event;
  cl.api.write(cl.queue.get(), buffer.get(), 0, {}, true);
  cl.api.read(cl.queue.get(), buffer.get(), 0, {}, false, &event);
  cl.api.wait(event.get(), Wait::finished);
  cl.api.fill_zero(cl.queue.get(), buffer.get(), 0);
  cl.api.copy(cl.queue.get(), buffer.get(), 0, buffer.get(), 0, 0);
  std::byte* mapped = cl.api.map(cl.queue.get(), buffer.get(), 0, true, event);
  cl.api.unmap(cl.queue.get(), buffer.get(), mapped);
  EXPECT_EQ(cl.api.counters().written + cl.api.counters().read + cl.api.counters().mapped_in, 0);
  EXPECT_EQ(cl.api.counters().blocking_calls, 0);
}

TEST(OpenClApi, ErrorsNameTheCallAndWhatItWasFor) {
  Opened cl(std::make_shared<FaultLibrary>(make_stub_library()));
  faults() = {.fault = {.function = "clCreateBuffer", .error = CL_MEM_OBJECT_ALLOCATION_FAILURE, .for_good = true}};
  expect_error(Code::no_memory, {"clCreateBuffer", "CL_MEM_OBJECT_ALLOCATION_FAILURE", "4096 bytes"},
               [&] { static_cast<void>(cl.api.create_buffer(cl.context.get(), CL_MEM_READ_WRITE, 4096)); });
  faults() = {};
}

TEST(OpenClApi, ACommandThatFailedOnTheDeviceIsAnErrorWhereItIsWaitedFor) {
  Opened cl(make_stub_library({.commands_until_lost = 0}));
  const Handle<cl_mem> buffer = cl.api.create_buffer(cl.context.get(), CL_MEM_READ_WRITE, 64);
  std::vector<std::byte> host(64);
  Handle<cl_event> event;
  cl.api.read(cl.queue.get(), buffer.get(), 0, host, false, &event);
  expect_error(Code::device, {"CL_OUT_OF_RESOURCES"}, [&] { cl.api.wait(event.get(), Wait::blocking); });
  expect_error(Code::device, {"CL_OUT_OF_RESOURCES"}, [&] { static_cast<void>(cl.api.is_done(event.get())); });
  expect_error(Code::device, {"clFinish"}, [&] { cl.api.finish(cl.queue.get()); });
}

// --- Programs and their cache.

class OpenClPrograms : public ::testing::Test {
 protected:
  [[nodiscard]] static Program program() { return {.file = std::string(embedded_files().at(0)), .header = "int x;"}; }

  // Builds a kernel as a new process would; gives what that cost.
  Counters start(std::shared_ptr<const Library> from = make_stub_library()) {
    Opened cl(std::move(from));
    Programs programs(cl.api, cl.context.get(), cl.device.id, cl.device.info, cl.queue.get());
    const Handle<cl_kernel> first = programs.kernel(program(), "some_kernel");
    const Handle<cl_kernel> second = programs.kernel(program(), "other_kernel");
    programs.save();
    note_ = programs.cache_note();
    return cl.api.counters();
  }
  [[nodiscard]] std::vector<std::filesystem::path> entries() const {
    std::vector<std::filesystem::path> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path()))
      if (entry.is_regular_file()) found.push_back(entry.path());
    return found;
  }

  TempFolder folder_;
  Environment variable_{"STOKER_CACHE_DIR", folder_.string()};
  std::string note_;
};

TEST_F(OpenClPrograms, AreMadeOfDefinesHeaderAndFile) {
  const std::string source = full_source({.file = program().file, .header = "int x;", .defines = {{"TM", 4}}});
  EXPECT_TRUE(source.starts_with("#define TM 4\nint x;\n")) << source.substr(0, 40);
  EXPECT_TRUE(source.ends_with(embedded_source(program().file)));
  expect_error(Code::bad_argument, {"nonesuch", program().file},
               [] { static_cast<void>(embedded_source("nonesuch")); });
}

TEST_F(OpenClPrograms, AreBuiltOnceAndThenComeFromTheCache) {
  Counters cost = start();
  EXPECT_EQ(cost.programs_built, 1);
  EXPECT_EQ(cost.programs_loaded, 0);
  EXPECT_EQ(entries().size(), 1U);
  cost = start();
  EXPECT_EQ(cost.programs_built, 0);
  EXPECT_EQ(cost.programs_loaded, 1);
  EXPECT_EQ(note_, "");
}

TEST_F(OpenClPrograms, AnotherDriversEntryIsNotUsed) {
  start();
  StubDevice other;
  other.version = "OpenCL 3.0 Adreno(TM) 640";
  EXPECT_EQ(start(make_stub_library({.devices = {other}})).programs_built, 1);
  EXPECT_EQ(entries().size(), 2U);
}

TEST_F(OpenClPrograms, ADamagedEntryIsIgnoredAndReplaced) {
  start();
  const std::filesystem::path entry = entries().at(0);
  const auto size = std::filesystem::file_size(entry);
  for (const std::uintmax_t kept : {size - 1, size / 2, std::uintmax_t{10}, std::uintmax_t{0}}) {
    std::filesystem::resize_file(entry, kept);
    EXPECT_EQ(start().programs_built, 1) << kept;
    EXPECT_EQ(std::filesystem::file_size(entry), size);
    EXPECT_EQ(start().programs_built, 0) << kept;
  }
  {
    std::fstream file(entry, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(size / 2));
    file.put('\x07');
  }
  EXPECT_EQ(start().programs_built, 1);
}

TEST_F(OpenClPrograms, ABinaryThatTheDriverRefusesIsBuiltAnew) {
  for (const char* function : {"clCreateProgramWithBinary", "clBuildProgram", "clCreateKernel"}) {
    start();
    faults() = {.fault = {.function = function, .call = 0, .error = CL_INVALID_BINARY}};
    EXPECT_EQ(start(std::make_shared<FaultLibrary>(make_stub_library())).programs_built, 1) << function;
    EXPECT_TRUE(faults().fired);
    faults() = {};
  }
}

TEST_F(OpenClPrograms, ABuildThatFailsOnceIsTriedAgain) {
  faults() = {.fault = {.function = "clBuildProgram", .call = 0, .error = CL_OUT_OF_HOST_MEMORY}};
  EXPECT_EQ(start(std::make_shared<FaultLibrary>(make_stub_library())).programs_built, 1);
  EXPECT_EQ(faults().calls["clFinish"], 1);
  faults() = {};
}

TEST_F(OpenClPrograms, ABuildThatFailsIsAnErrorWithFileDeviceAndLog) {
  Opened cl;
  Programs programs(cl.api, cl.context.get(), cl.device.id, cl.device.info);
  Program bad = program();
  bad.header = "STUB_REFUSES";
  expect_error(Code::device, {bad.file + ".cl", "Adreno", "CL_BUILD_PROGRAM_FAILURE", "the stub does not like this"},
               [&] { static_cast<void>(programs.kernel(bad, "k")); });
}

TEST_F(OpenClPrograms, WithoutAUsableCacheFolderTheyAreBuiltEachTime) {
  const std::filesystem::path file = folder_.write("occupied", "a file where a folder should be");
  const Environment variable("STOKER_CACHE_DIR", file.string());
  EXPECT_EQ(start().programs_built, 1);
  EXPECT_NE(note_.find("occupied"), std::string::npos) << note_;
  EXPECT_NE(note_.find("not kept"), std::string::npos) << note_;
  EXPECT_EQ(start().programs_built, 1);
}

TEST_F(OpenClPrograms, AReadOnlyFolderOnlyMeansBuildingAgain) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  std::filesystem::permissions(folder_.path(), std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  EXPECT_EQ(start().programs_built, 1);
  EXPECT_NE(note_.find("Permission denied"), std::string::npos) << note_;
  std::filesystem::permissions(folder_.path(), std::filesystem::perms::owner_all);
}

TEST_F(OpenClPrograms, AFullDiskOnlyMeansBuildingAgain) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit tight = before;
  tight.rlim_cur = 64;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);
  EXPECT_EQ(start().programs_built, 1);
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_NE(note_.find("cannot write"), std::string::npos) << note_;
  EXPECT_TRUE(entries().empty()) << "a temporary file was left";
}

TEST(OpenClCacheFolder, FollowsTheEnvironment) {
  const Environment home("HOME", "/h");
  const Environment xdg("XDG_CACHE_HOME", "");
  const Environment mine("STOKER_CACHE_DIR", "");
  EXPECT_EQ(cache_folder(), "/h/.cache/stoker");
  const Environment xdg2("XDG_CACHE_HOME", "/x");
  EXPECT_EQ(cache_folder(), "/x/stoker");
  const Environment mine2("STOKER_CACHE_DIR", "/m");
  EXPECT_EQ(cache_folder(), "/m");
}

}  // namespace
}  // namespace stoker::opencl
