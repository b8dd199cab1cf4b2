"""What the launcher of the flex template runs: it builds the job's graph, which Dataflow then starts.

The template's own parameters come as options, and all that Dataflow's launch request says (project, region,
temp_location, template_location, machine_type, ...) comes as options of Beam. The exit code is that of
`shoal run`: 0, 2 for a wrong job, 3 refused by the ledger, 1 for anything else; but for 0, no job starts.
"""

import argparse
import os
import sys
from collections.abc import Sequence

IMAGE = os.environ.get("SHOAL_TEMPLATE_IMAGE", "")

IDLE = ("--num_workers=1", "--max_num_workers=1", "--machine_type=e2-standard-2")


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the template's own parameters."""
    parser = argparse.ArgumentParser(prog="main.py", allow_abbrev=False)
    parser.add_argument("--job_file", required=True)
    parser.add_argument("--run_id", default="")
    parser.add_argument("--overrides", default="")
    return parser


def read_arguments(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the arguments of `shoal` and, apart from them, the options of Beam."""
    own, beam = make_parser().parse_known_args(list(argv))
    settings = [part.strip() for part in own.overrides.split(";") if part.strip()]
    if own.run_id:
        settings.append(f"run_id={own.run_id}")
    sets = [word for setting in settings for word in ("--set", setting)]
    # The runner is named before Beam's options, where it is checked; the workers' image is this one.
    replaced = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    replaced.add_argument("--runner")
    replaced.add_argument("--sdk_container_image", default=IMAGE)
    given, beam = replaced.parse_known_args(beam)
    if given.sdk_container_image:
        beam.append(f"--sdk_container_image={given.sdk_container_image}")
    # Workers have no address on the internet, unless the launch asks for one.
    if "--use_public_ips" not in beam and "--no_use_public_ips" not in beam:
        beam.append("--no_use_public_ips")
    # Nothing runs before this process has ended: Dataflow reads the graph and starts it.
    beam.append("--no_wait_until_finish")
    return ["run", own.job_file, "--runner", "DataflowRunner", "--json-logs", *sets], beam


def has_graph(beam: Sequence[str]) -> bool:
    """Return whether the graph that Dataflow waits for was written."""
    from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions

    from shoal.deployed import open_file

    location = PipelineOptions(list(beam)).view_as(GoogleCloudOptions).template_location
    if location is None:
        return True
    folder, name = open_file(location)
    return folder.read(name) is not None


def write_idle_graph(beam: Sequence[str]) -> None:
    """Write a graph that does nothing.

    A run whose release is there already builds no graph, and Dataflow takes a launch without a graph for a
    failure. With this one, the retry of a released run ends well, as on every other runner.
    """
    import apache_beam
    from apache_beam.options.pipeline_options import PipelineOptions

    options = PipelineOptions(["--runner=DataflowRunner", "--sdk_location=container", *beam, *IDLE])
    pipeline = apache_beam.Pipeline(options=options)
    _ = pipeline | "Released already" >> apache_beam.Create([None])
    pipeline.run()


def main(argv: Sequence[str]) -> int:
    """Run the template and return the exit code."""
    from shoal.deployed import app

    shoal, beam = read_arguments(argv)
    code = app([*shoal, "--", *beam], standalone_mode=False) or 0
    if code == 0 and not has_graph(beam):
        write_idle_graph(beam)
    return code


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main(sys.argv[1:]))
