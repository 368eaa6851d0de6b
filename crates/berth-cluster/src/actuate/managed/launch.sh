# Runs a command once, or as several ranks, and sees to it that a request to stop reaches all of it:
# the first process of a container is the only one that gets the signal.
#   sh -c THIS berth COUNT COMMAND...
count=$1
shift
if [ "$1" = bash ] && ! command -v bash >/dev/null 2>&1; then
    shift
    set -- sh "$@"
fi
export SLURM_SUBMIT_DIR="$PWD"
# What was never saved cannot be gone on with.
if [ -n "$BERTH_RESUME_FROM" ] && [ -z "$(ls -A "$BERTH_RESUME_FROM" 2>/dev/null)" ]; then
    unset BERTH_RESUME_FROM
fi

end_all() {
    trap '' TERM
    kill -TERM 0
}
stopped=
stop() {
    stopped=yes
    echo '{}' >"$BERTH_PREEMPT_FILE"
    end_all
}
trap stop TERM

if [ "$count" -le 1 ]; then
    "$@" &
    pid=$!
    code=0
    while :; do
        wait "$pid"
        code=$?
        # A signal ends the waiting and not the command.
        kill -0 "$pid" 2>/dev/null || exit "$code"
    done
fi

# Each rank says here how it ended.
ends=$BERTH_TASK_DIR/ends
rm -f "$ends"
mkfifo "$ends" || exit 1
exec 3<>"$ends"
run_rank() {
    # Stays until its command has ended, which gets the signal too.
    trap : TERM
    LOCAL_RANK=$1
    RANK=$((NODE_RANK * count + LOCAL_RANK))
    SLURM_LOCALID=$LOCAL_RANK
    SLURM_PROCID=$RANK
    export LOCAL_RANK RANK SLURM_LOCALID SLURM_PROCID
    shift
    "$@" 3>&-
    echo $? >&3
}
rank=0
while [ "$rank" -lt "$count" ]; do
    run_rank "$rank" "$@" &
    rank=$((rank + 1))
done
left=$count
failed=0
while [ "$left" -gt 0 ]; do
    read -r code <&3 || continue
    [ "$code" = late ] && exit "$failed"
    left=$((left - 1))
    if [ "$code" -ne 0 ] && [ "$failed" -eq 0 ]; then
        failed=$code
        # Those that were asked to stop may be saving, and are not asked twice.
        [ -n "$stopped" ] && continue
        # Its peers would wait for it for ever.
        end_all
        (
            sleep 30
            echo late >&3
        ) >/dev/null 2>&1 &
    fi
done
exit "$failed"
