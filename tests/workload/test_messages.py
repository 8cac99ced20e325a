"""What a person is told, to the letter: (a mistake → the rendered text)."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

import pytest

from gputier import errors
from gputier.workload import Workload

WHOLE: dict[str, tuple[str, str]] = {
    "the sketch of the screens": (
        """\
        workloads:
          chat:
            purpos: inference
          tuner:
            schedule:
              - start: "0 25 * * mon-fri"
                stop: "0 6 * * tue-sat"
        """,
        """\
        error: w.yaml: 2 problems

          3:5    purpos: inference
                 ^^^^^^ unknown field `purpos` of workload `chat`
                 hint: did you mean `purpose`?

          6:19   - start: "0 25 * * mon-fri"
                             ^^ hour 25 in schedule of `tuner`: hours go from 0 to 23""",
    ),
    "several in one place": (
        """\
        workloads:
          chat:
            tier: hihg-end
            gpu: {cont: 1, memory: 24, models: [v5e]}
            capacity: reservation
        """,
        """\
        error: w.yaml: 5 problems

          3:11   tier: hihg-end
                       ^^^^^^^^ `tier` of workload `chat` must be entry, mid or high-end, not `hihg-end`
                 hint: did you mean `high-end`?

          4:11   gpu: {cont: 1, memory: 24, models: [v5e]}
                       ^^^^ unknown field `gpu.cont` of workload `chat`
                 hint: did you mean `count`?

          4:28   gpu: {cont: 1, memory: 24, models: [v5e]}
                                        ^^ `gpu.memory` of workload `chat` needs a unit, not `24`
                 hint: 24 needs a unit: 24GB

          4:41   gpu: {cont: 1, memory: 24, models: [v5e]}
                                                     ^^^ `gpu.models[0]` of workload `chat` names `v5e`, a Google TPU: gputier is for NVIDIA GPUs
                 hint: see `gputier catalog gpus` for the GPUs there are

          5:15   capacity: reservation
                           ^^^^^^^^^^^ `capacity` of workload `chat` is a reservation, which holds one instance type in one zone: it needs `instance_type` and `zone`
                 hint: such as {use: reservation, instance_type: p5.48xlarge, zone: use1-az4, count: 4}""",  # noqa: E501
    ),
    "a file of another kind": (
        "name: x\nservices: {}\n",
        """\
        error: w.yaml: 2 problems

          1:1    name: x
                 ^^^^ unknown key `name`
                 hint: gputier reads `workloads`, `environment`, `defaults`, `discounts`, `max_price_age_days`

          2:1    services: {}
                 ^^^^^^^^ unknown key `services`
                 hint: gputier reads `workloads`, `environment`, `defaults`, `discounts`, `max_price_age_days`""",  # noqa: E501
    ),
    "nothing at all": (
        "",
        """\
        error: w.yaml is empty
        hint: add `workloads`, such as  chat: {model: {name: llama-3.1-8b}}""",
    ),
    "no workloads": (
        "environment: dev\n",
        """\
        error: w.yaml declares no workloads
        hint: add `workloads`, such as  chat: {model: {name: llama-3.1-8b}}""",
    ),
    "empty workloads": (
        "workloads:\n",
        """\
        error: w.yaml: 1 problem

          1:1    workloads:
                 ^^^^^^^^^ `workloads` must be a map from names to workloads, not nothing
                 hint: such as  chat: {model: {name: llama-3.1-8b}}""",
    ),
    "a tab": (
        "workloads:\n\tchat: {}\n",
        """\
        error: w.yaml: 1 problem

          2:1    chat: {}
                 ^ a tab indents this line; YAML takes only spaces
                 hint: replace each tab by spaces""",
    ),
    "a doubled workload": (
        "workloads:\n  chat: {}\n  chat: {nodes: 2}\n",
        """\
        error: w.yaml: 1 problem

          3:3    chat: {nodes: 2}
                 ^^^^ key `chat` is given twice, first in line 2
                 hint: keep one""",
    ),
    "an encrypted value": (
        "workloads:\n  chat:\n    model: {name: {secure: AAAB}}\n    gpu: {count: 1}\n",
        """\
        error: w.yaml: 1 problem

          3:20   model: {name: {secure: AAAB}}
                                ^^^^^^ an encrypted value in `workloads`
                 hint: a declaration holds no secrets: name them by reference, and write this in plain""",  # noqa: E501
    ),
    "a name for no resource": (
        "workloads:\n  My_Chat: {}\n",
        """\
        error: w.yaml: 1 problem

          2:3    My_Chat: {}
                 ^^^^^^^ workload name `My_Chat` must be lower-case letters, digits and dashes, begin with a letter, not end in a dash, and have at most 40 characters: it becomes part of names in the cloud
                 hint: such as `my-chat`""",  # noqa: E501
    ),
}


@pytest.mark.parametrize(("text", "expected"), WHOLE.values(), ids=WHOLE.keys())
def test_a_mistake_is_told_in_these_words(
    said: Callable[[str], str], text: str, expected: str
) -> None:
    assert said(textwrap.dedent(text)) == textwrap.dedent(expected)


# What is written below `workloads: {chat: …}` → the message after "of workload `chat`", the hint.
FIELDS: dict[str, tuple[str, str]] = {
    "tier: medium": (
        "`tier` of workload `chat` must be entry, mid or high-end, not `medium`",
        "did you mean `mid`?",
    ),
    "purpose: serving": (
        "`purpose` of workload `chat` must be development, inference, fine-tuning, training,"
        " rendering, hpc or vdi, not `serving`",
        "did you mean `inference`?",
    ),
    "nodes: 0": ("`nodes` of workload `chat` must be a whole number from 1 to 1,000, not `0`", ""),
    "nodes: 1.5": (
        "`nodes` of workload `chat` must be a whole number from 1 to 1,000, not `1.5`",
        "",
    ),
    "nodes: true": (
        "`nodes` of workload `chat` must be a whole number from 1 to 1,000, not `true`",
        "",
    ),
    "nodes: [1]": (
        "`nodes` of workload `chat` must be a whole number from 1 to 1,000, not a list",
        "",
    ),
    "nodes: 1e308": (
        "`nodes` of workload `chat` must be a whole number from 1 to 1,000, not `1e+308`",
        "",
    ),
    "nodes: .inf": (
        "`nodes` of workload `chat` must be a whole number from 1 to 1,000, not `inf`",
        "",
    ),
    "memory: 64": (
        "`memory` of workload `chat` needs a unit, not `64`",
        "64 needs a unit: 64GiB",
    ),
    "memory: lots": (
        "`memory` of workload `chat`: a size needs a unit, such as 64GiB, 500GB or 2TB, not `lots`",
        "",
    ),
    "memory: 1PiB": ("`memory` of workload `chat` must be from 1GiB to 64TiB, not `1PiB`", ""),
    "memory: {size: 1GiB}": (
        "`memory` of workload `chat` must be a quantity such as 64GiB, not a map",
        "",
    ),
    "gpu: 1": ("`gpu` of workload `chat` must be a map of fields, not `1`", ""),
    "gpu: [H100]": ("`gpu` of workload `chat` must be a map of fields, not a list", ""),
    "gpu: {count: many}": (
        "`gpu.count` of workload `chat` must be a whole number from 1 to 72, not `many`",
        "",
    ),
    "gpu: {memory: 24Gbps}": (
        "`gpu.memory` of workload `chat`: GPU memory is the card's marketed size, such as 24GB or"
        " 80GB, not `24Gbps`",
        "",
    ),
    "gpu: {nvlink: 600}": (
        "`gpu.nvlink` of workload `chat` needs a unit, not `600`",
        "600 needs a unit: 600GB/s",
    ),
    "gpu: {nvlink: yes}": (
        "`gpu.nvlink` of workload `chat`: storage speed is in bytes per second, such as 500MB/s or"
        " 1GB/s, not `yes`",
        "",
    ),
    "gpu: {video_encode: yes}": (
        "`gpu.video_encode` of workload `chat` must be true or false, not `yes`",
        "write true",
    ),
    "gpu: {vgpu: False!}": (
        "`gpu.vgpu` of workload `chat` must be true or false, not `False!`",
        "",
    ),
    "gpu: {mig: 8g.5gb}": (
        "`gpu.mig` of workload `chat` must be true, false or a profile such as 1g.10gb, not"
        " `8g.5gb`",
        "",
    ),
    "gpu: {graphics: [directx]}": (
        "`gpu.graphics[0]` of workload `chat`: DirectX needs a Windows boot, which gputier does not"
        " have yet",
        "OpenGL and Vulkan work: `graphics: [vulkan]`",
    ),
    "gpu: {graphics: metal}": (
        "`gpu.graphics` of workload `chat` must be opengl, vulkan or directx, not `metal`",
        "",
    ),
    "gpu: {models: MI300X}": (
        "`gpu.models` of workload `chat` names `MI300X`, an AMD GPU: gputier is for NVIDIA GPUs",
        "see `gputier catalog gpus` for the GPUs there are",
    ),
    "gpu: {models: [H100], exclude: [h100]}": (
        "`gpu.exclude` of workload `chat` names `h100`, which `models` asks for",
        "keep it in one of the two",
    ),
    "gpu: {memory: 80GB, total_memory: 40GB}": (
        "`gpu.total_memory` of workload `chat` is 40GB, less than the 80GB of one GPU",
        "`memory` is per GPU, `total_memory` all GPUs of a machine together",
    ),
    "gpu: {compute_capability: 90}": (
        "`gpu.compute_capability` of workload `chat` must be a compute capability from 1 to 20, not"
        " `90`",
        "",
    ),
    "cpu: {architecture: amd64}": (
        "`cpu.architecture` of workload `chat` must be x86_64, arm64 or any, not `amd64`",
        "did you mean `x86_64`?",
    ),
    "disk: {throughput: 500Mbps}": (
        "`disk.throughput` of workload `chat`: storage speed is in bytes per second, such as"
        " 500MB/s or 1GB/s, not `500Mbps`",
        "",
    ),
    "disk: {snapshot: snap-0abc}": (
        "`disk.snapshot` of workload `chat` is for a data volume",
        "say how large: `data: 500GB`",
    ),
    "network: {subnets: [subnet-0abc]}": (
        "`network.subnets` of workload `chat` are of an existing network",
        "name it: `vpc: vpc-0abc`",
    ),
    "network: {bandwidth: 10GB/s}": (
        "`network.bandwidth` of workload `chat`: network speed is in bits per second, such as"
        " 10Gbps or 400Mbps, not `10GB/s`",
        "",
    ),
    "network: {placement: compact}": (
        "`network.placement` of workload `chat` must be cluster, spread or none, not `compact`",
        "did you mean `cluster`?",
    ),
    "fabric: ib": (
        "`fabric` of workload `chat` must be any, efa, gpudirect-tcpx, gpudirect-tcpxo, roce,"
        " infiniband or none, not `ib`",
        "did you mean `infiniband`?",
    ),
    "clouds: [google]": (
        "`clouds[0]` of workload `chat` must be aws, gcp, azure, alibaba or tencent, not `google`",
        "did you mean `gcp`?",
    ),
    "clouds: []": (
        "`clouds` of workload `chat` must name at least one cloud, not an empty list",
        "or leave it out",
    ),
    "regions: us-east-1": (
        "`regions` of workload `chat` must be a map from cloud to regions, not `us-east-1`",
        "such as {aws: [us-east-1]}",
    ),
    "regions: {azur: [x]}": (
        "`regions.azur` of workload `chat` must be aws, gcp, azure, alibaba or tencent, not `azur`",
        "did you mean `azure`?",
    ),
    "regions: {aws: [US East]}": (
        "`regions.aws[0]` of workload `chat` must be a region's name such as us-east-1 or"
        " us-central1, not `US East`",
        "",
    ),
    "{clouds: [aws], regions: {azure: [westeurope]}}": (
        "`regions.azure` of workload `chat` names regions of a cloud the workload does not use:"
        " `clouds` is aws",
        "add azure to `clouds`, or remove it from `regions`",
    ),
    "capacity: on-demand": (
        "`capacity` of workload `chat` must be on_demand, spot, reservation, capacity_block or"
        " flex_start, not `on-demand`",
        "did you mean `on_demand`?",
    ),
    "capacity: [spot, on_demand, spot]": (
        "`capacity` of workload `chat` lists the same `spot` twice; the order is the order tried",
        "keep one of them",
    ),
    "capacity: {use: spot, id: cr-1}": (
        "`capacity.id` of workload `chat` is for reservation and capacity_block, and this is spot",
        "remove `id`",
    ),
    "capacity: {on_demand_base: 1}": (
        "`capacity.use` of workload `chat` is needed here",
        "",
    ),
    "capacity: {use: on_demand, instance_type: trn1.32xlarge}": (
        "`capacity.instance_type` of workload `chat` is `trn1.32xlarge`, an AWS Trainium"
        " accelerator: gputier is for NVIDIA GPUs",
        "see `gputier catalog` for the instance types there are",
    ),
    "{nodes: 4, capacity: {use: reservation, instance_type: a, zone: b, count: 2}}": (
        "`capacity.count` of workload `chat` is 2, and the workload needs 4 machines",
        "",
    ),
    "capacity: {use: capacity_block, instance_type: a, zone: b, start: soon}": (
        "`capacity.start` of workload `chat` must be a date or a time such as 2026-11-01 or"
        " 2026-11-01T11:30:00Z, not `soon`",
        "",
    ),
    "capacity: {use: reservation, instance_type: a, zone: b, start: 2026-02-02, end: 2026-02-01}": (
        "`capacity.end` of workload `chat` (2026-02-01T00:00:00Z) is not after `start`"
        " (2026-02-02T00:00:00Z)",
        "",
    ),
    "max_usd_per_hour: $500/month": (
        "`max_usd_per_hour` of workload `chat`: this price is per hour, such as $2.50/h, not"
        " `$500/month`",
        "",
    ),
    "max_usd_per_hour: 0": (
        "`max_usd_per_hour` of workload `chat` must be more than $0 and at most $1,000,000 per"
        " hour",
        "",
    ),
    "hours_per_month: 800": (
        "`hours_per_month` of workload `chat` must be hours from 1 to 744, not `800`",
        "",
    ),
    "scale: {min: 5, max: 2}": (
        "`scale.min` of workload `chat` is 5, more than `max`, which is 2",
        "",
    ),
    "scale: {target: 50}": (
        "`scale.target` of workload `chat` has no effect without `scale.max`",
        "set `max`, or remove it",
    ),
    "scale: {max: 3, metric: queue_length}": (
        "`scale.metric` of workload `chat` must be gpu_utilization, not `queue_length`: a fleet"
        " cannot be scaled by anything else yet",
        "",
    ),
    "{nodes: 4, scale: {max: 2}}": (
        "`scale.max` of workload `chat` is 2, fewer than the 4 `nodes`",
        "",
    ),
    "{nodes: 1, scale: {min: 2, max: 4}}": (
        "`scale.min` of workload `chat` is 2, more than `nodes`, which is 1",
        "",
    ),
    'schedule: [{start: "0 8 * * *"}]': (
        "`schedule[0].stop` of workload `chat` is needed here",
        "",
    ),
    'schedule: {start: "0 8 * * mon", stop: "0 8 * * *"}': (
        "`schedule.stop` of workload `chat` falls on the same minute as `start` (Monday 08:00), so"
        " nobody can tell whether machines should run",
        "move one of them, or leave the schedule out for machines that always run",
    ),
    'schedule: {start: "0 0 30 2 *", stop: "0 1 * * *"}': (
        "`schedule.start` of workload `chat` never comes: no date from 2025 to 2028 matches"
        " `0 0 30 2 *`",
        "",
    ),
    'schedule: {start: "0 1 * * *", stop: "0 0 30 2 *"}': (
        "`schedule.stop` of workload `chat` never comes: no date from 2025 to 2028 matches"
        " `0 0 30 2 *`",
        "",
    ),
    'schedule: {start: "0 1 * * *", stop: "0 2 * * *", timezone: Berlin}': (
        "`schedule.timezone` of workload `chat` is no time zone: `Berlin`",
        "did you mean `Europe/Berlin`?",
    ),
    "budget: {alerts: [50]}": ("`budget.usd_per_month` of workload `chat` is needed here", ""),
    "budget: {usd_per_month: 100, alerts: [0]}": (
        "`budget.alerts[0]` of workload `chat` must be a percentage from 1 to 1,000, not `0`",
        "",
    ),
    "budget: {usd_per_month: 100, action: stop}": (
        "`budget.action` of workload `chat` must be none or scale-to-zero, not `stop`",
        "did you mean `scale-to-zero`?",
    ),
    "precision: fp8": (
        "unknown field `precision` of workload `chat`",
        "did you mean `model.precision`?",
    ),
    "count: 2": (
        "unknown field `count` of workload `chat`",
        "did you mean `gpu.count`, `cpu.count` or `capacity.count`?",
    ),
    "model: {name: a, method: lora}": (
        "unknown field `model.method` of workload `chat`",
        "did you mean `training.method`?",
    ),
    "rollout: refresh": (
        "`rollout` of workload `chat` must be new-machines or rolling, not `refresh`",
        "did you mean `rolling`?",
    ),
    "tags: team": (
        "`tags` of workload `chat` must be a map of text, not `team`",
        "such as {team: vision}",
    ),
    "tags: {aws:team: vision}": (
        "`tags` of workload `chat` names `aws:team`; names that begin with aws: or gputier: are not"
        " yours to set",
        "",
    ),
    "tags: {team: [vision]}": (
        "`tags` of workload `chat`: `team` must be text, not a list",
        "",
    ),
    "tags: {team: 'a|b'}": (
        "`tags` of workload `chat`: `team` is `a|b`; a tag's value is up to 256 letters, digits and"
        " _ . : / = + - @",
        "",
    ),
    "tags: {'a|b': x}": (
        "`tags` of workload `chat` names `a|b`; a tag's name is up to 128 letters, digits and"
        " _ . : / = + - @",
        "",
    ),
    "was: Chat": (
        "`was` of workload `chat` must be a workload's name such as chat, not `Chat`",
        "",
    ),
    "identity: {role: node, permissions_boundary: 'arn:aws:iam::1:policy/b'}": (
        "`identity.permissions_boundary` of workload `chat` bounds a role that is made, and `role`"
        " names one that exists",
        "keep one of the two",
    ),
    "identity: {permissions_boundary: bound}": (
        "`identity.permissions_boundary` of workload `chat` must be a policy's ARN, not `bound`",
        "",
    ),
    "identity: {reports: delete}": (
        "`identity.reports` of workload `chat` must be keep or remove, not `delete`",
        "did you mean `remove`?",
    ),
    "model: {}": (
        "`model` of workload `chat` says nothing that can be sized",
        "give one of `name`, `config`, `weights_index` or `parameters`; or your own `measured_gib`"
        " per GPU",
    ),
    "model: {name: a, parameters: 7B}": (
        "`model` of workload `chat` is given 2 times, by `name` and `parameters`",
        "keep one; `architecture` may correct single figures of `name`",
    ),
    "model: {parameters: 7}": (
        "`model.parameters` of workload `chat` needs a unit, not `7`",
        "did you mean 7B?",
    ),
    "model: {parameters: 7x}": (
        "`model.parameters` of workload `chat`: a parameter count looks like 7B, 350M or 1.5T, not"
        " `7x`",
        "",
    ),
    "model: {parameters: 10000T}": (
        "`model.parameters` of workload `chat` must be from 100K to 100T parameters, not `10000T`",
        "",
    ),
    "model: {parameters: 8B, active_parameters: 13B}": (
        "`model.active_parameters` of workload `chat` is 13,000,000,000, more than all"
        " 8,000,000,000 `parameters`",
        "",
    ),
    "model: {name: a, precision: float16}": (
        "`model.precision` of workload `chat` must be fp64, fp32, bf16, fp16, fp8, int8,"
        " int4-gptq, int4-awq, nf4, nf4-dq, q4_0, mxfp4 or nvfp4, not `float16`",
        "did you mean `fp16`?",
    ),
    "model: {parameters: 1B, image: {}}": (
        "`model.image` of workload `chat` needs the model's `name`: no formula in parameters alone"
        " sizes an image model",
        "set `model.name`, or your own `model.measured_gib`",
    ),
    "model: {architecture: {layers: 32}}": (
        "`model.architecture` of workload `chat` needs at least `layers` and `hidden_size` where"
        " nothing else names the model",
        "or give one of `name`, `config`, `weights_index` or `parameters`",
    ),
    "model: {name: a, architecture: {attention_heads: 8, kv_heads: 32}}": (
        "`model.architecture.kv_heads` of workload `chat` is 32, more than the 8 attention heads",
        "were `kv_heads` and `attention_heads` swapped?",
    ),
    "model: {name: a, training: {method: full, lora_rank: 8}}": (
        "`model.training.lora_rank` of workload `chat` is for `method: lora` and `method: qlora`;"
        " this trains every weight",
        "remove `lora_rank`, or set `method`",
    ),
    "model: {name: a, training: {sharding: zero3}}": (
        "`model.training.sharding` of workload `chat` must be none, zero-1, zero-2, zero-3 or fsdp,"
        " not `zero3`",
        "did you mean `zero-3`?",
    ),
    "model: {name: a, training: {sharding: fsdp, sharded_by: deepspeed}}": (
        "`model.training.sharded_by` of workload `chat` is `deepspeed`, and `sharding: fsdp`"
        " another library",
        "remove one of them",
    ),
    "model: {name: a, context_tokens: 1024, training: {mean_tokens: 2048}}": (
        "`model.training.mean_tokens` of workload `chat` is 2,048, more than the 1,024 of"
        " `context_tokens`, the longest sample",
        "were `mean_tokens` and `context_tokens` swapped?",
    ),
    "model: {name: a, training: {method: lora, lora_dropout: 5}}": (
        "`model.training.lora_dropout` of workload `chat` must be a share such as 0.05 from 0 to"
        " 0.99, not `5`",
        "",
    ),
    "{purpose: inference, model: {name: a, training: {}}}": (
        "`model.training` of workload `chat` does not go with `purpose: inference`",
        "remove `training`, or set `purpose` to fine-tuning or training",
    ),
    "model: {name: a, seats: 4}": (
        "`model.seats` of workload `chat` counts virtual desktops",
        "set `purpose: vdi`, or remove `seats`",
    ),
    "model: {measured_gib: huge}": (
        "`model.measured_gib` of workload `chat` must be GiB per GPU such as 21.5, not `huge`",
        "",
    ),
}


@pytest.mark.parametrize(
    ("written", "message", "hint"), [(k, *v) for k, v in FIELDS.items()], ids=FIELDS.keys()
)
def test_a_field_says_what_it_takes(
    declared: Callable[[str], object], written: str, message: str, hint: str
) -> None:
    fields = written if written.startswith("{") else f"{{{written}}}"
    with pytest.raises(errors.InvalidInput) as caught:
        declared(f"workloads:\n  chat: {fields}\n")
    (problem,) = caught.value.problems
    assert (problem.message, problem.hint) == (message, hint)
    assert problem.position is not None
    assert problem.path.startswith("workloads.chat.")


TOP: dict[str, tuple[str, str]] = {
    "workload: {chat: {}}": ("unknown key `workload`", "did you mean `workloads`?"),
    "gputier:workloads: {}": ("unknown key `gputier:workloads`", "did you mean `workloads`?"),
    "environment: Prod": (
        "`environment` must be a word such as dev, staging or prod, in lower case, not `Prod`",
        "",
    ),
    "environment: prdo": ("`environment` is `prdo`, almost `prod`", "did you mean `prod`?"),
    "environment: producton": (
        "`environment` is `producton`, almost `production`",
        "did you mean `production`?",
    ),
    "max_price_age_days: 0": (
        "`max_price_age_days` must be days from 1 to 3,650, not `0`",
        "",
    ),
    "defaults: {tier: mid}": (
        "unknown field `tier` of `defaults`",
        "fields here: clouds, regions, zones, capacity and prefer",
    ),
    "defaults: {prefer: cheap}": (
        "`prefer` of `defaults` must be price, value or speed, not `cheap`",
        "did you mean `price`?",
    ),
    "discounts: [{cloud: aws, families: [p5], percent: 27}]": (
        "`reason` of discount 1 is needed here",
        "",
    ),
    "discounts: {cloud: aws, families: p5, percent: 100, reason: x}": (
        "`percent` of discount 1 must be a percentage from 0.01 to 99.99, not `100`",
        "",
    ),
    "discounts: [{cloud: aws, families: [p5], percent: 5, reason: ' '}]": (
        "`reason` of discount 1 must be a few words, not ` `",
        "",
    ),
    "workloads: [chat]": (
        "`workloads` must be a map from names to workloads, not a list",
        "such as  chat: {model: {name: llama-3.1-8b}}",
    ),
    "workloads: {}": (
        "`workloads` is empty",
        "such as  chat: {model: {name: llama-3.1-8b}}",
    ),
}


@pytest.mark.parametrize(
    ("written", "message", "hint"), [(k, *v) for k, v in TOP.items()], ids=TOP.keys()
)
def test_a_top_level_key_says_what_it_takes(
    declared: Callable[[str], object], written: str, message: str, hint: str
) -> None:
    text = (
        written if written.startswith(("workload", "gputier")) else f"{written}\nworkloads: {{a: }}"
    )
    with pytest.raises(errors.InvalidInput) as caught:
        declared(text)
    (problem,) = caught.value.problems
    assert (problem.message, problem.hint) == (message, hint)
    assert problem.position is not None
    assert problem.position.line == 1


def test_a_discount_is_named_by_its_number_and_placed_in_its_list_or_alone(
    declared: Callable[[str], object],
) -> None:
    wrong = "{cloud: aws, families: [p5], percent: 0, reason: x}"
    for written, path, column in (
        (wrong, "discounts.percent", 50),
        (f"[{wrong}]", "discounts[0].percent", 51),
    ):
        with pytest.raises(errors.InvalidInput) as caught:
            declared(f"discounts: {written}\nworkloads: {{a: }}\n")
        (problem,) = caught.value.problems
        assert (problem.path, problem.position and problem.position.column) == (path, column)


def test_a_missing_field_is_placed_at_the_key_of_the_map_that_lacks_it(
    said: Callable[[str], str],
) -> None:
    text = said("workloads:\n  chat:\n    budget: {action: none}\n")
    assert (
        "  3:5    budget: {action: none}\n"
        "         ^^^^^^ `budget.usd_per_month` of workload `chat` is needed here"
    ) in text


def test_one_run_reports_clashes_beside_broken_fields() -> None:
    """A broken field hides only those clashes that read it."""
    with pytest.raises(errors.InvalidInput) as caught:
        Workload.model_validate(
            {
                "tier": "hihg",
                "nodes": 4,
                "scale": {"max": 2},
                "clouds": ["aws"],
                "regions": {"azure": "x"},
                "gpu": {"memory": "80GB", "total_memory": "40GB", "count": 0},
            }
        )
    paths = [problem.path for problem in caught.value.problems]
    assert paths == ["tier", "gpu.count", "gpu.total_memory", "scale.max", "regions.azure"]


def test_a_default_that_clashes_is_shown_where_it_is_written(said: Callable[[str], str]) -> None:
    text = said(
        "defaults: {clouds: [aws]}\nworkloads:\n  chat:\n    regions: {gcp: [us-central1]}\n"
    )
    assert "`regions.gcp` of workload `chat` names regions of a cloud" in text
    assert "4:15" in text
    text = said("defaults: {capacity: {use: capacity_block, instance_type: a, zone: b, count: 1}}\n"
                "workloads: {chat: {nodes: 2}}\n")  # fmt: skip
    assert "1:78" in text
    assert "`capacity.count` of workload `chat` is 1, and the workload needs 2 machines" in text


def test_thousands_of_problems_are_cut_to_what_a_person_reads(said: Callable[[str], str]) -> None:
    fields = "".join(f"    k{n}: 1\n" for n in range(5000))
    text = said(f"workloads:\n  chat:\n{fields}")
    assert text.count("unknown field") == 50
    assert "and 4,950 more problems of workload `chat`" in text


def test_a_message_never_holds_control_characters(said: Callable[[str], str]) -> None:
    text = said('workloads: {"a\\e[31m\\n": {"b\\e[2J": 1, tier: "x\\e]0;y"}}')
    assert "\x1b" not in text
    assert "unknown field `b�[2J`" in text
