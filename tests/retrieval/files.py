"""Files as people send them, made by the test."""

import hashlib
import io
import zipfile
from collections.abc import Sequence

import docx


def make_pdf(pages: Sequence[str], *, count: int | None = None) -> bytes:
    """A PDF with these pages of Chinese or English lines; `count` is how many pages it says it has."""
    kids = " ".join(f"{5 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages) if count is None else count} >>",
        "<< /Type /Font /Subtype /Type0 /BaseFont /STSong-Light /Encoding /UniGB-UCS2-H "
        "/DescendantFonts [4 0 R] >>",
        "<< /Type /Font /Subtype /CIDFontType0 /BaseFont /STSong-Light /DW 1000 "
        "/CIDSystemInfo << /Registry (Adobe) /Ordering (GB1) /Supplement 2 >> >>",
    ]
    for number, page in enumerate(pages):
        lines = "\n".join(f"<{line.encode('utf-16-be').hex()}> Tj T*" for line in page.splitlines())
        content = f"BT /F1 12 Tf 50 780 Td 18 TL\n{lines}\nET"
        objects += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {6 + 2 * number} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>",
            f"<< /Length {len(content)} >>\nstream\n{content}\nendstream",
        ]
    return _pdf(objects)


def make_image_pdf() -> bytes:
    """A PDF whose one page is a picture."""
    content = "q 200 0 0 200 100 500 cm /I1 Do Q"
    return _pdf(
        [
            "<< /Type /Catalog /Pages 2 0 R >>",
            "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R "
            "/Resources << /XObject << /I1 5 0 R >> >> >>",
            f"<< /Length {len(content)} >>\nstream\n{content}\nendstream",
            "<< /Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceGray "
            "/BitsPerComponent 8 /Length 1 >>\nstream\nA\nendstream",
        ]
    )


def make_encrypted_pdf() -> bytes:
    """A PDF that asks for a password."""
    key = "00" * 32
    encrypt = f"/Encrypt << /Filter /Standard /V 1 /R 2 /O <{key}> /U <{key}> /P -4 >> /ID [<{key}> <{key}>]"
    return _pdf(
        ["<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [] /Count 0 >>"], trailer=encrypt
    )


def make_restricted_pdf() -> bytes:
    """An encrypted PDF that opens without a password and forbids to print."""
    padding = bytes.fromhex("28bf4e5e4e758a4164004e56fffa01082e2e00b6d0683e802f0ca9fe6453697a")
    owner, document, permissions = b"o" * 32, b"d" * 16, (-64).to_bytes(4, "little", signed=True)
    key = hashlib.md5(padding + owner + permissions + document).digest()[:5]
    user = _rc4(key, padding)
    encrypt = (
        f"/Encrypt << /Filter /Standard /V 1 /R 2 /O <{owner.hex()}> /U <{user.hex()}> /P -64 >> "
        f"/ID [<{document.hex()}> <{document.hex()}>]"
    )
    page = "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] >>"
    pages = "<< /Type /Pages /Kids [3 0 R] /Count 1 >>"
    return _pdf(["<< /Type /Catalog /Pages 2 0 R >>", pages, page], trailer=encrypt)


def _rc4(key: bytes, content: bytes) -> bytes:
    state, at = list(range(256)), 0
    for place in range(256):
        at = (at + state[place] + key[place % len(key)]) % 256
        state[place], state[at] = state[at], state[place]
    out, first, second = bytearray(), 0, 0
    for byte in content:
        first = (first + 1) % 256
        second = (second + state[first]) % 256
        state[first], state[second] = state[second], state[first]
        out.append(byte ^ state[(state[first] + state[second]) % 256])
    return bytes(out)


def _pdf(objects: Sequence[str], trailer: str = "") -> bytes:
    raw = b"%PDF-1.5\n"
    places: list[int] = []
    for number, text in enumerate(objects, 1):
        places.append(len(raw))
        raw += f"{number} 0 obj\n{text}\nendobj\n".encode("latin-1")
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    end = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
    end += f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R {trailer} >>\nstartxref\n{len(raw)}\n%%EOF\n"
    return raw + end.encode()


def make_docx(parts: Sequence[tuple[str | None, str]]) -> bytes:
    """A Word document of headings and paragraphs, with a table at its end."""
    document = docx.Document()
    for heading, text in parts:
        if heading:
            document.add_heading(heading, level=1)
        document.add_paragraph(text)
    table = document.add_table(rows=1, cols=2)
    table.rows[0].cells[0].text, table.rows[0].cells[1].text = "Deposit", "two months"
    raw = io.BytesIO()
    document.save(raw)
    return raw.getvalue()


def make_zip_bomb(megabytes: int = 300, name: str = "word/media/bomb.png") -> bytes:
    """A small Word document that unpacks to a large one."""
    raw = io.BytesIO(make_docx([(None, "harmless")]))
    with (
        zipfile.ZipFile(raw, "a", zipfile.ZIP_DEFLATED) as archive,
        archive.open(name, "w") as member,
    ):
        for _ in range(megabytes):
            member.write(b"\0" * 2**20)
    return raw.getvalue()


CONTRACT = "合同模板.pdf"


def make_contract() -> bytes:
    """合同模板.pdf: three pages, of which the second has the clause on breach."""
    return make_pdf(
        [
            "房屋租赁合同\n第一条 租赁标的\n甲方将位于上海市的房屋出租给乙方使用。\n"
            "第二条 租金\n每月租金为人民币五千元。",
            "第三条 违约责任\n合同违约条款：任何一方违约的，应当向对方支付违约金，\n"
            "违约金为合同总金额的百分之二十。",
            "第四条 争议解决\n因本合同引起的争议，由甲方所在地人民法院管辖。",
        ]
    )
