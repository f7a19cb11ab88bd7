// Runs the stoker program as a child process, as a user would. The environment variable STOKER_COMMAND says how to call
// it (words, separated by spaces).
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "temp_folder.h"

namespace stoker::testing {

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline bool has_command() { return std::getenv("STOKER_COMMAND") != nullptr; }

struct Finished {
  int status = 0;  // of exit; 128 + the signal's number if one ended it
  std::string out;
  std::string err;
};

// A running child whose output goes to files in `folder`.
class Child {
 public:
  Child(const std::vector<std::string>& arguments, const std::filesystem::path& folder)
      : out_(folder / "stdout.txt"), err_(folder / "stderr.txt") {
    std::vector<std::string> words;
    std::istringstream command(std::getenv("STOKER_COMMAND"));
    for (std::string word; command >> word;) words.push_back(word);
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      redirect(out_, STDOUT_FILENO);
      redirect(err_, STDERR_FILENO);
      if (::chdir(folder.c_str()) == 0) ::execvp(argv[0], argv.data());
      ::_exit(127);
    }
  }

  void send(int signal) const { ::kill(pid_, signal); }
  // What it has printed so far.
  [[nodiscard]] std::string out() const { return read_text(out_); }

  [[nodiscard]] Finished wait() const {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read_text(out_), read_text(err_)};
  }

 private:
  static void redirect(const std::filesystem::path& path, int to) {
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || ::dup2(file, to) < 0) ::_exit(126);
  }

  std::filesystem::path out_;
  std::filesystem::path err_;
  pid_t pid_ = -1;
};

inline Finished run(const std::vector<std::string>& arguments, const std::filesystem::path& folder) {
  return Child(arguments, folder).wait();
}

}  // namespace stoker::testing
