"""Polynomials in one mathematics, and those of ``fits.py`` by pieces."""


def horner(m, coefficients, x):
    """The polynomial with these coefficients, low power first."""
    result = m.fma(x, coefficients[-1], coefficients[-2])
    for c in reversed(coefficients[:-2]):
        result = m.fma(result, x, c)
    return result


def in_pairs(m, coefficients, x):
    """The same as a polynomial in the square of ``x``, whose coefficients, each of two of these, do not wait for each
    other: for doubles that are rounded to floats, where the last bits do not count.
    """
    pairs = [m.fma(x, odd, even) for even, odd in zip(coefficients[::2], coefficients[1::2])]
    return horner(m, [*pairs, *coefficients[len(pairs) * 2 :]], x * x)


def fitted_to(m, pieces, x, polynomial=horner):
    """The polynomial of the piece in which ``x`` lies; the first and the last reach beyond their ends."""
    result = None
    for low, high, coefficients in pieces:
        t = x if (low, high) == (-1.0, 1.0) else (x - (low + high) / 2) * (2 / (high - low))
        value = polynomial(m, coefficients, t)
        result = value if result is None else m.where(x > low, value, result)
    return result
