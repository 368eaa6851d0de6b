# Prepares BERTH_SETUP_DIR by a script, unless that was done before, and becomes the command.
#   sh -c THIS berth-setup SCRIPT COMMAND...
script=$1
shift
mkdir -p "$BERTH_SETUP_DIR" || exit
done=$BERTH_SETUP_DIR/.berth-done
if [ ! -e "$done" ]; then
    exec 9>"$BERTH_SETUP_DIR/.berth-lock"
    # Other ranks, and other jobs with the same setup, wait for the first one.
    if command -v flock >/dev/null 2>&1; then flock 9; fi
    if [ ! -e "$done" ]; then
        # What a setup that failed has left would be in the way of this one.
        find "$BERTH_SETUP_DIR" -mindepth 1 -maxdepth 1 ! -name .berth-lock -exec rm -rf {} +
        shell=sh
        if command -v bash >/dev/null 2>&1; then shell=bash; fi
        "$shell" -e -c "$script" 9>&- || {
            code=$?
            echo "berth: setup failed with exit code $code" >&2
            exit "$code"
        }
        : >"$done"
    fi
    exec 9>&-
fi
PATH=$BERTH_SETUP_DIR/bin:$PATH
export PATH
if [ -x "$BERTH_SETUP_DIR/bin/python" ]; then
    VIRTUAL_ENV=$BERTH_SETUP_DIR
    export VIRTUAL_ENV
fi
exec "$@"
