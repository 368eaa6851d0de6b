"""Fills a place with a little of everything that MLflow tracks, or tells what is in one.

A place is a folder, the address of a server, or a database such as sqlite:///mlflow.db.

    file_store.py make PLACE      writes experiments, runs and models with the client
    file_store.py read PLACE      prints what the client reads there, as JSON
"""

import json
import math
import os
import sys
import tempfile
from pathlib import Path

os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"

import mlflow
from mlflow import MlflowClient
from mlflow.entities import (
    Dataset,
    DatasetInput,
    InputTag,
    LoggedModelInput,
    LoggedModelOutput,
    Metric,
    Param,
    RunTag,
    ViewType,
)


def client_of(place):
    """A client of a folder or of a server."""
    uri = place if "://" in place else Path(place).absolute().as_uri()
    mlflow.set_tracking_uri(uri)
    mlflow.set_registry_uri(uri)
    return MlflowClient(uri, uri)


def make(place, scratch):
    client = client_of(place)
    digits = client.create_experiment("digits", tags={"task": "vision"})
    first = client.create_run(digits, start_time=1_700_000_000_000, run_name="first")
    run = first.info.run_id
    points = [Metric("loss", 1 / (step + 1), 1_700_000_000_000 + step, step) for step in range(2500)]
    for start in range(0, len(points), 1000):
        client.log_batch(run, metrics=points[start : start + 1000])
    odd = [("odd", math.nan), ("large", math.inf), ("small", -math.inf), ("val/acc", 0.1 + 0.2)]
    client.log_batch(run, metrics=[Metric(key, value, 5, 0) for key, value in odd])
    client.log_batch(run, params=[Param("lr", "0.1"), Param("opt/name", "ad\nam"), Param("empty", "")])
    client.set_tag(run, "note", "größer: 'quoted'")
    data = Dataset("mnist", "abc123", "local", '{"uri": "x"}', schema='{"a": 1}')
    client.log_inputs(run, [DatasetInput(data, [InputTag("mlflow.data.context", "training")])])
    weights = scratch / "weights.bin"
    weights.write_bytes(bytes(range(256)) * 1000)
    client.log_artifact(run, str(weights), "model/data")
    client.log_text(run, "name: x\n", "model/ML model.yaml")
    packed = scratch / "packed"
    packed.mkdir()
    (packed / "weights.bin").write_bytes(bytes(range(256)))
    logged = client.create_logged_model(
        digits, name="net", source_run_id=run, params={"depth": "3"}
    )
    client.log_outputs(run, [LoggedModelOutput(logged.model_id, 7)])
    client.log_metric(run, "acc", 0.5, timestamp=9, step=1, model_id=logged.model_id)
    client.log_model_artifacts(logged.model_id, str(packed))
    client.set_logged_model_tags(logged.model_id, {"kind": "net"})
    client.finalize_logged_model(logged.model_id, "READY")
    client.set_terminated(run, "FINISHED", end_time=1_700_000_100_000)
    child = client.create_run(digits, start_time=1_600_000_000_000, tags={"mlflow.parentRunId": run})
    client.log_inputs(child.info.run_id, models=[LoggedModelInput(logged.model_id)])
    client.set_terminated(child.info.run_id, "FAILED", end_time=1_600_000_000_500)
    gone = client.create_run(digits, start_time=1_650_000_000_000, run_name="gone")
    client.log_param(gone.info.run_id, "lr", "9")
    client.set_terminated(gone.info.run_id, "KILLED", end_time=1_650_000_000_001)
    client.delete_run(gone.info.run_id)
    client.create_run("0", start_time=1_700_000_000_001, run_name="still running")
    old = client.create_experiment("old")
    client.create_run(old, start_time=1_700_000_000_002, run_name="in the trash")
    client.delete_experiment(old)
    client.create_registered_model("chat", tags={"owner": "kim"}, description="talks")
    client.create_model_version("chat", f"models:/{logged.model_id}", run, model_id=logged.model_id)
    client.create_model_version("chat", f"runs:/{run}/model", run)
    client.create_model_version("chat", f"runs:/{run}/model", run, tags={"t": "3"}, description="third")
    client.delete_model_version("chat", "2")
    client.set_registered_model_alias("chat", "champion", "3")
    client.transition_model_version_stage("chat", "1", "Production")


def number(value):
    """Servers keep the largest number for what has no end."""
    if math.isnan(value):
        return "NaN"
    return max(min(value, sys.float_info.max), -sys.float_info.max)


def own(tags):
    """Tags that were there before an import, less those that the registry of MLflow's server writes."""
    ours = ("berth.import.", "mlflow.modelVersions")
    return {key: value for key, value in sorted(tags.items()) if not key.startswith(ours)}


def files(list_artifacts, path=None):
    found = {}
    for one in list_artifacts(path):
        found.update(files(list_artifacts, one.path) if one.is_dir else {one.path: one.file_size})
    return found


def told(place):
    client = client_of(place)
    experiments = client.search_experiments(view_type=ViewType.ALL)
    experiments = sorted(experiments, key=lambda one: one.name)
    runs = {}
    for experiment in experiments:
        for run in client.search_runs([experiment.experiment_id], run_view_type=ViewType.ALL):
            runs[run.info.run_id] = run
    names = {id: run.info.run_name for id, run in runs.items()}
    out = {"experiments": {}, "models": {}}
    for experiment in experiments:
        inside = []
        logged = client.search_logged_models([experiment.experiment_id])
        logged_names = {one.model_id: one.name for one in logged}
        for id, run in runs.items():
            if run.info.experiment_id != experiment.experiment_id:
                continue
            history = {}
            for key in sorted(run.data.metrics):
                points = client.get_metric_history(id, key)
                history[key] = sorted({(p.step, p.timestamp, number(p.value)) for p in points}, key=str)
            tags = own(run.data.tags)
            # The only tag that names another run.
            if "mlflow.parentRunId" in tags:
                tags["mlflow.parentRunId"] = names[tags["mlflow.parentRunId"]]
            info = run.info
            # A search in a database of MLflow leaves out the models that a run reads.
            whole = client.get_run(id)
            inputs, outputs = whole.inputs, whole.outputs
            inside.append({
                "name": info.run_name,
                "status": info.status,
                "stage": info.lifecycle_stage,
                "start": info.start_time,
                "end": info.end_time,
                "params": dict(sorted(run.data.params.items())),
                "tags": tags,
                "points": history,
                "data": [
                    [one.dataset.to_dictionary(), {tag.key: tag.value for tag in one.tags}]
                    for one in inputs.dataset_inputs
                ],
                "reads": [logged_names.get(one.model_id) for one in inputs.model_inputs],
                "makes": [[logged_names.get(one.model_id), one.step] for one in outputs.model_outputs]
                if outputs
                else [],
                "files": files(lambda path, id=id: client.list_artifacts(id, path)),
            })
        out["experiments"][experiment.name] = {
            "stage": experiment.lifecycle_stage,
            "tags": own(experiment.tags),
            "runs": sorted(inside, key=lambda one: one["name"]),
            "logged": [
                {
                    "name": one.name,
                    "status": str(one.status),
                    "params": one.params,
                    "tags": own(one.tags),
                    "run": names.get(one.source_run_id),
                    "metrics": [[m.key, m.value, m.step, m.timestamp] for m in one.metrics or []],
                }
                for one in logged
            ],
        }
    for model in client.search_registered_models():
        versions = client.search_model_versions(f"name = '{model.name}'")
        out["models"][model.name] = {
            "description": model.description,
            "tags": own(model.tags),
            # Numbers in a database, texts from a server.
            "aliases": {alias: str(version) for alias, version in model.aliases.items()},
            "versions": {
                str(one.version): [
                    one.current_stage,
                    one.description or "",
                    own(one.tags),
                    names.get(one.run_id),
                ]
                for one in versions
            },
        }
    return out


if __name__ == "__main__":
    what, place = sys.argv[1:]
    if what == "make":
        with tempfile.TemporaryDirectory() as scratch:
            make(place, Path(scratch))
    else:
        print(json.dumps(told(place), indent=1, sort_keys=True))
