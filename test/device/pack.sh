#!/usr/bin/env bash
# Packs the suites of test/device for run.sh. See README.md beside it.
set -euo pipefail

usage() {
  cat <<'EOF'
usage: test/device/pack.sh ARCHIVE.tar.xz [BUILD]

Builds what run.sh needs in BUILD (build/release by default, which ./kf build
makes) and packs it, with models and references.
EOF
}

die() {
  printf 'pack.sh: error: %s\n' "$*" >&2
  exit 1
}

[[ ${1:-} != -h && ${1:-} != --help ]] || { usage; exit 0; }
[[ $# -eq 1 || $# -eq 2 ]] || { usage >&2; exit 2; }
archive=$(realpath -m "$1")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$(realpath -m "${2:-$root/build/release}")
most=$((60 * 1000 * 1000))

[[ -f $build/build.ninja ]] || die "$build is no build: run ./kf build first"
case $build/ in
  "$root"/*) ;;
  *) die "$build is outside of the checkout, $root: tests find their files by it" ;;
esac
ninja -C "$build" kf-run kf_device_suites kf_test_kernels kf_test_spirv >&2

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
mkdir "$stage/bin" "$stage/lib" "$stage/files"
cp "$build/bin/kf-run" "$build/bin/kf_device_suites" "$stage/bin/"
for program in "$stage"/bin/*; do
  # The C library is the other machine's.
  ldd "$program" | awk '$2 == "=>" && $1 !~ /^lib(c|m|dl|pthread|rt)\.so/ {print $3}'
done | sort -u | xargs -r cp -L -t "$stage/lib"

# What tests read, where they look for it below the checkout.
cd "$root"
mapfile -t built < <(find "${build#"$root"/}" -name '*.spv' \
  -o -path '*/kf_test_kernels.dir/*' -name '*.o')
mapfile -t files < <(git ls-files test/golden test/conformance/ops \
  test/conformance/gradients test/conformance/training/torch.json \
  models/kf-stories models/kf-stories-gguf test/Tools/kf-run/exec.mlir)
cp --parents -t "$stage/files" "${files[@]}" "${built[@]}"
git rev-parse HEAD > "$stage/revision"

mkdir -p "$(dirname "$archive")"
# The model that kf-run carries is among the files once more: a window that has
# both packs it once.
tar -C "$stage" -c bin lib files revision |
  xz --x86 --lzma2=preset=6,dict=192MiB > "$archive.part"
mv "$archive.part" "$archive"
bytes=$(stat -c %s "$archive")
printf '%s: %s bytes\n' "$archive" "$bytes"
((bytes <= most)) || die "that is more than $most bytes"
