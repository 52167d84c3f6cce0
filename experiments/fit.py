"""Least squares without negative coefficients, for models of times."""


def coefficients(terms, times):
    """The coefficients of the terms (a row per time) with the least squares of errors. The most negative ones are 0 instead."""
    import numpy

    terms, times = numpy.array(terms), numpy.array(times)
    kept = numpy.ones(terms.shape[1], dtype=bool)
    while True:
        found = numpy.zeros(terms.shape[1])
        found[kept] = numpy.linalg.lstsq(terms[:, kept], times, rcond=None)[0]
        if (found >= 0).all():
            return found
        kept[found.argmin()] = False
