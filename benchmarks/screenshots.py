"""Screenshots of the pages of five programs, light and dark, beside those that are kept in ``benchmarks/screenshots``.

    python benchmarks/screenshots.py --browser /path/to/chromium            # compare
    python benchmarks/screenshots.py --browser /path/to/chromium --keep     # keep these from now on

Compared is what the page determines, and not which fonts a machine has or how long a step took: the boxes of landmarks,
within a few pixels; the texts of the tabs and of the jaxpr, which is the same on every machine; and the colours of the
picture, block by block, of which a few may differ. Pages show the jaxpr, nothing selected.
"""

import base64
import json
import sys
from pathlib import Path

from pages import arguments, chromium, made

KEPT = Path(__file__).with_name("screenshots")
PROGRAMS = ("softmax", "gradient", "sorting", "loop", "long")
LANDMARKS = "#title #theme #help #summary #bar #left #source #divider #right #tabs #panes #pane-jaxpr #status".split()
TABS = "[...document.querySelectorAll('#tabs > *')]"
BOX_OFF, TEXT_OFF = 16, 40  # pixels that a box may be off, of those that text stretches its size
BLOCKS = (35, 20)
COLOUR_OFF, BLOCKS_OFF = 40, 0.06  # how far the mean colour of a block may be off, of 255; of how many blocks not

# Draw a picture smaller, and give it as a PNG or as the list of the colours of its points.
REDUCED = """async ([picture, width, height, points]) => {
  const image = new Image();
  image.src = "data:image/png;base64," + picture;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [width, height];
  const drawn = canvas.getContext("2d");
  drawn.imageSmoothingQuality = "high";
  drawn.drawImage(image, 0, 0, width, height);
  if (!points) return canvas.toDataURL("image/png").split(",")[1];
  return [...drawn.getImageData(0, 0, width, height).data];
}"""


class Shown:
    """A page as it is shown in a theme: the boxes of its landmarks, its texts, its picture."""

    def __init__(self, browser, path: Path, theme: str):
        page = browser.new_page(viewport={"width": 1400, "height": 800}, color_scheme=theme)
        page.goto(path.as_uri())
        page.wait_for_selector(".pane")
        page.keyboard.press("4")
        page.keyboard.press("Escape")
        box = "e => { const r = e.getBoundingClientRect(); return [r.x, r.y, r.width, r.height].map(Math.round); }"
        self.boxes = {name: page.eval_on_selector(name, box) for name in LANDMARKS}
        self.tabs = page.evaluate(f"{TABS}.map(e => e.textContent)")
        self.jaxpr = page.inner_text("#pane-jaxpr").splitlines()[:12]  # long ones are drawn as they are scrolled
        picture = base64.b64encode(page.screenshot()).decode()
        self.picture = base64.b64decode(page.evaluate(REDUCED, [picture, 420, 240, False]))
        page.close()

    def facts(self) -> dict:
        """What is kept beside the picture."""
        return {"boxes": self.boxes, "tabs": self.tabs, "jaxpr": self.jaxpr}


def differences(browser, shown: Shown, facts: dict, picture: bytes) -> list[str]:
    """How a page differs from what was kept of it."""
    found = []
    for name, box in shown.boxes.items():
        least = TEXT_OFF if name in ("#title", "#summary", "#pane-jaxpr", "#theme", "#help") else BOX_OFF
        if any(abs(a - b) > least for a, b in zip(box, facts["boxes"][name], strict=True)):
            found.append(f"{name} is at {box}, was at {facts['boxes'][name]}")
    found += [f"the {what} changed" for what in ("tabs", "jaxpr") if getattr(shown, what) != facts[what]]
    page = browser.new_page()
    now, before = (
        page.evaluate(REDUCED, [base64.b64encode(each).decode(), *BLOCKS, True]) for each in (shown.picture, picture)
    )
    page.close()
    count = BLOCKS[0] * BLOCKS[1]
    off = sum(max(abs(now[4 * k + c] - before[4 * k + c]) for c in range(3)) > COLOUR_OFF for k in range(count))
    if off > BLOCKS_OFF * count:
        found.append(f"{off} of {count} blocks of the picture have another colour")
    return found


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--keep", action="store_true", help="keep these screenshots instead of comparing")
    given = parser.parse_args()
    facts_path, wrong, all_facts = KEPT / "facts.json", 0, {}
    known = {} if given.keep else json.loads(facts_path.read_text())
    with made(given.catena_python) as (folder, _), chromium(given.browser) as browser:
        for name in PROGRAMS:
            for theme in ("light", "dark"):
                shown, label = Shown(browser, folder / f"{name}.html", theme), f"{name}-{theme}"
                kept = KEPT / f"{label}.png"
                if given.keep:
                    KEPT.mkdir(exist_ok=True)
                    kept.write_bytes(shown.picture)
                    all_facts[label] = shown.facts()
                    continue
                found = differences(browser, shown, known[label], kept.read_bytes())
                wrong += bool(found)
                print(f"{label:16} {'; '.join(found) or 'as it was'}")
    if given.keep:
        facts_path.write_text(json.dumps(all_facts, indent=1) + "\n")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
