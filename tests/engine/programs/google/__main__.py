"""A small fleet on Google Cloud with the provider's own types: what the stand-in is tested with."""

import pulumi
import pulumi_gcp as gcp

config = pulumi.Config()
network = gcp.compute.Network("net", auto_create_subnetworks=False, mtu=8896)
subnet = gcp.compute.Subnetwork(
    "machines",
    network=network.id,
    ip_cidr_range="10.0.0.0/20",
    private_ip_google_access=True,
)
gcp.compute.Firewall(
    "inside",
    network=network.self_link,
    allows=[{"protocol": "tcp", "ports": ["22"]}],
    source_ranges=["35.235.240.0/20"],
)
router = gcp.compute.Router("out", network=network.id)
gcp.compute.RouterNat(
    "out",
    router=router.name,
    nat_ip_allocate_option="AUTO_ONLY",
    source_subnetwork_ip_ranges_to_nat="LIST_OF_SUBNETWORKS",
    subnetworks=[{"name": subnet.id, "source_ip_ranges_to_nats": ["ALL_IP_RANGES"]}],
)
check = gcp.compute.HealthCheck(
    "gate", http_health_check={"port": 8080, "request_path": "/healthz"}
)
scheduling: gcp.compute.RegionInstanceTemplateSchedulingArgsDict = {
    "on_host_maintenance": "TERMINATE",
    "automatic_restart": False,
    "provisioning_model": "SPOT",
    "preemptible": True,
    "instance_termination_action": "STOP",
}
template = gcp.compute.RegionInstanceTemplate(
    "machine",
    name=config.get("name"),
    region="us-central1",
    machine_type="g2-standard-4",
    disks=[
        {
            "source_image": "ubuntu-os-cloud/ubuntu-2404-lts-amd64",
            "boot": True,
            "disk_size_gb": config.get_int("disk") or 50,
            "disk_type": "pd-balanced",
        }
    ],
    network_interfaces=[{"subnetwork": subnet.id, "nic_type": "GVNIC"}],
    metadata={"enable-guest-attributes": "TRUE"},
    metadata_startup_script="#!/bin/sh",
    scheduling=scheduling,
    tags=["gpu"],
    labels={"use": "test"},
)
group = gcp.compute.RegionInstanceGroupManager(
    "machines",
    base_instance_name="gpu",
    versions=[{"instance_template": template.self_link}],
    distribution_policy_zones=["us-central1-a", "us-central1-b"],
    auto_healing_policies={"health_check": check.id, "initial_delay_sec": 1800},
    update_policy={
        "type": "PROACTIVE",
        "minimal_action": "REPLACE",
        "max_surge_fixed": 0,
        "max_unavailable_fixed": 2,
        "replacement_method": "RECREATE",
    },
)
gcp.compute.RegionAutoscaler(
    "load",
    target=group.id,
    autoscaling_policy={
        "min_replicas": 1,
        "max_replicas": config.get_int("most") or 4,
        "cooldown_period": 600,
        "metrics": [
            {
                "name": "agent.googleapis.com/gpu/utilization",
                "type": "GAUGE",
                "target": 60,
                "filter": 'metric.labels.gpu_number = "0"',
            }
        ],
    },
)
box = gcp.compute.Instance(
    "box",
    zone="us-central1-a",
    machine_type="n1-standard-4",
    boot_disk={"initialize_params": {"image": "debian-cloud/debian-12", "size": 30}},
    network_interfaces=[{"subnetwork": subnet.id, "access_configs": [{}]}],
    guest_accelerators=[{"type": "nvidia-tesla-t4", "count": 1}],
    scheduling={"on_host_maintenance": "TERMINATE"},
)
pulumi.export("group", group.instance_group)
pulumi.export("address", box.network_interfaces[0].access_configs[0].nat_ip)
pulumi.export("zones", gcp.compute.get_zones().names)
pulumi.export("image", gcp.compute.get_image(family="debian-12", project="debian-cloud").self_link)
pulumi.export("project", gcp.organizations.get_project().project_id)
