// What tests of the runtime include besides; see KfPch.cmake.
#include "kf_runtime_pch.h"

#include <gtest/gtest.h>
