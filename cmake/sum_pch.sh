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
# The rule of a makefile without its target and ends of lines; xargs reads
# escaped characters of paths as make does.
sed -e '1s/^[^:]*://' -e 's/\\$//' "$depfile" | xargs printf '%s\n' >"$output.files"
{
  printf '%s\n' "$*" | awk -v root="$root" '{
    while ((at = index($0, root)) > 0)
      $0 = substr($0, 1, at - 1) "." substr($0, at + length(root))
    print
  }'
  tr '\n' '\0' <"$output.files" | xargs -0 sha256sum | cut -d ' ' -f 1
} >"$output.sums"
# A file that could not be read has no line.
read_all=$(($(wc -l <"$output.sums") == $(wc -l <"$output.files") + 1))
[ $read_all -eq 0 ] || sha256sum "$output.sums" | cut -d ' ' -f 1 >"$output.sum"
rm -f "$output.files" "$output.sums"
if [ $read_all -eq 0 ]; then
  echo "$output: not every file that it was made from can be read" >&2
  rm -f "$output"
  exit 1
fi
