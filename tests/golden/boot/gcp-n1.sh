#!/bin/bash
# gputier, stage 0: files, one unit, and go. It may run at every boot; docs/boot.md explains it.
set -euo pipefail
umask 022
export LC_ALL=C
trap 'echo "gputier: stage 0 failed in line $LINENO" | tee /dev/console >&2 || true' ERR

verb=start
put() { # put PATH MODE [FILTER]: stdin becomes that file, whole or not at all
  mkdir -p "${1%/*}"
  "${3:-cat}" > "$1.new"
  if cmp -s "$1.new" "$1"; then rm "$1.new"; return; fi
  verb=restart # so too in an image of a used machine
  chmod "$2" "$1.new"
  mv -f "$1.new" "$1"
}

put /etc/gputier/expect.json 0644 <<'EOF'
{"cuda":{"min":"10.0"},
"depth":"quick",
"driver":{"min":"418.87"},
"gate":"enforce",
"gpu":{"count":1,"model":"T4"},
"host":{"memory_gib":3.6,"vcpus":4},
"machine":{"cloud":"gcp","instance_type":"n1-highcpu-4"}}
EOF

put /etc/gputier/boot.json 0644 <<'EOF'
{"breaker":{"after":2,"window_seconds":86400},
"bundle":{"delivery":"object","sha256":"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef","version":"0.1.0"},
"cloud":"gcp",
"data":{"filesystem":"xfs","gib":93.13225746154785,"mount":"/data"},
"driver":{"branch":"580","module":"open","source":"prebaked"},
"gate":{"deadline_seconds":3420,"depth":"quick","kind":"health-endpoint","mode":"enforce","port":8080},
"instance_type":"n1-highcpu-4",
"limits":{"bundle":300},
"metrics":{"agent":"ops-agent","config":{"metrics":{"processors":{"most":{"metrics_pattern":["workload.googleapis.com/gpu.dcgm.utilization","workload.googleapis.com/gpu.dcgm.sm.*","workload.googleapis.com/gpu.dcgm.pipe.*","workload.googleapis.com/gpu.dcgm.codec.*","workload.googleapis.com/gpu.dcgm.memory.*","workload.googleapis.com/gpu.dcgm.pcie.*","workload.googleapis.com/gpu.dcgm.nvlink.*","workload.googleapis.com/gpu.dcgm.clock.*","workload.googleapis.com/gpu.dcgm.energy_consumption"],"type":"exclude_metrics"},"processes":{"metrics_pattern":["agent.googleapis.com/gpu/processes/*","agent.googleapis.com/processes/*"],"type":"exclude_metrics"}},"receivers":{"dcgm":{"collection_interval":"60s","receiver_version":2,"type":"dcgm"},"hostmetrics":{"collection_interval":"60s","type":"hostmetrics"}},"service":{"pipelines":{"dcgm":{"processors":["most"],"receivers":["dcgm"]},"default_pipeline":{"processors":["processes"],"receivers":["hostmetrics"]}}}}}},
"project":"gputier",
"reboots":1,
"schema":"gputier/boot/1",
"stack":"test",
"workload":"gcp-n1"}
EOF

put /usr/local/lib/gputier/fetch.py 0644 <<'EOF'
(the fetcher, as in gcp-one.sh)
EOF

put /etc/systemd/system/gputier-boot.service 0644 <<'EOF'
[Unit]
Description=gputier: prepare this machine and prove it
Wants=network-online.target
After=network-online.target multi-user.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/bin/env python3 /usr/local/lib/gputier/fetch.py
ExecStart=/usr/bin/env python3 /usr/local/bin/gputier-node boot
TimeoutStartSec=infinity
StandardOutput=journal+console
StandardError=journal+console

[Install]
WantedBy=multi-user.target
EOF

if [[ "${verb}" == restart ]]; then # a reload may fail a running unit
  systemctl daemon-reload
  systemctl enable --quiet gputier-boot.service
fi
systemctl "${verb}" --no-block gputier-boot.service
