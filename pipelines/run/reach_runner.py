"""Check that a runner is reachable and that its workers have this code, before a job is charged."""

import http.client
import json
import os
import re
import shutil
import ssl
import urllib.error
import urllib.request
import zipfile
from typing import Any
from urllib.parse import urlsplit

from apache_beam.options import pipeline_options as beam
from apache_beam.portability.api import beam_job_api_pb2
from apache_beam.runners.portability.flink_runner import MAGIC_HOST_NAMES, FlinkJarJobServer, FlinkRunner
from apache_beam.runners.portability.job_server import ExternalJobServer
from apache_beam.runners.portability.prism_runner import PrismJobServer
from apache_beam.utils.subprocess_server import JavaJarServer

from pipelines.errors import JobError, RunError
from transforms.extras import needs

_SECONDS = 5.0
_MOST_BYTES = 100_000
_FLINK_PORT = 8081

_ENVIRONMENTS = ("DOCKER", "PROCESS", "EXTERNAL", "LOOPBACK")

_PACKAGES = ("setup_file", "requirements_file", "extra_packages", "prebuild_sdk_container_engine")
"""Options that install code on workers whose image lacks it."""

_IMAGES = {
    "DataflowRunner": ("sdk_container_image",),
    "FlinkRunner": ("environment_config", "environment_options"),
    "PrismRunner": ("environment_config", "environment_options"),
}
"""Options that name the image of the workers. Flink and Prism ignore sdk_container_image."""


def check_workers(options: beam.PipelineOptions) -> None:
    """Check that workers get this code, which Beam's default image does not contain.

    Raises:
        JobError: no option provides it.
    """
    runner, given = options.view_as(beam.StandardOptions).runner, options.get_all_options()
    kind = given["environment_type"]
    if kind is not None and kind not in _ENVIRONMENTS and not kind.startswith("beam:env:"):
        raise JobError(
            f"--environment_type is {kind}: it must be {', '.join(_ENVIRONMENTS)} or a URN of Beam."
        )
    if runner not in _IMAGES or any(given.get(name) for name in (*_IMAGES[runner], *_PACKAGES)):
        return
    if runner == "DataflowRunner":
        raise JobError(
            "--sdk_container_image is missing: give an image that contains Shoal, such as deploy/ builds."
        )
    local = runner == "PrismRunner" or given["flink_master"] in MAGIC_HOST_NAMES
    if (kind or ("LOOPBACK" if local else "DOCKER")) == "DOCKER":
        raise JobError(
            "--environment_type is missing or has no image: workers need Shoal, so give "
            "--environment_type=EXTERNAL --environment_config=HOST:PORT of a worker pool, or "
            "--environment_type=DOCKER --environment_config=IMAGE, with an image such as deploy/ builds."
        )


def check_credentials(options: beam.PipelineOptions) -> None:
    """Check that the client of Dataflow finds credentials on this machine.

    Without them Beam tries for half a minute, silently, and then connects anonymously.

    Raises:
        RunError: there are none.
        MissingExtra: the client is not installed.
    """
    cloud = options.view_as(beam.GoogleCloudOptions)
    if options.view_as(beam.StandardOptions).runner != "DataflowRunner" or cloud.no_auth:
        return
    with needs("gcp", "--runner is DataflowRunner, which"):
        import google.auth  # slow, and only Dataflow needs it
        import google.cloud.dataflow
    try:
        google.auth.default(scopes=cloud.gcp_oauth_scopes)
    except Exception:  # its text may quote a file
        raise RunError(
            "--runner is DataflowRunner, but there are no usable Google credentials on this machine, so "
            "nothing was charged or run: run `gcloud auth application-default login`, or set "
            "GOOGLE_APPLICATION_CREDENTIALS to the file of a service account."
        ) from None


def reach_runner(options: beam.PipelineOptions) -> None:
    """Check the addresses and files in the options of Flink and Prism.

    Raises:
        JobError: an option is wrong.
        RunError: there is no response from an address.
    """
    runner, given = options.view_as(beam.StandardOptions).runner, options.get_all_options()
    if runner not in ("FlinkRunner", "PrismRunner"):
        return
    if given["job_endpoint"]:
        _reach_job_server(given["job_endpoint"], given["job_server_timeout"])
    elif runner == "PrismRunner":
        _find_prism(given["prism_location"], options)
    else:
        _find_job_server(options)
        if given["flink_master"] not in MAGIC_HOST_NAMES:
            _reach_flink(options)


def _reach_job_server(address: str, seconds: float) -> None:
    """Connect to a job server as Beam will, with the same timeout."""
    if not re.fullmatch(r"([^\s/:]+|\[[0-9a-fA-F:.]+\]):[0-9]{1,5}", address):
        raise JobError(f"--job_endpoint is {address}: it must be HOST:PORT of a job server.")
    try:
        service = ExternalJobServer(address, seconds).start()
        service.DescribePipelineOptions(beam_job_api_pb2.DescribePipelineOptionsRequest(), timeout=seconds)
    except (
        Exception
    ):  # gRPC has several error types, for a channel that isn't ready and for a call that fails
        raise RunError(
            f"--job_endpoint is {address}: no job server answered there in {seconds} s, so nothing was "
            "charged or run."
        ) from None


def _find_job_server(options: beam.PipelineOptions) -> None:
    """Check what Beam needs to start Flink's job server: Java, and the jar or an address to fetch it from."""
    server = options.view_as(beam.JobServerOptions)
    flink = options.view_as(beam.FlinkRunnerOptions)
    java = server.job_server_java_launcher
    if not flink.flink_submit_uber_jar and shutil.which(java) is None:
        raise JobError(
            f"--job_server_java_launcher is {java}, but there is no such command: install Java, or give "
            "--job_endpoint of a running job server."
        )
    jar = flink.flink_job_server_jar
    if jar is not None and not os.path.isfile(jar) and (os.path.exists(jar) or not urlsplit(jar).scheme):
        raise JobError(f"--flink_job_server_jar is {jar}, but there is no such file.")
    address = FlinkJarJobServer(options).path_to_jar()
    _fetch_later("--flink_job_server_jar", jar, address, JavaJarServer.JAR_CACHE)


def _reach_flink(options: beam.PipelineOptions) -> None:
    """Check the version of Flink by its REST interface; a job server of another version cannot submit."""
    flink = options.view_as(beam.FlinkRunnerOptions)
    about = f"--flink_master is {flink.flink_master}"
    url = f"{rest_address(flink.flink_master)}/config"
    try:
        version = ask_flink(url)["flink-version"]
    except urllib.error.HTTPError as error:
        kind = JobError if error.code < 500 else RunError
        raise kind(f"{about}: it answered {error.code}, so it is not Flink's REST interface.") from None
    except (OSError, http.client.HTTPException) as error:
        if isinstance(getattr(error, "reason", None), ssl.SSLError):
            return  # the address responds; Flink's own configuration decides which certificates are valid
        raise RunError(
            f"{about}: there was no response from {url}{_why(error)}, so nothing was charged or run."
        ) from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise JobError(f"{about}: the response is not from Flink's REST interface.") from None
    if flink.flink_job_server_jar is None and not str(version).startswith(f"{flink.flink_version}."):
        raise JobError(
            f"--flink_version is {flink.flink_version}, but {flink.flink_master} runs Flink {version}: give "
            f"that version, one of {', '.join(flink.PUBLISHED_FLINK_VERSIONS)}, or a "
            "--flink_job_server_jar for it."
        )


def _why(error: Exception) -> str:
    """Return why there was no response: the time that passed, or the word of the system."""
    reason = getattr(error, "reason", error)
    if isinstance(reason, TimeoutError):
        return f" in {_SECONDS:.0f} s"
    said = reason.strerror if isinstance(reason, OSError) else None
    return f" ({said})" if said else ""


def ask_flink(url: str, most_bytes: int = _MOST_BYTES) -> Any:
    """Return what Flink's REST interface answers at `url`.

    Raises:
        OSError, ValueError, HTTPException: there is no answer, or another one than JSON.
    """
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=_SECONDS) as answer:
        return json.loads(answer.read(most_bytes))


def rest_address(master: str) -> str:
    """Return the URL of Flink's REST interface; the default port is 8081.

    Raises:
        JobError: `master` is not an address.
    """
    try:
        parts = urlsplit(FlinkRunner.add_http_scheme(master))
        host, port = parts.hostname or "", parts.port or _FLINK_PORT
    except ValueError:
        host, port = "", 0
    if not re.fullmatch(r"[\w.:-]+", host) or parts.path.strip("/") or "@" in master or "?" in master:
        raise JobError(
            f"--flink_master is {master}: it must be HOST:PORT of Flink's REST interface, [local] or [auto]."
        )
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def _find_prism(location: str | None, options: beam.PipelineOptions) -> None:
    """Check that Prism is an executable file, a zip file of one, or the URL of a release of Beam."""
    about = f"--prism_location is {location}"
    if location is not None and os.path.exists(location):
        if not os.path.isfile(location) or not (os.access(location, os.X_OK) or zipfile.is_zipfile(location)):
            raise JobError(f"{about}: it must be an executable file, or a zip file of one.")
        return
    try:
        address = PrismJobServer(options).path_to_binary()
    except Exception:
        raise JobError(f"{about}: it must be a file or the URL of a release of Beam.") from None
    # Beam fetches a given location again each time
    _fetch_later("--prism_location", location, address, None if location else PrismJobServer.BIN_CACHE)


def _fetch_later(option: str, given: str | None, address: str, cache: str | None) -> None:
    """Check that Beam will find a program that it fetches itself, or already has in a folder of fetched ones.

    Raises:
        RunError: its address does not respond.
    """
    kept = cache is not None and os.path.exists(os.path.join(cache, os.path.basename(address)))
    if kept or not urlsplit(address).scheme.startswith("http"):
        return
    try:
        # not urlopen, which keeps the first proxy it sees for the whole process
        opener = urllib.request.build_opener()
        opener.open(urllib.request.Request(address, method="HEAD"), timeout=_SECONDS).close()
    except (OSError, http.client.HTTPException):
        about = f"{option} is {given}" if given else f"{option} is missing"
        raise RunError(
            f"{about}: {address} cannot be fetched, so nothing was charged or run: give a copy of it as "
            f"{option}, or --job_endpoint of a running job server."
        ) from None
