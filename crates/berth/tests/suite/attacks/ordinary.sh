# Each command has to succeed.
does() {
  local out
  out=$("$@" 2>&1) || echo "wrong $*: ${out:0:300}"
}
for place in "$HOME" "$BERTH_CHECKPOINT_DIR" /data /tmp; do
  cd "$place" || echo "wrong cd $place"
  does mkdir -p tree/a/b
  does cp /usr/bin/su tree/a/copy          # without its bit
  does cp /usr/bin/env tree/a/env
  does cp -p tree/a/env tree/a/env2
  does cp -r tree tree2
  does cp -a tree tree3
  does chmod 644 tree/a/env
  does chmod -R u+rwX,g+rX tree
  does install -D -m 755 /usr/bin/env tree/bin/env
  does tar -cf tree.tar tree
  does mkdir out
  does tar -xf tree.tar -C out
  does tar -xpf tree.tar -C out
  does perl -MFcntl -e 'umask 022; sysopen F, "made", O_CREAT | O_WRONLY, 0666 or die $!'
  does perl -e 'chmod 0600, "made" or die $!'
  does git init -q repo
  does git -C repo -c user.name=a -c user.email=a@b commit -q --allow-empty -m first
  does git clone -q repo clone
  does mkfifo pipe
  does rm -rf tree tree2 tree3 tree.tar out made repo clone pipe
done
echo "all is done"
