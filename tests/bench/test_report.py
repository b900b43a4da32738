"""What the documentation says about speed is what was measured."""

from bench.report import made


def test_pages_and_plots_show_the_saved_figures():
    outdated = [path.name for path, text in made().items() if not path.exists() or path.read_text() != text]
    assert not outdated, "run `make performance`"
