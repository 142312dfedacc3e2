"""scipy.signal, scipy.fft and scipy.ndimage beside JAX."""

import numpy as np

OPERANDS = {  # narrowed where x64 is off; where it is on, "single" is still of 32 bits
    "x": lambda rng: rng.normal(size=20),
    "y": lambda rng: rng.normal(size=5),
    "rows": lambda rng: rng.normal(size=(3, 20)),
    "image": lambda rng: rng.normal(size=(6, 7)),
    "kernel": lambda rng: rng.normal(size=(3, 2)),
    "xi": lambda rng: np.arange(20, dtype="int32"),
    "z": lambda rng: rng.normal(size=20) + 1j * rng.normal(size=20),
    "half": lambda rng: rng.normal(size=20).astype("float16"),
    "empty": lambda rng: np.zeros(0),
    "long": lambda rng: rng.normal(size=600),
    "longz": lambda rng: rng.normal(size=600) + 1j * rng.normal(size=600),
    "pair": lambda rng: rng.normal(size=(2, 600)),
    "ones": lambda rng: np.ones(64),
    "places": lambda rng: rng.uniform(-4, 12, (2, 30)),
    "inner": lambda rng: rng.uniform(0.1, 4.9, (2, 10)),
    "whole": lambda rng: rng.integers(-3, 12, (2, 30)).astype("int32"),
    "s": lambda rng: np.float64(2.0),
    "single": lambda rng: rng.normal(size=6).astype("float32"),
    # extreme
    "gaps": lambda rng: np.array([0.5, np.nan, -1.0, np.inf, 2.0, -np.inf, 0.0, 1.0]),
    "huge": lambda rng: 1e17 * rng.normal(size=12),
    "tiny": lambda rng: 1e-17 * rng.normal(size=5),
    "far": lambda rng: np.array([[-2e9, -1e5, -0.5, 6.5, 1e5, 2e9], [0.5, 1.5, 0.0, 2.0, 3.0, 5.5]]),
    "nowhere": lambda rng: np.array([[np.nan, np.inf, -np.inf, 1.0], [0.5, 1.5, 0.0, np.nan]]),
    "volume": lambda rng: rng.normal(size=(3, 4, 5)),
    "places3": lambda rng: rng.uniform(-3, 8, (3, 30)),
}
_S, _F, _N = "jsp.signal.", "jsp.fft.", "jsp.ndimage.map_coordinates"
_PAIRS = (
    "x, y",
    "y, x",
    "xi, xi",
    "xi, y",
    "z, y",
    "x, z",
    "image, kernel",
    "kernel, image",
    "x, image",
    "half, y",
    "half, half",
    "empty, y",
    "[1.0], x",
    "rows, rows",
    "x > 0, x",
    "single, x",
)
EXTREME = ("huge, tiny", "huge, y", "tiny, tiny[:2]", "gaps, y", "y, gaps[:3]", "gaps, gaps")
MODES = ("constant", "nearest", "wrap", "mirror", "reflect")

CASES = [
    *[
        (f"{_S}{f}({a}{m})", 1e-3)
        for f in ("convolve", "correlate", "fftconvolve")
        for a in _PAIRS
        for m in ("", ", 'same'", ", 'valid'", ", 'other'")
    ],
    *[
        (f"{_S}{f}(x, y, method={m!r})", 1e-3)
        for f in ("convolve", "correlate")
        for m in ("auto", "direct", "fft", "other")
    ],
    *[
        (f"{_S}{f}({a}{m})", 1e-3)
        for f in ("convolve2d", "correlate2d")
        for a in ("image, kernel", "kernel, image", "x, y", "image, image")
        for m in ("", ", 'same'", ", 'valid'", ", 'other'", ", boundary='wrap'", ", boundary='x'", ", fillvalue=1")
    ],
    *[
        (f"{_S}fftconvolve({a})", 1e-3)
        for a in (
            "image, image, axes=1",
            "image, image, axes=[0]",
            "image, kernel, axes=0",
            "image, image, axes=()",
            "image, image, axes=2",
            "image, image, 'same', -1",
            "image, image, axes=(0, 0)",
        )
    ],
    *[
        (f"{_S}detrend({a})", 1e-3)
        for a in (
            "x",
            "rows",
            "rows, 0",
            "rows, -1, 'constant'",
            "x, 0, 'other'",
            "x, bp=5",
            "x, bp=[5, 10]",
            "x, bp=30",
            "x, bp=-3",
            "xi",
            "z",
            "half",
            "empty",
            "x, overwrite_data=True",
            "x, axis=3",
            "x, bp=5.0",
        )
    ],
    *[
        (f"{_S}{f}({a})", 1e-3)
        for f in ("welch", "stft")
        for a in (
            "long",
            "pair",
            "pair, axis=0",
            "long, nperseg=64",
            "long, nperseg=64, noverlap=10",
            "long, nperseg=64, noverlap=64",
            "long, nperseg=1000",
            "long, nperseg=64, nfft=128",
            "long, nfft=16",
            "long, window='hamming'",
            "long, window='other'",
            "long, window=ones, nperseg=64",
            "long, window=ones, nperseg=32",
            "long, window=('kaiser', 4.0)",
            "longz",
            "longz, return_onesided=False",
            "long, return_onesided=False",
            "long, fs=10.0",
            "long, fs=s",
            "xi",
            "half",
            "empty",
            "x",
            "long, detrend='linear'",
            "long, detrend=False",
            "long, detrend='other'",
            "long, detrend=True",
            "long, nperseg=0",
            "long, nperseg=63",
            "long, nperseg=64.5",
            "[1.0]",
        )
    ],
    *[
        (f"{_S}welch({a})", 1e-3)
        for a in (
            "long, scaling='spectrum'",
            "long, scaling='other'",
            "long, average='median', nperseg=64",
            "longz, average='median', nperseg=50",
            "long, average='other'",
        )
    ],
    *[
        (f"{_S}stft(long, {a})", 1e-3)
        for a in (
            "boundary=None",
            "boundary='even'",
            "boundary='odd'",
            "boundary='constant'",
            "boundary='other'",
            "padded=False",
            "boundary=None, padded=False, nperseg=64, noverlap=10",
        )
    ],
    *[
        (f"{_S}csd({a})", 1e-3)
        for a in (
            "long, long",
            "long, None",
            "long, pair",
            "long, long[:500]",
            "pair, long",
            "long, longz",
            "long, long, nperseg=64",
            "pair[:, None], pair[None]",
            "long, long[::-1], average='median', nperseg=64",
            "long, empty",
            "pair, pair, axis=0",
            "pair, pair[:1]",
            "pair.T, pair.T, axis=0, nperseg=50",
        )
    ],
    *[
        (f"{_S}istft({_S}stft(long, nperseg=64)[2]{a})", 1e-3)
        for a in (
            "",
            ", nperseg=64",
            ", nperseg=62",
            ", nperseg=70",
            ", nfft=32",
            ", noverlap=48",
            ", noverlap=64",
            ", input_onesided=False",
            ", time_axis=0, freq_axis=0",
            ", window='hamming'",
            ", window=ones",
            ", window=ones[:32]",
            ", fs=10.0",
            ", window='other'",
        )
    ],
    *[
        (f"{_S}istft({a})", 1e-3)
        for a in (
            "long",
            f"{_S}stft(longz, nperseg=64)[2], input_onesided=False",
            f"{_S}stft(pair, nperseg=64)[2]",
            f"{_S}stft(long, nperseg=64)[2].T, time_axis=0, freq_axis=1",
        )
    ],
    *[
        (f"{_F}{f}({a})", 1e-4)
        for f in ("dct", "idct")
        for a in (
            "x",
            "x, 1",
            "x, 3",
            "rows",
            "rows, axis=0",
            "rows, n=10",
            "rows, n=30",
            "x, n=0",
            "x, n=-1",
            "x, norm='ortho'",
            "x, norm='backward'",
            "x, norm='forward'",
            "xi",
            "z",
            "half",
            "empty",
            "s",
            "[1.0]",
            "y",
            "y, norm='ortho'",
            "x[:1]",
            "x > 0",
            "x, axis=1",
            "rows[:0]",
        )
    ],
    *[
        (f"{_F}{f}({a})", 1e-4)
        for f in ("dctn", "idctn")
        for a in (
            "x",
            "rows",
            "rows, 1",
            "rows, axes=[0]",
            "rows, axes=0",
            "rows, s=(4, 10)",
            "rows, s=[4]",
            "rows, s=4, axes=0",
            "rows, norm='ortho'",
            "rows, norm='x'",
            "rows, axes=(0, 0)",
            "rows, axes=(2,)",
            "z",
            "half",
            "rows, s=(4, 10), axes=(1, 0)",
            "rows, axes=()",
            "s",
            "rows[:0]",
        )
    ],
    *[
        (f"{_N}({a}, {o}, {m!r})", 1e-4)
        for a in (
            "image, places",
            "image.astype('int32'), places",
            "image, whole",
            "image + 1j, places",
            "image.astype('float16'), places",
            "image > 0, places",
            "image, list(places)",
        )
        for o in (0, 1, 2)
        for m in ("constant", "nearest", "wrap", "mirror", "reflect", "grid-wrap")
    ],
    *[
        (f"{_N}({a})", 1e-4)
        for a in (
            "image, places[:1], 1",
            "image, [0.5, 1], 1",
            "image, places, 1, 'constant', 3.0",
            "image, places + 1j, 1",
            "x, places[:1], 1",
            "image, [places, places[0, 0]], 1",
            "image, places, 1, 'constant', 1j",
            "image[:0], places, 1",
            "image, places[:, :0], 1",
            "image, [places[0], places[1, :3]], 1",
            "image, places, None",
        )
    ],
    # extreme arguments
    *[(f"{_S}{f}({a})", 1e-3) for f in ("convolve", "correlate") for a in EXTREME],
    *[(f"{_S}{f}({a}, method='fft')", 1e-3) for f in ("convolve", "correlate") for a in EXTREME[:3]],
    *[(f"{_S}fftconvolve({a})", 1e-3) for a in ("huge, tiny", "tiny, tiny[:2]", "huge, huge")],
    *[
        (f"{call}", 1e-3)
        for x in ("gaps", "huge", "tiny", "single")
        for call in (
            f"{_S}detrend({x})",
            f"{_S}detrend({x}, type='constant')",
            f"{_S}welch({x}, nperseg=4)",
            f"{_S}stft({x}, nperseg=4)",
            f"{_S}csd({x}, {x}, nperseg=4)",
            f"{_S}istft({_S}stft({x}, nperseg=4)[2], nperseg=4)",
            f"{_F}dct({x})",
            f"{_F}idct({x}, norm='ortho')",
            f"{_F}dctn({x})",
            f"{_F}idctn({x})",
        )
    ],
    *[
        (f"{_N}({a}, {o}, {m!r})", 1e-4)
        for a in (
            "image, far",
            "image, nowhere",
            "gaps, places[:1]",
            "volume, places3",
            "huge, places[:1]",
            "x, single[None]",
        )
        for o in (0, 1)
        for m in MODES
    ],
]
GRADIENTS = [
    *[
        (f"{_S}{f}({a}{m})", 1e-3)
        for f in ("convolve", "correlate", "fftconvolve")
        for a in ("x, y", "z, y", "image, kernel", "huge, tiny")
        for m in ("", ", 'same'", ", 'valid'")
    ],
    *[
        (f"{_S}{f}(image, kernel, {m!r})", 1e-3)
        for f in ("convolve2d", "correlate2d")
        for m in ("full", "same", "valid")
    ],
    *[
        (f"{_S}{f}", 1e-3)
        for f in (
            "detrend(rows, 0, 'constant')",
            "detrend(x, bp=[5, 10])",
            "csd(long, long[::-1], nperseg=64)[1]",
            "welch(long, nperseg=64, average='median')[1]",
            "welch(longz, nperseg=50, detrend='linear')[1]",
            "istft(jsp.signal.stft(long, nperseg=64)[2], nperseg=64)[1] ** 2",
            "fftconvolve(image, image, axes=1)",
        )
    ],
    *[(f"{_F}{f}", 1e-3) for f in ("dct(rows, axis=0)", "idct(x)", "dct(x, n=30)", "idct(rows, n=10)", "idctn(rows)")],
    *[
        (f"{_N}({a}, {o}, {m!r})", 1e-3)
        for a in ("image, places", "volume, places3", "image + 1j, places")
        for o in (0, 1)
        for m in MODES
    ],
    (f"{_N}(image, places, 1, 'constant', s)", 1e-3),
    *[
        (f"{_S}{f}", 1e-3)
        for f in ("detrend(x)", "welch(long, nperseg=64)[1]", "stft(long, nperseg=64)[2]", "convolve2d(image, kernel)")
    ],
    *[(f"{_F}{f}", 1e-3) for f in ("dct(x)", "idct(x, norm='ortho')", "dctn(rows)")],
    (f"{_N}(image, inner, 1)", 1e-3),
]
SHARP = True
VALUES = r"(?s)^returns (\S+) .*\| returns \1 "  # of one dtype and shape: only values differ
EXPLAINED = [
    (
        r"^grad \w+ .*detrend\(",
        r"(?s)returns float64\[20\] \[[0. ]*\] \|",
        "the slope of the sum is zero, JAX's rounding",
    ),
    (
        r"^grad \w+ .*map_coordinates\(.*'constant', s\)",
        r"(?s)\| ValueError: Non-hashable",
        "what lies outside may be known at run time",
    ),
    (r"\[1.0\]", r"^TypeError.*\|", "what is no array is a TypeError everywhere in signal"),
    (r"half", r"(?s)^returns.*\| \w+Error", "half precision is transformed in single precision, where JAX refuses it"),
    (r"fftconvolve\(\[1.0\], x, 'other'\)", r"^ValueError.*\| TypeError", "of two mistakes the mode is said first"),
    (
        r"detrend\(xi?\)",
        r"^returns float32\[20\] \[0. 0. .*\| returns",
        "of a line nothing is left, no rounding either",
    ),
    (r"boundary='(wrap|x)'|fillvalue", "NotImplementedError", "SciPy's boundaries are there"),
    (r"detrend\(empty", "ZeroDivisionError", "nothing has no trend"),
    (r"average='other'", "ValueError", "unknown averages are refused where there is one segment, too"),
    (r"istft\(jsp.signal.stft\(pair", r"(?s)^returns.*\| returns", "the times of a stack are as many as its samples"),
    (r"axis=3|axes=2|axes=\(2,\)|axis=1\)|\(s\)", "AxisError", "an AxisError is a ValueError and an IndexError"),
    (
        r"(convolve|correlate)\((y, gaps\[:3\]|gaps, gaps)\)",
        VALUES,
        "a filter's NaN meets the zeros of padding, as in JAX in single precision; in double JAX leaves them out",
    ),
    (
        r"map_coordinates\(image, far, [01], 'reflect'\)",
        VALUES,
        "JAX doubles places, which overflows 32 bits at 2e9, where SciPy has our numbers",
    ),
    (
        r"map_coordinates\(image, nowhere, 0, '(mirror|reflect)'\)",
        VALUES,
        "what is nearest to an infinite place of an image that goes on is not determined",
    ),
]

SLOPES_EXPLAINED = [(r"^far ", "steps in proportion to 1e6 reach over several kinks")]
