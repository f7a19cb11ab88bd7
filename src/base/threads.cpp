#include "base/threads.h"

#include <algorithm>
#include <chrono>

#include "base/float_mode.h"

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace stoker {
namespace {

// How long an idle worker looks for the next job before it sleeps: long enough to bridge the gap between two kernels of
// a step, short enough not to warm a hand.
constexpr auto kSpin = std::chrono::microseconds(100);

void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#else
  std::this_thread::yield();
#endif
}

// Spins until `done` or until kSpin has passed; returns whether it was done.
template <typename Done>
bool spin_until(const Done& done) {
  const auto end = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 64; ++i) {
      if (done()) return true;
      pause_briefly();
    }
  } while (std::chrono::steady_clock::now() < end);
  return done();
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  if (threads <= 0) threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  workers_.reserve(static_cast<std::size_t>(threads - 1));
  for (int worker = 1; worker < threads; ++worker) workers_.emplace_back([this, worker] { work(worker); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    job_.fetch_add(1);
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::dispatch(std::int64_t tasks, Call call, const void* context) {
  call_ = call;
  context_ = context;
  tasks_ = tasks;
  next_task_.store(0, std::memory_order_relaxed);
  busy_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
  bool anyone_asleep = false;
  {
    const std::lock_guard lock(mutex_);
    job_.fetch_add(1, std::memory_order_release);
    anyone_asleep = asleep_ > 0;
  }
  if (anyone_asleep) wake_.notify_all();
  take_tasks(0);
  // Every worker passes through each job, so none can still read this job's fields when the next one is written.
  while (busy_.load(std::memory_order_acquire) != 0) {
    if (!spin_until([this] { return busy_.load(std::memory_order_acquire) == 0; })) std::this_thread::yield();
  }
}

void ThreadPool::take_tasks(int worker) {
  for (;;) {
    const std::int64_t task = next_task_.fetch_add(1, std::memory_order_relaxed);
    if (task >= tasks_) return;
    call_(context_, task, worker);
  }
}

bool ThreadPool::wait_for_job(std::uint64_t seen) {
  const auto raised = [this, seen] { return job_.load(std::memory_order_acquire) != seen; };
  if (!spin_until(raised)) {
    std::unique_lock lock(mutex_);
    ++asleep_;
    wake_.wait(lock, raised);
    --asleep_;
  }
  return !stop_;
}

void ThreadPool::work(int worker) {
  const FlushDenormals flush;
  for (std::uint64_t seen = 0; wait_for_job(seen); ++seen) {
    take_tasks(worker);
    busy_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace stoker
