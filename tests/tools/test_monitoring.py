"""Events are told to listeners, those of compilations by the package itself, and traces are files that can be read."""

import gzip
import json
import threading
import time

import pytest

import catena as jax
from catena import monitoring, profiler


@pytest.fixture
def told():
    found = {"plain": [], "duration": [], "span": [], "scalar": []}
    listeners = {
        monitoring.register_event_listener: lambda *args, **kwargs: found["plain"].append((args, kwargs)),
        monitoring.register_event_duration_secs_listener: lambda *a, **k: found["duration"].append((a, k)),
        monitoring.register_event_time_span_listener: lambda *args, **kwargs: found["span"].append((args, kwargs)),
        monitoring.register_scalar_listener: lambda *args, **kwargs: found["scalar"].append((args, kwargs)),
    }
    for register, listener in listeners.items():
        register(listener)
    yield found
    monitoring.clear_event_listeners()


def test_users_events(told):
    monitoring.record_event("a", k=1)
    monitoring.record_event_duration_secs("b", 2.5, k=2)
    monitoring.record_event_time_span("c", 1.0, 2.0, k=3)
    monitoring.record_scalar("d", 4, k=4)
    assert told == {
        "plain": [(("a",), {"k": 1})],
        "duration": [(("b", 2.5), {"k": 2})],
        "span": [(("c", 1.0, 2.0), {"k": 3})],
        "scalar": [(("d", 4), {"k": 4})],
    }


def test_compilations_are_told(told):
    def unlike_any_other(x):
        return x * 17 + 4

    before = time.time()
    jax.jit(unlike_any_other)(1)
    names = {event: more["fun_name"] for (event, _), more in told["duration"]}
    assert names["/jax/core/compile/jaxpr_trace_duration"] == "unlike_any_other"
    if "/jax/core/compile/backend_compile_duration" in names:  # where there is a compiler
        assert names["/jax/core/compile/backend_compile_duration"] == "jit(unlike_any_other)"
    for (_, start, end), _ in told["span"]:
        assert before - 1 < start <= end < time.time() + 1
    count = len(told["duration"])
    jax.jit(unlike_any_other)(2)
    with pytest.raises(ZeroDivisionError):
        jax.jit(lambda x: 1 // 0)(1)
    assert all(more["fun_name"] != "<lambda>" for _, more in told["duration"][count:])


def test_listeners_are_taken_out():
    calls = []
    listener = lambda event: calls.append(event)
    monitoring.register_event_listener(listener)
    monitoring.record_event("a")
    monitoring.unregister_event_listener(listener)
    monitoring.record_event("b")
    assert calls == ["a"]
    for unregister in (
        monitoring.unregister_event_listener,
        monitoring.unregister_event_duration_listener,
        monitoring.unregister_event_time_span_listener,
        monitoring.unregister_scalar_listener,
    ):
        with pytest.raises(ValueError, match="not registered"):
            unregister(listener)
    with pytest.raises(TypeError, match="callable"):
        monitoring.register_event_listener(3)


def test_a_trace_is_a_file(tmp_path):
    @profiler.annotate_function
    def load():
        time.sleep(0.001)

    with profiler.TraceAnnotation("before"):
        assert not profiler.TraceAnnotation.is_enabled()
    with profiler.trace(tmp_path, create_perfetto_trace=True):
        with profiler.StepTraceAnnotation("step", step_num=7) as step:
            step.set_metadata(loss=0.5)
            thread = threading.Thread(target=load, name="loader")
            thread.start()
            thread.join()
            jax.jit(lambda x: x - 12345)(1)
        assert profiler.TraceAnnotation.is_enabled()
    with profiler.TraceAnnotation("after"):
        pass
    first, second = sorted(tmp_path.rglob("*.gz"))
    assert first.parent == second.parent
    assert gzip.decompress(first.read_bytes()) == gzip.decompress(second.read_bytes())
    events = json.loads(gzip.decompress(second.read_bytes()))["traceEvents"]
    shown = {e["name"]: e for e in events if e["ph"] == "X"}
    assert {"step", "load", "jaxpr_trace"} <= shown.keys() and not {"before", "after"} & shown.keys()
    assert shown["step"]["args"] == {"step_num": 7, "loss": 0.5}
    outer, inner = shown["step"], shown["load"]
    assert outer["ts"] <= inner["ts"] and inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"]
    assert inner["dur"] >= 900 and inner["tid"] != outer["tid"]
    assert any(e["ph"] == "M" and e["args"]["name"] == "loader" for e in events)


def test_one_trace_at_a_time(tmp_path):
    with pytest.raises(RuntimeError, match="no trace is being taken"):
        profiler.stop_trace()
    profiler.start_trace(tmp_path)
    try:
        with pytest.raises(RuntimeError, match="one at a time"):
            profiler.start_trace(tmp_path)
    finally:
        profiler.stop_trace()
    assert len(list(tmp_path.rglob("*.trace.json.gz"))) == 1
    with pytest.raises(ValueError, match="create_perfetto_link"):
        profiler.start_trace(tmp_path, create_perfetto_link=True)
    with pytest.raises(TypeError, match="name must be a string"):
        profiler.TraceAnnotation(3)
