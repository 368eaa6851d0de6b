"""Trainings that the whole client of MLflow logs by itself: scikit-learn, PyTorch and Lightning, with
asynchronous logging, system metrics, nested and resumed runs, and models that are registered, found by
an alias and loaded back.

`training.py URI`; the token is in the environment, as for any script.
"""

import math
import os
import sys
import time
import warnings

warnings.filterwarnings("ignore")

# To see what a model imports, the client loads it in another process.
os.environ["MLFLOW_REQUIREMENTS_INFERENCE_TIMEOUT"] = "30"

import lightning
import mlflow
import numpy as np
import torch
from mlflow import MlflowClient
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

uri = sys.argv[1]
mlflow.set_tracking_uri(uri)
client = MlflowClient(uri)
mlflow.set_experiment("frameworks")
torch.manual_seed(7)
features, labels = load_iris(return_X_y=True)
features = features.astype(np.float32)


def children(parent):
    found = client.search_runs(
        [parent.info.experiment_id], f"tags.mlflow.parentRunId = '{parent.info.run_id}'"
    )
    assert all(run.info.status == "FINISHED" for run in found), found
    return found


def again(name, alias, version):
    """A model that is registered and found by an alias."""
    client.set_registered_model_alias(name, alias, version)
    return f"models:/{name}@{alias}"


# scikit-learn, with a run for each of its trials.
mlflow.sklearn.autolog(log_input_examples=True, max_tuning_runs=4)
with mlflow.start_run(run_name="grid") as run:
    grid = GridSearchCV(LogisticRegression(max_iter=500), {"C": [0.1, 1.0, 10.0]}, cv=3)
    grid.fit(features, labels)
    score = grid.score(features, labels)
mlflow.sklearn.autolog(disable=True)
run = client.get_run(run.info.run_id)
assert run.info.status == "FINISHED", run.info
assert run.data.params["best_C"] == str(grid.best_params_["C"]), run.data.params
assert math.isclose(run.data.metrics["best_cv_score"], grid.best_score_), run.data.metrics
assert len(children(run)) == 3, children(run)
assert run.data.tags["estimator_name"] == "GridSearchCV", run.data.tags
assert any(one.dataset.source_type for one in run.inputs.dataset_inputs), run.inputs
paths = [one.path for one in client.list_artifacts(run.info.run_id)]
assert "cv_results.csv" in paths, paths
models = client.search_logged_models([run.info.experiment_id], f"source_run_id = '{run.info.run_id}'")
assert models and str(models[0].status) == "READY", models
version = mlflow.register_model(models[0].model_uri, "iris")
place = again("iris", "champion", version.version)
assert mlflow.sklearn.load_model(place).score(features, labels) == score
assert list(mlflow.pyfunc.load_model(place).predict(features)) == list(grid.predict(features))

# PyTorch. What a script writes for TensorBoard is logged too.
from torch.utils.tensorboard import SummaryWriter

mlflow.pytorch.autolog(log_every_n_step=1)
loader = DataLoader(TensorDataset(torch.tensor(features), torch.tensor(labels)), batch_size=25)
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
with mlflow.start_run(run_name="net") as run:
    writer = SummaryWriter("tensorboard")
    optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
    for epoch in range(10):
        for inputs, wanted in loader:
            loss = nn.functional.cross_entropy(net(inputs), wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        writer.add_scalar("loss", loss.item(), epoch)
    # The client sends each value with the next one.
    writer.add_scalar("epochs", 10)
    writer.close()
    torch.save({"net": net.state_dict(), "epoch": 9}, "checkpoint.pt")
    mlflow.log_artifact("checkpoint.pt", "checkpoints")
    logged = mlflow.pytorch.log_model(
        net,
        name="net",
        input_example=features[:2],
        registered_model_name="net",
        # Or the client loads it in another process to see what it imports, which takes a while.
        pip_requirements=["torch"],
    )
mlflow.pytorch.autolog(disable=True)
steps = [point.step for point in client.get_metric_history(run.info.run_id, "loss")]
assert steps == list(range(10)), steps
folder = mlflow.artifacts.download_artifacts(run_id=run.info.run_id, artifact_path="checkpoints")
kept = torch.load(os.path.join(folder, "checkpoint.pt"))
assert kept["epoch"] == 9 and torch.equal(kept["net"]["0.weight"], net[0].weight), kept
loaded = mlflow.pytorch.load_model(again("net", "champion", "1"))
assert torch.equal(loaded(torch.tensor(features)), net(torch.tensor(features)))
assert client.get_model_version_by_alias("net", "champion").run_id == run.info.run_id


# Lightning.
class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))

    def training_step(self, batch, _):
        loss = nn.functional.cross_entropy(self.net(batch[0]), batch[1])
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, _):
        self.log("val_loss", nn.functional.cross_entropy(self.net(batch[0]), batch[1]))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.02)


mlflow.pytorch.autolog(checkpoint_monitor="val_loss")
trainer = lightning.Trainer(
    max_epochs=4, accelerator="cpu", log_every_n_steps=1, enable_progress_bar=False, logger=False
)
with mlflow.start_run(run_name="lightning") as run:
    trainer.fit(Net(), loader, loader)
mlflow.pytorch.autolog(disable=True)
run = client.get_run(run.info.run_id)
assert run.data.params["optimizer_name"] == "Adam" and run.data.params["epochs"] == "4", run.data
losses = client.get_metric_history(run.info.run_id, "val_loss")
assert len(losses) >= 4 and losses[-1].value < losses[0].value, losses
paths = [one.path for one in client.list_artifacts(run.info.run_id)]
assert "model_summary.txt" in paths and any("checkpoint" in path for path in paths), paths

# The logger that Lightning brings along.
from lightning.pytorch.loggers import MLFlowLogger

logger = MLFlowLogger("lightning-logger", tracking_uri=uri, log_model=True)
trainer = lightning.Trainer(
    max_epochs=2, accelerator="cpu", log_every_n_steps=1, enable_progress_bar=False, logger=logger
)
trainer.fit(Net(), loader, loader)
run = client.get_run(logger.run_id)
assert run.info.status == "FINISHED" and "val_loss" in run.data.metrics, run
paths = [one.path for one in client.list_artifacts(run.info.run_id)]
assert any("epoch=1" in path for path in paths), paths

# Metrics that are sent in the background, beside those of the machine.
mlflow.set_system_metrics_sampling_interval(0.2)
mlflow.set_system_metrics_samples_before_logging(1)
mlflow.config.enable_async_logging(True)
with mlflow.start_run(run_name="background", log_system_metrics=True) as run:
    for step in range(500):
        mlflow.log_metric("background", step, step=step)
    mlflow.log_params({f"p{n}": n for n in range(150)})
    with mlflow.start_run(run_name="child", nested=True, log_system_metrics=False):
        mlflow.log_metric("background", 1)
    time.sleep(1.5)
mlflow.flush_async_logging()
mlflow.config.enable_async_logging(False)
parent = client.get_run(run.info.run_id)
points = client.get_metric_history(parent.info.run_id, "background")
assert [point.value for point in points] == list(range(500)), len(points)
assert len(parent.data.params) == 150, len(parent.data.params)
machine = [key for key in parent.data.metrics if key.startswith("system/")]
assert "system/cpu_utilization_percentage" in machine, machine
assert [child.info.run_name for child in children(parent)] == ["child"]

# A run that goes on after its process was stopped.
os.environ["MLFLOW_RUN_ID"] = parent.info.run_id
with mlflow.start_run() as resumed:
    assert resumed.info.run_id == parent.info.run_id
    mlflow.log_metric("background", 500, step=500)
    mlflow.log_table({"step": [500], "text": ["resumed"]}, "steps.json")
    mlflow.log_dict({"a": [1, 2]}, "nested/config.json")
os.environ.pop("MLFLOW_RUN_ID", None)
assert client.get_run(parent.info.run_id).data.metrics["background"] == 500
assert mlflow.load_table("steps.json", run_ids=[parent.info.run_id]).text[0] == "resumed"
assert mlflow.artifacts.load_dict(f"{parent.info.artifact_uri}/nested/config.json") == {"a": [1, 2]}

# What is found afterwards.
found = mlflow.search_runs(
    experiment_names=["frameworks"],
    filter_string="metrics.val_loss < 5",
    order_by=["metrics.val_loss"],
)
assert list(found["tags.mlflow.runName"]) == ["lightning"], found
names = sorted(model.name for model in client.search_registered_models())
assert names == ["iris", "net"], names

print("everything is as it should be")
