"""Special functions."""

from catena.core.namespace import shown as _shown
from catena.core.unbuilt import absent as _absent
from catena.numpy.softmax import logsumexp as logsumexp
from catena.scipy.special.bernoulli import bernoulli as bernoulli
from catena.scipy.special.bessel import bessel_jn as bessel_jn
from catena.scipy.special.bessel import i0 as i0
from catena.scipy.special.bessel import i0e as i0e
from catena.scipy.special.bessel import i1 as i1
from catena.scipy.special.bessel import i1e as i1e
from catena.scipy.special.error_functions import dawsn as dawsn
from catena.scipy.special.error_functions import erf as erf
from catena.scipy.special.error_functions import erfc as erfc
from catena.scipy.special.error_functions import erfcx as erfcx
from catena.scipy.special.error_functions import erfinv as erfinv
from catena.scipy.special.error_functions import fresnel as fresnel
from catena.scipy.special.error_functions import log_ndtr as log_ndtr
from catena.scipy.special.error_functions import ndtr as ndtr
from catena.scipy.special.error_functions import ndtri as ndtri
from catena.scipy.special.error_functions import owens_t as owens_t
from catena.scipy.special.error_functions import wofz as wofz
from catena.scipy.special.gamma_functions import beta as beta
from catena.scipy.special.gamma_functions import betainc as betainc
from catena.scipy.special.gamma_functions import betaln as betaln
from catena.scipy.special.gamma_functions import comb as comb
from catena.scipy.special.gamma_functions import digamma as digamma
from catena.scipy.special.gamma_functions import factorial as factorial
from catena.scipy.special.gamma_functions import gamma as gamma
from catena.scipy.special.gamma_functions import gammainc as gammainc
from catena.scipy.special.gamma_functions import gammaincc as gammaincc
from catena.scipy.special.gamma_functions import gammaln as gammaln
from catena.scipy.special.gamma_functions import gammasgn as gammasgn
from catena.scipy.special.gamma_functions import loggamma as loggamma
from catena.scipy.special.gamma_functions import multigammaln as multigammaln
from catena.scipy.special.gamma_functions import poch as poch
from catena.scipy.special.gamma_functions import polygamma as polygamma
from catena.scipy.special.gamma_functions import zeta as zeta
from catena.scipy.special.harmonics import sph_harm_y as sph_harm_y
from catena.scipy.special.hypergeometric import hyp1f1 as hyp1f1
from catena.scipy.special.hypergeometric import hyp2f1 as hyp2f1
from catena.scipy.special.integrals import exp1 as exp1
from catena.scipy.special.integrals import expi as expi
from catena.scipy.special.integrals import expn as expn
from catena.scipy.special.integrals import sici as sici
from catena.scipy.special.integrals import spence as spence
from catena.scipy.special.legendre import lpmn as lpmn
from catena.scipy.special.legendre import lpmn_values as lpmn_values
from catena.scipy.special.logarithms import boxcox as boxcox
from catena.scipy.special.logarithms import boxcox1p as boxcox1p
from catena.scipy.special.logarithms import entr as entr
from catena.scipy.special.logarithms import expit as expit
from catena.scipy.special.logarithms import kl_div as kl_div
from catena.scipy.special.logarithms import logit as logit
from catena.scipy.special.logarithms import rel_entr as rel_entr
from catena.scipy.special.logarithms import xlog1py as xlog1py
from catena.scipy.special.logarithms import xlogy as xlogy
from catena.scipy.special.soft_maximum import log_softmax as log_softmax
from catena.scipy.special.soft_maximum import softmax as softmax

__dir__ = _shown(globals())

_absent(globals())
