"""What a model is told before a conversation: its tools, the project's own rules, its skills.

Finding reads the disk; building is pure, so that the same arguments give the same bytes and a
provider's cache holds from one request to the next.

Whoever can write an `AGENTS.md` or a `SKILL.md` that is found here writes your system prompt. Look
for them in folders whose authors you trust, and no higher up: that is what `top` is for.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path, PurePath
from xml.sax.saxutils import quoteattr

from landed.agent.tool import AgentTool
from landed.core.visible import line

PROJECT_FILE = "AGENTS.md"
SKILL_FILE = "SKILL.md"
READ = "read"
"""The tool that opens a skill."""

FILE_MAX_CHARS = 50_000
_DESCRIPTION_MAX_CHARS = 1_000

INTRODUCTION = (
    "You are an assistant who works with tools. Do what the user asks, say what you did, and say"
    " what you do not know."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectFile:
    """A project's own rules: where they stand, and what they say."""

    path: PurePath
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """An entry of the index of skills; what the skill says stays on the disk, at `path`."""

    name: str
    description: str
    path: PurePath


def discover_project_files(cwd: Path | str, *, top: Path | str | None = None) -> list[ProjectFile]:
    """Read every `AGENTS.md` from `top` down to `cwd`, each once: the nearest comes last.

    Without `top` it begins at the root of the disk. A text longer than `FILE_MAX_CHARS` is cut and
    says so. Raises `ValueError` where `cwd` is not below `top`, `OSError` where one that is there
    cannot be read: rules of which the model hears nothing would be broken in good faith.
    """
    below = Path(cwd).resolve()
    highest = Path(top).resolve() if top is not None else Path(below.anchor)
    folders = [folder for folder in (below, *below.parents) if folder.is_relative_to(highest)]
    if not folders:
        raise ValueError(f"{below} is not below {highest}")
    found: dict[Path, ProjectFile] = {}
    for folder in reversed(folders):
        path = folder / PROJECT_FILE
        if path.is_file() and path.resolve() not in found:
            found[path.resolve()] = ProjectFile(path=path, text=_text_of(path))
    return list(found.values())


def discover_skills(folder: Path | str) -> list[Skill]:
    """Return the skills that stand in `folder`, one in each folder with a `SKILL.md`, by name.

    Its name and description are those of its front matter; else the folder's name, and its first
    line. A folder that is not there has none.
    """
    paths = sorted(Path(folder).resolve().glob(f"*/{SKILL_FILE}"))
    return sorted(map(_skill, paths), key=lambda skill: (skill.name, str(skill.path)))


def build_system_prompt(
    *,
    tools: Sequence[AgentTool],
    today: date,
    cwd: PurePath | str,
    project_files: Sequence[ProjectFile] = (),
    skills: Sequence[Skill] = (),
    introduction: str = INTRODUCTION,
) -> str:
    """Return the system prompt: the same arguments give the same bytes.

    `tools` are those that are enabled; one with a `snippet` is listed, and each of their
    `guidelines` stands once. Skills are listed only beside a tool named `read`, without which none
    could be opened. What changes most often, the day and the folder, comes last.
    """
    listed = [f"- {tool.name}: {tool.snippet}" for tool in tools if tool.snippet]
    guidelines = dict.fromkeys(each for tool in tools for each in tool.guidelines)
    can_read = any(tool.name == READ for tool in tools)
    parts = [
        introduction,
        _section("Available tools:", listed),
        _section("Guidelines:", [f"- {each}" for each in guidelines]),
        *map(_project_file, project_files),
        _section(_ABOUT_SKILLS, [_indexed(skill) for skill in skills] if can_read else []),
        f"Current date: {today.isoformat()}\nCurrent working directory: {line(cwd)}",
    ]
    return "\n\n".join(part for part in parts if part)


_ABOUT_SKILLS = (
    "Skills, each with the file that holds it. When one fits what you are about to do, read its"
    " file first:"
)


def _section(head: str, lines: Sequence[str]) -> str:
    return "\n".join((head, *lines)) if lines else ""


def _project_file(file: ProjectFile) -> str:
    return f"<project_file path={quoteattr(line(file.path))}>\n{file.text.strip()}\n</project_file>"


def _indexed(skill: Skill) -> str:
    return f"- {line(skill.name)}: {line(skill.description)} ({line(skill.path)})"


def _text_of(path: Path) -> str:
    """Read what may be in a prompt, and no more of a large file than that."""
    with path.open(encoding="utf-8", errors="replace") as file:
        text = file.read(FILE_MAX_CHARS + 1)
    if len(text) <= FILE_MAX_CHARS:
        return text
    return f"{text[:FILE_MAX_CHARS]}\n[cut here, at {FILE_MAX_CHARS:,} characters]"


# The front matter of a skill. Of YAML it is what skills are written in: plain, quoted and folded
# values, one key to a line.
_FRONT = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*$\n?", re.DOTALL | re.MULTILINE)
_KEY = re.compile(r"^(\w[\w-]*):[ \t]*(.*)$")


def _skill(path: Path) -> Skill:
    text = _text_of(path).removeprefix("\ufeff")
    front = _FRONT.match(text)
    told = dict(_pairs(front[1].splitlines())) if front else {}
    body = text[front.end() :] if front else text
    opening = next((each.strip("# \t") for each in body.splitlines() if each.strip("# \t")), "")
    return Skill(
        name=told.get("name") or path.parent.name,
        description=(told.get("description") or opening)[:_DESCRIPTION_MAX_CHARS],
        path=path,
    )


def _pairs(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    key, parts = "", list[str]()
    for each in lines:
        if match := _KEY.match(each):
            yield key, _plain(parts)
            key, parts = match[1], [match[2]]
        else:
            parts.append(each)
    yield key, _plain(parts)


def _plain(parts: Sequence[str]) -> str:
    words = [part.strip() for part in parts]
    if words and re.fullmatch(r"[>|][+-]?", words[0]):
        words = words[1:]
    value = " ".join(word for word in words if word)
    is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if is_quoted else value
