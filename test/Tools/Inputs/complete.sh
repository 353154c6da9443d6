# Prints how the completion script $1 completes each of the other arguments, a
# command line without its first word.
. "$1"
shift
for line; do
  read -ra COMP_WORDS <<<"kf-run $line"
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  _kf_run kf-run
  echo "$line: ${COMPREPLY[*]}"
done
