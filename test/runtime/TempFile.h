//===- TempFile.h - A file that lives as long as a test ---------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TEST_RUNTIME_TEMPFILE_H
#define KF_TEST_RUNTIME_TEMPFILE_H

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace kf::test {

/// A folder of its own under the system's temporary folder, removed at the end.
class TempFolder {
public:
  TempFolder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "kf-test-XXXXXX").string();
    root = ::mkdtemp(pattern.data());
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(root, ignored);
  }
  TempFolder(const TempFolder &) = delete;
  TempFolder &operator=(const TempFolder &) = delete;

  std::string path() const { return root.string(); }
  std::string path(const std::string &name) const {
    return (root / name).string();
  }
  /// Writes a file of that name; returns its path.
  std::string write(const std::string &name, std::string_view bytes) const {
    std::ofstream file(root / name, std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return path(name);
  }

private:
  std::filesystem::path root;
};

} // namespace kf::test

#endif // KF_TEST_RUNTIME_TEMPFILE_H
