"""Keyed elements are spread as Beam's own Reshuffle spreads them, whatever they are."""

from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability import common_urns

from transforms.embedded_runner import EmbeddedRunner
from transforms.spread import Keyed, Spread


@pytest.mark.parametrize("checks", [[], ["--runtime_type_check"], ["--performance_runtime_type_check"]])
@pytest.mark.parametrize("pairs", [[], [(3, "a")], [(0, "a"), (0, "a"), (1, None), (2, [b"b"])]])
def test_elements_stay_as_they_are(tmp_path: Path, pairs: list[Keyed], checks: list[str]) -> None:
    read = tmp_path / "read"
    read.touch()

    def append(pair: Keyed) -> None:
        with read.open("a") as file:
            file.write(f"{pair}\n")

    with beam.Pipeline(runner=EmbeddedRunner(), options=PipelineOptions(checks)) as pipeline:
        made = pipeline | beam.Create([pairs]) | beam.FlatMap(list).with_output_types(Keyed)
        _ = made | Spread() | "Append" >> beam.Map(append)
    assert sorted(read.read_text().splitlines()) == sorted(map(str, pairs))


def test_runners_take_it_for_a_reshuffle() -> None:
    pipeline = beam.Pipeline(options=PipelineOptions([]))
    _ = pipeline | beam.Create([(0, 0)]) | "Spread" >> Spread()
    steps = pipeline.to_runner_api().components.transforms.values()
    assert {step.spec.urn for step in steps if step.unique_name == "Spread"} == {
        common_urns.composites.RESHUFFLE.urn
    }
