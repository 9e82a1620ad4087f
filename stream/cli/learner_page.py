"""The page of a learner, or of a preset of one: what it is, its settings, commands to try."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from stream.cli import listing
from stream.cli.page import near, page, say_examples, say_settings
from stream.config import choices
from stream.config.description import SettingDescription, shown, shown_settings
from stream.errors import UserError, choose
from stream.learners.description import LearnerDescription, broken_learners, described_learners
from stream.learners.tags import Tags

TAG_WORDS: Mapping[str, Mapping[bool, str]] = {
    "reads_past_tasks": {True: "reads what earlier tasks left, so that their order matters"},
    "is_reference": {True: "a reference: a bound or control that methods are compared with"},
    "is_multitask": {True: "learns all tasks at once, which is no continual learning"},
    "seeded": {False: "draws no random numbers: every seed gives the same result"},
    "uses_encoder": {False: "uses the tokenizer alone, not the encoder"},
    "makes_steps": {False: "fits a task at once, without training steps"},
    "learns_spans": {False: "cannot learn span tasks"},
    "sparse_differences": {True: "stores what a task changed as differences at few places"},
    "keeps_pretrained": {False: "does not need the pretrained weights after the last task"},
}
"""What a tag says where it has this value; what else it says goes without saying."""
COMMON = ("lr", "head_lr")
"""The settings that every method has."""


def show_learner(name: str, extra: Path | None, as_json: bool) -> None:  # noqa: FBT001
    """Show a method, or a preset of one."""
    known, presets = described_learners(), choices.presets(extra)
    broken = broken_learners() | presets.broken
    if name in broken:
        raise UserError(f"learner {name!r} cannot be used: {broken[name]}")
    choose("learner", name, [*known, *presets.usable])
    preset = presets.usable.get(name)
    learner = known[choose("learner", preset.content.learner if preset else name, known)]
    if preset:
        learner = _with_values(learner, preset.content.settings)
    if as_json:
        more = {"preset": listing.preset_values(preset)} if preset else {}
        listing.print_json({**learner.to_json(), **more})
        return
    title = preset.summary if preset else learner.summary.removesuffix(".")
    screen = page(f"{name}: {title}", _about(learner, preset))
    say_settings(screen, "learner", learner.settings)
    say_examples(screen, examples(name, learner.settings), extra if preset else None)
    if learner.background:
        screen.line()
        screen.line("What the file says about it", "bold")
        for paragraph in learner.background.split("\n\n"):
            screen.paragraph(" ".join(paragraph.split()), "  ")


def _with_values(learner: LearnerDescription, values: Mapping[str, Any]) -> LearnerDescription:
    """Return a method with other defaults.

    Raises:
        UserError: a setting that it does not have.
    """
    for name in values:
        choose(f"setting of {learner.name}", name, [s.name for s in learner.settings])
    changed = [replace(s, default=values.get(s.name, s.default)) for s in learner.settings]
    return replace(learner, settings=tuple(changed))


def _about(
    learner: LearnerDescription, preset: choices.Choice[choices.Preset] | None
) -> Iterator[tuple[str, str]]:
    """Yield what is to be said of a method, by name."""
    if preset:
        different = shown_settings(preset.content.settings)
        yield "preset", f"{learner.name} with {different or 'its own defaults'}"
    yield "paper", learner.tags.paper
    memory = listing.MEMORY[learner.perfect_memory]
    yield "memory", f"{memory}: {dict(listing.MEMORY_WORDS)[memory]}".removeprefix("-: ")
    yield "stores", learner.tags.stores
    yield "kind", "; ".join(_tags_in_words(learner.tags))
    yield "file", near(Path(preset.file if preset else learner.file))


def _tags_in_words(tags: Tags) -> list[str]:
    """Return what the tags of a method say."""
    said = [(field.name, getattr(tags, field.name)) for field in fields(tags)]
    return [TAG_WORDS[name][value] for name, value in said if value in TAG_WORDS.get(name, {})]


def examples(name: str, settings: Sequence[SettingDescription]) -> list[str]:
    """Return commands to try: a small run, and one with another value of a setting.

    Args:
        name: the learner, or the preset.
        settings: its settings.
    """
    small = f"task-stream run learner={name} 'task=[sst2,rte]' limits.train=200"
    free = [s for s in settings if not s.effect and isinstance(s.default, bool | int | float)]
    own = [s for s in free if s.name not in COMMON] or free
    if not own:
        return [small]
    default = own[0].default
    if isinstance(default, bool):
        other: float = not default
    else:  # half of a fraction is one too
        other = default / 2 if isinstance(default, float) else 2 * default
    return [small, f"{small} learner.{own[0].name}={shown(other)}"]
