#!/bin/sh
# sum_pch.sh ROOT COMMAND...: runs the command. Where it makes a precompiled
# header (-o FILE.pch) and lists what that was made from (-MF FILE), also writes
# FILE.pch.sum, a sum of all those files and of the command without the
# checkout's path ROOT. ccache takes that for the header; see kf_add_pch.
set -eu
root=$1
shift
output='' depfile='' previous=''
for argument; do
  case $previous in
  -o) output=$argument ;;
  -MF) depfile=$argument ;;
  esac
  previous=$argument
done
case $output in
*.pch) ;;
*) exec "$@" ;; # what carries the header
esac
rm -f "$output.sum"
"$@"
{
  printf '%s\n' "$*" | awk -v root="$root" '{
    while ((at = index($0, root)) > 0)
      $0 = substr($0, 1, at - 1) "." substr($0, at + length(root))
    print
  }'
  # The rule of a makefile without its target and ends of lines; xargs reads
  # escaped characters of paths as make does.
  sed -e '1s/^[^:]*://' -e 's/\\$//' "$depfile" | xargs sha256sum |
    cut -d ' ' -f 1
} >"$output.files"
# A file that could not be read has no line.
files=$(sed -e '1s/^[^:]*://' -e 's/\\$//' "$depfile" | xargs printf '%s\n' | wc -l)
if [ "$(wc -l <"$output.files")" -ne $((files + 1)) ]; then
  echo "$output: not every file that it was made from can be read" >&2
  rm -f "$output" "$output.files"
  exit 1
fi
sha256sum "$output.files" | cut -d ' ' -f 1 >"$output.sum"
rm -f "$output.files"
