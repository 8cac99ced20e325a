"""The machines' service account: one for each fleet, with the plan's grants and no other."""

from __future__ import annotations

import pulumi
import pulumi_gcp as gcp

from gputier.gcp.place import Place, project_of
from gputier.plan.identity import IdentityPlan
from gputier.plan.identity_gcp import Grant, condition, email, role_id


class Identity(pulumi.ComponentResource):
    """A service account of least rights, or the one that is passed in.

    `bucket` is the stack's store. `account` is an existing account's address or id, which may be an
    output; it comes before the plan's, and is given nothing: the plan's `grants` list what it has
    to be allowed.
    """

    email: pulumi.Output[str]

    def __init__(
        self,
        place: Place,
        plan: IdentityPlan,
        *,
        bucket: pulumi.Input[str],
        account: pulumi.Input[str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("gputier:gcp:Identity", place.name, None, opts)
        self._place, self._project = place, project_of(self)
        given = account or plan.role
        if given is None:
            self._make(plan, bucket)
        else:
            both = pulumi.Output.all(given, self._project.id)
            self.email = both.apply(lambda known: email(*known))
        self.register_outputs({"email": self.email})

    def _make(self, plan: IdentityPlan, bucket: pulumi.Input[str]) -> None:
        place = self._place
        made = gcp.serviceaccount.Account(
            place.logical("account"),
            account_id=place.names.of("service-account"),
            display_name=f"machines of {place.names.of('group')}",
            opts=self._child(),
        )
        self.email = made.email
        member = pulumi.Output.concat("serviceAccount:", made.email)
        for grant in plan.grants:
            if grant.below or grant.objects:
                self._on_bucket(grant, bucket, member)
            else:
                self._on_project(grant, member)

    def _on_bucket(
        self, grant: Grant, bucket: pulumi.Input[str], member: pulumi.Output[str]
    ) -> None:
        found = pulumi.Output.from_input(bucket)
        gcp.storage.BucketIAMMember(
            self._place.logical(grant.key),
            bucket=bucket,
            role=grant.role,
            member=member,
            condition={
                "title": f"{self._place.names.workload}-{grant.key}",
                "expression": found.apply(lambda name: condition(grant, name) or ""),
            },
            opts=self._child(),
        )

    def _on_project(self, grant: Grant, member: pulumi.Output[str]) -> None:
        gcp.projects.IAMMember(
            self._place.logical(grant.key),
            project=self._project.id,
            role=grant.role or self._role(grant),
            member=member,
            opts=self._child(),
        )

    def _role(self, grant: Grant) -> pulumi.Output[str]:
        place = self._place
        return gcp.projects.IAMCustomRole(
            place.logical(grant.key),
            role_id=role_id(place.names.of("service-account")),
            title=f"machines of {place.names.of('group')}",
            description=grant.why,
            permissions=list(grant.permissions),
            opts=self._child(),
        ).name

    def _child(self) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self)
