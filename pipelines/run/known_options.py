"""The options that Beam and its runners know. Beam ignores unknown options silently."""

import difflib
from collections.abc import Sequence

from apache_beam.options.pipeline_options import PipelineOptions, _BeamArgumentParser

from pipelines.errors import JobError

# Options that Beam's job server for Flink 1.19 lists (DescribePipelineOptions of the job API), but that
# Beam's Python classes lack: first those of Java's FlinkPipelineOptions, then those of its
# PortablePipelineOptions, then general ones.
_JAVA_FLINK = (
    *("allow_non_restored_state", "attached_mode", "auto_balance_write_files_sharding_enabled"),
    *("auto_watermark_interval", "checkpoint_timeout_millis", "checkpointing_interval", "checkpointing_mode"),
    *("disable_metrics", "enable_stable_input_drain", "execution_mode_for_batch", "execution_retry_delay"),
    *("externalized_checkpoints_enabled", "fail_on_checkpointing_errors", "faster_copy"),
    *("file_input_split_max_size_m_b", "finish_bundle_before_checkpointing", "flink_conf_dir"),
    *("force_slot_sharing_group", "force_unaligned_checkpoint_enabled", "job_check_interval_in_secs"),
    *("latency_tracking_interval", "max_bundle_size", "max_bundle_time_mills"),
    *("min_pause_between_checkpoints", "num_concurrent_checkpoints", "number_of_execution_retries"),
    *("object_reuse", "operator_chaining", "re_iterable_group_by_key_result", "report_checkpoint_duration"),
    *("retain_externalized_checkpoints_on_cancellation", "savepoint_path", "shutdown_sources_after_idle_ms"),
    *("state_backend", "state_backend_factory", "state_backend_storage_path"),
    *("unaligned_checkpoint_enabled", "use_data_stream_for_batch"),
    *("default_environment_config", "default_environment_type", "enable_heap_dumps"),
    *("environment_expiration_millis", "load_balance_bundles"),
    *("app_name", "gzip_compress_heap_dumps", "options_id", "remote_heap_dump_location"),
    *("retain_docker_containers", "semi_persist_dir", "stable_unique_names"),
)


def check_known(runner: str, options: Sequence[str]) -> None:
    """Check that Beam or the runner knows each of the options by its full name.

    Raises:
        JobError: an option is unknown or abbreviated.
        SystemExit: argparse refuses a value; it writes the reason to standard error.
    """
    parser = _BeamArgumentParser(allow_abbrev=False, add_help=False)
    for cls in {str(cls): cls for cls in PipelineOptions.__subclasses__()}.values():
        cls._add_argparse_args(parser)
    names = {name for action in parser._actions for name in action.option_strings}
    for name in _JAVA_FLINK if runner == "FlinkRunner" else ():
        parser.add_argument(f"--{name}", nargs="?")
        names.add(f"--{name}")
    _, unknown = parser.parse_known_args(list(options))
    if not unknown:
        return
    name = unknown[0].partition("=")[0]
    if not name.startswith("-"):
        raise JobError(f"{name} is not a Beam option: after -- give options such as --direct_num_workers=1.")
    near = difflib.get_close_matches(name, sorted(names), 1, 0.0)
    raise JobError(f"{name} is not an option of Beam or {runner}: the most similar one is {near[0]}.")
