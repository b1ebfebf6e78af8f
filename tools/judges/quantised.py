# SPDX-License-Identifier: MIT
# Checkpoints as other programs quantise them: FP8 in blocks (DeepSeek V3), GPTQ and AWQ of 4 bits, and
# the same values in F32, by the definitions of the formats in double precision. For models.py.
import torch

GROUP = 8
AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]
KINDS = ("fp8", "fp8 powers", "gptq", "gptq zeros", "gptq desc_act", "awq")


def pack(values, dim, order):
    """Eight numbers of 4 bits a word, along a dimension."""
    words = torch.zeros([n // 8 if d == dim else n for d, n in enumerate(values.shape)],
                        dtype=torch.int64)
    for place, item in enumerate(order):
        words |= values.index_select(dim, torch.arange(item, values.shape[dim], 8)) << (4 * place)
    return torch.where(words >= 2**31, words - 2**32, words).to(torch.int32)


def fp8(weight, powers):
    n, k = weight.shape
    block_n, block_k = 24, 10
    scale = torch.stack([torch.stack([part.abs().max() / 448 + 1e-6 for part in row.split(block_k, 1)])
                         for row in weight.split(block_n, 0)])
    scale = 2 ** torch.ceil(torch.log2(scale)) if powers else scale
    each = scale.repeat_interleave(block_n, 0)[:n].repeat_interleave(block_k, 1)[:, :k]
    small = (weight / each).to(torch.float8_e4m3fn)
    return {"weight": small, "weight_scale_inv": scale}, small.double() * each.double()


def words(weight, kind, rng):
    n, k = weight.shape
    wide = weight.t().double()
    group = torch.arange(k) // GROUP
    if kind == "gptq desc_act":
        group = group[torch.randperm(k, generator=rng)]
    zero = torch.full((k // GROUP, n), 8)
    if kind in ("gptq zeros", "awq"):
        zero = torch.randint(1, 16, zero.shape, generator=rng)
    scale = torch.stack([wide[group == g].abs().max(0).values / 8 + 1e-4
                         for g in range(k // GROUP)]).half()
    q = torch.clamp(torch.round(wide / scale.double()[group]) + zero[group], 0, 15).long()
    values = ((q - zero[group]).double() * scale.double()[group]).t()
    if kind == "awq":
        return {"qweight": pack(q, 1, AWQ_ORDER), "qzeros": pack(zero, 1, AWQ_ORDER),
                "scales": scale}, values
    return {"qweight": pack(q, 0, range(8)), "qzeros": pack(zero - 1, 1, range(8)),
            "scales": scale, "g_idx": group.int()}, values


def quantise(tensors, kind, seed):
    """The tensors of the checkpoint, the same values in F32, and quantization_config."""
    rng = torch.Generator().manual_seed(seed)
    packed, plain = {}, {}
    for name, tensor in tensors.items():
        packed[name] = plain[name] = tensor
        if tensor.dim() == 2 and name.endswith("_proj.weight"):
            del packed[name]
            parts, values = fp8(tensor, "powers" in kind) if kind.startswith("fp8") else \
                words(tensor, kind, rng)
            plain[name] = values.float()
            packed.update({name[:-6] + part: value.contiguous() for part, value in parts.items()})
    config = {"quant_method": kind.split()[0], "bits": 4, "group_size": GROUP}
    if kind.startswith("fp8"):
        config = {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [24, 10]}
    return packed, {k: v.contiguous() for k, v in plain.items()}, config
