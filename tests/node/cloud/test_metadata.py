"""The metadata services are asked as they want to be asked, whatever state they are in."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.node.clouds import ACCOUNT, INSTANCE, STATE, Quick
from tests.standins import metadata as standins
from tests.standins.server import Fault, StandIn
from tests.standins.signature import Credentials

from gputier.node import WrongInput
from gputier.node.cloud import Trouble, endpoints, identity
from gputier.node.cloud.credentials import Denied, RoleKeys, ServiceToken
from gputier.node.cloud.http import Web
from gputier.node.cloud.metadata import Aws, Azure, Gcp, Silent, of

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])
Started = Callable[[StandIn], str]


@pytest.fixture
def started() -> Iterator[Started]:
    with ExitStack() as stack:

        def start(service: StandIn) -> str:
            service.start()
            stack.callback(service.stop)
            return service.url

        yield start


@pytest.fixture
def web(tmp_path: Path) -> Web:
    return Web(Quick(tmp_path))


def test_a_token_is_asked_for_once_and_sent_with_every_question(started: Started, web: Web) -> None:
    service = standins.Aws()
    aws = Aws(web, started(service))
    assert aws.get("meta-data/instance-id") == INSTANCE
    assert aws.get(STATE) == "InService"
    assert [asked.method for asked in service.seen] == ["PUT", "GET", "GET"]


def test_a_token_that_is_not_good_any_more_is_renewed(started: Started, web: Web) -> None:
    service = standins.Aws()
    aws = Aws(web, started(service))
    aws.get("meta-data/instance-id")
    service.forget_tokens()
    assert aws.get("meta-data/instance-id") == INSTANCE
    assert len(service.requests(method="PUT")) == 2


def test_a_token_that_is_never_good_is_said_after_one_renewal(started: Started, web: Web) -> None:
    service = standins.Aws(faults=[Fault("instance-id", status=401)])
    with pytest.raises(Silent, match="401"):
        Aws(web, started(service)).get("meta-data/instance-id")
    assert len(service.requests(method="PUT")) == 2


def test_what_is_not_there_is_none(started: Started, web: Web) -> None:
    assert Aws(web, started(standins.Aws())).get("meta-data/spot/instance-action") is None
    assert Gcp(web, started(standins.Gcp())).get("instance/attributes/none") is None
    assert Azure(web, started(standins.Azure())).get("nothing") is None


def test_a_service_that_is_late_is_waited_for(started: Started, web: Web) -> None:
    service = standins.Aws(faults=[Fault(drop=True, times=8), Fault(status=503, times=3)])
    assert Aws(web, started(service)).get("meta-data/instance-id") == INSTANCE
    assert isinstance(web.host, Quick)
    assert sum(web.host.pauses) > 10


def test_a_service_that_never_comes_is_said_in_time(web: Web) -> None:
    before = web.host.monotonic()
    with pytest.raises(Silent, match="hop limit"):
        Aws(web, "http://127.0.0.1:1").get("meta-data/instance-id")
    assert 60 < web.host.monotonic() - before <= 121


def test_once_it_has_answered_its_silence_is_not_waited_out(started: Started, web: Web) -> None:
    service = standins.Gcp()
    gcp = Gcp(web, started(service))
    gcp.get("instance/zone")
    service.faults.append(Fault(drop=True))
    before = web.host.monotonic()
    with pytest.raises(Silent):
        gcp.get("instance/zone")
    assert web.host.monotonic() - before < 16


def test_a_service_that_is_switched_off_is_not_asked_again(started: Started, web: Web) -> None:
    service = standins.Aws()
    service.off = True
    with pytest.raises(Silent, match="switched off"):
        Aws(web, started(service)).get("meta-data/instance-id")
    assert len(service.seen) == 1


def test_an_answer_at_the_address_that_is_not_googles_is_refused(
    started: Started, web: Web
) -> None:
    url = started(standins.Gcp(faults=[Fault(status=200, text="<html>login</html>")]))
    with pytest.raises(Silent, match="not Google"):
        Gcp(web, url).get("instance/zone")


def test_azure_is_asked_with_a_version(started: Started, web: Web) -> None:
    service = standins.Azure()
    azure = Azure(web, started(service))
    assert "eastus" in (azure.get("instance/compute") or "")
    assert azure.get("scheduledevents?api-version=2020-07-01")
    assert service.seen[1].query == "api-version=2020-07-01"


def test_a_cloud_whose_service_is_not_known_has_none(web: Web) -> None:
    assert of("alibaba", web, {}) is None
    assert isinstance(of("aws", web, {}), Aws)


# --- identity --------------------------------------------------------------------------------


def test_a_node_knows_who_it_is_on_aws(started: Started, web: Web) -> None:
    found = identity.ask(Aws(web, started(standins.Aws())), "bucket")
    assert found == identity.Identity(
        "aws", ACCOUNT, "us-east-1", "us-east-1a", INSTANCE, "bucket", domain="amazonaws.com"
    )


def test_the_domain_is_the_partitions(started: Started, web: Web) -> None:
    service = standins.Aws(standins.aws_values(region="cn-north-1"))
    found = identity.ask(Aws(web, started(service)))
    assert found.domain == "amazonaws.com.cn"
    assert endpoints.bucket({}, "b", found.region, found.domain) == (
        "https://b.s3.cn-north-1.amazonaws.com.cn"
    )


@pytest.mark.parametrize("place", ["zones/us-central1-a", "regions/us-central1"])
def test_a_node_knows_who_it_is_on_google(started: Started, web: Web, place: str) -> None:
    group = f"{place}/instanceGroupManagers/tuner"
    found = identity.ask(Gcp(web, started(standins.Gcp(standins.gcp_values(group=group)))))
    assert found == identity.Identity(
        "gcp", "stand-in-project", "us-central1", "us-central1-a", "4815162342108151623",
        name="tuner-x1k2", group=group, domain="googleapis.com",
    )  # fmt: skip


def test_a_machine_of_no_group_has_none(started: Started, web: Web) -> None:
    values = standins.gcp_values(group=None)
    assert identity.ask(Gcp(web, started(standins.Gcp(values)))).group == ""


def test_a_node_knows_who_it_is_on_azure(started: Started, web: Web) -> None:
    found = identity.ask(Azure(web, started(standins.Azure())))
    assert (found.cloud, found.region, found.group) == ("azure", "eastus", "tuner")
    assert found.instance_id.startswith("5c08b38e")


def test_an_identity_that_lacks_a_part_is_no_identity(started: Started, web: Web) -> None:
    values = standins.gcp_values()
    del values["instance/id"]
    with pytest.raises(Silent, match="does not say instance/id"):
        identity.ask(Gcp(web, started(standins.Gcp(values))))


def test_the_fetchers_file_is_read_and_completed(started: Started, web: Web) -> None:
    gcp = Gcp(web, started(standins.Gcp()))
    whole = identity.ask(gcp, "bucket")
    six = {name: getattr(whole, name) for name in identity.Identity._fields[:6]}
    web.host.write(identity.FILE, json.dumps(six))
    found = identity.load(web.host)
    assert found
    assert identity.complete(found, gcp) == whole
    web.host.write(identity.FILE, whole.to_json())
    assert identity.load(web.host) == whole


def test_the_file_of_the_machine_that_the_image_was_made_of_is_not_believed(
    started: Started, web: Web
) -> None:
    gcp = Gcp(web, started(standins.Gcp()))
    baked = identity.ask(gcp, "bucket")._replace(instance_id="9", domain="", account="a")
    assert identity.complete(baked, gcp).account == "stand-in-project"


@pytest.mark.parametrize("text", [None, "", "[]", '{"cloud": "aws"}'])
def test_half_an_identity_is_none(web: Web, text: str | None) -> None:
    if text is not None:
        web.host.write(identity.FILE, text)
    assert identity.load(web.host) is None


# --- credentials -----------------------------------------------------------------------------


def test_credentials_are_asked_for_once_and_renewed_before_they_end(
    started: Started, web: Web
) -> None:
    service = standins.Aws(credentials=Credentials(until=time.time() + 3600))
    keys = RoleKeys(Aws(web, started(service)))
    assert keys.get().access == keys.get().access
    assert len(service.requests("security-credentials/.")) == 1
    assert isinstance(web.host, Quick)
    web.host.skipped += 3400
    keys.get()
    assert len(service.requests("security-credentials/.")) == 2


def test_a_role_that_comes_late_is_waited_for(started: Started, web: Web) -> None:
    service = standins.Aws(credentials=Credentials())
    service.faults.append(Fault("security-credentials/$", status=404, times=3))
    assert RoleKeys(Aws(web, started(service))).get().access


def test_a_machine_without_a_role_is_told_the_way_out(started: Started, web: Web) -> None:
    with pytest.raises(Denied, match="instance profile"):
        RoleKeys(Aws(web, started(standins.Aws()))).get()


def test_a_role_that_may_not_be_used_says_why_without_its_credentials(
    started: Started, web: Web
) -> None:
    text = json.dumps({"Code": "AssumeRoleUnauthorizedAccess", "Message": "EC2 cannot assume it"})
    service = standins.Aws(credentials=Credentials())
    service.faults.append(Fault("security-credentials/.", status=200, text=text))
    with pytest.raises(Denied, match="EC2 cannot assume it"):
        RoleKeys(Aws(web, started(service))).get()


@pytest.mark.parametrize("missing", ["SecretAccessKey", "Expiration"])
def test_credentials_that_lack_a_part_show_none_of_the_others(
    started: Started, web: Web, missing: str
) -> None:
    whole = {"Code": "Success", "AccessKeyId": "AKIDX", "SecretAccessKey": "s3cret",
             "Token": "t0ken", "Expiration": "2030-01-01T00:00:00Z"}  # fmt: skip
    del whole[missing]
    service = standins.Aws(credentials=Credentials())
    service.faults.append(Fault("security-credentials/.", status=200, text=json.dumps(whole)))
    with pytest.raises(Denied) as error:
        RoleKeys(Aws(web, started(service))).get()
    assert not any(word in f"{error.value!r}" for word in ("AKIDX", "s3cret", "t0ken"))


def test_a_bearer_token_is_kept_while_it_is_good(started: Started, web: Web) -> None:
    service = standins.Gcp()
    token = ServiceToken(Gcp(web, started(service)))
    assert token.get() == token.get() == "stand-in-bearer-token"
    assert len(service.seen) == 1
    assert isinstance(web.host, Quick)
    web.host.skipped += 3580
    token.get()
    assert len(service.seen) == 2
    assert "stand-in" not in repr(token)


def test_a_machine_without_a_service_account_is_told(started: Started, web: Web) -> None:
    with pytest.raises(Denied, match="service account"):
        ServiceToken(Gcp(web, started(standins.Gcp(token=None)))).get()


def test_all_of_these_are_trouble_with_the_cloud() -> None:
    assert issubclass(Silent, Trouble)
    assert issubclass(Denied, Trouble)


# --- endpoints -------------------------------------------------------------------------------


def test_an_image_may_bring_addresses(web: Web) -> None:
    assert endpoints.read(web.host) == {}
    web.host.write(endpoints.FILE, '{"s3": "https://vpce.example/", "metadata": "http://h:1"}')
    found = endpoints.read(web.host)
    assert endpoints.metadata(found) == "http://h:1"
    assert endpoints.bucket(found, "b", "r", "d") == "https://vpce.example/b"
    assert endpoints.aws(found, "autoscaling", "eu-west-1", "amazonaws.com") == (
        "https://autoscaling.eu-west-1.amazonaws.com"
    )
    assert endpoints.google(found, "storage") == "https://storage.googleapis.com"


def test_every_wrong_address_is_named(web: Web) -> None:
    web.host.write(endpoints.FILE, '{"s3": "ftp://x", "compute": 1, "extra": "http://h"}')
    with pytest.raises(WrongInput) as error:
        endpoints.read(web.host)
    assert [line.split(": ")[1] for line in error.value.lines] == ["s3", "compute", "extra"]


@pytest.mark.parametrize("text", ["[]", "{"])
def test_addresses_that_cannot_be_read_are_refused(web: Web, text: str) -> None:
    web.host.write(endpoints.FILE, text)
    with pytest.raises(WrongInput, match=endpoints.FILE):
        endpoints.read(web.host)
