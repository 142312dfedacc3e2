"""Statistics: distributions, a module each, ranks, modes and densities of samples."""

from catena.core.namespace import shown as _shown
from catena.core.unbuilt import absent as _absent
from catena.scipy.stats.kde import gaussian_kde as gaussian_kde
from catena.scipy.stats.ranks import mode as mode
from catena.scipy.stats.ranks import rankdata as rankdata
from catena.scipy.stats.ranks import sem as sem

# Loaded when they are first asked for.
_DISTRIBUTIONS = tuple(
    "bernoulli beta betabinom binom cauchy chi2 dirichlet expon gamma gennorm geom gumbel_l gumbel_r laplace logistic "
    "multinomial multivariate_normal nbinom norm pareto poisson t truncnorm uniform vonmises wrapcauchy".split()
)

__dir__ = _shown(globals(), *_DISTRIBUTIONS)

_absent(globals(), *_DISTRIBUTIONS)
