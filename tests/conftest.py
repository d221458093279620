"""What every test run shares: the plugins, and Hypothesis without chance or stopwatch."""

from hypothesis import settings

pytest_plugins = ["pytester", "tests.coverage_ids"]

# Derandomised: a red run stays red until somebody mends it. `--hypothesis-profile=deep` looks
# further, with another seed each time.
settings.register_profile("house", deadline=None, derandomize=True, database=None)
settings.register_profile("deep", deadline=None, max_examples=5_000)
settings.load_profile("house")
