// ThreadPool: runs numbered tasks on a fixed set of threads. The caller works too; idle workers spin briefly, then
// sleep. Which thread runs a task is not fixed, so results must depend on the task number alone (determinism).
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace stoker {

class ThreadPool {
 public:
  // `threads` counts the caller; 0 means one a core.
  explicit ThreadPool(int threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls body(task, worker) for every task in [0, tasks); worker is in [0, threads()). Returns when all are done.
  // `body` is called from several threads at once and must not throw. Not reentrant.
  template <typename Body>
  void run(std::int64_t tasks, const Body& body) {
    if (tasks <= 1 || workers_.empty()) {
      for (std::int64_t task = 0; task < tasks; ++task) body(task, 0);
      return;
    }
    dispatch(
        tasks,
        [](const void* context, std::int64_t task, int worker) { (*static_cast<const Body*>(context))(task, worker); },
        &body);
  }

 private:
  using Call = void (*)(const void* context, std::int64_t task, int worker);

  void dispatch(std::int64_t tasks, Call call, const void* context);
  void work(int worker);
  void take_tasks(int worker);
  [[nodiscard]] bool wait_for_job(std::uint64_t seen);

  std::vector<std::thread> workers_;

  // The job under way. Written by the caller before job_ is raised, read by workers after they see it.
  Call call_ = nullptr;
  const void* context_ = nullptr;
  std::int64_t tasks_ = 0;
  alignas(64) std::atomic<std::int64_t> next_task_{0};
  alignas(64) std::atomic<std::uint64_t> job_{0};
  alignas(64) std::atomic<int> busy_{0};

  std::mutex mutex_;
  std::condition_variable wake_;
  int asleep_ = 0;  // guarded by mutex_
  bool stop_ = false;
};

}  // namespace stoker
