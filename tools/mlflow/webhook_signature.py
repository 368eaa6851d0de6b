"""Checks the signatures of webhook messages with the code that MLflow's own server signs with.

    webhook_signature.py SECRET < messages.json

The input is a list of messages, each with its `headers` (names in small letters) and its `body`. MLflow has
no verifier: a receiver computes the signature anew, and compares.
"""

import hmac
import json
import sys

from mlflow.webhooks import constants
from mlflow.webhooks.delivery import _generate_hmac_signature


def main(secret: str) -> None:
    messages = json.load(sys.stdin)
    for message in messages:
        header = message["headers"]
        wanted = _generate_hmac_signature(
            secret,
            header[constants.WEBHOOK_DELIVERY_ID_HEADER.lower()],
            header[constants.WEBHOOK_TIMESTAMP_HEADER.lower()],
            message["body"],
        )
        found = header[constants.WEBHOOK_SIGNATURE_HEADER.lower()]
        if not hmac.compare_digest(found, wanted):
            sys.exit(f"the signature is {found}, and MLflow's is {wanted}: {message}")
    print(f"{len(messages)} signatures are those of MLflow")


if __name__ == "__main__":
    main(sys.argv[1])
