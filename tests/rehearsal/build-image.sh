#!/bin/bash
# build-image.sh SUITE OUT KEYRING INITRD: OUT/{root/,root.ext4,vmlinuz,initrd.cpio,versions.txt}
# Root is needed (chroot, device nodes). Everything comes from the distribution's own packages.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
suite=$1 out=$2 keyring=$3 init=$4
root=$out/root
kernel=linux-image-cloud-amd64
packages=systemd,systemd-sysv,systemd-resolved,udev,dbus,cloud-init,cloud-guest-utils,python3
packages+=,python3-venv,nvme-cli,mdadm,xfsprogs,e2fsprogs,ethtool,pciutils,kmod,iproute2,netbase
packages+=,ca-certificates,curl,openssh-server,procps,sudo

# The kernel is unpacked, not installed: its dependencies would bring initramfs-tools and a slow
# build of an initrd that nobody boots. Plain `dpkg-deb -x` would replace the link /lib by a folder.
cat > "$out/kernel.sh" <<K
set -e
cd "\$1/var/cache/apt/archives"
name=\$(chroot "\$1" apt-cache depends $kernel | awk '/Depends: linux-image/ {print \$2; exit}')
chroot "\$1" sh -c "cd /var/cache/apt/archives && apt-get -qq -o APT::Sandbox::User=root download \$name"
dpkg-deb --fsys-tarfile "\$name"_*.deb | tar -x -C "\$1" --keep-directory-symlink
chroot "\$1" depmod "\${name#linux-image-}"
rm -f "\$name"_*.deb
K
mmdebstrap --mode=root --variant=minbase --include="$packages" --keyring="$keyring" \
  --aptopt='APT::Install-Recommends "false"' --aptopt='Acquire::Languages "none"' \
  --aptopt='Acquire::Retries "3"' --dpkgopt=force-unsafe-io \
  --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
  --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/info/*' \
  --customize-hook="sh $out/kernel.sh \"\$1\"" "$suite" "$root"
rm "$out/kernel.sh"

# --- settings: the only ways in which the image differs from what the packages make of it
: > "$root/etc/machine-id"
rm -f "$root/var/lib/dbus/machine-id"
rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/*.bin
echo ip-10-0-2-15 > "$root/etc/hostname"
echo 127.0.0.1 localhost > "$root/etc/hosts"
: > "$root/etc/fstab"
chroot "$root" passwd -d root > /dev/null
# No package server can be reached from a rehearsal; apt must find out at once, not by time-outs.
rm -f "$root"/etc/apt/sources.list "$root"/etc/apt/sources.list.d/*
chroot "$root" systemctl -q enable systemd-networkd
# Timers that would only take CPU time from a boot of a minute.
for unit in apt-daily.timer apt-daily-upgrade.timer e2scrub_all.timer e2scrub_reap.service \
  fstrim.timer dpkg-db-backup.timer mdcheck_start.timer mdcheck_continue.timer \
  mdmonitor-oneshot.timer nvmf-autoconnect.service \
  getty@tty1.service ssh.service ssh.socket; do
  chroot "$root" systemctl -q mask "$unit"
done
cat > "$root/etc/cloud/cloud.cfg.d/90_rehearsal.cfg" <<'C'
datasource_list: [ NoCloud, Ec2, GCE, None ]
datasource:
  Ec2: {strict_id: false, max_wait: 60, timeout: 5, metadata_urls: ["http://169.254.169.254:80"]}
  GCE: {sec_between_retries: 1, retries: 5}
system_info: {network: {renderers: [networkd]}}
locale: false
ssh_genkeytypes: [ed25519]
no_ssh_fingerprints: true
ssh: {emit_keys_to_console: false}
apt: {preserve_sources_list: true}
C
release=$(basename "$root"/lib/modules/*)
{
  echo "suite $suite"
  echo "kernel $release"
  chroot "$root" dpkg-query -W cloud-init systemd python3 mdadm nvme-cli xfsprogs
} > "$out/versions.tmp"

# --- kernel and initrd: busybox and just the modules that the root disk needs
cp "$root/boot/vmlinuz-$release" "$out/vmlinuz"
rm -rf "$root"/boot/*
initrd=$out/initrd
mkdir -p "$initrd"/{bin,proc,sys,dev,newroot,overlay,modules}
cp "$(command -v busybox)" "$initrd/bin/busybox"
for module in virtio_pci virtio_blk ext4 crc32c_generic; do
  chroot "$root" modprobe -S "$release" --show-depends "$module" 2> /dev/null |
    awk '$1 == "insmod" {print $2}' || true
done | awk '!seen[$0]++' | while read -r file; do
  name=$(basename "$file")
  case $file in
    *.xz) name=${name%.xz}; xz -dc "$root$file" > "$initrd/modules/$name" ;;
    *.zst) name=${name%.zst}; zstd -qdc "$root$file" > "$initrd/modules/$name" ;;
    *) cp "$root$file" "$initrd/modules/" ;;
  esac
  echo "$name" >> "$initrd/modules/order"
done
touch "$initrd/modules/order"
install -m 0755 "$init" "$initrd/init"
(cd "$initrd" && find . | cpio -o -H newc --quiet) > "$out/initrd.cpio"
rm -rf "$initrd"

mke2fs -q -t ext4 -E lazy_itable_init=1,nodiscard,root_owner=0:0 -L rootfs -m 0 \
  -d "$root" "$out/root.ext4" 6000M
# Last, for its presence says that the image is whole.
mv "$out/versions.tmp" "$out/versions.txt"
