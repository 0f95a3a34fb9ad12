"""The report of make bench: medians, ratios, goals, tables and charts, from canned results."""
import json
import os
import sys
import xml.etree.ElementTree as ElementTree

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(os.path.dirname(HERE)), "bench")]
import canned  # noqa: E402  (needs the path above)
from measure import charts, processes, report, rows, summary  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"
WORSE_MAX = 0.10
LETTER = 0.6  # width of an average letter at size 1 in a wide font


@pytest.fixture(autouse=True)
def known_rows(monkeypatch):
    """The parts of rows.py a report reads besides the rows."""
    monkeypatch.setattr(rows, "LATER", [("webhook fan-out", "webhooks"), "a store elsewhere"],
                        raising=False)
    monkeypatch.setattr(rows, "SHARE_WORSE_MAX", WORSE_MAX)


def made_of(results):
    """The summary of canned rows."""
    return summary.build(results, canned.ROWS, WORSE_MAX)


def beside(results, key):
    """The comparison with the best durable peer of one row."""
    return next(x for x in made_of(results)["against"] if x["row"] == key)


def set_value(results, subject, key, value, state="empty"):
    """Gives every round of a row the same figure."""
    for found in results["rounds"][subject][state][key]:
        found["value"] = value


def written(results, folder):
    """(terminal text, reached, latest.md)."""
    text, reached = report.write(results, str(folder), canned.ROWS)
    return text, reached, (folder / "latest.md").read_text(encoding="utf-8")


def row_of(markdown, heading, title):
    """The cells of a row below a heading."""
    section = markdown.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    line = next(x for x in section.splitlines() if x.startswith(f"| {title}"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def texts(picture):
    """(words, left, top, right, bottom) of every text, from its own attributes."""
    boxes = []
    for node in ElementTree.fromstring(picture).iter(SVG + "text"):
        size, x, y = (float(node.get(name)) for name in ("font-size", "x", "y"))
        width = len(node.text or "") * size * LETTER
        left = x - {"start": 0, "middle": width / 2, "end": width}[node.get("text-anchor")]
        boxes.append((node.text, left, y - size * 0.75, left + width, y + size * 0.2))
    return boxes


def test_a_higher_rate_than_the_peers_is_a_ratio_above_one():
    found = beside(canned.results(), "batch")
    assert found["best_peer"] == "graphile" and found["ratio"] == pytest.approx(108000 / 41000)


def test_a_shorter_time_than_the_peers_is_a_ratio_above_one():
    found = beside(canned.results(), "pickup")
    assert found["best_peer"] == "beanstalkd_f0" and found["ratio"] == pytest.approx(0.41 / 0.3)


def test_a_peer_measured_in_turns_is_set_against_those_turns(tmp_path):
    results = canned.results()
    for one, ratio in zip(results["rounds"]["beanstalkd_f0"]["empty"]["pickup"], (0.5, 1.1, 3)):
        one["beside"] = one["value"] / ratio
    found = beside(results, "pickup")
    assert found["ratio"] == pytest.approx(1.1) and found["reached"]
    _, _, markdown = written(results, tmp_path)
    cells = row_of(markdown, "Head to head", "pickup by an idle worker, p50")
    assert "in turns with Weir: " in " ".join(cells)
    for one in results["rounds"]["beanstalkd_f0"]["empty"]["pickup"]:
        one["beside"] = one["value"] / 0.99
    assert beside(results, "pickup")["reached"] is False


def test_the_middle_of_several_figures_is_that_of_each_number():
    figures = [{"value": v, "mode": "pickup", "calls": {"pickup": {"p50_us": v * 2}}} for v in (9, 1, 4)]
    assert summary.middle(figures) == {"value": 4, "mode": "pickup", "calls": {"pickup": {"p50_us": 8}}}
    assert "late" not in summary.middle([{"late": 1}, {}])


def test_a_worse_figure_than_the_peers_is_a_ratio_below_one():
    results = canned.results()
    assert beside(results, "memory")["ratio"] == pytest.approx(33 / 45.8)
    set_value(results, "weir", "batch", 20500)
    assert beside(results, "batch")["ratio"] == pytest.approx(0.5)


@pytest.mark.parametrize("key", ["submit_64", "pickup", "memory"])
def test_a_peer_that_is_not_durable_is_never_the_best(key):
    results = canned.results()
    loose = canned.SUBJECTS["beanstalkd_f50"][2]
    assert beside(results, key)["best_peer"] != "beanstalkd_f50"
    results["subjects"][-1]["durable"] = True  # the same figures would win if it were durable
    assert beside(results, key)["best_peer"] == "beanstalkd_f50"
    assert beside(results, key)["best_value"] == pytest.approx(loose[key])


def test_the_value_is_the_median_and_the_spread_its_ends():
    line = summary.find(made_of(canned.results())["lines"], "weir", "empty", "submit_64")
    assert (line["min"], line["value"], line["max"]) == pytest.approx((44100, 49000, 58800))
    assert line["latency_us"] == pytest.approx([1110, 4390, 7340, 14400])


def test_all_goals_reached_is_said(tmp_path):
    text, reached, _ = written(canned.results(), tmp_path)
    assert reached and " 0 missed" in text and "disturbed" not in text


# 0.3 times the ceiling of 100,000; four times an fdatasync of 0.241 ms; 2.5 times another figure, 20.
@pytest.mark.parametrize("key, missed, reached", [
    ("submit_64", 29999, 30001), ("pickup", 0.965, 0.963), ("memory", 50.1, 49.9)])
def test_a_figure_short_of_its_ratio_to_a_base_is_missed(tmp_path, key, missed, reached):
    results = canned.results(("weir",), ("empty",), 1)
    set_value(results, "weir", key, missed)
    text, fine, _ = written(results, tmp_path)
    assert not fine and " 1 missed" in text
    set_value(results, "weir", key, reached)
    assert written(results, tmp_path)[1]


def test_a_machine_half_as_fast_misses_no_goal(tmp_path):
    results = canned.results()
    for of_states in results["rounds"].values():
        for of_rows in of_states.values():
            for row in canned.ROWS:
                for found in of_rows.get(row.key, []) if row.unit != "MB" and row.key != "start" else []:
                    found["value"] *= 0.5 if row.higher_is_better else 2
    results["machine"]["fdatasync"]["append"] = {"per_second": 1800, "p50_ms": 0.482, "p99_ms": 2.66}
    assert written(results, tmp_path)[1]


def test_a_figure_and_its_base_are_those_of_one_round(tmp_path):
    """A slow round is slow in both; the median of one row beside that of another would be missed."""
    results = canned.results(("weir",), ("empty",))
    by_row = results["rounds"]["weir"]["empty"]
    for number, ceiling in enumerate((100000, 50000, 200000)):
        by_row["null"][number]["value"] = ceiling
        by_row["submit_64"][number]["value"] = 0.31 * ceiling
    goals = [g for g in made_of(results)["goals"] if g["row"] == "submit_64" and g["kind"] == "base"]
    assert [g["reached"] for g in goals] == [True] and "0.310 x ceiling" in goals[0]["text"]


def test_a_goal_that_one_round_reaches_is_no_verdict(tmp_path):
    results = canned.results(("weir",), ("empty",))
    for found, value in zip(results["rounds"]["weir"]["empty"]["submit_64"], (26000, 29000, 37000)):
        found["value"] = value  # the ceiling of the last is 120,000
    text, reached, _ = written(results, tmp_path)
    assert reached and "inside the spread of the rounds: single submit, 64" in text.replace("\n", " ")


def test_a_goal_without_its_base_is_not_judged(tmp_path):
    results = canned.results(("weir",), ("empty",), 1)
    del results["rounds"]["weir"]["empty"]["null"]
    set_value(results, "weir", "submit_64", 1)
    assert written(results, tmp_path)[1]
    assert not [g for g in made_of(results)["goals"] if (g["row"], g["kind"]) == ("submit_64", "base")]


def test_rows_that_are_asked_for_bring_the_bases_of_their_goals():
    assert rows.with_needs({"append_single"}) == {"append_single", "submit_64", "null"}
    assert rows.with_needs({"rebuild"}) >= {"rebuild", "append_batch_one", "batch", "null"}
    known = {row.key for row in rows.ROWS} | set(summary.FACTS)
    assert all(row.goal.of in known for row in rows.ROWS if row.goal)


def test_growth_is_judged_by_pairs_where_there_are_any(tmp_path):
    """Each round against the empty store measured beside it, not against the median of another time."""
    results = canned.results()
    state = next(s["key"] for s in results["states"] if s["key"] != "empty")
    found = results["rounds"]["weir"][state]["submit_64"]
    for one, value in zip(found, (50000, 20000, 30000)):
        one["value"], one["beside"] = value, value / 0.95
    made = summary.build(results, rows.ROWS, rows.SHARE_WORSE_MAX)
    line = summary.find(made["lines"], "weir", state, "submit_64")
    assert round(line["change"], 3) == -0.05
    for one in found:
        one["beside"] = one["value"] / 0.85
    made = summary.build(results, rows.ROWS, rows.SHARE_WORSE_MAX)
    goal = next(g for g in made["goals"]
                if (g["row"], g["state"], g["kind"]) == ("submit_64", state, "growth"))
    assert goal["reached"] is False


def test_a_missed_peer_goal_is_missed_and_never_rounded_up(tmp_path):
    results = canned.results()
    set_value(results, "bullmq", "submit_64", 24550)  # 1.996 times
    text, reached, markdown = written(results, tmp_path)
    cells = row_of(markdown, "Head to head", "single submit, 64 in flight")
    assert not reached and " 1 missed" in text
    assert cells[-3] == "1.99" and cells[-1] == "yes, **no**"


@pytest.mark.parametrize("share, fine", [(0.901, True), (0.899, False), (1.5, True)])
def test_a_loss_of_more_than_a_tenth_with_jobs_stored_is_missed(tmp_path, share, fine):
    results = canned.results()
    set_value(results, "weir", "submit_1", 3000 * share, "stored_10m")
    _, reached, markdown = written(results, tmp_path)
    assert reached == fine
    assert row_of(markdown, "Growth", "single submit, 1 in flight")[3].startswith("**") != fine


def test_growth_of_a_row_without_that_goal_is_shown_but_not_judged(tmp_path):
    results = canned.results()
    set_value(results, "weir", "start", 80, "stored_10m")
    _, reached, markdown = written(results, tmp_path)
    assert reached and row_of(markdown, "Growth", "start to ready")[3] == "80.0 (-75%)"


def test_growth_is_missed_only_when_every_round_is_too_slow(tmp_path):
    results = canned.results()
    empty = results["rounds"]["weir"]["empty"]["drain"]
    for found, value in zip(empty, (100000, 100000, 100000)):
        found["value"] = value
    for values, expected, word in (((70000, 80000, 95000), True, "inside the spread"),
                                   ((70000, 80000, 89000), False, "missed")):
        for found, value in zip(results["rounds"]["weir"]["stored_1m"]["drain"], values):
            found["value"] = value
        _, reached, markdown = written(results, tmp_path)
        named = [line for line in markdown.splitlines() if "-20.0% against empty" in line]
        assert reached is expected and len(named) == 1 and word in named[0]


def test_one_short_round_without_peers_is_a_report(tmp_path):
    text, reached, markdown = written(canned.results(("weir",), ("empty",), 1), tmp_path)
    assert reached and "1 round(s), short" in text and "## Growth" not in markdown
    assert row_of(markdown, "Head to head", "single submit, 64 in flight")[-1] == "yes, -"


def test_what_was_not_measured_leaves_gaps(tmp_path):
    results = canned.results()
    del results["rounds"]["pgboss"]
    del results["rounds"]["weir"]["stored_1m"]["drain"]
    del results["rounds"]["weir"]["timers_1m"]
    del results["rounds"]["bullmq"]["empty"]["submit_64"]
    results["rounds"]["restate"]["empty"]["disk"] = [{"value": None}]
    del results["rounds"]["weir"]["empty"]["submit_1"][0]["calls"]
    _, _, markdown = written(results, tmp_path)
    cells = row_of(markdown, "Head to head", "single submit, 64 in flight")
    assert cells[3:5] == ["", ""] and cells[8].startswith("beanstalkd -f0:")
    assert row_of(markdown, "Head to head", "disk")[6] == ""
    assert row_of(markdown, "Growth", "claim, start, finish")[2] == ""
    assert "timers" not in markdown


@pytest.mark.parametrize("subjects, states", [((), ()), (("bullmq",), ("empty",)),
                                              (("weir", "bullmq"), ("stored_1m",))])
def test_a_run_with_almost_nothing_in_it_does_not_crash(tmp_path, subjects, states):
    assert written(canned.results(subjects, states), tmp_path)[1] in (True, False)


def test_parts_stand_in_reading_order(tmp_path):
    markdown = written(canned.results(), tmp_path)[2]
    parts = ["Measured 2026", "## Head to head", "## Durability", "## Weir, SQLite: empty store",
             "## Growth", "## Server CPU by thread", "## Rows that join later", "## Caveats"]
    places = [markdown.index(part) for part in parts]
    assert places == sorted(places)
    assert "webhook fan-out: joins with webhooks" in markdown and "- a store elsewhere" in markdown


def test_a_subject_that_is_not_durable_is_in_italics_and_marked(tmp_path):
    markdown = written(canned.results(), tmp_path)[2]
    assert "*beanstalkd -f50 (default) (not durable)*" in markdown
    assert row_of(markdown, "Head to head", "single submit, 64 in flight")[7] == "*143,000*"


def test_the_terminal_text_has_no_marks_of_markdown_and_aligned_columns(tmp_path):
    text = written(canned.results(), tmp_path)[0]
    assert "**" not in text and "|" not in text and ".svg" not in text
    tables = [part.splitlines() for part in text.split("\n\n") if "\n-----" in part]
    assert tables and all(len(line) <= max(len(x) for x in table if x.startswith("---"))
                          for table in tables for line in table)


def test_threads_are_shown_once_for_a_measured_row_and_never_for_a_derived_one(tmp_path):
    markdown = written(canned.results(), tmp_path)[2]
    cells = row_of(markdown, "Server CPU by thread", "pickup |")
    assert cells == ["pickup", "commit", "6.00", "6.00"]
    assert "| pickup_p99 |" not in markdown


def test_a_figure_that_others_disturbed_is_marked(tmp_path):
    results = canned.results()
    for found in results["rounds"]["bullmq"]["empty"]["batch"]:
        found["others_cpu_share"] = 0.06
    markdown = written(results, tmp_path)[2]
    assert " 1 of " in markdown and "were disturbed by others" in markdown
    assert row_of(markdown, "Head to head", "submit in batches")[2:4] == ["7,200", "21,000 (!)"]


def test_notes_of_the_run_are_shown(tmp_path):
    results = canned.results(("weir",)) | {"notes": ["Restate was left out: not installed."]}
    text, _, markdown = written(results, tmp_path)
    assert "- Restate was left out" in text and "- Restate was left out" in markdown


def test_the_json_holds_every_round_and_the_summary(tmp_path):
    written(canned.results(), tmp_path)
    kept = json.loads((tmp_path / "latest.json").read_text(encoding="utf-8"))
    assert len(kept["rounds"]["weir"]["empty"]["batch"]) == 3
    assert summary.find(kept["summary"]["lines"], "weir", "empty", "batch")["value"] == 108000


RUNS = {"full": canned.results(), "postgres": canned.results(canned.WITH_POSTGRES),
        "quick": canned.results(("weir",), ("empty",), 1),
        "one state": canned.results(("weir", "bullmq"), ("empty", "stored_1m"), 2),
        "nothing": canned.results((), ())}
RUNS["wide apart"] = canned.results()
set_value(RUNS["wide apart"], "weir", "start", 9000, "stored_10m")
set_value(RUNS["wide apart"], "weir", "drain", 900000, "timers_1m")
set_value(RUNS["wide apart"], "bullmq", "submit_64", 123456789)
RUNS["wide apart"]["subjects"][3]["title"] = "R&D <odd> peer of a long name, more as long"


@pytest.mark.parametrize("draw", [charts.head_to_head, charts.growth])
@pytest.mark.parametrize("run", RUNS)
def test_every_word_of_a_chart_is_inside_it_and_beside_the_others(draw, run):
    picture = draw(RUNS[run], made_of(RUNS[run]), canned.ROWS)
    root = ElementTree.fromstring(picture)
    width, height = float(root.get("width")), float(root.get("height"))
    boxes = texts(picture)
    assert width == 900 and boxes
    for words, left, top, right, bottom in boxes:
        assert left >= 0 and top >= 0 and right <= width and bottom <= height, words
    for at, (words, left, top, right, bottom) in enumerate(boxes):
        for other, left2, top2, right2, bottom2 in boxes[at + 1:]:
            beside_it = right <= left2 or right2 <= left
            assert beside_it or bottom <= top2 or bottom2 <= top, (words, other)


def test_a_chart_shows_every_subject_and_hatches_what_is_not_durable():
    results = canned.results()
    picture = charts.head_to_head(results, made_of(results), canned.ROWS)
    shown = " ".join(words or "" for words, *_ in texts(picture))
    assert all(word in shown for word in ("Weir", "beanstalkd -f0", "BullMQ", "pg-boss",
                                          "graphile-worker", "Restate", "beanstalkd -f50"))
    assert "not measured" in shown  # Restate has no bulk
    hatched = [r for r in ElementTree.fromstring(picture).iter(SVG + "rect")
               if r.get("fill", "").startswith("url(#loose")]
    assert len(hatched) == 1 + 7  # the legend; six panels, one of them with two bars


def test_the_growth_chart_places_a_row_in_percent_of_the_empty_store():
    results = canned.results(("weir",), ("empty", "stored_1m"))
    points = dict((row.key, shares) for row, shares in charts.growth_points(
        results, made_of(results), canned.ROWS, results["states"][1:]))
    assert points["batch"]["stored_1m"] == pytest.approx((0.97, 0.873, 1.164))
    assert points["pickup"]["stored_1m"] == pytest.approx((0.97, 0.97 / 1.2, 0.97 / 0.9))


def test_a_row_without_that_goal_does_not_stretch_the_growth_chart():
    results = canned.results(("weir",), ("empty", "stored_1m"))
    set_value(results, "weir", "start", 9000, "stored_1m")
    made = made_of(results)
    points = charts.growth_points(results, made, canned.ROWS, results["states"][1:])
    assert charts.axis(points)[0] == 80  # below the pickup's slowest round, 81
    left = [float(dot.get("cx")) for dot in ElementTree.fromstring(
        charts.growth(results, made, canned.ROWS)).iter(SVG + "circle")]
    assert min(left) >= charts.GROWTH_LABEL


def test_the_rows_of_the_benchmark_fit_the_report(tmp_path):
    results = canned.results()
    text, _ = report.write(results, str(tmp_path))
    assert all(row.title.split(",")[0] in text.replace("\n", " ") for row in rows.ROWS
               if row.key in results["rounds"]["weir"]["empty"])


def with_postgres(states=("empty", "stored_1m")):
    """A run with Weir on both stores; its idle row has the statements of some stages."""
    results = canned.results(canned.WITH_POSTGRES, states)
    for found in results["rounds"]["weir_postgres"]["empty"]["idle"]:
        found["stages"] = {"batch": {"count": 5000, "statements": 50, "commits": 5},
                           "submit_1": {"count": 10, "statements": 50, "commits": None}}
        found["often"] = [{"text": "SELECT 1\n  FROM `t` WHERE " + "x AND " * 99, "per_second": 1.25}]
    for found in results["rounds"]["weir_postgres"]["empty"]["batch"]:
        found["server_threads"] |= {"postgres backend": {"user_s": 0.4, "system_s": 0.1}, processes.ENDED: {
            "user_s": 0.07, "system_s": 0}, "http": {"user_s": 0.03, "system_s": 0.07}}
    return results


def test_ours_on_a_database_is_set_against_the_peers_on_it():
    made = made_of(with_postgres())
    found = {(x["subject"], x["row"]): x for x in made["against"]}
    assert found["weir", "submit_64"]["best_peer"] == "bullmq"
    on_it = found["weir_postgres", "submit_64"]
    assert on_it["best_peer"] == "pgboss" and on_it["ratio"] == pytest.approx(17000 / 1600)


def test_turns_with_another_of_ours_are_not_turns_with_this_one():
    results = with_postgres()
    for one in results["rounds"]["graphile"]["empty"]["pickup"]:
        one |= {"beside": 0.17, "beside_subject": "weir"}
    found = next(x for x in made_of(results)["against"]
                 if (x["subject"], x["row"]) == ("weir_postgres", "pickup"))
    assert found["beside"] is None and found["ratio"] == pytest.approx(1.7)


def test_ours_on_a_database_has_goals_of_its_own(tmp_path):
    results = with_postgres()
    # Far below the goals of the rows, and of growth: none of them are its own; a full store has none.
    set_value(results, "weir_postgres", "batch", 100)
    set_value(results, "weir_postgres", "batch", 10, "stored_1m")
    assert written(results, tmp_path)[1]
    kinds = {(g["row"], g["kind"], g["state"]) for g in made_of(results)["goals"]
             if g["subject"] == "weir_postgres"}
    assert kinds == {("submit_64", "base", "empty"), ("cycle", "base", "empty"),
                     ("cycle", "peer", "empty"), ("idle", "base", "empty")}


@pytest.mark.parametrize("key, value", [("submit_64", 10000), ("idle", 10.1), ("cycle", 9000)])
def test_a_goal_missed_on_a_database_is_missed_and_says_where(tmp_path, key, value):
    results = with_postgres(("empty",))
    set_value(results, "weir_postgres", key, value)
    text, reached, markdown = written(results, tmp_path)
    named = [line for line in markdown.splitlines() if line.startswith("- missed: ")]
    assert not reached and named and all(x.startswith("- missed: Weir, PostgreSQL: ") for x in named)
    row = next(row for row in canned.ROWS if row.key == key)
    assert "**no**" in row_of(markdown, "On PostgreSQL", row.title)[-1]
    assert "**no**" not in row_of(markdown, "Head to head", "single submit, 64 in flight")[-1]


def test_the_part_on_a_database_shows_its_peers_and_its_statements(tmp_path):
    text, _, markdown = written(with_postgres(), tmp_path)
    part = markdown.partition("## On PostgreSQL\n")[2].partition("\n## ")[0]
    assert "| Weir, PostgreSQL | pg-boss, PostgreSQL | graphile-worker, PostgreSQL | best" in part
    assert "BullMQ" not in part
    cells = row_of(markdown, "On PostgreSQL", "submit in batches of 1000 | 0.01")
    assert cells[1:] == ["0.01", "1,000", "10.0", "22.0", "57.0", "6.30"]
    assert row_of(markdown, "On PostgreSQL", "single submit, 1 in flight | 5.00")[2:4] == ["", ""]
    shown = row_of(markdown, "On PostgreSQL", "`SELECT 1 FROM 't'")
    assert len(shown[0]) <= report.STATEMENT_WIDTH + 2 and shown[1] == "1.25"
    for title in ("Growth: Weir, PostgreSQL", "Server CPU by thread: Weir, PostgreSQL",
                  "Weir, PostgreSQL: 1,000,000 jobs stored"):
        assert f"## {title}\n" in markdown
    assert text.count("growth.svg") == 0 and markdown.count("growth.svg") == 1


def test_a_chart_puts_the_peers_on_a_database_beside_ours_on_it():
    subjects = charts.in_order(with_postgres()["subjects"])
    assert [s["name"] for s in subjects][:4] == ["weir", "weir_postgres", "pgboss", "graphile"]
    assert subjects[-1]["name"] == "beanstalkd_f50"
