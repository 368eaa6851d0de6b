"""What a training script does with MLflow, from its first experiment to a registered model.

The client decides whether the server answers as it should: every step goes through it. The only
steps left out are those that move the bytes of artifacts.
"""

import math
import sys
import time

import mlflow
from mlflow import MlflowClient
from mlflow.entities import (
    Dataset,
    DatasetInput,
    InputTag,
    LoggedModelOutput,
    LoggedModelParameter,
    LoggedModelTag,
    Metric,
    Param,
    RunTag,
    ViewType,
)
from mlflow.exceptions import MlflowException

uri = sys.argv[1]
mlflow.set_tracking_uri(uri)
client = MlflowClient(uri)


def refused(code, says, call, *args, **kwargs):
    """The call is refused with that code, for that reason."""
    try:
        call(*args, **kwargs)
    except MlflowException as error:
        assert error.error_code == code, (error.error_code, str(error))
        assert says in str(error), str(error)
    else:
        raise AssertionError(f"{call} was not refused")


# Experiments.
default = client.get_experiment("0")
assert default.name == "Default", default
experiment_id = client.create_experiment("exp", tags={"team": "vision"})
refused("RESOURCE_ALREADY_EXISTS", "already exists", client.create_experiment, "exp")
experiment = client.get_experiment_by_name("exp")
assert experiment.experiment_id == experiment_id
assert experiment.tags["team"] == "vision", experiment.tags
assert experiment.artifact_location == f"mlflow-artifacts:/default/{experiment_id}", experiment
client.set_experiment_tag(experiment_id, "stage", "one")
assert client.get_experiment(experiment_id).tags["stage"] == "one"
client.delete_experiment_tag(experiment_id, "stage")
assert "stage" not in client.get_experiment(experiment_id).tags
assert client.get_experiment_by_name("nothing") is None
refused("RESOURCE_DOES_NOT_EXIST", "No Experiment with id=99999", client.get_experiment, "99999")
found = client.search_experiments(filter_string="name LIKE 'e%' AND tags.team = 'vision'")
assert [one.name for one in found] == ["exp"], found
other = client.create_experiment("other")
client.rename_experiment(other, "renamed")
assert client.get_experiment(other).name == "renamed"
client.delete_experiment(other)
assert client.get_experiment(other).lifecycle_stage == "deleted"
deleted = client.search_experiments(view_type=ViewType.DELETED_ONLY)
assert [one.name for one in deleted] == ["renamed"], deleted
client.restore_experiment(other)
assert client.get_experiment(other).lifecycle_stage == "active"

# Runs, with everything that is logged to them.
mlflow.set_experiment("exp")
with mlflow.start_run(run_name="first") as run:
    first = run.info.run_id
    mlflow.log_params({"lr": 0.1, "depth": 3})
    mlflow.log_metric("loss", 0.5, step=1)
    for step in range(2, 12):
        mlflow.log_metric("loss", 1.0 / step, step=step)
    mlflow.log_metrics({"acc": 0.9, "odd": math.nan, "large": math.inf}, step=1)
    mlflow.log_metric("async", 3.0, step=1, synchronous=False)
    mlflow.flush_async_logging()
    mlflow.set_tags({"kind": "base", "note": "it is\n'quoted' \"well\" ü"})
    source = {"name": "c4", "digest": "0123456789abcdef0123456789abcdef.dir"}
    data = Dataset(source_type="dvc", source='{"uri":"c4"}', schema="{}", profile="{}", **source)
    inputs = [DatasetInput(data, [InputTag("mlflow.data.context", "train")])]
    client.log_inputs(first, inputs)
    with mlflow.start_run(run_name="child", nested=True) as child:
        mlflow.log_metric("acc", 0.7)
        nested = child.info.run_id

run = client.get_run(first)
assert run.info.status == "FINISHED" and run.info.run_name == "first", run.info
assert run.info.end_time >= run.info.start_time > 0, run.info
assert run.info.artifact_uri == f"{experiment.artifact_location}/{first}/artifacts", run.info
assert run.data.params == {"lr": "0.1", "depth": "3"}, run.data.params
assert run.data.metrics["loss"] == 1.0 / 11, run.data.metrics
assert math.isnan(run.data.metrics["odd"]) and run.data.metrics["async"] == 3.0
assert run.data.metrics["large"] == sys.float_info.max
assert run.data.tags["note"] == "it is\n'quoted' \"well\" ü", run.data.tags
assert run.data.tags["mlflow.user"], run.data.tags
[dataset] = run.inputs.dataset_inputs
assert dataset.dataset.digest == source["digest"] and dataset.tags[0].value == "train"
assert client.get_run(nested).data.tags["mlflow.parentRunId"] == first
history = client.get_metric_history(first, "loss")
assert [point.step for point in history] == list(range(1, 12)), history
assert history[0].value == 0.5 and history[-1].value == 1.0 / 11

# A run that is resumed is the same run.
with mlflow.start_run(run_id=first) as resumed:
    assert resumed.info.status == "RUNNING", resumed.info
    mlflow.log_metric("loss", 0.05, step=12)
    mlflow.log_param("lr", 0.1)
    refused("INVALID_PARAMETER_VALUE", "Changing param values", mlflow.log_param, "lr", 0.2)
assert client.get_run(first).data.metrics["loss"] == 0.05

# One batch with all kinds, sent twice: points that are there already are the same points.
at = int(time.time() * 1000)
metrics = [Metric("batch", step / 10, at, step) for step in range(1000)]
for _ in range(2):
    client.log_batch(first, metrics=metrics)
assert len(client.get_metric_history(first, "batch")) == 1000
client.log_batch(nested, params=[Param("a", "1")], tags=[RunTag("b", "2")])
client.set_terminated(nested, "KILLED")
client.update_run(nested, name="renamed-child")
assert client.get_run(nested).info.run_name == "renamed-child"
client.delete_tag(nested, "b")
assert "b" not in client.get_run(nested).data.tags
refused("RESOURCE_DOES_NOT_EXIST", "No tag with name", client.delete_tag, nested, "b")
refused("RESOURCE_DOES_NOT_EXIST", "not found", client.get_run, "0" * 32)
too_many = [Param(f"p{n}", "1") for n in range(101)]
# The client splits batches that are too large by itself.
client.log_batch(nested, params=too_many)
assert len(client.get_run(nested).data.params) == 102
client.log_param(nested, "long", "x" * 6001)
assert len(client.get_run(nested).data.params["long"]) == 6000

# Searches with the whole grammar.
for index in range(5):
    one = client.create_run(experiment_id, run_name=f"run-{index}", tags={"round": str(index % 2)})
    if index < 4:
        client.log_metric(one.info.run_id, "score", math.nan if index == 3 else index)
    client.log_param(one.info.run_id, "model", "resnet" if index % 2 else "ViT")
    client.set_terminated(one.info.run_id)


def search(filter_string="", order_by=None, **more):
    runs = client.search_runs([experiment_id], filter_string, order_by=order_by, **more)
    return [run.info.run_name for run in runs]


assert search("metrics.score > 0") == ["run-2", "run-1"], search("metrics.score > 0")
assert search("metrics.score != 1", ["run_name"]) == ["run-0", "run-2", "run-3"]
by_score = ["run-2", "run-1", "run-0", "run-3", "run-4"]
runs = "attributes.run_name LIKE 'run-%'"
assert search(runs, ["metrics.score DESC"]) == by_score, search(runs, ["metrics.score DESC"])
ascending = ["run-0", "run-1", "run-2", "run-3", "run-4"]
assert search(runs, ["metrics.score ASC"]) == ascending, search(runs, ["metrics.score ASC"])
assert search(f"{runs} AND params.model = 'ViT'", ["run_name"]) == ["run-0", "run-2", "run-4"]
assert search("params.model ILIKE 'vit'", ["run_name"]) == ["run-0", "run-2", "run-4"]
assert search("params.model LIKE 'vit'") == []
assert search(f"{runs} AND tags.round = '1'", ["run_name DESC"]) == ["run-3", "run-1"]
assert search("tags.`mlflow.parentRunId` IS NOT NULL") == ["renamed-child"]
assert search(f"run_id IN ('{first}', '{nested}')", ["run_name"]) == ["first", "renamed-child"]
assert search("status = 'KILLED'") == ["renamed-child"]
assert search("datasets.name = 'c4' AND dataset.context = 'train'") == ["first"]
assert search(f"start_time >= {run.info.start_time} AND {runs}", max_results=2).__len__() == 2
assert search("metrics.absent > 0") == []
page = client.search_runs([experiment_id], runs, order_by=["run_name"], max_results=3)
rest = client.search_runs(
    [experiment_id], runs, order_by=["run_name"], max_results=3, page_token=page.token
)
assert [one.info.run_name for one in [*page, *rest]] == ascending and rest.token is None
refused("INVALID_PARAMETER_VALUE", "at character", search, "metrics.acc >> 1")
refused("INVALID_PARAMETER_VALUE", "expected AND", search, "metrics.a > 1 OR metrics.b > 2")

# Deleted runs.
client.delete_run(nested)
assert client.get_run(nested).info.lifecycle_stage == "deleted"
refused("INVALID_PARAMETER_VALUE", "must be in the 'active' state", client.log_metric, nested, "a", 1)
assert search("status = 'KILLED'") == []
assert search("status = 'KILLED'", run_view_type=ViewType.DELETED_ONLY) == ["renamed-child"]
client.restore_run(nested)
assert client.get_run(nested).info.lifecycle_stage == "active"

# Logged models.
model = client.create_logged_model(
    experiment_id, name="model", source_run_id=first, model_type="agent", params={"a": "1"}
)
assert str(model.status) == "PENDING" and model.params == {"a": "1"}, model
model = client.finalize_logged_model(model.model_id, "READY")
assert str(model.status) == "READY", model
client.set_logged_model_tags(model.model_id, {"quality": "good"})
client.log_metric(first, "eval", 0.8, model_id=model.model_id)
client.log_outputs(first, [LoggedModelOutput(model.model_id, 1)])
model = client.get_logged_model(model.model_id)
assert model.tags["quality"] == "good" and model.metrics[0].value == 0.8, model
found = client.search_logged_models([experiment_id], filter_string="metrics.eval > 0.5")
assert [one.model_id for one in found] == [model.model_id], found
assert client.search_logged_models([experiment_id], filter_string="tags.quality = 'bad'") == []
client.delete_logged_model_tag(model.model_id, "quality")
assert client.get_run(first).outputs.model_outputs[0].model_id == model.model_id

# The registry.
client.create_registered_model("net", tags={"task": "vision"}, description="A net")
refused("RESOURCE_ALREADY_EXISTS", "already exists", client.create_registered_model, "net")
for _ in range(2):
    version = client.create_model_version(
        "net", f"models:/{model.model_id}", model_id=model.model_id
    )
assert version.version in ("2", 2), version
# The run that made the logged model.
assert version.run_id == first, version
client.set_registered_model_alias("net", "champion", "1")
refused("INVALID_PARAMETER_VALUE", "reserved", client.set_registered_model_alias, "net", "v2", "1")
assert int(client.get_model_version_by_alias("net", "champion").version) == 1
client.set_model_version_tag("net", "2", "checked", "yes")
assert client.get_model_version("net", "2").tags["checked"] == "yes"
client.transition_model_version_stage("net", "1", "Production")
client.transition_model_version_stage("net", "2", "Production", archive_existing_versions=True)
assert client.get_model_version("net", "1").current_stage == "Archived"
[latest] = client.get_latest_versions("net", ["Production"])
assert int(latest.version) == 2, latest
client.update_model_version("net", "2", description="Better")
client.update_registered_model("net", description="The net")
registered = client.get_registered_model("net")
assert registered.description == "The net" and registered.aliases == {"champion": "1"}, registered
place = client.get_model_version_download_uri("net", "1")
assert place == f"{experiment.artifact_location}/models/{model.model_id}/artifacts", place
found = client.search_registered_models("name ILIKE 'N%' AND tags.task = 'vision'")
assert [one.name for one in found] == ["net"], found
found = client.search_model_versions("name = 'net'", order_by=["version_number ASC"])
assert [int(one.version) for one in found] == [1, 2], found
assert len(client.search_model_versions(f"run_id = '{first}' AND version_number > 1")) == 1
client.delete_registered_model_alias("net", "champion")
refused("INVALID_PARAMETER_VALUE", "not found", client.get_model_version_by_alias, "net", "champion")
client.set_registered_model_tag("net", "a", "b")
client.delete_registered_model_tag("net", "a")
client.delete_model_version_tag("net", "2", "checked")
client.rename_registered_model("net", "network")
assert len(client.search_model_versions("name = 'network'")) == 2
client.delete_model_version("network", "1")
client.delete_registered_model("network")
refused("RESOURCE_DOES_NOT_EXIST", "not found", client.get_registered_model, "network")

# Prompts are registered models with a tag, which other searches do not show.
prompt = mlflow.genai.register_prompt("greeting", "Hello {{name}}") if hasattr(mlflow, "genai") else None
if prompt is not None:
    assert mlflow.genai.load_prompt("greeting", version=1).template == "Hello {{name}}"
    assert [one.name for one in client.search_registered_models()] == []

# Webhooks of the registry. Their secret is in no answer.
hook = client.create_webhook(
    name="deployer",
    url="https://deploy.example.com/hook",
    events=["model_version.created", "model_version_alias.created"],
    secret="a secret of the receiver",
)
assert [str(event) for event in hook.events] == [
    "model_version.created",
    "model_version_alias.created",
], hook
assert "secret of the receiver" not in str(vars(client.get_webhook(hook.webhook_id)))
changed = client.update_webhook(hook.webhook_id, status="DISABLED")
assert str(changed.status) == "DISABLED", changed
assert [one.webhook_id for one in client.list_webhooks()] == [hook.webhook_id]
client.delete_webhook(hook.webhook_id)
assert list(client.list_webhooks()) == []
refused(
    "INVALID_PARAMETER_VALUE",
    "--notify-allow",
    client.create_webhook,
    name="inner",
    url="http://169.254.169.254/",
    events=["model_version.created"],
)

print("everything is as it should be")
