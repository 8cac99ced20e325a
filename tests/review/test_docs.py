"""The page about reviews: its tables are those of the code."""

from __future__ import annotations

from collections.abc import Callable

from gputier.review.cost import Elsewhere, Unpriced
from gputier.review.prices import PRICERS
from gputier.review.risks import RULES
from tests.review.worlds import state, world

PAGE = "docs/review.md"
CLOUDS = {
    "aws": "AWS",
    "gcp": "Google Cloud",
    "azure": "Azure",
    "azure-native": "Azure",
    "alicloud": "Alibaba Cloud",
    "tencentcloud": "Tencent Cloud",
}
Generated = Callable[[str, str, str], None]


def test_the_page_lists_every_rule(generated: Generated) -> None:
    rows = [f"| `{rule.id}` | {rule.level} | {rule.about} |" for rule in RULES]
    generated(PAGE, "rules", "\n".join(["| rule | | what |", "|---|---|---|", *rows]))


#: Priced only in some shapes, which a resource without inputs has not.
IN_SHAPES = {"aws:ec2/vpcEndpoint:VpcEndpoint", "gcp:compute/routerNat:RouterNat"}
#: Without a price whatever is declared.
NEVER = ("billed", "no price is known for", "no known price")
NEVER_TYPES = {"aws:sagemaker/endpointConfiguration:EndpointConfiguration"}


def column(token: str) -> str | None:
    """`priced`, `listed` (without a price), or None for what costs nothing by itself."""
    one = state(token)
    found = PRICERS[token](world(one), one)
    if token in IN_SHAPES:
        return "priced"
    if isinstance(found, Elsewhere):
        return None
    never = isinstance(found, Unpriced) and any(words in found.why for words in NEVER)
    return "listed" if never or token in NEVER_TYPES else "priced"


def short(token: str) -> str:
    """`ec2.Instance` of `aws:ec2/instance:Instance`."""
    return f"`{token.split(':')[1].split('/')[0]}.{token.split(':')[2]}`"


def test_the_page_lists_what_has_a_price(generated: Generated) -> None:
    rows = ["| cloud | priced | listed without a price |", "|---|---|---|"]
    for cloud in dict.fromkeys(CLOUDS.values()):
        named: dict[str, list[str]] = {"priced": [], "listed": []}
        for token in sorted(PRICERS):
            where = column(token)
            if where and CLOUDS.get(token.split(":")[0]) == cloud:
                named[where].append(short(token))
        priced, listed = (", ".join(named[name]) or "–" for name in ("priced", "listed"))
        rows.append(f"| {cloud} | {priced} | {listed} |")
    generated(PAGE, "types", "\n".join(rows))
