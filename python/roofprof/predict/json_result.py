"""Tables of predictions as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

from roofprof.render.files import write_whole
from roofprof.render.results import Result


class WrittenAsJson(Result):
    """A dataclass that is written under a schema's name."""

    SCHEMA: ClassVar[str]

    def to_dict(self) -> dict[str, Any]:
        """Return the data of the JSON; times in seconds."""
        return {"schema": self.SCHEMA, **asdict(self)}  # type: ignore[call-overload]

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the JSON text; with a path, write it there as well, whole or not at all."""
        text = json.dumps(self.to_dict(), indent=1) + "\n"
        if path is not None:
            write_whole(path, text.encode())
        return text
