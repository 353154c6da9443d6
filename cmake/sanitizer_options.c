/* Options for the sanitized build. LLVM's allocators poison the memory that
 * they have not handed out, in headers; libLLVM and libMLIR are not sanitized
 * and would not unpoison it, so that poisoning is switched off. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "allow_user_poisoning=0"; }
