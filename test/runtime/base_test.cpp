// Files, hashes, the trailer of a plan, and the processor's features.
#include "runtime/base/cpu.h"
#include "runtime/base/file.h"
#include "runtime/base/hash.h"
#include "runtime/base/plan_trailer.h"
#include "runtime/base/process.h"
#include "test/runtime/plan_builder.h"
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace k31::test {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }
std::string text_of(std::span<const std::byte> bytes) { return {reinterpret_cast<const char *>(bytes.data()), bytes.size()}; }

// Names and values of the input stand in messages, and a message has one line.
TEST(BaseError, HasOneLine) {
  EXPECT_EQ(one_line("plain \\n text, \xc3\xa9 and \xe4\xb8\xad"), "plain \\n text, \xc3\xa9 and \xe4\xb8\xad");
  EXPECT_EQ(one_line("a\nb\r\tc\x1b[31m\x7f"), "a\\nb\\r\\tc\\x1b[31m\\x7f");
  EXPECT_EQ(one_line(std::string("\0end", 4)), "\\x00end");
  EXPECT_EQ(one_line("\xc2\x85 \xc2\xa0"), "\\xc2\\x85 \xc2\xa0");
  EXPECT_EQ(one_line("\xe2\x80\xa8 \xe2\x80\xae \xe2\x80\xaf \xe2\x81\xa6"),
            "\\xe2\\x80\\xa8 \\xe2\\x80\\xae \xe2\x80\xaf \\xe2\\x81\\xa6");
  EXPECT_EQ(one_line("cut \xc2"), "cut \xc2");
  EXPECT_EQ(one_line(one_line("a\nb")), "a\\nb");
  EXPECT_EQ(Error(Code::io, "a\nb").message, "a\\nb");
  EXPECT_EQ(fail(Code::io, "a\nb").value().message, "a\\nb");
  EXPECT_EQ(context("x\ny", Error(Code::io, "a")).value().message, "x\\ny: a");
}

TEST(BaseFile, ReadsAtOffsetsAndWhole) {
  TempFolder folder;
  ASSERT_TRUE(write_file(folder.path("a"), "0123456789"));
  auto file = File::open(folder.path("a"));
  ASSERT_TRUE(file);
  EXPECT_EQ(file->size(), 10u);
  std::byte part[4];
  ASSERT_TRUE(file->read_at(3, part));
  EXPECT_EQ(text_of(part), "3456");
  auto past = file->read_at(7, part);
  ASSERT_FALSE(past);
  EXPECT_NE(past.error().message.find("ends at byte 10, but 1 more bytes"), std::string::npos) << past.error().message;
  auto whole = FileBytes::read(folder.path("a"), 10);
  ASSERT_TRUE(whole);
  EXPECT_EQ(text_of(whole->bytes()), "0123456789");
  auto longer = FileBytes::read(folder.path("a"), 9);
  ASSERT_FALSE(longer);
  EXPECT_NE(longer.error().message.find("has 10 bytes; at most 9 were expected"), std::string::npos) << longer.error().message;
}

TEST(BaseFile, EmptyAbsentAndFolder) {
  TempFolder folder;
  ASSERT_TRUE(write_file(folder.path("empty"), ""));
  EXPECT_TRUE(FileBytes::read(folder.path("empty"), 100)->bytes().empty());
  EXPECT_EQ(File::open(folder.path("absent")).error().code, Code::not_found);
  EXPECT_EQ(FileBytes::read(folder.path("absent"), 100).error().code, Code::not_found);
  // A pipe without a writer is refused at once.
  ASSERT_EQ(::mkfifo(folder.path("pipe").c_str(), 0600), 0);
  for (const std::string &path : {folder.path(), folder.path("pipe"), std::string("/dev/zero")}) {
    for (const auto &message : {File::open(path).error().message, FileBytes::read(path, 100).error().message})
      EXPECT_NE(message.find("is not a regular file; name a file"), std::string::npos) << message;
  }
}

// Run in a child, whose exit code says which step went wrong.
TEST(BaseProcess, ClosedStreamsAreNotReused) {
  TempFolder folder;
  const std::string path = folder.path("a");
  const pid_t child = fork();
  if (child == 0) {
    close(0), close(1), close(2);
    signal(SIGXFSZ, SIG_DFL);
    settle_process();
    const int file = open(path.c_str(), O_CREAT | O_WRONLY, 0600);
    if (file <= 2)
      _exit(1);
    if (::write(1, "x", 1) != -1 || ::write(2, "x", 1) != -1)
      _exit(2);
    const rlimit room{4, 4};
    setrlimit(RLIMIT_FSIZE, &room);
    _exit(::write(file, "0123", 4) == 4 && ::write(file, "4", 1) == -1 && errno == EFBIG ? 0 : 3);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(BaseFile, OutputsAreCheckedBeforehand) {
  TempFolder folder;
  const auto refusal = [](const std::string &path) {
    const auto checked = check_output(path);
    return checked ? "(accepted)" : checked.error().message;
  };
  EXPECT_EQ(refusal(folder.path("new")), "(accepted)");
  EXPECT_FALSE(std::filesystem::exists(folder.path("new")));
  ASSERT_TRUE(write_file(folder.path("old"), "text"));
  EXPECT_EQ(refusal(folder.path("old")), "(accepted)");
  EXPECT_EQ(read(folder.path("old")), "text");
  EXPECT_NE(refusal(folder.path("absent/new")).find("absent'; make it, or give another place"), std::string::npos);
  EXPECT_NE(refusal(folder.path()).find("is no regular file"), std::string::npos);
  EXPECT_NE(refusal("").find("give the file a name"), std::string::npos);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(BaseFile, WritesReplaceAndLeaveNothingBehind) {
  TempFolder folder;
  ASSERT_TRUE(write_file(folder.path("a"), "old"));
  ASSERT_TRUE(write_file(folder.path("a"), "new text"));
  EXPECT_EQ(read(folder.path("a")), "new text");
  EXPECT_FALSE(write_file(folder.path("no/such/folder"), "x"));
  std::filesystem::create_directory(folder.path("taken"));
  EXPECT_FALSE(write_file(folder.path("taken"), "x")) << "a rename onto a folder must fail";
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 2);
}

// No room for the new file: the old one stays as it was, and nothing else does.
TEST(BaseFile, AFailedWriteKeepsTheOldFile) {
  TempFolder folder;
  ASSERT_TRUE(write_file(folder.path("a"), "old"));
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small = {1000, before.rlim_max};
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Result<void> written = write_file(folder.path("a"), std::string(5000, 'x'));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, handler);
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().message.find("nothing was written, make room there"), std::string::npos) << written.error().message;
  EXPECT_EQ(read(folder.path("a")), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(BaseHash, KnownValues) {
  // From the reference implementation of XXH3-128, seed 0.
  EXPECT_EQ(hex(hash128({})), "99aa06d3014798d86001c324468d497f");
  Hasher hasher;
  std::string text;
  for (int i = 0; i < 300; ++i) {
    const std::string part(static_cast<size_t>(i % 7), static_cast<char>('a' + i % 26));
    hasher.update(part), text += part;
  }
  EXPECT_EQ(hasher.digest(), hash128(bytes_of(text)));
  text[100] ^= 1;
  EXPECT_NE(hasher.digest(), hash128(bytes_of(text)));
}

TEST(BasePlanTrailer, RoundTrip) {
  const std::string body = "any bytes";
  const std::string whole = seal(bytes_of(body));
  ASSERT_EQ(whole.size(), body.size() + kPlanTrailerBytes);
  EXPECT_EQ(whole.substr(body.size(), 8), std::string("\x09\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(whole.substr(whole.size() - 8), std::string("K31PEND\0", 8));
  ASSERT_TRUE(unseal(bytes_of(whole)));
  EXPECT_EQ(text_of(*unseal(bytes_of(whole))), body);

  TempFolder folder;
  ASSERT_TRUE(write_plan(folder.path("p.k31"), bytes_of(body)));
  EXPECT_EQ(read(folder.path("p.k31")), whole);
}

TEST(BasePlanTrailer, EveryBitAndLengthCounts) {
  const std::string whole = seal(bytes_of("some thirty bytes of a plan...."));
  for (size_t i = 0; i < whole.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      ASSERT_FALSE(unseal(bytes_of(damaged))) << "byte " << i << " bit " << bit;
    }
  for (size_t length = 0; length < whole.size(); ++length)
    ASSERT_FALSE(unseal(bytes_of(whole).first(length))) << length;
  EXPECT_FALSE(unseal(bytes_of(whole + "x")));
}

TEST(BaseCpu, NamesWhatTheCompilerSees) {
  EXPECT_FALSE(cpu_has("avx9000"));
  EXPECT_FALSE(cpu_has(""));
  EXPECT_GE(cpu_threads(), 1);
#if defined(__x86_64__)
  EXPECT_TRUE(cpu_has("sse2"));
  // The compiler's own detection, where it knows the name.
  EXPECT_EQ(cpu_has("avx2"), __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(cpu_has("fma"), __builtin_cpu_supports("fma") != 0);
  EXPECT_EQ(cpu_has("bmi2"), __builtin_cpu_supports("bmi2") != 0);
  EXPECT_EQ(cpu_has("avx512f"), __builtin_cpu_supports("avx512f") != 0);
  EXPECT_EQ(cpu_has("avx512vl"), __builtin_cpu_supports("avx512vl") != 0);
  EXPECT_EQ(cpu_has("avx512bw"), __builtin_cpu_supports("avx512bw") != 0);
  EXPECT_EQ(cpu_has("avx512dq"), __builtin_cpu_supports("avx512dq") != 0);
  EXPECT_EQ(cpu_has("avx512cd"), __builtin_cpu_supports("avx512cd") != 0);
  EXPECT_EQ(cpu_has("avx512bf16"), __builtin_cpu_supports("avx512bf16") != 0);
  for (std::string_view feature : cpu_features())
    EXPECT_TRUE(cpu_has(feature)) << feature;
#endif
}

} // namespace
} // namespace k31::test
