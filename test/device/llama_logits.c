// Logits that llama.cpp gives at each position of a prompt, for gguf_peer.py.
// usage: llama_logits MODEL.gguf ID...
// Prints a line of logits for each id; of caches in f32.
#include "llama.h"

#include <stdio.h>
#include <stdlib.h>

static void drop(enum ggml_log_level level, const char *text, void *data) {
  (void)data;
  if (level >= GGML_LOG_LEVEL_ERROR)
    fputs(text, stderr);
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: llama_logits MODEL.gguf ID...\n");
    return 2;
  }
  const int count = argc - 2;
  llama_log_set(drop, NULL);
  llama_backend_init();
  struct llama_model_params options = llama_model_default_params();
  struct llama_model *model = llama_model_load_from_file(argv[1], options);
  if (!model)
    return 1;
  struct llama_context_params params = llama_context_default_params();
  params.n_ctx = 256;
  params.n_batch = params.n_ubatch = (uint32_t)count;
  params.n_threads = params.n_threads_batch = 1;
  params.type_k = params.type_v = GGML_TYPE_F32;
  params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
  struct llama_context *context = llama_init_from_model(model, params);
  if (!context)
    return 1;
  struct llama_batch batch = llama_batch_init(count, 0, 1);
  batch.n_tokens = count;
  for (int i = 0; i < count; ++i) {
    batch.token[i] = atoi(argv[i + 2]);
    batch.pos[i] = i;
    batch.n_seq_id[i] = 1;
    batch.seq_id[i][0] = 0;
    batch.logits[i] = 1;
  }
  if (llama_decode(context, batch) != 0)
    return 1;
  const int rows = llama_vocab_n_tokens(llama_model_get_vocab(model));
  for (int i = 0; i < count; ++i) {
    const float *logits = llama_get_logits_ith(context, i);
    for (int k = 0; k < rows; ++k)
      printf(k ? " %.9g" : "%.9g", logits[k]);
    printf("\n");
  }
  return 0;
}
