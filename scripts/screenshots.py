"""Takes the picture of the console that the README shows.

    python -m scripts.screenshots

starts `landed serve --demo`, opens what waits in Debian's Chromium, and writes
`docs/images/console.png`. Pictures of every page are left in `build/screenshots` by the tests.
"""

import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.browser.driving import CHROMIUM, FLAGS, entered, serving

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "console.png"
SIZE = {"width": 1120, "height": 900}


def main() -> None:
    """Take the picture, and say where it is."""
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    with serving("--demo", "--as", "ana") as served, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        page = entered(browser, served, viewport=SIZE).new_page()
        page.goto(f"{served.console}/waiting")
        page.screenshot(path=PICTURE, animations="disabled")
        browser.close()
    sys.stdout.write(f"{PICTURE}: {PICTURE.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()
