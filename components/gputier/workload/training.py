"""How a model is trained: what sizing turns into the memory of weights, state and activations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from gputier.workload import fields
from gputier.workload.base import Clash, Spec
from gputier.workload.complaints import complaint

Method = Literal["full", "lora", "qlora"]
Optimizer = Literal["adamw", "adamw-8bit", "paged-adamw-8bit", "lion", "sgd", "adafactor", "lomo"]
State = Literal["mixed", "pure-16bit", "fp32"]
Checkpointing = Literal["none", "selective", "full"]
Sharding = Literal["none", "zero-1", "zero-2", "zero-3", "fsdp"]
ShardedBy = Literal["deepspeed", "fsdp"]
Objective = Literal["sft", "dpo", "grpo"]

_SHARDING_NAMES = {
    "fsdp2": "fsdp", "full-shard": "fsdp", "zero1": "zero-1", "zero2": "zero-2", "zero3": "zero-3",
    "ddp": "none",
}  # fmt: skip
_OPTIMIZER_NAMES = {"adam": "adamw", "adamw8bit": "adamw-8bit", "8bit-adam": "adamw-8bit"}
_SHARDER_NAMES = {"zero": "deepspeed", "fsdp2": "fsdp", "pytorch": "fsdp"}
_OBJECTIVE_NAMES = {"orpo": "sft", "ppo": "grpo", "rlhf": "grpo", "kto": "dpo", "rloo": "grpo"}
_METHOD_NAMES = {"sft": "full", "pretraining": "full"}


class Training(Spec):
    """How a model is trained. Absent means that the model is served."""

    method: Annotated[Method, fields.choice(Method, _METHOD_NAMES)] = Field(
        default="full",
        description="`full` trains every weight, `lora` small adapters beside 16-bit weights,"
        " `qlora` adapters beside 4-bit weights. The default is the one that needs most memory.",
    )
    optimizer: Annotated[Optimizer, fields.choice(Optimizer, _OPTIMIZER_NAMES)] = Field(
        default="adamw", description="The optimizer; it decides the bytes of state per parameter."
    )
    state: Annotated[State, fields.choice(State)] = Field(
        default="mixed",
        description="Precision of weights and optimizer state: `mixed` keeps an FP32 master copy,"
        " `pure-16bit` none, `fp32` everything in FP32.",
    )
    batch_per_gpu: Annotated[int, fields.whole(1, 100_000)] = Field(
        default=1,
        description="Sequences a GPU works on at once (micro-batch, without accumulation).",
    )
    mean_tokens: Annotated[int, fields.whole(1, 100_000_000)] | None = Field(
        default=None,
        description="Mean tokens of a sample where a batch is packed: samples laid end to end"
        " without padding (TRL's `padding_free`, Axolotl's `sample_packing`). The batch is then one"
        " sample of `context_tokens` and others of this length. Default: every sample is padded or"
        " packed to `context_tokens`.",
    )
    gradient_checkpointing: Annotated[Checkpointing, fields.choice(Checkpointing)] = Field(
        default="none",
        description="What is computed again in the backward pass instead of kept. The default keeps"
        " everything and needs most memory.",
    )
    sharding: Annotated[Sharding, fields.choice(Sharding, _SHARDING_NAMES)] = Field(
        default="none",
        description="What several GPUs share: `none` (DDP) nothing, `zero-1` the optimizer state,"
        " `zero-2` also gradients, `zero-3` also weights; `fsdp` is `zero-3` with `sharded_by:"
        " fsdp`. Default: `zero-3` for `method: full`, `none` for adapters.",
    )
    sharded_by: Annotated[ShardedBy, fields.choice(ShardedBy, _SHARDER_NAMES)] | None = Field(
        default=None,
        description="The library that shards. `fsdp` on two to four GPUs is sized with whole"
        " gradients on each, and whole weights beside the shard while a checkpoint loads, because"
        " that is what it has been measured to use; `deepspeed` shares as the stage says. Default:"
        " fsdp for `zero-3` with `state: pure-16bit` written down (DeepSpeed keeps an FP32 copy),"
        " else as the stage says, with a wider margin on two to four GPUs.",
    )
    tensor_parallel: Annotated[int, fields.whole(1, 1024)] = Field(
        default=1,
        description="GPUs that split each layer between them (Megatron's tensor parallel).",
    )
    sequence_parallel: Annotated[int, fields.whole(1, 1024)] = Field(
        default=1,
        description="GPUs that split each sequence between them (context parallel, Ulysses, ring"
        " attention).",
    )
    objective: Annotated[Objective, fields.choice(Objective, _OBJECTIVE_NAMES)] = Field(
        default="sft",
        description="`sft` predicts the next token, `dpo` compares two answers against a frozen"
        " reference, `grpo` also generates answers beside the training (a rollout engine with"
        " 16-bit weights and a KV cache for `concurrent_sequences`).",
    )
    lora_rank: Annotated[int, fields.whole(1, 4096)] = Field(
        default=16, description="Rank of the adapters (`lora` and `qlora`)."
    )
    lora_targets: Annotated[
        tuple[
            Annotated[
                str,
                fields.text(
                    r"[A-Za-z0-9_.\-]+", "a module's name such as q, v or q_proj, or all-linear"
                ),
            ],
            ...,
        ],
        fields.several("module"),
        fields.Once,
    ] = Field(
        default=("all-linear",),
        description="Modules that get adapters (`lora` and `qlora`): q k v o gate up down, attn,"
        " mlp, the modules' own names, or all-linear.",
    )
    lora_dropout: Annotated[float, fields.ranged(0, 0.99, "a share such as 0.05")] = Field(
        default=0.0,
        description="Share of an adapter's input that is dropped (`lora` and `qlora`). Above 0"
        " each adapted matrix keeps a copy of its input and a mask. Default: none, as in PEFT.",
    )
    fused_loss: fields.Truth = Field(
        default=False,
        description="Whether the loss is fused or chunked, so that the logits of a whole batch"
        " never exist at once.",
    )
    optimizer_in_backward: fields.Truth = Field(
        default=False,
        description="Whether the optimizer steps inside the backward pass, freeing gradients.",
    )
    offload: fields.Truth = Field(
        default=False, description="Whether optimizer state and weights may live in host memory."
    )

    @classmethod
    def prepared(cls, data: dict[str, Any]) -> dict[str, Any]:
        """FSDP's name for the third stage becomes stage and library, so that both ways to say it
        mean the same."""
        if data.get("sharding") is None and data.get("method", "full") == "full":
            return {**data, "sharding": "zero-3"}
        if data.get("sharding") == "fsdp" and data.get("sharded_by") in (None, "fsdp"):
            return {**data, "sharding": "zero-3", "sharded_by": "fsdp"}
        return data

    def cross_checks(self) -> Iterator[Clash]:
        if self.sharding == "fsdp":
            yield Clash(
                ("sharded_by",),
                complaint(
                    f" is `{self.sharded_by}`, and `sharding: fsdp` another library",
                    "remove one of them",
                ),
                ("sharded_by", "sharding"),
            )
        if self.method == "full":
            for name in ("lora_rank", "lora_targets", "lora_dropout"):
                if name in self.model_fields_set:
                    yield Clash(
                        (name,),
                        complaint(
                            " is for `method: lora` and `method: qlora`; this trains every weight",
                            f"remove `{name}`, or set `method`",
                            place="key",
                        ),
                        (name, "method"),
                    )
