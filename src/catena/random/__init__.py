"""Random numbers from keys: pure functions that draw the same numbers from the same key, always and everywhere."""

from catena.core.namespace import shown as _shown
from catena.core.traceback import open_door as _open_door
from catena.random import philox as _philox  # noqa: F401  (registers its generators)
from catena.random import rbg as _rbg  # noqa: F401
from catena.random import threefry as _threefry  # noqa: F401
from catena.random.continuous import cauchy as cauchy
from catena.random.continuous import exponential as exponential
from catena.random.continuous import gumbel as gumbel
from catena.random.continuous import laplace as laplace
from catena.random.continuous import logistic as logistic
from catena.random.continuous import pareto as pareto
from catena.random.continuous import rayleigh as rayleigh
from catena.random.continuous import triangular as triangular
from catena.random.continuous import weibull_min as weibull_min
from catena.random.discrete import binomial as binomial
from catena.random.discrete import geometric as geometric
from catena.random.discrete import multinomial as multinomial
from catena.random.discrete import poisson as poisson
from catena.random.gamma import ball as ball
from catena.random.gamma import beta as beta
from catena.random.gamma import chisquare as chisquare
from catena.random.gamma import dirichlet as dirichlet
from catena.random.gamma import f as f
from catena.random.gamma import gamma as gamma
from catena.random.gamma import generalized_normal as generalized_normal
from catena.random.gamma import loggamma as loggamma
from catena.random.gamma import random_gamma_p as random_gamma_p
from catena.random.gamma import t as t
from catena.random.generator import Generator as Generator
from catena.random.generator import register_generator as register_generator
from catena.random.keys import PRNGKey as PRNGKey
from catena.random.keys import clone as clone
from catena.random.keys import fold_in as fold_in
from catena.random.keys import key as key
from catena.random.keys import key_data as key_data
from catena.random.keys import key_dtype as key_dtype
from catena.random.keys import key_impl as key_impl
from catena.random.keys import split as split
from catena.random.keys import wrap_key_data as wrap_key_data
from catena.random.matrices import multivariate_normal as multivariate_normal
from catena.random.matrices import orthogonal as orthogonal
from catena.random.normal import double_sided_maxwell as double_sided_maxwell
from catena.random.normal import lognormal as lognormal
from catena.random.normal import maxwell as maxwell
from catena.random.normal import normal as normal
from catena.random.normal import truncated_normal as truncated_normal
from catena.random.normal import wald as wald
from catena.random.shuffle import categorical as categorical
from catena.random.shuffle import choice as choice
from catena.random.shuffle import permutation as permutation
from catena.random.uniform import bernoulli as bernoulli
from catena.random.uniform import bits as bits
from catena.random.uniform import rademacher as rademacher
from catena.random.uniform import randint as randint
from catena.random.uniform import uniform as uniform

_open_door(globals(), "catena.random")

__dir__ = _shown(globals())
