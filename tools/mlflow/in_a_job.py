"""A training script that knows nothing of Berth, in a job of it. At its first attempt it asks to be
run again, as a job does that was preempted and has saved: with the exit code 99."""

import os
import sys

import mlflow

first = not os.path.exists("saved")
mlflow.set_experiment("digits")
with mlflow.start_run():
    mlflow.log_params({"lr": 0.1, "start": "first" if first else "second"})
    mlflow.log_metric("loss", 0.5 if first else 0.25, step=1 if first else 2)
    if not first:
        with mlflow.start_run(run_name="inner", nested=True):
            mlflow.log_metric("loss", 0.75)
    if first:
        open("saved", "w").close()
        sys.exit(99)

with mlflow.start_run(run_name="second"):
    mlflow.log_text("a file", "notes.txt")
