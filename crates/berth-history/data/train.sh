# A training that pretends: it prints what trainings print, with colours and a bar, and saves now and
# then. STEPS, PAUSE and FAIL_AT say how long it goes on and whether it ends well.
steps=${STEPS:-3600} pause=${PAUSE:-2} step=0
green=$(printf '\033[32m') yellow=$(printf '\033[33m') red=$(printf '\033[31m')
blue=$(printf '\033[1;34m') dim=$(printf '\033[2m') off=$(printf '\033[0m')
trap 'echo "${yellow}WARN${off}  asked to stop, saving step $step"; exit 143' TERM
echo "${blue}== run ${BERTH_JOB_ID:-local} on $(hostname) ==${off}"
echo "${green}INFO${off}  devices: ${CUDA_VISIBLE_DEVICES:-declared}"
echo "${green}INFO${off}  config: {\"lr\": 3e-4, \"note\": \"<script>alert(1)</script>\"}"
echo "${green}INFO${off}  مرحبا من السجل"
while [ "$step" -lt "$steps" ]; do
  step=$((step + 1))
  loss=$((2400000 / (step + 400) + step * 37 % 90))
  done=$((step * 30 / steps)) bar=
  while [ "${#bar}" -lt "$done" ]; do bar="$bar#"; done
  printf '\r%s%3d%%%s |%-30s| %d/%d' "$dim" "$((step * 100 / steps))" "$off" "$bar" "$step" "$steps"
  if [ $((step % 5)) = 0 ]; then
    printf '\n%sINFO%s  step %5d  loss %d.%03d  %d tok/s\n' \
      "$green" "$off" "$step" "$((loss / 1000))" "$((loss % 1000))" "$((41000 + step * 13 % 900))"
    echo "{\"step\": $step, \"loss\": $loss}" >>metrics.jsonl
  fi
  if [ $((step % 150)) = 0 ]; then
    echo "${yellow}WARN${off}  gradient norm clipped at step $step"
    [ -z "$BERTH_CHECKPOINT_DIR" ] || echo "$step" >"$BERTH_CHECKPOINT_DIR/step"
  fi
  if [ "$step" = "$FAIL_AT" ]; then
    echo
    echo "${red}ERROR${off} Traceback (most recent call last):"
    echo "${red}ERROR${off}   File \"train.py\", line 214, in forward"
    echo "${red}ERROR${off} RuntimeError: CUDA error: device-side assert triggered"
    exit 1
  fi
  sleep "$pause"
done
echo
echo "${green}INFO${off}  finished after $steps steps"
