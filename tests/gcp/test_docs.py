"""docs/gcp.md says what is watched."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gputier.plan.monitoring_gcp import (
    ABOVE,
    FLEET,
    GROUP,
    MACHINES,
    UNTOLD,
    Watched,
    alerts,
    log_alerts,
    panels,
    query,
    series,
)

Generated = Callable[[str, str, str], None]
#: A group of two cards a machine, with a price.
SHOWN = Watched(gpus=2, grouped=True, spot=False, most=4.5, budget=None, clocked=True)
READS = {
    "short": "audit logs: machines made anew at their gate, or that could not be made",
    "clock": "the log of the jobs that keep a schedule",
}
OF = {MACHINES: "each GPU of the fleet's machines", GROUP: "the group"}


def lines() -> Iterator[str]:
    yield "| alert | says | reads | when | why |"
    yield "|---|---|---|---|---|"
    for alert in alerts(SHOWN):
        sign = ">" if alert.comparison == ABOVE else "<"
        reads = f"`{alert.metric}` of {OF[alert.of]}"
        when = f"{sign} {alert.threshold:g} for {alert.seconds // 60} min"
        yield f"| `{alert.key}` | {alert.title} | {reads} | {when} | {alert.why} |"
    for told in log_alerts(SHOWN):
        yield (
            f"| `{told.key}` | {told.title} | {READS[told.key]} | an entry, told hourly |"
            f" {told.why} |"
        )
    yield ""
    for key, why in UNTOLD.items():
        yield f"Not everywhere: `{key}`, because {why}."
    yield ""
    yield f"Panels of the dashboard: {'; '.join(panel.title for panel in panels(SHOWN))}. Power is"
    yield "not among them: DCGM's receiver sends the energy used so far, and not what is drawn."


def test_the_page_has_every_alert(generated: Generated) -> None:
    generated("docs/gcp.md", "alerts", "\n".join(lines()))


def test_a_filter_names_the_fleet_and_leaves_nothing_to_fill_in() -> None:
    for alert in alerts(SHOWN):
        made = series(alert.metric, alert.more, "ours", alert.of)
        if alert.sent_first:
            made = query(alert, "ours")
        assert "ours" in made
        assert FLEET not in made
