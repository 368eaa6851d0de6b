# Attempts from inside a job. One that succeeds prints a line with BREACH. The test puts in what the
# attacker is given for free: Berth's home, the number of the victim's job, a bait on the machine.
home=@HOME@ victim=@VICTIM@ bait=@BAIT@ server=@SERVER@ socket=@SOCKET@ account=@ACCOUNT@

# attempt NAME COMMAND...: the command succeeding is the breach.
attempt() {
  local name=$1 out
  shift
  if out=$(timeout 20 "$@" 2>&1); then
    echo "BREACH $name: ${out:0:200}"
  else
    echo "held $name"
  fi
}
# finds NAME TEXT COMMAND...: the text in the output is the breach, whatever the exit code.
finds() {
  local name=$1 text=$2 out
  shift 2
  out=$(timeout 20 "$@" 2>&1 | grep -a -m1 -F -e "$text")
  if [ -n "$out" ]; then echo "BREACH $name: ${out:0:200}"; else echo "held $name"; fi
}

# Berth's own files.
attempt admin-token cat "$home/admin.token"
attempt admin-token-by-task-folder cat "$BERTH_TASK_DIR/../../../../admin.token"
attempt key-of-secrets cat "$home/secrets.key"
attempt database-read cat "$home/berth.db"
attempt database-write bash -c "echo x >> '$home/berth.db' && test -s '$home/berth.db'"
attempt backups ls "$home/backups"
attempt other-task cat "$home/node/tasks/$victim.0.0/task.json"
attempt other-log cat "$home/node/tasks/$victim.0.0/logs/0.0"
attempt other-job-folder ls "$home/jobs/$victim"
attempt other-team-volume ls "$home/team-volumes/blue/shared"
attempt driver-bell bash -c "echo $victim.0.0 > '$home/node/bell'"
attempt own-end bash -c "echo '{}' > '$BERTH_TASK_DIR/../exit.json'"
attempt own-order bash -c "echo '{}' > '$BERTH_TASK_DIR/../stop.json'"
attempt own-notice bash -c "echo '{}' > '$BERTH_PREEMPT_FILE'"
finds  anything-in-home admin.token find "$home" -maxdepth 3

# Other people's processes and memory.
finds  secrets-by-environ @SECRET@ bash -c 'cat /proc/*/environ'
finds  secrets-by-memory-of-init root head -c 4096 /proc/1/mem
finds  server-by-cmdline found bash -c 'cat /proc/*/cmdline | tr "\0" " " | grep -q "[-]-listen" && echo found'
attempt root-of-init ls /proc/1/root/
attempt files-of-init ls -l /proc/1/fd/
attempt kill-server kill -0 "$server"
# All processes of the job would die with it, and the last line would be missing.
kill -KILL 1
kill -TERM 1
finds  too-many-processes many bash -c '[ "$(ls /proc | grep -cE "^[0-9]+$")" -gt 12 ] && echo many'
finds  shared-memory 0x0b374 ipcs -m
attempt file-in-shm cat /dev/shm/$bait
attempt file-in-tmp cat /tmp/$bait
attempt file-in-var-tmp cat /var/tmp/$bait
finds  descriptors-of-the-server berth bash -c 'ls -l /proc/self/fd | grep -v "pipe:" | grep -v /proc/'

# The machine.
attempt shadow grep -q . /etc/shadow
attempt host-keys bash -c 'cat /etc/ssh/ssh_host_*_key | grep -q PRIVATE'
attempt home-of-root ls /root/
attempt homes bash -c 'ls -A /home | grep -q .'
attempt write-etc touch /etc/berth-was-here
attempt write-usr touch /usr/local/berth-was-here
attempt write-root touch /berth-was-here
attempt write-sys bash -c 'echo 1 > /sys/kernel/mm/transparent_hugepage/enabled'
attempt core-pattern bash -c 'echo "|/bin/sh" > /proc/sys/kernel/core_pattern'
attempt sysrq bash -c 'echo h > /proc/sysrq-trigger'
attempt disk bash -c 'cat /dev/vda /dev/sda /dev/nvme0n1 | head -c 1 | grep -q .'
attempt kernel-memory bash -c 'head -c1 /dev/mem | grep -q . || head -c1 /dev/kmem | grep -q .'
attempt kernel-log bash -c 'echo x > /dev/kmsg'
attempt make-block-device mknod /tmp/sda b 8 0
attempt make-gpu-device mknod /tmp/nvidia0 c 195 0
attempt container-engine bash -c 'test -S /var/run/docker.sock || test -S /run/containerd/containerd.sock'
attempt system-bus bash -c 'test -S /run/dbus/system_bus_socket'

# More rights.
attempt become-root su -c true
attempt sudo sudo -n true
attempt set-user-id bash -c 'cp /usr/bin/id /tmp/rid && chmod u+s /tmp/rid && [ "$(/tmp/rid -u)" = 0 ] && [ "$(id -u)" != 0 ]'
# sets NAME BITS COMMAND...: the command having set one of these bits on the file `f` is the breach.
sets() {
  local name=$1 bits=$2
  shift 2
  rm -f f
  cp /usr/bin/true f
  timeout 20 "$@" >/dev/null 2>&1
  if [ -n "$(find f -perm "/$bits")" ]; then echo "BREACH $name: $(ls -l f)"; else echo "held $name"; fi
}
sets chmod-set-user 6000 chmod u+s f
sets chmod-both 6000 chmod 6755 f
sets install-set-user 6000 install -m 4755 /usr/bin/true f
sets chmod-call 6000 perl -e 'chmod 04755, "f"'
sets fchmod-call 6000 perl -e 'open F, "f"; chmod 04755, *F'
sets open-call 6000 perl -MFcntl -e 'unlink "f"; umask 0; sysopen F, "f", O_CREAT | O_WRONLY, 04755'
# The numbers that x86-64 has for the calls: creat, mknod, fchmodat2, openat2.
if [ "$(uname -m)" = x86_64 ]; then
  sets creat-call 6000 perl -e 'unlink "f"; umask 0; syscall 85, my $f = "f", 04755'
  sets mknod-call 6000 perl -e 'unlink "f"; umask 0; syscall 133, my $f = "f", 0104755, 0'
  sets fchmodat2-call 6000 perl -e 'syscall 452, -100, my $f = "f", 04755, 0'
  sets openat2-call 6000 perl -e \
    'unlink "f"; umask 0; syscall 437, -100, my $f = "f", my $h = pack("Q3", 0101, 04755, 0), 24'
  sets open-temporary-call 6000 perl -e \
    'unlink "f"; umask 0; my $d = syscall 257, -100, my $h = ".", 020200001, 04755;
     syscall 265, -100, my $o = "/proc/self/fd/$d", -100, my $f = "f", 02000'
fi
# Whoever has an account of their own gives away nobody else's group.
if [ "$account" = shared ]; then
  sets chmod-set-group 2000 chmod g+s f
  sets open-set-group 2000 perl -MFcntl -e \
    'unlink "f"; umask 0; sysopen F, "f", O_CREAT | O_WRONLY, 02755'
fi

# A socket that has a name and no file.
connect='socket(S, AF_UNIX, SOCK_STREAM, 0) && connect(S, sockaddr_un("\0$ARGV[0]")) or die $!'
[ "$socket" = none ] || attempt abstract-socket perl -MSocket -e "$connect" "$socket"
attempt other-account setpriv --reuid 12345 true
attempt user-namespace unshare -U true
attempt mount-namespace unshare -m true
attempt join-init nsenter -t 1 -m -p true
attempt mount mount -t tmpfs x /tmp
attempt unmount umount /proc
attempt change-root chroot / true
attempt hostname bash -c 'hostname berth-was-here'
attempt clock date -s 2030-01-01
attempt kernel-module insmod /lib/modules/x.ko
attempt trace-init strace -p 1 -o /dev/null -c
attempt raise-priority nice -n -5 bash -c '[ "$(nice)" -lt 0 ]'
attempt raise-limit bash -c 'ulimit -c unlimited'
finds  capabilities some bash -c 'grep -E "^Cap(Prm|Eff|Bnd|Amb)" /proc/self/status | grep -qv 0000000000000000 && echo some'

# Its own folder goes, and what Berth knows of it stays.
rm -rf "$BERTH_TASK_DIR" "$BERTH_TASK_DIR/.." 2>/dev/null
echo "all attempts made"
