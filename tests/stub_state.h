// What the stub driver is made of: its objects, its one state, and the rules of queues and recordings.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "stub_driver.h"

namespace stoker::testing::stub {

constexpr std::size_t kMaxGroup = 1024;
constexpr long kBaseAlignment = 128;  // bytes

struct Object {
  explicit Object(const char* k) : kind(k) {}
  virtual ~Object() = default;
  const char* kind;
  int references = 1;
};

struct Context : Object {
  Context() : Object("context") {}
};

struct Memory : Object {
  Memory(const char* k, std::size_t n) : Object(k), size(n) {}
  [[nodiscard]] Memory& root() { return parent ? parent->root() : *this; }
  [[nodiscard]] std::byte* data() { return parent ? parent->data() + offset : bytes.data(); }
  std::vector<std::byte> bytes;
  std::shared_ptr<Memory> parent;  // of a sub-buffer or an image
  std::size_t offset = 0;
  std::size_t size;
  long mappings = 0;
};

struct ProgramObject : Object {
  ProgramObject() : Object("program") {}
  std::string source;
  bool built = false;
};

struct Kernel : Object {
  Kernel() : Object("kernel") {}
  std::string name;
  std::shared_ptr<ProgramObject> program;
  std::map<cl_uint, cl_mem> memories;  // arguments
};

struct Recording;

struct Queue : Object {
  Queue() : Object("queue") {}
  ~Queue() override { complete(enqueued); }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  void complete(long upto) {
    completed = std::max(completed, upto);
    while (!pending.empty() && pending.front().first <= completed) {
      pending.front().second();
      pending.pop_front();
    }
  }
  bool recordable = false;
  Recording* open = nullptr;  // of a recordable queue: where launches go
  long enqueued = 0;
  long completed = 0;
  int polls = 0;
  std::deque<std::pair<long, std::function<void()>>> pending;  // what happens when a command is done
};

struct Event : Object {
  Event() : Object("event") {}
  std::shared_ptr<Queue> queue;
  long number = 0;
  cl_int error = CL_SUCCESS;
};

struct Recording : Object {
  Recording() : Object("recording") {}
  std::vector<std::shared_ptr<Kernel>> launches;
  bool ended = false;
  bool reentrant = false;
  long last_run = 0;  // the number of its last command
};

struct State {
  StubConfig config;
  std::map<void*, std::shared_ptr<Object>> live;
  StubReport report;
  long commands = 0;
};

inline State& state() {
  static State all;
  return all;
}

inline void misuse(const std::string& what) { state().report.misuse.push_back(what); }

template <typename T, typename H>
std::shared_ptr<T> find(H handle) {
  const auto found = state().live.find(static_cast<void*>(handle));
  std::shared_ptr<T> object = found != state().live.end() ? std::dynamic_pointer_cast<T>(found->second) : nullptr;
  if (!object) misuse("an object that was released, or of another kind, is used");
  return object;
}

template <typename H, typename T>
H give(std::shared_ptr<T> object, cl_int* error = nullptr) {
  void* handle = object.get();
  state().live[handle] = std::move(object);
  if (error != nullptr) *error = CL_SUCCESS;
  return static_cast<H>(handle);
}

template <typename H>
H refuse(cl_int* error, cl_int code) {
  if (error != nullptr) *error = code;
  return nullptr;
}

template <typename T, typename H>
cl_int retain(H handle) {
  const auto object = find<T>(handle);
  if (!object) return CL_INVALID_VALUE;
  ++object->references;
  return CL_SUCCESS;
}

template <typename T, typename H>
cl_int release(H handle) {
  const auto object = find<T>(handle);
  if (!object) return CL_INVALID_VALUE;
  if (--object->references == 0) state().live.erase(static_cast<void*>(handle));
  return CL_SUCCESS;
}

inline cl_int answer(const void* from, std::size_t bytes, std::size_t size, void* value, std::size_t* needed) {
  if (needed != nullptr) *needed = bytes;
  if (value == nullptr) return CL_SUCCESS;
  if (size < bytes) return CL_INVALID_VALUE;
  if (bytes > 0) std::memcpy(value, from, bytes);
  return CL_SUCCESS;
}

inline cl_int answer_text(const std::string& text, std::size_t size, void* value, std::size_t* needed) {
  return answer(text.c_str(), text.size() + 1, size, value, needed);
}

// A command in a queue: its event, and what happens at its end.
inline cl_int command(cl_command_queue handle, cl_event* event, const std::function<void()>& at_end = {}) {
  const auto queue = find<Queue>(handle);
  if (!queue) return CL_INVALID_COMMAND_QUEUE;
  ++queue->enqueued;
  const long number = state().commands++;
  const bool lost = state().config.commands_until_lost >= 0 && number >= state().config.commands_until_lost;
  if (at_end && !lost) queue->pending.emplace_back(queue->enqueued, at_end);
  if (event != nullptr) {
    auto made = std::make_shared<Event>();
    made->queue = queue;
    made->number = queue->enqueued;
    made->error = lost ? CL_OUT_OF_RESOURCES : CL_SUCCESS;
    *event = give<cl_event>(std::move(made));
  }
  return CL_SUCCESS;
}

inline cl_int finish(cl_command_queue handle) {
  const auto queue = find<Queue>(handle);
  if (!queue) return CL_INVALID_COMMAND_QUEUE;
  queue->complete(queue->enqueued);
  const long lost = state().config.commands_until_lost;
  return lost >= 0 && state().commands > lost ? CL_OUT_OF_RESOURCES : CL_SUCCESS;
}

// May the kernel run now? Its buffers must be there, and not be the host's.
inline void check_launch(const Kernel& kernel) {
  for (const auto& [index, handle] : kernel.memories) {
    const auto memory = find<Memory>(handle);
    if (memory && memory->root().mappings > 0)
      misuse(str("kernel ", kernel.name, " runs while its argument ", index, " is mapped"));
  }
  ++state().report.launches;
}

inline cl_int check_sizes(cl_uint dimensions, const std::size_t* global, const std::size_t* local) {
  std::size_t group = 1;
  for (cl_uint d = 0; d < dimensions; ++d) {
    if (global[d] == 0) return CL_INVALID_GLOBAL_WORK_SIZE;
    if (local[d] == 0 || global[d] % local[d] != 0) return CL_INVALID_WORK_GROUP_SIZE;
    group *= local[d];
  }
  return group <= kMaxGroup ? CL_SUCCESS : CL_INVALID_WORK_GROUP_SIZE;
}

inline cl_int record_launch(Recording& recording, const std::shared_ptr<Kernel>& kernel) {
  if (recording.ended) misuse("a launch is recorded after the recording's end");
  recording.launches.push_back(kernel);
  state().report.log.push_back("record " + kernel->name);
  return CL_SUCCESS;
}

inline cl_int replay(cl_command_queue queue, Recording& recording, cl_event* event) {
  if (!recording.ended) return CL_INVALID_OPERATION;
  const auto on = find<Queue>(queue);
  if (!on || on->recordable) return CL_INVALID_COMMAND_QUEUE;
  if (!recording.reentrant && recording.last_run > on->completed) {
    misuse("a recording is enqueued while it is pending");
    return CL_INVALID_OPERATION;
  }
  state().report.log.push_back(str("replay ", recording.launches.size()));
  for (const auto& kernel : recording.launches) check_launch(*kernel);
  const cl_int error = command(queue, event);
  recording.last_run = on->enqueued;
  return error;
}

}  // namespace stoker::testing::stub
