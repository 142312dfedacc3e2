"""Draws `docs/pictures/distributions.svg`: densities of the continuous distributions of `scipy.stats`.

python docs/draw_distributions.py
"""

from pathlib import Path

import matplotlib
import numpy as np

import catena.numpy as jnp
from catena.scipy import stats

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402

PICTURE = Path(__file__).resolve().parent / "pictures" / "distributions.svg"
PANELS = {  # title: where, and the densities by label
    "around a centre": (
        (-5, 5),
        {
            "norm": stats.norm.pdf,
            "laplace": stats.laplace.pdf,
            "logistic": stats.logistic.pdf,
            "cauchy": stats.cauchy.pdf,
        },
    ),
    "positive": (
        (0, 6),
        {
            "expon": stats.expon.pdf,
            "gamma(3)": lambda x: stats.gamma.pdf(x, 3.0),
            "chi2(2.5)": lambda x: stats.chi2.pdf(x, 2.5),
            "pareto(2)": lambda x: stats.pareto.pdf(x, 2.0),
        },
    ),
    "between bounds": (
        (0, 1),
        {
            "beta(2, 5)": lambda x: stats.beta.pdf(x, 2.0, 5.0),
            "beta(1/2, 1/2)": lambda x: stats.beta.pdf(x, 0.5, 0.5),
            "uniform": stats.uniform.pdf,
            "truncnorm": lambda x: stats.truncnorm.pdf(x, -1.5, 1.0, 0.6, 0.4),
        },
    ),
    "extremes": (
        (-4, 6),
        {"gumbel_r": stats.gumbel_r.pdf, "gumbel_l": stats.gumbel_l.pdf, "t(1.5)": lambda x: stats.t.pdf(x, 1.5)},
    ),
}


def main():
    figure, axes = plt.subplots(2, 2, figsize=(8, 5), layout="constrained")
    for panel, (title, (ends, densities)) in zip(axes.flat, PANELS.items(), strict=True):
        x = jnp.linspace(*ends, 122)[1:-1]
        for label, density in densities.items():
            panel.plot(np.asarray(x), np.minimum(density(x), 3), label=label, linewidth=1.2)
        panel.set_title(title, fontsize=10)
        panel.legend(fontsize=8, frameon=False)
        panel.tick_params(labelsize=7)
    PICTURE.parent.mkdir(exist_ok=True)
    matplotlib.rcParams |= {
        "svg.hashsalt": "catena",
        "svg.fonttype": "none",
    }  # the same bytes each time, letters as letters
    figure.savefig(PICTURE, metadata={"Date": None})


if __name__ == "__main__":
    main()
