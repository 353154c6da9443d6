#!/usr/bin/env python3
# Fine-tuning in PyTorch, beside which docs/GPU.md shows that of kf-run train:
# adapters (LoRA) of rank 16 on the queries' and values' products of a LLaMA with
# random weights of bf16, AdamW, attention by SDPA's fused kernels. See README.md.
"""usage: train_peer.py MODEL ROWS LENGTH STEPS [--store] [--compile]
                     [--device cuda|cpu] [--threads N]

  MODEL      tinyllama-1.1b, llama-3.2-1b or llama-3-8b
  ROWS       of a batch, of LENGTH tokens each
  STEPS      updates that are measured, behind two that are not
  --store    keep what layers compute for their gradients; by default they
             compute it again
  --compile  torch.compile a layer
  --device   cuda by default
  --threads  of the CPU; PyTorch's choice by default
"""

import argparse
import resource
import sys
import time

import peers

try:
    peers.import_torch()
    import torch
    import torch.nn.functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.checkpoint import checkpoint
except ImportError as error:
    sys.exit(f"train_peer.py: error: PyTorch is missing: {error}")

RANK = 16
SCALE = 2.0  # alpha / rank, as kf-run train has it by default
LOSS_ROWS = 2048  # whose logits are there at the same time


class Model:

    def __init__(self, shape, length, device):
        self.shape = s = shape
        self.device = device
        self.decoder = peers.Decoder(s, device, torch.bfloat16)
        rate = s.theta**(-torch.arange(0, s.head_dim, 2, device=device)
                         / s.head_dim)
        angles = torch.arange(length, device=device)[:, None] * rate
        angles = torch.cat((angles, angles), -1)
        self.cos, self.sin = angles.cos().bfloat16(), angles.sin().bfloat16()
        self.adapters = [
            self.pair(s.heads * s.head_dim) + self.pair(s.kv_heads * s.head_dim)
            for _ in self.decoder.layers
        ]

    def pair(self, outputs):
        s = self.shape
        a = torch.randn(RANK, s.width, device=self.device) * s.width**-0.5
        b = torch.zeros(outputs, RANK, device=self.device)
        return [a.requires_grad_(), b.requires_grad_()]

    def layer(self, x, norm1, norm2, qkv, o, gate_up, down, qa, qb, va, vb):
        s = self.shape
        h = peers.rms_norm(x, norm1)
        q, k, v = peers.split_heads(s, F.linear(h, qkv))

        def add(to, a, b):
            y = F.linear(F.linear(h, a.bfloat16()), b.bfloat16()) * SCALE
            return to + y.view(*y.shape[:2], -1, s.head_dim).transpose(1, 2)

        q, v = add(q, qa, qb), add(v, va, vb)
        q = peers.rotate(q, self.cos, self.sin)
        k = peers.rotate(k, self.cos, self.sin)
        # Fused kernels of CPUs have no grouped heads in all versions.
        if not q.is_cuda:
            group = q.shape[1] // k.shape[1]
            k, v = (t.repeat_interleave(group, 1) for t in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True,
                                           enable_gqa=q.is_cuda)
        x = x + F.linear(y.transpose(1, 2).flatten(2), o)
        return peers.feed_forward(x, {"norm2": norm2, "gate_up": gate_up,
                                      "down": down})

    def loss(self, ids, layer, stores):
        """ids: [rows, length]; the mean over all tokens."""
        d = self.decoder
        x = F.embedding(ids, d.embedding)
        for w, adapter in zip(d.layers, self.adapters):
            args = (x, w["norm1"], w["norm2"], w["qkv"], w["o"], w["gate_up"],
                    w["down"], *adapter)
            x = (layer(*args) if stores else
                 checkpoint(layer, *args, use_reentrant=False))
        x = peers.rms_norm(x, d.norm).view(-1, self.shape.width)
        labels = torch.roll(ids, -1, 1).reshape(-1)

        def part(rows, labels):
            return F.cross_entropy(F.linear(rows, d.head).float(), labels,
                                   reduction="sum")

        return sum(checkpoint(part, *each, use_reentrant=False)
                   for each in zip(x.split(LOSS_ROWS),
                                   labels.split(LOSS_ROWS))) / ids.numel()


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("model", choices=peers.SHAPES)
    for name in ("rows", "length", "steps"):
        parser.add_argument(name, type=int)
    parser.add_argument("--store", action="store_true")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--threads", type=int)
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    gpu = options.device == "cuda"
    wait = torch.cuda.synchronize if gpu else lambda: None
    model = Model(peers.SHAPES[options.model], options.length, options.device)
    layer = torch.compile(model.layer) if options.compile else model.layer
    trained = [p for adapter in model.adapters for p in adapter]
    optimizer = torch.optim.AdamW(trained, lr=2e-4, fused=True)
    ids = torch.randint(0, 30000, (options.rows, options.length),
                        device=options.device)

    def step():
        loss = model.loss(ids, layer, options.store)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return loss

    with sdpa_kernel([SDPBackend.FLASH_ATTENTION,
                      SDPBackend.CUDNN_ATTENTION]):
        for _ in range(2):
            step()
        wait()
        begin = time.time()
        for _ in range(options.steps):
            loss = step()
        wait()
        seconds = (time.time() - begin) / options.steps
    # What the allocator gave, and of a CPU the process's most, in KiB.
    memory = (torch.cuda.max_memory_allocated() / 2**30 if gpu else
              resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
    print(f"{options.model} {options.rows}x{options.length}: "
          f"{seconds:.3f} s a step, {ids.numel() / seconds:.0f} tokens/s, "
          f"{memory:.1f} GiB, loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
