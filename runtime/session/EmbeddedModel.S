/*===- EmbeddedModel.S - The model inside a program -------------------------===
 *
 * Part of the KernelForge project, under the Apache License v2.0 with LLVM
 * Exceptions. See LICENSE for license information.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===------------------------------------------------------------------------===
 *
 * The files of models/kf-stories as read-only data; the include path, which
 * CMake gives, is that folder. EmbeddedModel.h declares the symbols.
 */

        .section .rodata.kf_embedded, "a", %progbits

        .macro embed name, file
        .balign 64
        .globl kf_embedded_\name
        .hidden kf_embedded_\name
        .globl kf_embedded_\name\()_end
        .hidden kf_embedded_\name\()_end
kf_embedded_\name:
        .incbin "\file"
kf_embedded_\name\()_end:
        .endm

        embed config, config.json
        embed generation_config, generation_config.json
        embed tokenizer, tokenizer.json
        embed tokenizer_config, tokenizer_config.json
        embed chat_template, chat_template.jinja
        embed weights, model.safetensors

        .section .note.GNU-stack, "", %progbits
