"""The look of all figures: colours and texts of the page, ids of their own, the same bytes each time, whatever the names."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from figure_builders import GOLD, NEAR, evaluation, scores

from perse.drawing.figure import Figure, save_figure

pytest.importorskip("matplotlib", reason="figures need the extra 'report'")

from perse.drawing.marks import HATCHES, MARKERS, SERIES, WIDTH, draw, empty, file_name, legend_above, plain, style
from perse.reporting.run_figures import failures, metric
from perse.reporting.score_figures import calibration, confusions, distributions


@pytest.mark.slow
def test_every_picture_has_words_numbers_and_an_image(pointwise: dict[str, Figure], pairwise: dict[str, Figure]) -> None:
    for figure in (*pointwise.values(), *pairwise.values()):
        assert re.search(r"\d", figure.alt), figure.name
        assert figure.rows and all(len(row) == len(figure.header) for row in figure.rows), figure.name
        assert "nan" not in figure.csv.lower().replace("surprise", ""), figure.name
        assert figure.png.startswith(b"\x89PNG")
        ElementTree.fromstring(figure.svg)


def test_the_same_data_is_drawn_in_the_same_bytes(pointwise: dict[str, Figure]) -> None:
    run = scores("ours", GOLD, NEAR)
    again = [distributions({"ours": run}), *confusions({"ours": run}), calibration({"ours": run}, evaluation(run))]
    assert again == [pointwise[figure.name] for figure in again]


def test_colours_are_variables_of_the_page_with_the_colour_as_fallback(pointwise: dict[str, Figure]) -> None:
    svg = pointwise["scores"].svg
    assert "var(--ink, #1a1a1a)" in svg and "var(--series-1, #0072b2)" in svg
    bare = re.sub(r"var\(--[a-z0-9-]+, #[0-9a-f]{6}\)", "", svg)
    assert not re.findall(r"#[0-9a-f]{6}(?=[;\"])", bare)
    assert "#000000" not in svg and "<style" not in svg


def test_text_stays_text(pointwise: dict[str, Figure]) -> None:
    assert ">mean expected score (dashed: exactly right)<" in pointwise["calibration"].svg


def test_no_two_pictures_share_an_id(pointwise: dict[str, Figure], pairwise: dict[str, Figure]) -> None:
    ids = [one for figure in pointwise.values() for one in re.findall(r' id="([^"]+)"', figure.svg)]
    assert ids and len(set(ids)) == len(ids)
    for figure in pointwise.values():
        used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', figure.svg))
        assert used <= set(re.findall(r' id="([^"]+)"', figure.svg)), figure.name
        assert all(one.startswith(f"{figure.name}-") for one in used)


BASELINES = ["copy the example", "unpersonalized", "Bradley-Terry", "majority", "random"]


@pytest.mark.parametrize("judges", range(1, 6))
@pytest.mark.parametrize("baselines", range(2, 6))
def test_every_name_of_a_legend_is_on_the_picture(judges: int, baselines: int) -> None:
    from matplotlib.figure import Figure as Sheet
    from matplotlib.patches import Patch

    reach = []

    def paint(sheet: Sheet) -> None:
        sheet.subplots()
        names = [*[f"judge {n}" for n in range(judges)], *BASELINES[:baselines]]
        legend_above(sheet, [Patch(label=name) for name in names])
        sheet.canvas.draw()
        reach.append(sheet.legends[0].get_window_extent().x1 / sheet.dpi)

    draw("legend", paint, height=3, title="t", alt="a", header=("a",), rows=[("1",)])
    assert reach[0] <= WIDTH


@pytest.mark.slow
def test_names_from_files_are_shown_as_they_are_and_change_nothing() -> None:
    name = 'a "judge" <script>alert(1)</script> $x$ & id="x" \x07 ' + "very " * 30 + "long"
    run = scores(name, GOLD, NEAR)
    runs = {name: run}
    for figure in (metric(evaluation(run), "mae"), distributions(runs), confusions(runs)[0], failures(runs)):
        root = ElementTree.fromstring(figure.svg)
        assert not list(root.iter("{http://www.w3.org/2000/svg}script")), figure.name
        assert figure.name == file_name(figure.name)


def test_judges_of_one_colour_differ_in_marker_and_hatch() -> None:
    looks = [style(n) for n in range(len(SERIES) * 2)]
    assert len({(look.colour, look.marker) for look in looks}) == len(looks)
    assert len({(look.colour, look.hatch) for look in looks}) == len(looks)
    assert len(MARKERS) == len(HATCHES) == 8


def test_a_long_name_is_cut_in_the_middle_and_loses_its_control_characters() -> None:
    assert plain("a\x00b\u202ec") == "a b c"
    assert plain("runs/critics-trained-on-everything", 15) == "runs/cr…rything"


def test_a_png_is_white_and_carries_its_title_above_the_picture() -> None:
    from PIL import Image

    figure = empty("none", title="A title", reason="nothing there", header=("x",))
    picture = Image.open(io.BytesIO(figure.png))
    assert picture.mode == "RGB" and picture.width == 720 and picture.getpixel((0, 0)) == (255, 255, 255)
    assert "A title" not in figure.svg and ">nothing there<" in figure.svg
    assert figure.alt == "Nothing to draw: nothing there."


def test_drawing_leaves_matplotlibs_settings_alone() -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    draw("x", lambda sheet: None, height=1.0, title="t", alt="a", header=("h",), rows=())
    assert dict(matplotlib.rcParams) == before


def test_a_matplotlibrc_changes_nothing_of_what_is_drawn() -> None:
    def drawn() -> Figure:
        return draw("x", lambda sheet: sheet.subplots().plot([1, 2]), height=2.0, title="t", alt="a", header=("h",), rows=())

    import matplotlib

    usual = drawn()
    with matplotlib.rc_context(
        {"text.usetex": True, "savefig.format": "pgf", "path.sketch": (1, 100, 2), "figure.facecolor": "red"}
    ):
        assert drawn() == usual


def test_a_figure_is_saved_with_its_numbers(tmp_path: Path, pointwise: dict[str, Figure]) -> None:
    save_figure(pointwise["failures"], tmp_path / "figures")
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == ["failures.csv", "failures.png", "failures.svg"]


def test_a_reason_without_room_in_its_row_is_not_cut_into_one_that_says_nothing() -> None:
    found = evaluation(scores("ours", GOLD, NEAR))
    missing = "the embedding model sentence-transformers/all-MiniLM-L6-v2 is not on this machine; give --embedding-model FOLDER"
    rows = [
        row.model_copy(update={"unavailable": missing, "columns": {}}) if row.name == "user+item bias" else row
        for row in found.rows
    ]
    figure = metric(found.model_copy(update={"rows": tuple(rows)}), "kendall")
    assert "no value; why stands below the tables" in figure.svg and "…" not in figure.svg
    assert any(missing in str(cell) for row in figure.rows for cell in row)
