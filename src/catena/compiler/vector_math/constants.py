"""Constants as unevaluated sums of floats of working precision (computed with mpmath at 1400 bits)."""


def _pieces(*texts: str) -> tuple[float, ...]:
    return tuple(float.fromhex(text) for text in texts)


HALF_PI = {
    "float": _pieces("0x1.921fb6p+0", "-0x1.777a5cp-25", "-0x1.ee59dap-50"),
    "double": _pieces("0x1.921fb54442d18p+0", "0x1.1a62633145c07p-54", "-0x1.f1976b7ed8fbcp-110"),
}
LN2 = {
    "float": _pieces("0x1.62e43p-1", "-0x1.05c61p-29"),
    "double": _pieces("0x1.62e42fefa39efp-1", "0x1.abc9e3b39803fp-56"),
}
LOG2_E = {
    "float": _pieces("0x1.715476p+0", "0x1.4ae0cp-26"),
    "double": _pieces("0x1.71547652b82fep+0", "0x1.777d0ffda0d24p-56"),
}
LOG10_E = {
    "float": _pieces("0x1.bcb7b2p-2", "-0x1.5b235ep-27"),
    "double": _pieces("0x1.bcb7b1526e50ep-2", "0x1.95355baaafad3p-57"),
}
LOG10_2 = {
    "float": _pieces("0x1.344136p-2", "-0x1.ec10cp-27"),
    "double": _pieces("0x1.34413509f79ffp-2", "-0x1.9dc1da994fd21p-59"),
}
LOG_TWO_PI_LESS_ONE_HALF = _pieces("0x1.acfe390c97d69p-2", "0x1.3494bc9001442p-56")
ONE_THIRD = _pieces("0x1.5555555555555p-2", "0x1.5555555555555p-56")
ONE_FIFTH = _pieces("0x1.999999999999ap-3", "-0x1.999999999999ap-57")
ONE_SEVENTH = _pieces("0x1.2492492492492p-3", "0x1.2492492492492p-57")
# The positive zero of digamma.
DIGAMMA_ZERO = _pieces("0x1.762d86356be3fp+0", "0x1.b86a722197829p-54")
PI = _pieces("0x1.921fb54442d18p+1", "0x1.1a62633145c07p-53")
# The first 1240 bits of 2/pi after the binary point.
TWO_OVER_PI = int(
    "a2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561b7246e3a424dd2e006492eea09d1921cfe1d"
    "eb1cb129a73ee88235f52ebb4484e99c7026b45f7e413991d639835339f49c845f8bbdf9283b1ff897ffde05980fef2f118b"
    "5a0a6d1f6d367ecf27cb09b74f463f669e5fea2d7527bac7ebe5f17b3d0739f78a5292ea6bfb5fb11f8d5d0856033046fc7b"
    "6babf0cfbc",
    16,
)
TWO_OVER_PI_BITS = 1240
