// What many of kf-run's commands include; see KfPch.cmake.
#include "kf_runtime_pch.h"

#include "kf/Driver/Compiler.h"
#include "tools/kf-run/Commands.h"
#include "tools/kf-run/Interrupt.h"
#include "tools/kf-run/ModelFlags.h"
#include "tools/kf-run/OptionParser.h"
#include "tools/kf-run/Progress.h"
#include "tools/kf-run/Prompt.h"
#include "tools/kf-run/Report.h"
#include "tools/kf-run/SamplerFlags.h"
#include "tools/kf-run/TerminalObserver.h"
