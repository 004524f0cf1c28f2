"""The pools of the label benchmark, as truths with the scores known beforehand.

A folder holds per-item results of real models (``mmlu.npz``, ``mmlu_pro.npz``, ``imagenet.npz``);
items stand in source order there and are shuffled with a fixed seed here.
"""

from pathlib import Path

from celeus.simulation.sessions import Truth
from study.pools.made_up import WORLDS, world
from study.pools.real import Source, shuffled, truth_of

CELLS = {
    "mmlu-qwen": Source("mmlu", "zero_one", "Qwen-72B", "Llama-2-7b-hf"),
    "mmlu-llama": Source("mmlu", "zero_one", "Llama-2-70b-hf", "Llama-2-7b-hf"),
    "mmlu-yi": Source("mmlu", "zero_one", "Yi-34B", "Qwen-7B"),
    "mmlu-brier": Source("mmlu", "brier", "Qwen-72B", "Mistral-7B-v0.1 + Qwen-7B"),
    "mmlupro-votes": Source("mmlu_pro", "zero_one", "mmlupro-votes", "votes"),
    "imagenet-votes": Source("imagenet", "zero_one", "imagenet-votes", "votes"),
}


def cell(name: str, folder: Path) -> Truth:
    """The pool ``name``, a real one from ``folder``; refuses a file that is no such pool."""
    if name in WORLDS:
        return world(name)
    source = CELLS[name]
    truth = truth_of(folder, source)
    return shuffled(truth) if source.dataset == "mmlu" else truth
