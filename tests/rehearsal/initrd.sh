#!/bin/busybox sh
# The initrd's only program: load the disk's driver, mount the root, put on what the image of this
# rehearsal brings (a second disk, so that nobody has to write into the first), start systemd.
B=/bin/busybox
$B mount -t proc proc /proc
$B mount -t sysfs sysfs /sys
$B mount -t devtmpfs dev /dev
while read -r module; do
  $B insmod "/modules/$module" || echo "initrd: $module was not loaded"
done < /modules/order
tries=0
while [ ! -b /dev/vda ] && [ "$tries" -lt 100 ]; do
  $B sleep 0.1
  tries=$((tries + 1))
done
$B mount -t ext4 -o rw,noatime /dev/vda /newroot || exec $B poweroff -f
if [ -b /dev/vdb ] && $B mount -t ext4 -o ro /dev/vdb /overlay; then
  $B cp -a /overlay/. /newroot/
  $B rmdir /newroot/lost+found 2>/dev/null
  $B umount /overlay
fi
$B mount --move /dev /newroot/dev
$B mount --move /sys /newroot/sys
$B mount --move /proc /newroot/proc
exec $B switch_root /newroot /sbin/init
