# Writes KF_MAN_PAGE, the manual page of kf-run, out of what KF_RUN, its path,
# says with --help: of itself and of each command.

function(kf_help out)
  execute_process(COMMAND "${KF_RUN}" ${ARGN} --help
    OUTPUT_VARIABLE text RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "'${KF_RUN} ${ARGN} --help' failed: ${code}")
  endif()
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

# As roff prints it, line by line, as it stands.
function(kf_verbatim out text)
  string(REPLACE "\\" "\\e" text "${text}")
  string(REPLACE "-" "\\-" text "${text}")
  # A line that begins so would be a request; the first one never does.
  string(REPLACE "\n." "\n\\&." text "${text}")
  string(REPLACE "\n'" "\n\\&'" text "${text}")
  set(${out} ".nf\n${text}.fi\n" PARENT_SCOPE)
endfunction()

kf_help(main)
kf_verbatim(text "${main}")
set(page ".TH \"KF\\-RUN\" 1\n.SH NAME\nkf\\-run \\- compiles decoders of the LLaMA family and runs them\n.SH SYNOPSIS\n${text}")
# Commands stand in lines of their own, with a summary.
string(REGEX MATCHALL "\n  [a-z][a-z-]* " commands "${main}")
foreach(command IN LISTS commands)
  string(STRIP "${command}" command)
  kf_help(help "${command}")
  kf_verbatim(text "${help}")
  string(TOUPPER "${command}" title)
  string(REPLACE "-" "\\-" title "${title}")
  string(APPEND page ".SH ${title}\n${text}")
endforeach()
file(WRITE "${KF_MAN_PAGE}" "${page}")
message(STATUS "Installing: ${KF_MAN_PAGE}")
