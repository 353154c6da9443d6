# Completion of kf-run's commands and options, as its own help lists them.
_kf_run() {
  local word=${COMP_WORDS[COMP_CWORD]} words
  if [[ $COMP_CWORD -eq 1 && $word != -* ]]; then
    words=$("$1" --help 2>/dev/null | sed -n 's/^  \([a-z][a-z-]*\) .*/\1/p')
  elif [[ $word == -* ]]; then
    words=$("$1" "${COMP_WORDS[1]}" --help 2>/dev/null |
      sed -n 's/^  \(-., \)\{0,1\}\(-[a-z]*, \)\{0,1\}\(--[a-z0-9-]*\).*/\3/p')
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o default -F _kf_run kf-run
