"""Traces in the text form of protocol buffers."""

import pytest

from catena.profiler import ProfileData

TEXT = """planes { id: 2 name: "/host:CPU" # what the host did
  lines < id: 7, name: 'a\\n\\x41\\101' timestamp_ns: -5000;
    events { metadata_id: 1 offset_ps: 3000 duration_ps: 0x7d0
      stats { metadata_id: 1 double_value: 2.5 } stats { metadata_id: 1 str_value: "x" "é" }
      stats: [ { metadata_id: 1 int64_value: -3 }, { metadata_id: 1 bytes_value: "\\001\\xff" } ] } >
  event_metadata { key: 1 value { id: 1 name: "step" child_id: [1, 2] } }
  stat_metadata: { key: 1 value: { id: 1 name: "size" } } }
errors: "e" """


def test_a_trace_in_text():
    (plane,) = ProfileData.from_text_proto(TEXT).planes
    (line,) = plane.lines
    (event,) = line.events
    assert (plane.name, line.name) == ("/host:CPU", "a\nAA")
    assert (event.name, event.start_ns, event.duration_ns) == ("step", -4997.0, 2.0)
    assert list(event.stats) == [("size", 2.5), ("size", "xé"), ("size", -3), ("size", b"\x01\xff")]
    # As protocol buffers write it: fields by their numbers, lists of integers in one.
    small = 'planes { name: "n" id: 1 event_metadata { key: 1 value { child_id: [1, 2] } } }'
    assert (
        ProfileData.text_proto_to_serialized_xspace(small)
        == b'\n\x0f\x08\x01\x12\x01n"\x08\x08\x01\x12\x042\x02\x01\x02'
    )
    assert ProfileData.text_proto_to_serialized_xspace("") == b""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("planes {", "line 1: there is no field ''"),
        ("\nplane { }", "line 2: there is no field 'plane' here, but planes, errors"),
        ('planes { id: "x" }', "a number of kind int was expected, got '\"x\"'"),
        ("planes { id: 1 id: 2 }", "the field 'id' comes more than once"),
        ("planes: 3", "a message was expected, in braces, got '3'"),
        ('errors "x"', "':' was expected"),
        ("errors: x", "a string was expected, got 'x'"),
        ("planes { lines: [ {} {} ] }", "',' was expected"),
    ],
)
def test_texts_that_are_none(text, message):
    with pytest.raises(ValueError, match=message.replace("{", r"\{")):
        ProfileData.from_text_proto(text)
