/*===- ChatPage.S - The page at / ----------------------------------------------===
 *
 * Part of the KernelForge project, under the Apache License v2.0 with LLVM
 * Exceptions. See LICENSE for license information.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===------------------------------------------------------------------------===
 *
 * ChatPage.html as read-only data; the include path, which CMake gives, is this
 * folder. ChatPage.h declares the symbols.
 */

        .section .rodata.kf_chat_page, "a", %progbits
        .globl kf_chat_page
        .hidden kf_chat_page
        .globl kf_chat_page_end
        .hidden kf_chat_page_end
kf_chat_page:
        .incbin "ChatPage.html"
kf_chat_page_end:

        .section .note.GNU-stack, "", %progbits
