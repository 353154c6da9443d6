#!/usr/bin/env bash
# Makes BASE.so of BASE.ptx, with BASE.c beside it. The emulator calls it for each
# kernel that it has not seen; run.sh sets the variables.
set -euo pipefail
unset LD_LIBRARY_PATH # for the compiler, which needs no driver
base=$1 made=$1.$$

if [[ ${KF_EMULATOR_PLANT:-} ]]; then
  sed -E "$KF_EMULATOR_PLANT" "$base.ptx" >"$made.ptx"
  changed=$(diff "$base.ptx" "$made.ptx" | grep -c '^<' || true)
  echo "cuda emulator: note: $changed lines of $base.ptx are planted" >&2
  mv "$made.ptx" "$base.ptx"
fi
python3 "$KF_EMULATOR_SOURCES/ptx_to_c.py" "$base.ptx" "$made.c"
# -O1 compiles faster than it would run faster; -ffp-contract=off, as a product
# and a sum in PTX are rounded each.
"$KF_EMULATOR_CLANG" -O1 -ffp-contract=off -fno-strict-aliasing -fPIC -shared -w \
  -fvisibility=hidden "-I$KF_EMULATOR_SOURCES" "$made.c" -o "$made.so" -lm \
  "-L$KF_EMULATOR_LIBRARY" -l:libcuda.so.1
mv "$made.c" "$base.c"
mv "$made.so" "$base.so" # last: where it is, all is
