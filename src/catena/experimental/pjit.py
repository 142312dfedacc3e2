"""``jit`` under its former name, with positional arguments (``jax.experimental.pjit``); use ``catena.jit``."""

from catena.transform.jit import jit as _jit
from catena.transform.jit import jitted_likewise


def pjit(
    fun,
    in_shardings=None,
    out_shardings=None,
    static_argnums=None,
    static_argnames=None,
    donate_argnums=None,
    donate_argnames=None,
    keep_unused=False,
    device=None,
    backend=None,
    inline=False,
    compiler_options=None,
):
    """``catena.jit(fun, in_shardings=in_shardings, ...)``, where PartitionSpecs may mean the mesh of ``with mesh:``."""
    jitted = _jit(
        fun,
        in_shardings=in_shardings,
        out_shardings=out_shardings,
        static_argnums=static_argnums,
        static_argnames=static_argnames,
        donate_argnums=donate_argnums,
        donate_argnames=donate_argnames,
        keep_unused=keep_unused,
        device=device,
        backend=backend,
        inline=inline,
        compiler_options=compiler_options,
    )
    if jitted._places is None:
        return jitted
    return jitted_likewise(jitted, fun, jitted._places._replace(entered=True))
