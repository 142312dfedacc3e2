"""Traces in XLA's format, written and read, and the options of traces."""

import threading

import numpy as np
import pytest

import catena as jax
from catena import profiler
from catena.core import protobuf


def traced(folder, **options):
    """The file of a trace with these options, and what it holds."""
    asked = profiler.ProfileOptions()
    for name, value in options.items():
        setattr(asked, name, value)
    with profiler.trace(folder, profiler_options=asked):
        with profiler.StepTraceAnnotation("step", step_num=-7, loss=0.5, who="é", huge=1 << 70):
            thread = threading.Thread(target=profiler.annotate_function(lambda: None, "load"), name="loader")
            thread.start()
            thread.join()
            jax.jit(lambda x: x - 54321)(1)
    (file,) = folder.rglob("*.xplane.pb")
    return file, profiler.ProfileData.from_file(str(file))


def test_what_is_written_is_read(tmp_path):
    file, data = traced(tmp_path, session_id="mine")
    assert file.parent.name == "mine"
    assert [p.name for p in data.planes] == ["/host:CPU", "Task Environment"]
    events = {e.name: e for line in data.find_plane_with_name("/host:CPU").lines for e in line.events}
    assert {"step", "load", "jaxpr_trace"} <= events.keys()
    assert dict(events["step"].stats) == {"step_num": -7, "loss": 0.5, "who": "é", "huge": str(1 << 70)}
    outer, inner = events["step"], events["load"]
    assert isinstance(inner, profiler.ProfileEvent) and 0 <= outer.start_ns <= inner.start_ns
    assert inner.end_ns == inner.start_ns + inner.duration_ns <= outer.end_ns + 1000
    assert "loader" in {line.name for line in data.find_plane_with_name("/host:CPU").lines}
    times = dict(data.find_plane_with_name("Task Environment").stats)
    assert times["profile_start_time"] < times["profile_stop_time"]
    assert data.find_plane_with_name("/device:GPU:0") is None
    again = profiler.ProfileData.from_serialized_xspace(file.read_bytes())
    assert dict(next(again.planes).stats).keys() == {"process_id"}


@pytest.mark.parametrize("level, expected", [(0, set()), (1, {"step", "load"})])
def test_levels(tmp_path, level, expected):
    _, data = traced(tmp_path, host_tracer_level=level)
    assert {e.name for line in next(data.planes).lines for e in line.events} == expected


def test_refusals(tmp_path):
    options = profiler.ProfileOptions()
    assert options.advanced_configuration == {} and options.enable_hlo_proto is True
    for name, value, error in [
        ("host_tracer_level", "a", TypeError),
        ("host_tracer_level", True, TypeError),
        ("session_id", "a/b", ValueError),
        ("colour", 1, AttributeError),
    ]:
        with pytest.raises(error):
            setattr(options, name, value)
    with pytest.raises(TypeError, match="must be ProfileOptions or None, got 3"):
        profiler.start_trace(tmp_path, profiler_options=3)
    with pytest.raises(jax.errors.JaxRuntimeError, match="NOT_FOUND"):
        profiler.ProfileData.from_file(str(tmp_path / "none"))
    for data in (b"abc", b"\x0a\xff", b"\x0b"):
        with pytest.raises(RuntimeError, match="no profile"):
            profiler.ProfileData(data)


@pytest.mark.parametrize("value", [0, 127, 128, -1, -(1 << 63), (1 << 63) - 1])
def test_numbers(value):
    ((field, found),) = protobuf.fields(protobuf.number(3, value))
    assert (field, protobuf.signed(found)) == (3, value)
    ((_, found),) = protobuf.fields(protobuf.double(1, float(value)))
    np.testing.assert_array_equal(found, float(value))
