"""What functions are made of, beside JAX: the primitives of their jaxprs in order, and the parameters of these.

`make compare-traces` (or `python benchmarks/traces.py --jax-python PYTHON`) traces the calls below by both libraries.
Programs that walk through jaxprs (interpreters of users, inverses, counters of operations) see these names and
parameters. Parameters that JAX's equations have and ours lack are an error; functions that are made of other
operations are listed, with `--only NAME` one below the other.
"""

import argparse
import importlib
import pickle
import re
import sys
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
from side_by_side import run_side_by_side

# Expressions of x, y (f32[3, 4]), m (f32[3, 3]), v (f32[4]), i (i32[4]), b (bool[3, 4]), z (c64[4]), k (a key), s (a
# scalar), t (f32[2, 3, 4]): those are the arguments that are traced.
UNARY = """
abs absolute acos acosh angle arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh cbrt ceil conj
conjugate cos cosh deg2rad degrees exp exp2 expm1 fabs fix floor i0 imag isfinite isinf isnan isneginf isposinf log
log10 log1p log2 logical_not nan_to_num negative positive rad2deg radians real reciprocal rint round sign signbit sin
sinc sinh spacing sqrt square tan tanh trunc modf frexp all any argmax argmin argsort average count_nonzero cumprod
cumsum max mean median min nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin nanprod nanstd
nansum nanvar prod ptp sort std sum var fliplr flipud ravel transpose squeeze atleast_1d atleast_2d atleast_3d ones_like
zeros_like diff ediff1d copy tril triu trace diag diagonal rot90 unwrap cov corrcoef isreal iscomplex array asarray
"""
BINARY = """
add arctan2 copysign divide equal float_power floor_divide fmax fmin fmod greater greater_equal heaviside hypot ldexp
less less_equal logaddexp logaddexp2 logical_and logical_or logical_xor maximum minimum mod multiply nextafter not_equal
power remainder subtract true_divide divmod allclose array_equal isclose vdot inner outer dot kron
column_stack([x,y]) dstack([x,y]) hstack([x,y]) vstack([x,y]) stack([x,y]) concatenate([x,y]) append(x,y)
"""
CALLS = """
matmul(x,y.T) tensordot(x,y) einsum('ij,kj->ik',x,y) einsum('ij,ij->',x,y) dot(x,v) dot(v,v) matmul(t,v) x@v
cross(m,m) where(b,x,y) where(b,x,0.) clip(x,0,1) select([b],[x],0.) interp(v,v,v) sum(x,0) mean(x,0) max(x,0)
var(x,1) std(x,1) cumsum(x,0) argmax(x,1) sort(x,0) argsort(v) take(x,i,axis=1) take_along_axis(x,i[None],1)
reshape(x,-1) x.reshape(4,3) swapaxes(x,0,1) moveaxis(t,0,2) expand_dims(x,0) broadcast_to(v,(3,4)) tile(v,2)
repeat(v,2) roll(v,1) flip(v) pad(v,1) pad(v,1,'edge') pad(v,1,'reflect') split(v,2) array_split(v,3) linspace(0,1,5)
arange(5) arange(0,1,.1) eye(3) identity(3) zeros(3) ones(3) full(3,s) full_like(v,2) tri(3) meshgrid(v,v)
indices((2,2)) bincount(i,length=4) digitize(v,v) searchsorted(v,v) histogram(v,3) percentile(v,30) quantile(v,.3)
polyval(v,s) polyfit(v,v,1) convolve(v,v) correlate(v,v) trapezoid(v) gradient(v) x[0] x[:,1] x[1:3] x[::2]
x[...,None] x[i[:2]] x[:,i] x[i[0]] x[i[:2],i[:2]] x.at[0].set(1.) x.at[0].add(v) x.at[:,i].add(1.) x.at[i[0]].set(v)
x.at[i[:2]].multiply(2.) x.at[1:].set(0.) v[-1] v[::-1] x+1 x*y x-y x/2 x**2 x**3 x**.5 x**-1 2**x x**s -x x>0 x%2
x//2 abs(x) i+1 i*2 i//2 i%3 i/2 i**2 i<<1 i&1 ~i x+v i+s x==y x.astype(int) i.astype(float) x.T x.sum() x.mean()
x.max(1) x.ravel() x.flatten() z.real z.imag abs(z) z*z z.conj() bitwise_and(i,i) bitwise_or(i,i) bitwise_xor(i,i)
invert(i) left_shift(i,1) right_shift(i,1) gcd(i,i) lcm(i,i) unique(i,size=3) nonzero(i,size=2) isin(i,i) vander(v,3)
apply_along_axis(jnp.sum,0,x) vectorize(jnp.dot)(v,v) flatnonzero(i,size=2) apply_over_axes(jnp.sum,x,[0])
piecewise(v,[v>0],[0,1]) choose(i,[v,v,v,v],mode='clip') compress(np.array([1,0,1]),x,axis=0) block([x,y])
put_along_axis(x,i[None,:1],1.,1,inplace=False) fill_diagonal(m,0.,inplace=False) diag_indices(3) tril_indices(3)
nan_to_num(x,nan=1.) linalg.norm(x) linalg.norm(v) linalg.norm(x,axis=1) linalg.inv(m) linalg.det(m) linalg.slogdet(m)
linalg.solve(m,m) linalg.cholesky(m) linalg.qr(m) linalg.svd(m) linalg.eigh(m) linalg.eigvalsh(m) linalg.pinv(m)
linalg.lstsq(m,m) linalg.matrix_power(m,3) linalg.matrix_rank(m) linalg.cond(m) linalg.multi_dot([m,m,m])
linalg.svd(m,compute_uv=False) linalg.eig(m) linalg.trace(m) linalg.outer(v,v) linalg.vecdot(x,y)
linalg.matrix_norm(m) linalg.vector_norm(v) linalg.diagonal(m) linalg.tensorinv(jnp.reshape(m[:2,:2],(2,2)),1)
linalg.cross(m,m) fft.fft(z) fft.ifft(z) fft.rfft(v) fft.irfft(z) fft.fft2(m) fft.fftshift(v) fft.fftfreq(4)
nn.relu(x) nn.relu6(x) nn.sigmoid(x) nn.softplus(x) nn.gelu(x) nn.gelu(x,approximate=False) nn.silu(x) nn.swish(x)
nn.elu(x) nn.selu(x) nn.celu(x) nn.leaky_relu(x) nn.log_sigmoid(x) nn.softmax(x) nn.log_softmax(x) nn.logsumexp(x)
nn.one_hot(i,4) nn.standardize(x) nn.glu(x) nn.hard_tanh(x) nn.hard_sigmoid(x) nn.hard_swish(x) nn.soft_sign(x)
nn.mish(x) nn.squareplus(x) nn.dot_product_attention(t[None],t[None],t[None]) nn.logmeanexp(x)
nn.softmax(x,where=b,initial=0.) nn.normalize(x) nn.log1mexp(x) nn.initializers.glorot_normal()(k,(3,4))
nn.initializers.he_uniform()(k,(3,4)) nn.initializers.orthogonal()(k,(3,3)) lax.add(x,y) lax.sub(x,y) lax.mul(x,y)
lax.div(x,y) lax.rem(x,y) lax.pow(x,y) lax.max(x,y) lax.min(x,y) lax.atan2(x,y) lax.neg(x) lax.abs(x) lax.sign(x)
lax.floor(x) lax.ceil(x) lax.round(x) lax.exp(x) lax.exp2(x) lax.log(x) lax.log1p(x) lax.expm1(x) lax.sin(x)
lax.cos(x) lax.tan(x) lax.tanh(x) lax.sinh(x) lax.cosh(x) lax.asin(x) lax.acos(x) lax.atan(x) lax.asinh(x)
lax.acosh(x) lax.atanh(x) lax.logistic(x) lax.sqrt(x) lax.rsqrt(x) lax.cbrt(x) lax.square(x) lax.reciprocal(x)
lax.integer_pow(x,3) lax.erf(x) lax.erfc(x) lax.erf_inv(x) lax.lgamma(x) lax.digamma(x) lax.igamma(x,y)
lax.igammac(x,y) lax.betainc(x,y,x) lax.polygamma(x,y) lax.zeta(x,y) lax.is_finite(x) lax.nextafter(x,y)
lax.bessel_i0e(x) lax.bessel_i1e(x) lax.real(z) lax.imag(z) lax.conj(z) lax.complex(v,v) lax.population_count(i)
lax.clz(i) lax.bitwise_not(i) lax.shift_left(i,i) lax.shift_right_logical(i,i) lax.shift_right_arithmetic(i,i)
lax.eq(x,y) lax.ne(x,y) lax.lt(x,y) lax.le(x,y) lax.gt(x,y) lax.ge(x,y) lax.select(b,x,y) lax.clamp(0.,x,1.)
lax.broadcast(x,(2,)) lax.broadcast_in_dim(v,(3,4),(1,)) lax.reshape(x,(4,3)) lax.transpose(x,(1,0)) lax.rev(x,(0,))
lax.pad(x,0.,((1,1,0),(0,0,1))) lax.concatenate([x,y],0) lax.slice(x,(0,1),(2,3)) lax.dynamic_slice(x,(i[0],1),(2,2))
lax.dynamic_update_slice(x,y[:2],(i[0],0)) lax.dynamic_index_in_dim(x,i[0]) lax.squeeze(x[None],(0,))
lax.expand_dims(x,(0,)) lax.iota(np.int32,4) lax.broadcasted_iota(np.int32,(2,3),1) lax.full((2,),1.)
lax.convert_element_type(x,np.int32) lax.bitcast_convert_type(x,np.int32) lax.reduce_precision(x,5,3) lax.dot(x,v)
lax.dot_general(t,t,(((2,),(2,)),((0,),(0,)))) lax.batch_matmul(t,t.transpose(0,2,1))
lax.conv_general_dilated(t[None],t[None,:,:2,:2],(1,1),'SAME') lax.conv(t[None],t[None,:,:2,:2],(1,1),'SAME')
lax.reduce(x,0.,lax.add,(0,)) lax.reduce_window(x,0.,lax.add,(2,2),(1,1),'VALID')
lax.reduce_window(x,-np.inf,lax.max,(2,2),(1,1),'VALID') lax.reduce_sum(x,(0,)) lax.reduce_max(x,(0,))
lax.reduce_min(x,(0,)) lax.reduce_prod(x,(0,)) lax.reduce_and(b,(0,)) lax.reduce_or(b,(0,)) lax.argmax(x,0,np.int32)
lax.cumsum(x) lax.cumprod(x) lax.cummax(x) lax.cumlogsumexp(x) lax.sort(x) lax.sort((v,v),num_keys=1) lax.top_k(v,2)
lax.associative_scan(jnp.add,v) lax.scan(lambda c,a:(c+a,c),s,v) lax.map(lambda a:a*2,v)
lax.fori_loop(0,3,lambda n,c:c*2,s) lax.fori_loop(0,i[0],lambda n,c:c*2,s) lax.while_loop(lambda c:c<3,lambda c:c+1,s)
lax.cond(s>0,lambda a:a,lambda a:-a,x) lax.switch(i[0],[jnp.sin,jnp.cos],x) lax.select_n(b,x,y) lax.stop_gradient(x)
lax.optimization_barrier(x) lax.gather(v,i[:,None],lax.GatherDimensionNumbers((),(0,),(0,)),(1,))
lax.scatter_add(v,i[:,None],v,lax.ScatterDimensionNumbers((),(0,),(0,))) lax.split(v,(1,3)) lax.tile(v,(2,))
lax.ragged_dot(x,t.transpose(0,2,1),i[:2]) lax.approx_max_k(v,2) lax.fft(z,'FFT',(4,)) lax.rng_uniform(0.,1.,(3,))
lax.rng_bit_generator(np.zeros(4,np.uint32),(3,)) lax.linalg.cholesky(m) lax.linalg.triangular_solve(m,m)
lax.linalg.lu(m) lax.linalg.qr(m) lax.linalg.svd(m) lax.linalg.eigh(m) lax.linalg.schur(m) lax.linalg.tridiagonal(m)
lax.linalg.hessenberg(m) lax.linalg.householder_product(m,m[0])
lax.custom_root(lambda a:a*a-2.,s,lambda g,a:a,lambda g,a:a) random.normal(k,(3,)) random.uniform(k,(3,))
random.randint(k,(3,),0,5) random.bernoulli(k,.5,(3,)) random.categorical(k,x) random.permutation(k,v)
random.choice(k,v) random.split(k) random.fold_in(k,1) random.gamma(k,2.,(3,)) random.beta(k,1.,2.)
random.truncated_normal(k,-1.,1.,(3,)) random.exponential(k,(3,)) random.gumbel(k,(3,)) random.laplace(k,(3,))
random.poisson(k,3.,(3,)) random.bits(k,(3,)) random.key_data(k) jax.jit(lambda a:a+1)(x) jax.checkpoint(jnp.sin)(x)
jax.grad(lambda a:jnp.sum(jnp.sin(a)))(x) jax.grad(lambda a:jnp.sum(a@a.T))(x) jax.vmap(jnp.dot)(x,y)
jax.jvp(jnp.tanh,(x,),(y,)) jax.grad(lambda a:jnp.sum(nn.softmax(a)**2))(x) jax.grad(lambda a:jnp.sum(nn.relu(a)))(x)
jax.grad(lambda a:jnp.max(a))(x) jax.grad(lambda a:jnp.mean(a**2))(x) jax.grad(lambda a:jnp.sum(a[i]))(v)
jax.vmap(lambda a:a[0])(x) jax.vmap(lambda a,j:a[j])(x,i[:3]) jax.custom_jvp(lambda a:a)(x) jax.named_call(jnp.sin)(x)
jax.grad(lambda a:lax.scan(lambda c,d:(c*d,c),s,a)[0])(v) jax.grad(lambda a:lax.cond(s>0,jnp.sin,jnp.cos,a).sum())(x)
jax.checkpoint(lambda a:jnp.sin(jnp.sin(a)))(x)
jax.grad(lambda a:jax.checkpoint(lambda a:jnp.sin(jnp.sin(a)))(a).sum())(x) jax.hessian(lambda a:jnp.sum(a**3))(v)
jax.jacfwd(jnp.sin)(v) jax.jacrev(jnp.sin)(v) jax.debug.callback(print,s) jax.pure_callback(np.sin,x,x)
scipy.special.logsumexp(x) scipy.special.erf(x) scipy.special.gammaln(x) scipy.special.expit(x) scipy.special.logit(x)
scipy.special.xlogy(x,y) scipy.special.entr(x) scipy.special.ndtr(x) scipy.special.ndtri(x) scipy.special.betaln(x,y)
scipy.stats.norm.logpdf(x) scipy.stats.norm.cdf(x) scipy.stats.gamma.logpdf(x,2.) scipy.linalg.cho_solve((m,True),m)
scipy.linalg.solve_triangular(m,m) scipy.linalg.expm(m) scipy.linalg.lu_factor(m) scipy.linalg.cholesky(m)
scipy.signal.convolve(v,v) ops.segment_sum(v,i,4) ops.segment_max(v,i,4) image.resize(x,(6,8),'bilinear')
tree_util.tree_map(jnp.sin,[x,y])
"""


def calls() -> list[str]:
    """The calls, as expressions of the arguments; a name alone is applied to one or two of them."""
    found = [f"jnp.{name}(x)" for name in UNARY.split()]
    found += [name if "(" in name else f"{name}(x,y)" for name in BINARY.split()]
    found += words(CALLS)
    return [of_namespace(c) for c in dict.fromkeys(found)]


def words(text: str) -> list[str]:
    """The words of a text, where brackets hold together what stands in them."""
    found, depth = [""], 0
    for c in text:
        depth += (c in "([") - (c in ")]")
        if c.isspace() and not depth:
            found.append("")
        else:
            found[-1] += c
    return [word for word in found if word]


def of_namespace(call: str) -> str:
    """The call with the name of its module in front."""
    name = re.match(r"[A-Za-z_0-9]+", call)
    first = name[0] if name else ""
    if first in ("jnp", "lax", "nn", "random", "jax", "x", "y", "m", "v", "i", "b", "z", "k", "s", "t", "2", "abs", ""):
        return call
    if first in ("scipy", "ops", "image", "tree_util"):
        return f"jax.{call}"
    return f"jnp.{call}"


# ------------------------------------------------------------------------------ in the worker process


def run(library: str, calls_file: str, results_file: str) -> None:
    """Leave for each call its operations, nested as the jaxprs are, or the name of what it raises."""
    jax = importlib.import_module(library)
    for name in ("ops", "image", "scipy.special", "scipy.stats", "scipy.linalg", "scipy.signal"):
        importlib.import_module(f"{library}.{name}")
    names = {"jax": jax, "np": np, **{n: importlib.import_module(f"{library}.{n}") for n in ("lax", "nn", "random")}}
    names["jnp"] = importlib.import_module(f"{library}.numpy")
    warnings.simplefilter("ignore")
    x = np.linspace(0.1, 0.9, 12, dtype=np.float32).reshape(3, 4)
    arguments = {
        **{"x": x, "y": x / 2, "m": x[:, :3] + np.eye(3, dtype=np.float32), "v": x[0], "t": np.stack([x, x])},
        **{"i": np.arange(4, dtype=np.int32), "b": x > 0.5, "z": x[0] * np.complex64(1j), "s": np.float32(0.5)},
        "k": jax.random.key(0),
    }
    results = {}
    for call in pickle.loads(Path(calls_file).read_bytes()):
        function = eval(f"lambda x, y, m, v, t, i, b, z, s, k: ({call})", names)
        try:
            closed = jax.make_jaxpr(lambda a: function(**a))(arguments)
            results[call] = operations(closed.jaxpr)
        except Exception as error:  # whatever is raised is what is compared
            results[call] = f"{type(error).__name__}: {error}"[:200]
    Path(results_file).write_bytes(pickle.dumps(results))


def operations(jaxpr) -> list:
    """For each equation its primitive, the parameters as text, and the operations of its jaxprs."""
    found = []
    for eqn in jaxpr.eqns:
        inner, shown = [], {}
        for key, value in dict(eqn.params).items():
            bodies = [v for v in (value if isinstance(value, (tuple, list)) else [value]) if hasattr(v, "eqns")]
            inner += [operations(getattr(v, "jaxpr", v)) for v in bodies]
            shown[key] = "jaxpr" if bodies else re.sub(r"0x[0-9a-f]+|catena|jax", "", str(value))[:100]
        found.append((eqn.primitive.name, shown, inner))
    return found


# ------------------------------------------------------------------------------ in the parent process


def names_of(found: list) -> list[str]:
    """The names of the operations in order; those of inner jaxprs stand behind the operation, in brackets."""
    names: list[str] = []
    for name, _, inner in found:
        names += [name, *(n for body in inner for n in ("[", *names_of(body), "]"))]
    return names


def flat(found: list) -> list:
    """All operations, those of inner jaxprs too."""
    return [op for name, shown, inner in found for op in ((name, shown), *(o for body in inner for o in flat(body)))]


def parameters(results: dict) -> dict:
    """By primitive and parameter: the values that it has."""
    seen: dict = defaultdict(lambda: defaultdict(set))
    for found in results.values():
        for name, shown in flat(found) if isinstance(found, list) else ():
            seen[name][""].add("")
            for key, value in shown.items():
                seen[name][key].add(value)
    return seen


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jax-python", default=".venv-jax/bin/python", help="a Python that has JAX")
    parser.add_argument("--only", default="", help="only calls that contain this, each shown whole")
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        run(*options.run)
        return 0
    chosen = [call for call in calls() if options.only in call]
    results = run_side_by_side(__file__, {"catena": sys.executable, "jax": options.jax_python}, chosen)
    others = 0
    for call in chosen:
        ours, theirs = (results[library][call] for library in ("catena", "jax"))
        texts = [" ".join(names_of(r)) if isinstance(r, list) else r for r in (ours, theirs)]
        if texts[0] != texts[1]:
            others += 1
            print(f"{call}\n    ours   {texts[0][:600]}\n    theirs {texts[1][:600]}")
    lacking = 0
    made = [{n for r in results[x].values() if isinstance(r, list) for n in names_of(r)} for x in ("catena", "jax")]
    print(f"only ours: {sorted(made[0] - made[1])}\nonly JAX's: {sorted(made[1] - made[0])}")
    ours, theirs = (parameters(results[library]) for library in ("catena", "jax"))
    for name in sorted(theirs.keys() & ours.keys()):
        missing = {k: sorted(v)[:3] for k, v in theirs[name].items() if k not in ours[name]}
        lacking += len(missing)
        if missing:
            print(f"{name} lacks {missing}")
        if more := sorted(ours[name].keys() - theirs[name].keys()):
            print(f"{name} has more: {more}")
    print(f"{len(chosen)} calls, {others} of other operations; {lacking} parameters are missing")
    return bool(lacking)


if __name__ == "__main__":
    sys.exit(main())
