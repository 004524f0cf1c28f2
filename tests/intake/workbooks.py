"""Small workbooks, written as spreadsheet programs write them."""

import io
import zipfile
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
DAY = 1
"""The style of a cell that is a day."""
_STYLES = (
    f'<styleSheet xmlns="{MAIN}"><cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs>'
    "</styleSheet>"
)

Cell = str | float | bool | None


def cell(place: str, value: Cell) -> str:
    """A cell; a text that begins with `<` is its XML."""
    if value is None:
        return ""
    if isinstance(value, str) and value.startswith("<"):
        return f'<c r="{place}"{value[1:]}</c>'
    if isinstance(value, str):
        return f'<c r="{place}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    kind = ' t="b"' if isinstance(value, bool) else ""
    return f'<c r="{place}"{kind}><v>{float(value):g}</v></c>'


def sheet(rows: Sequence[Sequence[Cell]], merged: Sequence[str] = ()) -> str:
    """The XML of a sheet."""
    lines = "".join(
        f'<row r="{number}">'
        + "".join(cell(f"{chr(65 + at)}{number}", value) for at, value in enumerate(row))
        + "</row>"
        for number, row in enumerate(rows, 1)
    )
    ranges = "".join(f'<mergeCell ref="{place}"/>' for place in merged)
    merges = f"<mergeCells>{ranges}</mergeCells>" if merged else ""
    return f'<worksheet xmlns="{MAIN}"><sheetData>{lines}</sheetData>{merges}</worksheet>'


def workbook(
    sheets: Mapping[str, str], hidden: Sequence[str] = (), shared: Sequence[str] = ()
) -> bytes:
    """An `.xlsx` of these sheets, and of texts that their cells share."""
    listed = "".join(
        f'<sheet name="{name}" sheetId="{at}" r:id="rId{at}"'
        + (' state="hidden"/>' if name in hidden else "/>")
        for at, name in enumerate(sheets, 1)
    )
    targets = [f"worksheets/sheet{at}.xml" for at in range(1, len(sheets) + 1)]
    relations = "".join(
        f'<Relationship Id="rId{at}" Type="{RELATIONS}/worksheet" Target="{target}"/>'
        for at, target in enumerate(targets, 1)
    )
    relations += f'<Relationship Id="style" Type="{RELATIONS}/styles" Target="styles.xml"/>'
    relations += (
        f'<Relationship Id="text" Type="{RELATIONS}/sharedStrings" Target="sharedStrings.xml"/>'
    )
    texts = "".join(f"<si><t>{escape(text)}</t></si>" for text in shared)
    parts = {
        "xl/sharedStrings.xml": f'<sst xmlns="{MAIN}">{texts}</sst>',
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="r"'
        f' Type="{RELATIONS}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{RELATIONS}">'
        f"<sheets>{listed}</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">'
        f"{relations}</Relationships>",
        "xl/styles.xml": _STYLES,
    } | dict(zip((f"xl/{target}" for target in targets), sheets.values(), strict=True))
    return _zipped(parts)


def ods(rows: Sequence[Sequence[str]], instead: Mapping[str, str] | None = None) -> bytes:
    """An `.ods` of one sheet of texts, with parts of its XML replaced."""
    lines = "".join(
        "<table:table-row>"
        + "".join(
            f'<table:table-cell office:value-type="string"><text:p>{escape(value)}</text:p>'
            "</table:table-cell>"
            for value in row
        )
        + "</table:table-row>"
        for row in rows
    )
    names = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for name in ("office", "table", "text")
    )
    content = (
        f"<office:document-content {names}><office:body><office:spreadsheet>"
        f'<table:table table:name="T">{lines}</table:table>'
        "</office:spreadsheet></office:body></office:document-content>"
    )
    for part, other in (instead or {}).items():
        content = content.replace(part, other)
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    manifest = (
        '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
        f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{kind}"/>'
        "</manifest:manifest>"
    )
    parts = {"mimetype": kind, "META-INF/manifest.xml": manifest, "content.xml": content}
    return _zipped(parts)


def _zipped(parts: Mapping[str, str]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return file.getvalue()
