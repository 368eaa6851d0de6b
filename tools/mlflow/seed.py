"""Writes runs straight into the SQLite file of an MLflow server, which would take ten minutes for
10,000 of them: `seed.py DATABASE EXPERIMENT RUNS`. The other servers are sent the same by requests,
in crates/berth-evidence/src/tracking/reads.rs.
"""

import sqlite3
import sys
import uuid

database, experiment, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
BEGAN = 1_700_000_000_000


def insert(connection, table, rows):
    columns = list(rows[0])
    places = ", ".join("?" for _ in columns)
    # `key` is a word of SQL.
    names = ", ".join(f'"{column}"' for column in columns)
    values = (tuple(row[column] for column in columns) for row in rows)
    connection.executemany(f"INSERT INTO {table} ({names}) VALUES ({places})", values)


runs, metrics, params, tags = [], [], [], []
for number in range(count):
    run = uuid.uuid4().hex
    runs.append(
        {
            "run_uuid": run,
            "name": f"run-{number}",
            "source_type": "UNKNOWN",
            "source_name": "",
            "entry_point_name": "",
            "user_id": "kim",
            "status": "RUNNING",
            "start_time": BEGAN + number,
            "source_version": "",
            "lifecycle_stage": "active",
            "artifact_uri": f"mlflow-artifacts:/{experiment}/{run}/artifacts",
            "experiment_id": experiment,
        }
    )
    acc = (number * 7919 % 10007) / 10007
    for key, value in (("acc", acc), ("loss", 1 - acc), ("epoch", 1.0)):
        metrics.append(
            {"run_uuid": run, "key": key, "value": value, "timestamp": 1, "step": 1, "is_nan": 0}
        )
    lr = ("0.1", "0.01", "0.001", "0.0001", "0.00001")[number % 5]
    model = ("resnet", "vit", "gpt")[number % 3]
    for key, value in (("model", model), ("lr", lr), ("seed", str(number))):
        params.append({"run_uuid": run, "key": key, "value": value})
    kind = "large" if number % 2 else "base"
    for key, value in (
        ("mlflow.user", "kim"),
        ("mlflow.source.name", "train.py"),
        ("kind", kind),
        ("mlflow.runName", f"run-{number}"),
    ):
        tags.append({"run_uuid": run, "key": key, "value": value})

with sqlite3.connect(database, timeout=60) as connection:
    insert(connection, "runs", runs)
    insert(connection, "metrics", metrics)
    insert(connection, "latest_metrics", metrics)
    insert(connection, "params", params)
    insert(connection, "tags", tags)
