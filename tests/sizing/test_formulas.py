"""A formula in words is the arithmetic itself: what it says, worked out, is the part's size."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any

import pytest

from gputier.sizing import Sizing

Sized = Callable[..., Sizing]
GIB = 2**30

# A figure that stands alone or carries B (billion) or M; not the digits of fp8 or adamw-8bit.
TOKEN = re.compile(r"(?<![\w.\-])\d[\d,]*(?:\.\d+)?(?:[BM]\b)?|[×÷+()]")
SUFFIX = {"B": 1e9, "M": 1e6}
SIGNS = {"×": "*", "÷": "/", "+": "+", "(": "(", ")": ")"}


def worked_out(formula: str) -> float:
    """The value of a formula's figures and signs, its words left out."""
    said = formula.split(", all ")[0].rsplit(" = ", 1)[-1].replace("half of ", "0.5 × ")
    said = re.sub(r"\((?:[a-z][\w\-]*|[a-z]+ loss)\)", "", said)
    words: list[str] = []
    for token in (found[0] for found in TOKEN.finditer(said)):
        if token[0].isdigit():
            factor = SUFFIX.get(token[-1], 1.0)
            words.append(repr(float(token.rstrip("BM").replace(",", "")) * factor))
        else:
            words.append(SIGNS[token])
    return evaluated(ast.parse(" ".join(words), mode="eval").body)


def evaluated(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=float(value)):
            return value
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return evaluated(left) + evaluated(right)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return evaluated(left) * evaluated(right)
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return evaluated(left) / evaluated(right)
        case _:
            raise AssertionError(f"no arithmetic: {ast.dump(node)}")


def over_gpus(formula: str) -> float:
    """`a + b ÷ 4 GPUs` divides the whole: the words say so, precedence would not."""
    whole, divided, gpus = formula.replace(", all", " , all").partition(" ÷ ")
    share = float(gpus.split(" ")[0]) if divided else 1.0
    return worked_out(whole.replace(" , all", ", all")) / share


JOBS: dict[str, tuple[int, dict[str, Any]]] = {
    "serving": (1, {"name": "llama-3.1-8b", "context_tokens": 8192, "concurrent_sequences": 4}),
    "quantised": (2, {"name": "llama-3.1-70b", "precision": "nf4-dq", "context_tokens": 4096}),
    "gguf": (1, {"name": "llama-3.1-8b", "precision": "q4_0", "context_tokens": 4096}),
    "windows": (4, {"name": "gemma-3-27b", "precision": "fp8", "context_tokens": 65_536}),
    "latent": (8, {"name": "deepseek-v3", "context_tokens": 8192, "concurrent_sequences": 2}),
    "hybrid": (1, {"name": "qwen3-next:80b", "context_tokens": 8192}),
    "mxfp4": (1, {"name": "gpt-oss-20b", "context_tokens": 8192}),
    "embedding": (1, {"name": "bge-large", "context_tokens": 512, "concurrent_sequences": 8}),
    "speech": (1, {"name": "whisper-large-v3"}),
    "full": (8, {"name": "llama-3.1-8b", "training": {"method": "full"}}),
    "full, half": (
        1,
        {
            "name": "phi-2",
            "context_tokens": 512,
            "training": {
                "method": "full",
                "state": "pure-16bit",
                "optimizer": "adamw-8bit",
                "gradient_checkpointing": "selective",
            },
        },
    ),
    "lora": (1, {"name": "mixtral-8x7b", "context_tokens": 512, "training": {"method": "lora"}}),
    "qlora": (
        1,
        {
            "name": "llama-3.1-8b",
            "training": {
                "method": "qlora",
                "batch_per_gpu": 4,
                "gradient_checkpointing": "full",
                "fused_loss": True,
            },
        },
    ),
}


@pytest.mark.parametrize("job", JOBS)
def test_each_formula_works_out_to_its_part(sized: Sized, job: str) -> None:
    gpus, model = JOBS[job]
    found = sized(gpus, **model)
    checked = [part for part in found.parts if part.name not in ("overhead", "margin")]
    assert len(checked) >= 2
    for part in checked:
        formula = part.formula.replace(f", whole on each of {gpus} GPUs", "")
        assert over_gpus(formula) / GIB == pytest.approx(part.gib, rel=0.01), part


def test_a_wrong_figure_in_a_formula_is_noticed(sized: Sized) -> None:
    part = sized(name="llama-3.1-8b", context_tokens=8192).parts[1]
    wrong = part.formula.replace("8 kv heads", "9 kv heads")
    assert over_gpus(wrong) / GIB != pytest.approx(part.gib, rel=0.01)
