//===- Observer.h - Who is told how long work goes on -----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CORE_OBSERVER_H
#define KF_RUNTIME_CORE_OBSERVER_H

#include <string>

namespace kf {

/// Is told what long work is at, and what the user should know: a terminal's
/// line, a server's log. All calls come from the thread that works, and cannot
/// fail; by default they do nothing. It must outlive whatever it was given to.
class Observer {
public:
  virtual ~Observer() = default;

  /// Work that may take long begins: "compiling body_1". What begins within
  /// other work ends before it.
  virtual void onBegin(const std::string & /*work*/) {}
  /// How much of the innermost work is done, from 0 to 1.
  virtual void onProgress(double /*share*/) {}
  /// The innermost work is over, done or not.
  virtual void onEnd() {}

  /// One line: something is not as it was meant, and work goes on without it.
  /// The same line may come more than once.
  virtual void onWarning(const std::string & /*line*/) {}
  /// One line: what was chosen where the user left it open.
  virtual void onNote(const std::string & /*line*/) {}
};

/// Tells `observer`, unless that is null, of work as long as it lives.
class ObservedWork {
public:
  ObservedWork(Observer *observer, const std::string &work)
      : observer(observer) {
    if (observer)
      observer->onBegin(work);
  }
  ~ObservedWork() {
    if (observer)
      observer->onEnd();
  }
  ObservedWork(const ObservedWork &) = delete;
  ObservedWork &operator=(const ObservedWork &) = delete;

  void update(double share) {
    if (observer)
      observer->onProgress(share);
  }

private:
  Observer *observer;
};

} // namespace kf

#endif // KF_RUNTIME_CORE_OBSERVER_H
