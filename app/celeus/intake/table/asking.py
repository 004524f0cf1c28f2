"""A table with all that it leaves open answered: by its format, by somebody, or else asked."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from celeus.intake.questions import Choice, Question, asked
from celeus.intake.rows import Options
from celeus.intake.sources.sheet import BadRow, Sheet, refused
from celeus.intake.table.chats import ends_with_reply
from celeus.intake.table.column_names import is_of_models, is_system_run
from celeus.intake.table.columns import Column, columns_of, stands_twice
from celeus.intake.table.guessing import (
    are_like_verdicts,
    candidates,
    guessed,
    is_headless,
    labels,
    rivals,
    sentences,
    texts_of_judges,
)
from celeus.intake.table.items import JOINT, RULES, Facts, Items
from celeus.intake.table.numbers import ANY, NOTHING, Measure, measures, spelled
from celeus.intake.table.roles import (
    ASKS,
    BY_FORMAT,
    GUESSES,
    HIDDEN,
    JUDGED,
    SEEN,
    SIDES,
    Kind,
    Placed,
    by_format,
    by_mapping,
    is_ambiguous,
    with_answer,
    with_groups,
    with_roles,
    without_positions,
)

PLACE = "the file"
_MOST_CHOICES = 12
_MOST_RUNS = 6
_EXAMPLE = 120


@dataclass(frozen=True, slots=True)
class Table:
    """A table that leaves nothing open: its columns, where their roles are from, and its items."""

    columns: list[Placed]
    source: str
    examples: dict[str, list[str]]
    items: Items
    options: Options

    @property
    def facts(self) -> Facts:
        """The facts of all rows."""
        return self.items.facts


def answered(
    sheet: Sheet,
    kind: Kind,
    options: Options,
    remembered: Sequence[Mapping[str, str]] = (),
    log: str = "",
) -> Iterator[Table | None]:
    """None now and then while the table is read, and then what it is.

    ``remembered`` are mappings that were given before, the last one first: the one of the same
    columns holds where nothing else is given. ``log`` is the name of a log that the table is, of
    outputs that are joined with those of others. Raises NeedsAnswer with all questions that are
    open.
    """
    columns = columns_of(sheet, options.columns.whole)
    placed, source = _placed(sheet, columns, kind, options, remembered)
    questions = _doubted(sheet, columns, placed, kind) if source == "remembered" else []
    if options.answer is not None:
        placed = with_answer(placed, options.answer)
        questions = _beside(sheet, columns, placed) if source == "guessed" else []
    elif source == "guessed":
        questions = _judged(sheet, columns, placed, kind)
    chosen = questions or options.answer is not None
    _check_once([column for column in placed if column.role != "answer" or not chosen])
    if log:
        placed = without_positions(placed)
        questions = [
            question for question in questions if question.name == "answer" and options.judged
        ]
    if not kind.two and {*SIDES} <= {column.role for column in placed}:
        rule = "a pool of two systems, with `kind=preference`, `system_a` and `system_b`"
        raise refused("The file holds pairs of answers.", rule, None, "system_a")
    meant = measures(columns, placed, options, kind, sheet.known)
    items = Items(sheet, columns, placed, meant, options, outputs=bool(log))
    yield from items.look()
    for measure in meant:
        questions += _of_numbers(measure, items.facts, alone=len(meant) == 1)
    questions += _of_rows(placed, items.facts, options, outputs=bool(log))
    if questions:
        refusal = asked(log or PLACE, questions)
        refusal.more |= {
            "columns": [asdict(column) for column in placed],
            "format": sheet.form,
            "read_as": [*sheet.read_as],
        }
        raise refusal
    examples = {column.name: column.examples() for column in columns}
    ways = {measure.column: f"; {measure.way}" for measure in meant}
    placed = [replace(column, why=column.why + ways.get(column.name, "")) for column in placed]
    yield Table(placed, source, examples, items, options)


def _placed(
    sheet: Sheet,
    columns: Sequence[Column],
    kind: Kind,
    options: Options,
    remembered: Sequence[Mapping[str, str]],
) -> tuple[list[Placed], str]:
    """A role for every column, and where they are from."""
    if options.roles is not None:
        return with_groups(by_mapping(columns, options.roles), options.groups), "given"
    names = {column.name for column in columns}
    before = next(
        (
            roles
            for roles in remembered
            if roles.keys() == names and kind.two == ({*SIDES} <= {*roles.values()})
        ),
        None,
    )
    named = options.metric is not None and sheet.known is not None and sheet.known.metrics
    if before is not None and options.answer is None and not named:
        return by_mapping(columns, before, "as for the last file of these columns"), "remembered"
    placed = with_groups(_unsaid(sheet, columns, kind), options.groups)
    given = options.columns.named
    if sheet.known is None and not given and is_headless(columns, placed):
        rule = "names of the columns first; where these are names, a `mapping` of them"
        raise refused("The columns have rows for names.", rule, columns[0].name[:_EXAMPLE])
    return with_roles(placed, given), "guessed" if sheet.known is None else "log"


def _check_once(placed: Sequence[Placed]) -> None:
    """Refuse a column that has a role by its name where another one has the same name."""
    names = [column.name for column in placed]
    for column in placed:
        named = column.role != HIDDEN and column.source == "name"
        if named and stands_twice(column.name, names):
            rule = "a name of its own, or a `mapping` of all columns"
            what = "The file has two columns of one name."
            raise refused(what, rule, column.name, "mapping")


def _unsaid(sheet: Sheet, columns: Sequence[Column], kind: Kind) -> list[Placed]:
    """The roles of columns of which nobody has said anything."""
    if sheet.known is not None:
        return by_format(columns, sheet.known)
    return with_roles(guessed(columns, kind), sheet.roles, BY_FORMAT, "format")


def _doubted(
    sheet: Sheet, columns: Sequence[Column], placed: Sequence[Placed], kind: Kind
) -> list[Question]:
    """The question whether judges see what they saw of the last file, where it may be verdicts."""
    unsaid = {column.name for column in _unsaid(sheet, columns, kind) if column.role in SEEN}
    roles = {
        column.name: column.role
        for column in placed
        if column.role in SEEN and column.name not in unsaid
    }
    text = "Its values look like verdicts: do judges see `{}`?"
    return [
        Question(
            "mapping",
            text.format(column.name),
            (Choice(roles[column.name], "as in the last file"), Choice(HIDDEN, "they do not")),
            column.name,
            _example(sheet),
        )
        for column in columns
        if column.name in roles and are_like_verdicts(column, kind)
    ]


def _judged(
    sheet: Sheet, columns: Sequence[Column], placed: Sequence[Placed], kind: Kind
) -> list[Question]:
    """The question which column is judged, where none is known to be; a given one has its role."""
    given = {column.name for column in placed if column.source == "given"}
    columns = [column for column in columns if column.name not in given]
    roles = {column.role for column in placed}
    asks_only = not kind.two and _is_unanswered(columns, placed)
    if roles & JUDGED and not asks_only:
        which = _which(sheet, columns, rivals(columns, placed), [])
        unnamed = candidates(columns, placed)
        return which or [
            question for question in _beside(sheet, columns, placed) if question.column in unnamed
        ]
    possible = candidates(columns, placed)
    possible += [column.name for column in placed if is_ambiguous(column)]
    itself = [column.name for column in placed if column.role in ASKS]
    if asks_only:
        itself = [column.name for column in placed if column.role == "messages"]
        return _which(sheet, columns, possible, itself)
    if not possible and sheet.known is None:
        possible = labels(columns, placed)
    if not roles & SEEN:
        possible += [name for name in sentences(columns, placed) if name not in possible]
        if not possible:
            hidden = {column.name for column in placed if column.role == HIDDEN}
            filled = [column.name for column in columns if column.values]
            if hidden and hidden.isdisjoint(filled) and roles <= {"id", HIDDEN}:
                rule = "texts, chats or pictures in one column at least"
                raise refused("The columns of the file are empty.", rule)
            return _shown(sheet, [name for name in filled if name in hidden] or filled)
    if not possible:
        return _shown(sheet, texts_of_judges(columns, placed))
    if kind.two:
        text = "Is `{}` the answer of one of the two systems?"
        choices = tuple(Choice(side, f"the answer of {side[-1]}") for side in (*SIDES, HIDDEN))
        example = _example(sheet)
        return [
            Question("mapping", text.format(name), choices, name, example)
            for name in possible[:_MOST_CHOICES]
        ]
    return _which(sheet, columns, possible, itself)


def _is_unanswered(columns: Sequence[Column], placed: Sequence[Placed]) -> bool:
    """Return True where chats are all that may be judged, and none of them ends with a reply."""
    judged = {column.role: column.name for column in placed if column.role in JUDGED}
    if judged.keys() != {"messages"}:
        return False
    chats = [column for column in columns if column.name == judged["messages"]]
    return not any(ends_with_reply(chat) for column in chats for chat in column.values)


def _which(
    sheet: Sheet, columns: Sequence[Column], possible: Sequence[str], itself: Sequence[str]
) -> list[Question]:
    """The question which of these is judged, or whether one of ``itself`` is, without an answer."""
    if not possible and not itself:
        return []
    text = "Which column is judged?"
    if len(possible) > 1:
        text += " To compare two of them, make a pool of two systems."
    found = {column.name: column for column in columns}
    answers = tuple(
        Choice(name, f"such as {_start(found[name])}") for name in possible[:_MOST_CHOICES]
    )
    answers += tuple(Choice(name, "judged on its own, without an answer to it") for name in itself)
    return [Question("answer", text, answers, None, _example(sheet))]


def _beside(sheet: Sheet, columns: Sequence[Column], placed: Sequence[Placed]) -> list[Question]:
    """The question what is shown beside the answer that was named, where only that is."""
    if {column.role for column in placed} & SEEN != {"answer"}:
        return []
    return _shown(sheet, sentences(columns, placed))


def _shown(sheet: Sheet, names: Sequence[str]) -> list[Question]:
    """The question whether judges see these columns."""
    text = "Do judges see `{}`?"
    choices = Choice("payload", "judges see it"), Choice(HIDDEN, "they do not")
    example = _example(sheet)
    return [
        Question("mapping", text.format(name), choices, name, example)
        for name in names[:_MOST_CHOICES]
    ]


def _of_numbers(measure: Measure, facts: Facts, *, alone: bool) -> list[Question]:
    """The questions on a column of numbers: its direction, its scale, what stands for none."""
    before, numbers = "" if alone else f"{measure.column}=", facts.numbers[measure.column]
    found = []
    if measure.higher is None:
        text = f"Which values of `{measure.column}` are better?"
        better = "says that a is better than b" if measure.kind.two else "is better"
        choices = (
            Choice(f"{before}higher", f"a higher number, or yes, {better}"),
            Choice(f"{before}lower", f"a lower number, or no, {better}"),
        )
        found.append(Question("better", text, choices, measure.column))
    if numbers.is_of_another_scale and not measure.scale_given:
        text = (
            f"What is the scale of `{measure.column}`? Its numbers are"
            f" {spelled((numbers.low, numbers.high))}, the pool's"
            f" {spelled((measure.kind.lower, measure.kind.upper))}."
        )
        scales = tuple(
            Choice(f"{before}{spelled(ends)}", "the lowest and the highest value possible")
            for ends in numbers.scales()
        )
        found.append(Question("scale", text, scales, measure.column))
    if numbers.several:
        text = f"{numbers.several} rows have several values of `{measure.column}`. Which count?"
        ways = Choice("mean", "all, by their mean"), Choice("first", "the first one of each row")
        found.append(Question("repeats", text, ways, measure.column))
    question = _of_missing(measure, facts, before)
    return found if question is None else [*found, question]


def _of_missing(measure: Measure, facts: Facts, before: str) -> Question | None:
    """The question what stands for no score: a value, or an error beside it."""
    numbers = facts.numbers[measure.column]
    signs = numbers.signs | numbers.words
    asked_of = measure.role in GUESSES and NOTHING not in measure.missing
    errors = facts.failed if asked_of else {}
    if not signs and not errors:
        return None
    text = f"Which of these values of `{measure.column}` stand for no score?"
    if errors:
        text = f"Which of these say that there is no `{measure.column}`?"
    choices = [
        Choice(f"{before}{sign}", f"no score, in {_rows(count)}") for sign, count in signs.items()
    ]
    choices += [
        Choice(f"{column}={ANY}", f"whatever stands in `{column}`: no score in {_rows(count)}")
        for column, count in errors.items()
    ]
    if (numbers.signs or errors) and NOTHING not in signs:
        choices.append(Choice(f"{before}{NOTHING}", "all of them are scores"))
    return Question("missing", text, tuple(choices), measure.column)


def _rows(count: int) -> str:
    return f"{count} row{'s' if count > 1 else ''}"


def _of_rows(
    placed: Sequence[Placed], facts: Facts, options: Options, *, outputs: bool
) -> list[Question]:
    """The questions on rows that share an id, that have none, or that sum up the others."""
    name = next((column.name for column in placed if column.role == "id"), None)
    given = "" if options.repeats is None else f"{options.repeats}{JOINT}"
    found = []
    if facts.repeated and not given.endswith(tuple(f"{rule}{JOINT}" for rule in RULES)):
        found.append(_of_repeated(name, facts, given, outputs=outputs))
    lacking = facts.lacking if name is not None else 0
    if lacking + facts.totals and options.items is None:
        before = "" if options.rows is None else f"{options.rows}:"
        text = f"{lacking} of {facts.rows} rows have no `{name}`: are they items?"
        every = "yes, each with its row number as its id"
        if facts.totals:
            also = f", and {lacking} have no `{name}`" if lacking else ""
            text = f"{facts.totals} of {facts.rows} rows sum up the others{also}: are they items?"
            every = "yes, like the others"
        others = facts.rows - lacking - facts.totals
        choices = [
            Choice(f"{before}with_id", f"no, only the other {others} rows are"),
            Choice(f"{before}all", every),
        ]
        found.append(Question("rows", text, tuple(choices), name, facts.first_lacking))
    return found


def _of_repeated(name: str | None, facts: Facts, given: str, *, outputs: bool) -> Question:
    """The question what rows of one id are; ``given`` stands before the answer."""
    shared = "texts" if name is None else f"values of `{name}`"
    text = (
        f"{facts.repeated + facts.ids} rows have only {facts.ids} different {shared}."
        " How are rows that share one to be read?"
    )
    choices = [Choice(f"{given}items", "every row is an item of its own")]
    if facts.each is not None and any(map(is_system_run, facts.runs)):
        runs = f"every row is one of {facts.each} runs: an item of its own, for target runs"
        choices.append(Choice(f"{given}runs", runs))
    choices += [
        Choice(f"{given}first", f"they are one item, read from the first row: {facts.ids} items"),
    ]
    if facts.numbers:
        mean = f"they are one item, with their mean score: {facts.ids} items"
        choices.append(Choice(f"{given}mean", mean))
    for column, values in facts.runs.items():
        if outputs and is_of_models(column):
            text += f" Those of several models are told apart with --mapping {column}=model."
        elif outputs and f"{column}{JOINT}" not in given:
            choices.append(Choice(f"{given}{column}", "runs of one item, told apart by this"))
        some = {value: count for value, count in values.items() if value}
        if 1 < len(some) <= _MOST_RUNS and f"{column}=" not in given:
            choices += [
                Choice(f"{given}{column}={value}", f"only these {count} rows")
                for value, count in some.items()
            ]
    return Question("repeats", text, tuple(choices[:_MOST_CHOICES]), name, facts.first_repeated)


def _example(sheet: Sheet) -> dict[str, Any] | None:
    """The first row, its values cut."""
    row = next((row for _, row in sheet.rows() if not isinstance(row, BadRow)), None)
    if row is None:
        return None
    return {name: str(value)[:_EXAMPLE] for name, value in list(row.items())[:_MOST_CHOICES]}


def _start(column: Column) -> str:
    examples = column.examples()
    return f"“{examples[0]}”" if examples else "nothing"
