"""A Python worker of a PROCESS environment: started as `SCRIPT --id=... --provision_endpoint=...`.

It does what the start script of Beam's container does: asks the runner who to work for, and serves it.
"""

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import grpc
from apache_beam.portability.api import (
    beam_provision_api_pb2,
    beam_provision_api_pb2_grpc,
    endpoints_pb2,
)
from apache_beam.runners.worker import sdk_worker_main
from google.protobuf import json_format, text_format

from tests.engines.services import PYTHON_WORKER


def write_script(folder: Path) -> Path:
    """Write the command that a TaskManager can start: with this Python, whatever its own path is."""
    script = folder / "process_worker.sh"
    exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in PYTHON_WORKER.items())
    script.write_text(f'#!/bin/sh\n{exports}exec {shlex.quote(sys.executable)} -m {__name__} "$@"\n')
    script.chmod(0o755)
    return script


def main(arguments: Sequence[str]) -> None:
    """Ask the provision service for the endpoints and options, and run the worker."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--id", required=True)
    parser.add_argument("--provision_endpoint", required=True)
    known, _ = parser.parse_known_args(arguments)
    with grpc.insecure_channel(known.provision_endpoint) as channel:
        service = beam_provision_api_pb2_grpc.ProvisionServiceStub(channel)
        request = beam_provision_api_pb2.GetProvisionInfoRequest()
        info = service.GetProvisionInfo(request, metadata=[("worker_id", known.id)], timeout=60).info
    os.environ["WORKER_ID"] = known.id
    os.environ["PIPELINE_OPTIONS"] = json_format.MessageToJson(info.pipeline_options)
    os.environ["RUNNER_CAPABILITIES"] = " ".join(info.runner_capabilities)
    os.environ["CONTROL_API_SERVICE_DESCRIPTOR"] = _text(info.control_endpoint)
    os.environ["LOGGING_API_SERVICE_DESCRIPTOR"] = _text(info.logging_endpoint)
    sdk_worker_main.main(sys.argv)


def _text(endpoint: endpoints_pb2.ApiServiceDescriptor) -> str:
    return text_format.MessageToString(endpoint)


if __name__ == "__main__":
    main(sys.argv[1:])
