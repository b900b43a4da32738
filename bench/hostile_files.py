"""A small file that unpacks to much."""

import io
import zipfile
from functools import cache

PARAGRAPHS = 17_000_000
_NAMESPACE = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org"
_TYPES = (
    f'<Types xmlns="{_OFFICE}/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.'
    'wordprocessingml.document.main+xml"/></Types>'
)
_RELATIONS = (
    f'<Relationships xmlns="{_OFFICE}/package/2006/relationships"><Relationship Id="r" '
    f'Type="{_OFFICE}/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/>'
    "</Relationships>"
)


@cache
def docx_bomb() -> bytes:
    """A DOCX of about 149 KB: 17 million empty paragraphs, which take gigabytes as a tree."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.writestr("[Content_Types].xml", _TYPES)
        archive.writestr("_rels/.rels", _RELATIONS)
        with archive.open("word/document.xml", "w") as document:
            document.write(f'<w:document xmlns:w="{_NAMESPACE}"><w:body>'.encode())
            for _ in range(PARAGRAPHS // 100_000):
                document.write(b"<w:p/>" * 100_000)
            document.write(b"</w:body></w:document>")
    return file.getvalue()
