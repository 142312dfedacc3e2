"""Detection of keys that are used twice: eager, in jaxprs, through loops and branches; and the level that
only warns.
"""

import warnings

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax, random
from catena.errors import KeyReuseError


@pytest.fixture(autouse=True)
def watched():
    with jax.debug_key_reuse(True):
        yield


def new(seed=1):
    return random.key(seed)


def two(key):
    return random.normal(key) + random.uniform(key)


# ---- eager code: a name, what it does, and whether a key is used twice


def slices(first, second):
    keys = random.split(new(), 3)
    return random.normal(keys[first]) + random.normal(keys[second])


def eager_pair(first, second):
    key = new()
    first(key)
    return second(key)


def fold(key):
    return random.fold_in(key, 1)


def vmapped(*others):
    keys = random.split(new(), 3)
    jax.vmap(random.normal)(keys)
    return [use(keys) for use in others]


EAGER = {
    "sampler, sampler": (lambda: eager_pair(random.normal, random.uniform), True),
    "sampler, split": (lambda: eager_pair(random.normal, random.split), True),
    "split, split": (lambda: eager_pair(random.split, random.split), True),
    "compiled sampler": (lambda: eager_pair(lambda k: random.gamma(k, 2.0), random.normal), True),
    "jit, jit": (lambda: eager_pair(jax.jit(random.normal), jax.jit(random.normal)), True),
    "jit, eager": (lambda: eager_pair(jax.jit(lambda k: (random.normal(k), k)), random.normal), True),
    "alias": (lambda: eager_pair(random.normal, lambda k: random.normal(jnp.reshape(k, 1)[0])), True),
    "the same element": (lambda: slices(0, 0), True),
    "other elements": (lambda: slices(0, 1), False),
    "all, then one": (lambda: vmapped(lambda keys: random.normal(keys[1])), True),
    "all, then all": (lambda: vmapped(jax.vmap(random.normal)), True),
    "clone": (lambda: eager_pair(random.normal, lambda k: random.normal(random.clone(k))), False),
    "fold_in": (lambda: eager_pair(fold, fold), False),
    "fold_in, sampler": (lambda: eager_pair(fold, random.normal), False),
    "key_data": (lambda: eager_pair(random.normal, random.key_data), False),
    "comparison": (lambda: eager_pair(random.normal, lambda k: k == k), False),
    "two keys of a seed": (lambda: random.normal(new()) + random.normal(new()), False),
    "raw keys": (lambda: two(random.PRNGKey(0)), False),
    "the same key thrice in an array": (
        lambda: jax.vmap(random.normal)(jnp.broadcast_to(new(), (3,))),
        True,
    ),
}


def check(run, reused):
    if reused:
        with pytest.raises(KeyReuseError, match="first used by"):
            run()
    else:
        run()


@pytest.mark.parametrize("name", EAGER)
def test_eager(name):
    check(*EAGER[name])


# ---- compiled code: the same questions of jaxprs


def scan_with(body, carry, length=3):
    return lax.scan(body, carry, jnp.arange(length))


def good_step(key, _):
    key, subkey = random.split(key)
    return key, random.normal(subkey)


def element_twice(key, i):
    keys = random.split(key, 3)
    return random.normal(keys[i]) + random.normal(keys[i])


def other_elements(key, i):
    keys = random.split(key, 3)
    return random.normal(keys[i]) + random.normal(keys[i + 1])


def branches(taken, other):
    return lambda k: lax.cond(True, taken, other, k)


def nothing(key):
    return 0.0


COMPILED = {
    "two samplers": (two, True),
    "nested jit": (lambda k: jax.jit(random.normal)(k) + jax.jit(random.normal)(k), True),
    "an element at an unknown index, twice": (lambda k: element_twice(k, 1 + jnp.int32(0)), True),
    "two elements at unknown indices": (lambda k: other_elements(k, jnp.int32(0)), False),
    "all, then one": (
        lambda k: (lambda s: jax.vmap(random.normal)(s).sum() + random.normal(s[0]))(random.split(k, 3)),
        True,
    ),
    "one, then all": (
        lambda k: (lambda s: random.normal(s[0]) + jax.vmap(random.normal)(s).sum())(random.split(k, 3)),
        True,
    ),
    "stacked twice": (lambda k: jax.vmap(random.normal)(jnp.stack([k, k])), True),
    "either branch": (branches(random.normal, random.uniform), False),
    "a branch, then again": (lambda k: branches(random.normal, nothing)(k) + random.normal(k), True),
    "twice in a branch": (branches(two, nothing), True),
    "scan over a closed-over key": (
        lambda k: scan_with(lambda c, _: (c + random.normal(k), None), 0.0)[0],
        True,
    ),
    "one turn of a scan": (lambda k: scan_with(lambda c, _: (c + random.normal(k), None), 0.0, 1)[0], False),
    "scan that carries a key along": (lambda k: scan_with(lambda c, _: (c, random.normal(c)), k)[1], True),
    "scan that splits": (lambda k: scan_with(good_step, k)[1], False),
    "scan over keys": (
        lambda k: lax.scan(lambda c, x: (c + random.normal(x), None), 0.0, random.split(k, 3))[0],
        False,
    ),
    "scan over keys, then one of them": (
        lambda k: (lambda s: lax.scan(lambda c, x: (c + random.normal(x), None), 0.0, s)[0] + random.normal(s[2]))(
            random.split(k, 5)
        ),
        True,
    ),
    "while, closed-over": (
        lambda k: lax.while_loop(lambda c: c < 3, lambda c: c + random.normal(k), 0.0),
        True,
    ),
    "while, in the condition": (
        lambda k: lax.while_loop(lambda c: random.normal(k) < c, lambda c: c - 1, 0.0),
        True,
    ),
    "while that folds": (
        lambda k: lax.fori_loop(0, 3, lambda i, c: c + random.normal(random.fold_in(k, i)), 0.0),
        False,
    ),
    "checkpoint": (lambda k: jax.checkpoint(two)(k), True),
    "clone": (lambda k: random.normal(k) + random.normal(random.clone(k)), False),
    "returned": (lambda k: (random.normal(k), k)[0], False),
    "wrapped twice": (
        lambda k: (lambda d: random.normal(random.wrap_key_data(d)) + random.normal(random.wrap_key_data(d)))(
            random.key_data(k)
        ),
        False,
    ),
}


@pytest.mark.parametrize("name", COMPILED)
def test_compiled(name):
    function, reused = COMPILED[name]
    check(lambda: jax.jit(function)(new()), reused)


def test_gradients():
    check(lambda: jax.grad(lambda x: x * random.normal(new()) ** 2)(1.0), False)
    key = new()
    check(lambda: jax.grad(lambda x: x * random.normal(key) * random.normal(key))(1.0), True)


def test_every_sampler_uses_its_key():
    calls = {
        "bits": (), "uniform": (), "normal": (), "exponential": (), "laplace": (), "gamma": (2.0,),
        "poisson": (2.0,), "permutation": (5,), "choice": (5,), "categorical": (np.zeros(3, np.float32),),
        "bernoulli": (), "randint": ((), 0, 5), "t": (2.0,), "binomial": (5.0, 0.5), "ball": (3,),
        "orthogonal": (2,), "dirichlet": (np.ones(3, np.float32),),
    }  # fmt: skip
    for name, arguments in calls.items():
        key = new()
        getattr(random, name)(key, *arguments)
        with pytest.raises(KeyReuseError):
            getattr(random, name)(key, *arguments)


def test_errors_name_both_lines():
    key = new()
    random.normal(key)  # line one
    with pytest.raises(KeyReuseError) as caught:
        random.uniform(key)  # line two
    text = str(caught.value)
    assert text.startswith("Previously-consumed key passed to uniform at index 0")
    first = test_errors_name_both_lines.__code__.co_firstlineno
    assert f"first used by normal at {__file__}:{first + 2}" in text
    assert f"used again by uniform at {__file__}:{first + 4}" in text


def test_loops_say_that_repetition_is_the_reason():
    with pytest.raises(KeyReuseError, match="scan body function leads to key reuse when repeatedly executed"):
        jax.jit(COMPILED["scan over a closed-over key"][0])(new())
    with pytest.raises(KeyReuseError, match="while_loop cond function leads to key reuse"):
        jax.jit(COMPILED["while, in the condition"][0])(new())


def test_off_by_default():
    with jax.debug_key_reuse(False):
        key = new()
        assert two(key) == two(key)


def test_warn_level():
    with jax.debug_key_reuse("warn"):
        key = new()
        random.normal(key)
        with pytest.warns(UserWarning, match=r"by normal at .*, now by gamma at .*test_key_reuse.py"):
            random.gamma(key, 2.0)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            a, b = random.split(new())
            random.normal(a)
            random.normal(b)
            random.normal(random.clone(key))


def test_warn_level_of_draws_that_were_planned_before():
    with jax.debug_key_reuse("warn"):
        random.normal(new(), (7,)), random.split(new())
        key = new()
        random.split(key)  # line one
        with pytest.warns(UserWarning) as caught:
            random.normal(key, (7,))  # line two
        first = test_warn_level_of_draws_that_were_planned_before.__code__.co_firstlineno + 4
        assert len(caught) == 1 and caught[0].filename == __file__ and caught[0].lineno == first + 2
        assert f"by split at {__file__}:{first} (" in str(caught[0].message)
        assert f"now by normal at {__file__}:{first + 2} (" in str(caught[0].message)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            random.normal(random.PRNGKey(0), (7,)), random.normal(random.PRNGKey(0), (7,))
            random.normal(new(), (7,)), random.normal(new(), (7,))
            jax.jit(lambda k: random.normal(k) + random.uniform(k))(new())  # eager keys only


def test_flag_admits_its_levels():
    with pytest.raises(ValueError, match="jax_debug_key_reuse"):
        jax.config.update("jax_debug_key_reuse", "perhaps")


def test_keys_that_a_jitted_function_closes_over():
    key = new(31)
    f = jax.jit(lambda: random.uniform(key))
    f()
    with pytest.raises(KeyReuseError, match="Previously-consumed key passed to jit-compiled function"):
        f()
    with pytest.raises(KeyReuseError):
        random.uniform(key)
    used = new(32)
    random.uniform(used)
    with pytest.raises(KeyReuseError):
        jax.jit(lambda x: x + random.uniform(used))(1.0)
    in_loop = new(33)
    with pytest.raises(KeyReuseError, match="repeatedly executed"):
        lax.scan(lambda c, _: (c, random.uniform(in_loop)), 0, None, length=2)
    halves = random.split(new(34))
    jax.jit(lambda: random.uniform(halves[0]))()
    jax.jit(lambda: random.uniform(halves[1]))()
