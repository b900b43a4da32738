"""Role files for tests, in the layouts that PromptX has had."""

from pathlib import Path

DOMAIN = ".promptx/resource/domain"
ROLE = ".promptx/resource/role"

LAWYER = {
    "lawyer.role.md": "# 律师\n<role><personality>@!thought://doubt</personality>"
    "<principle>@!execution://review</principle><knowledge>@!knowledge://law</knowledge></role>",
    "thought/doubt.thought.md": "<thought>Doubt first.</thought>",
    "execution/review.execution.md": "<execution>Read every clause.</execution>",
    "knowledge/law.knowledge.md": "<knowledge>合同法</knowledge>",
}


def write(project: Path, files: dict[str, str], below: str = "") -> Path:
    """Writes files below a folder of a project."""
    for name, text in files.items():
        path = project / below / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return project
