"""Pages of profiles in a browser: five programs, a script, memory and a backward pass are opened, and tried by keyboard
and mouse, light and dark; sizes and times are printed, pictures are left in a folder.

    python benchmarks/pages.py --browser /path/to/chromium [--pictures FOLDER]

Needs the package playwright (a driver of browsers; ``pip install playwright``) and a headless Chromium.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MAKE = """
import json, os, sys, time, tracemalloc
import catena as jax, catena.numpy as jnp

folder = sys.argv[1]
x, w = jnp.ones((256, 256)), jnp.ones((256, 256))
key = jax.random.key(0)


def softmax(x):
    e = jnp.exp(x - jnp.max(x, axis=1, keepdims=True))
    return e / jnp.sum(e, axis=1, keepdims=True)


def network(w, x):
    return jnp.mean((jnp.tanh(x @ w) - x) ** 2)


def sorting(x):
    return jnp.sort(x, axis=0), jnp.cumsum(x, axis=1)


def loop(x, w):
    return jax.lax.fori_loop(0, 5, lambda i, y: jnp.sin(y) @ w, x)


def long_chain(x):
    for i in range(400):
        x = jnp.sin(x) * 2 + i if i % 7 else jnp.cumsum(x)
    return x


programs = {
    "softmax": (softmax, x), "gradient": (jax.value_and_grad(network), w, x), "sorting": (sorting, x),
    "loop": (loop, x, w), "long": (long_chain, jnp.ones(1000)),
}
times = {}
for name, (f, *args) in programs.items():
    profile = jax.jit(f).profile(*args)
    start = time.perf_counter()
    profile.save(os.path.join(folder, f"{name}.html"))
    times[name] = time.perf_counter() - start
with jax.tools.watch("script") as seen:
    step = jax.jit(loop)
    for _ in range(20):
        y = step(x, w)
seen.save(os.path.join(folder, "script.html"))
tracemalloc.start(16)
held = [jnp.ones((100, i)) for i in range(5)]
jax.tools.memory().save(os.path.join(folder, "memory.html"))
tracemalloc.stop()
jax.tools.kept(network)(w, x).save(os.path.join(folder, "kept.html"))
print(json.dumps(times))
"""
NAMES = ("softmax", "gradient", "sorting", "loop", "long", "script", "memory", "kept")
STAGES = ("steps", "memory", "fusion", "jaxpr", "graph", "program", "kernels", "llvm", "assembly")
LARGEST, SLOWEST = 2_000_000, 1.0


def lit(page, where: str) -> int:
    """How many lines are lit in a part of the page."""
    return page.locator(f"{where} .lit").count()


def try_program(page) -> None:
    """Every stage by a digit, steps by arrows, the source by the mouse; what belongs together is lit everywhere."""
    page.keyboard.press("1")
    page.keyboard.press("ArrowDown")
    assert page.locator(".cursor").count() == 1 and lit(page, "#source") and page.inner_text("#status")
    for digit, stage in enumerate(STAGES, 1):
        page.keyboard.press(str(digit))
        assert page.locator(f"#pane-{stage}").is_visible(), stage
    page.keyboard.press("Escape")
    assert not lit(page, "body")
    heated = page.locator("#source .linked", has=page.locator(".heat:not(:empty)"))
    heated.first.click()
    assert lit(page, "#source") and page.locator("#source mark").count()
    for digit, stage in enumerate(STAGES, 1):
        page.keyboard.press(str(digit))
        assert lit(page, f"#pane-{stage}"), f"nothing is lit in {stage}"
    page.keyboard.press("ArrowLeft")
    assert page.locator("#pane-llvm").is_visible()


def try_script(page) -> None:
    """The table of functions leads to the steps of one."""
    page.locator("#pane-script tbody tr").first.click()
    assert lit(page, "#source")
    page.keyboard.press("Enter")
    assert page.locator("#pane-steps").is_visible()


def try_held(page) -> None:
    """What takes most is on a line of the source."""
    page.locator("#pane-held tbody tr", has_text=".py:").first.click()
    assert lit(page, "#source")


def try_theme(page) -> None:
    """Light becomes dark by a key; the help opens and closes."""
    colour = lambda: page.evaluate("getComputedStyle(document.body).backgroundColor")  # noqa: E731
    before = colour()
    page.keyboard.press("t")
    assert colour() != before
    page.keyboard.press("?")
    assert page.locator("#keys").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("#keys").is_visible()


def look(browser, path: Path, theme: str, pictures: Path | None) -> float:
    """Open a page, try it, and say how many seconds it took to open."""
    page = browser.new_page(viewport={"width": 1400, "height": 800}, color_scheme=theme)
    troubles: list[str] = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("console", lambda message: troubles.append(message.text))
    page.on("request", lambda asked: asked.url.startswith("file:") or troubles.append(asked.url))
    start = time.perf_counter()
    page.goto(path.as_uri())
    page.wait_for_selector(".pane")
    took = time.perf_counter() - start
    {"script": try_script, "memory": try_held, "kept": try_held}.get(path.stem, try_program)(page)
    if pictures is not None:
        page.screenshot(path=pictures / f"{path.stem}-{theme}.png")
    try_theme(page)
    assert not troubles, troubles
    page.close()
    return took


@contextlib.contextmanager
def made(python: str):
    """The pages, made in a folder that lives as long as a ``with`` block, and how many seconds each took."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "programs.py"
        script.write_text(MAKE)
        done = subprocess.run([python, script, folder], capture_output=True, text=True, check=True, env=os.environ)
        yield Path(folder), json.loads(done.stdout.splitlines()[-1])


@contextlib.contextmanager
def chromium(path: str):
    """A headless browser, within a ``with`` block."""
    from playwright.sync_api import sync_playwright  # not a dependency of anything else

    with sync_playwright() as driver:
        options = ["--no-sandbox", "--no-zygote", "--disable-gpu"]
        browser = driver.chromium.launch(executable_path=path, args=options)
        yield browser
        browser.close()


def arguments(about: str) -> argparse.ArgumentParser:
    """What commands that look at pages are told."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--browser", required=True, help="a headless Chromium")
    parser.add_argument("--catena-python", default=sys.executable, help="a Python that has catena")
    return parser


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--pictures", type=Path, help="where to leave pictures")
    given = parser.parse_args()
    if given.pictures is not None:
        given.pictures.mkdir(parents=True, exist_ok=True)
    failed = []
    with made(given.catena_python) as (folder, times), chromium(given.browser) as browser:
        print(f"Chromium {browser.version}\n{'page':10} {'KB':>7} {'made':>8} {'opened':>8}")
        for name in NAMES:
            path = folder / f"{name}.html"
            opened = max(look(browser, path, theme, given.pictures) for theme in ("light", "dark"))
            size = path.stat().st_size
            text = f"{times[name]:.2f} s" if name in times else ""
            print(f"{name:10} {size / 1000:7.0f} {text:>8} {opened:6.2f} s")
            if size > LARGEST or opened > SLOWEST:
                failed.append(name)
    if failed:
        raise SystemExit(f"too large, or too slow: {', '.join(failed)}")


if __name__ == "__main__":
    main()
